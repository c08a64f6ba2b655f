//! Verdict of an RFC 6349 run in one sentence.

use linerate_documents::rfc6349::{Rfc6349Document, TcpTest};
use linerate_model::direction::Direction;
use linerate_units::{BitRate, display};

pub(super) fn sentence(document: &Rfc6349Document) -> String {
    let sentences: Vec<String> = [(Direction::Up, "Up"), (Direction::Down, "Down")]
        .into_iter()
        .filter_map(|(direction, name)| Some(direction_sentence(name, single_connection_test(document, direction)?)))
        .collect();
    if sentences.is_empty() { "No transfer was completed.".to_owned() } else { sentences.join(" ") }
}

/// Transfer over one connection, the first metric of RFC 6349.
fn single_connection_test(document: &Rfc6349Document, direction: Direction) -> Option<&TcpTest> {
    let mut tests = document.tests.iter().filter(|test| test.direction == direction && test.problem.is_none());
    tests.find(|test| test.connections == 1)
}

fn direction_sentence(name: &str, test: &TcpTest) -> String {
    let rate = test.goodput_bits_per_second.map(|rate| display::rate(BitRate::from_bits_per_second(rate)));
    // The bandwidth is a measured one, with an interval: nothing exceeds what can be reached.
    let share = test.share_of_achievable.map(|share| match share {
        share if share >= 1.0 => ", all that TCP can reach".to_owned(),
        share => format!(", {:.0} % of what TCP can reach", share * 100.0),
    });
    let meaning = test.meaning.trim_end_matches('.');
    let mut meaning = meaning.chars();
    let lower: String = meaning.next().into_iter().flat_map(char::to_lowercase).chain(meaning).collect();
    match rate {
        Some(rate) => format!("{name}, one connection carries {rate}{}: {lower}.", share.unwrap_or_default()),
        None => format!("{name}: {lower}."),
    }
}
