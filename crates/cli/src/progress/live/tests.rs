//! Tests of the picture, drawn into memory.

use std::time::Duration;

use linerate_documents::progress::{EventKind, ProgressEvent};
use linerate_engine::path::{HopRound, HopsSnapshot};
use linerate_model::limit::LimitShares;
use linerate_model::route::{HopAddress, HopReplies, PathHop, RouteReport};
use linerate_model::summary::DurationDistribution;
use linerate_report::throughput_text::{TerminalWidth, TextStyle};
use linerate_units::Ratio;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::Color;

use super::draw;
use super::state::{HopSelection, LivePicture};

/// The middle of a load test: an idle path of 20 ms, then a full download, then an upload for three seconds.
fn load() -> LivePicture {
    let mut picture = LivePicture::new("linerate load far.example, port 5201", &["idle", "down", "up", "both"]);
    let mut clock = 0;
    let mut apply = |picture: &mut LivePicture, milliseconds: u64, event: ProgressEvent| {
        clock += milliseconds;
        picture.apply(&ProgressEvent { at_ns: clock * 1_000_000, ..event });
    };
    let sample = |rtt: u64| ProgressEvent { rtt_ns: Some(rtt * 1_000_000), ..ProgressEvent::new(EventKind::Sample) };
    apply(&mut picture, 0, ProgressEvent::phase("idle", Some(6_000_000_000)));
    (0..60).for_each(|_| apply(&mut picture, 100, sample(20)));
    apply(&mut picture, 0, ProgressEvent::phase("down", None));
    let down = |rtt| ProgressEvent { down_bits_per_second: Some(94.1e6), ..sample(rtt) };
    (0..100).for_each(|step| apply(&mut picture, 100, down(20 + step / 4)));
    apply(&mut picture, 0, ProgressEvent::phase("up", None));
    apply(&mut picture, 0, ProgressEvent::phase("up", Some(10_000_000_000)));
    let limits = LimitShares { network: Ratio::of(0.97, 1.0).expect("finite"), ..LimitShares::default() };
    let up = ProgressEvent { up_bits_per_second: Some(9.4e6), limits: Some(limits), ..sample(152) };
    (0..30).for_each(|_| apply(&mut picture, 100, up.clone()));
    apply(&mut picture, 0, ProgressEvent::with_text(EventKind::Note, "the probe interval of each class is 385 ms"));
    picture
}

fn drawn(picture: &LivePicture, (width, height): (u16, u16), colour: bool, unicode: bool) -> Buffer {
    let style = TextStyle { width: TerminalWidth::new(width), colour, unicode };
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("memory");
    terminal.draw(|frame| draw::draw(frame, picture, style)).expect("memory");
    terminal.backend().buffer().clone()
}

fn lines(buffer: &Buffer) -> Vec<String> {
    let row = |cells: &[ratatui::buffer::Cell]| cells.iter().map(ratatui::buffer::Cell::symbol).collect::<String>();
    buffer.content.chunks(usize::from(buffer.area.width)).map(row).collect()
}

/// Rows in which a curve is drawn, between two lines of text.
fn rows_with_curve(lines: &[String], from: &str, to: &str) -> usize {
    let start = lines.iter().position(|line| line.starts_with(from)).expect("title");
    let end = lines.iter().position(|line| line.starts_with(to)).expect("title");
    let is_mark = |character: char| ('\u{2801}'..='\u{28ff}').contains(&character) || "•*o".contains(character);
    lines[start + 1..end].iter().filter(|line| line.chars().any(is_mark)).count()
}

#[test]
fn the_picture_has_its_parts_at_every_size() {
    for (size, unicode) in [(120, 30), (80, 24), (60, 16)].into_iter().flat_map(|size| [(size, true), (size, false)]) {
        let lines = lines(&drawn(&load(), size, true, unicode));
        let text = lines.join("\n");
        assert!(lines[0].starts_with("linerate load far.example, port 5201") && lines[0].ends_with("0:19"), "{text}");
        for part in ["7 s left", "9.40 Mbit/s", "RTT 152 ms, 132 ms more than idle", "q: stop"] {
            assert!(text.contains(part), "{size:?} {part}:\n{text}");
        }
        let limit = "LIMITED BY  the path, 97 % of the time: its queue adds 132 ms";
        assert!(lines.iter().any(|line| line.starts_with(limit) || line.starts_with(&limit[..59])), "{text}");
        assert!(lines.iter().any(|line| line.starts_with("note: the probe interval")), "{text}");
        assert!(rows_with_curve(&lines, "Goodput", "Delay") >= 1, "{text}");
        assert!(rows_with_curve(&lines, "Delay", "LIMITED BY") >= 2, "{text}");
        assert_eq!(text.is_ascii(), !unicode, "{text}");
    }
}

#[test]
fn phases_show_what_is_done_and_what_follows() {
    let wide = lines(&drawn(&load(), (120, 30), true, true)).join("\n");
    for row in ["✓ idle", "✓ down", "▶ up", "· both", "RTT 20.0 ms", "↓ 94.1 Mbit/s"] {
        assert!(wide.contains(row), "{row}:\n{wide}");
    }
    let narrow = lines(&drawn(&load(), (60, 16), true, true));
    assert!(narrow[1].starts_with("✓ idle   ✓ down   ▶ up   · both"), "{narrow:#?}");
    let mut many = load();
    for name in ["one phase of many", "another phase of many", "the last phase of many"] {
        many.phases.push(super::state::LivePhase { name: name.to_owned(), ..Default::default() });
    }
    let narrow = lines(&drawn(&many, (60, 16), true, true));
    assert!(narrow[1].starts_with("✓ 2   ▶ up   · both   · one phase of many   · another phase…"), "{narrow:#?}");
}

#[test]
fn without_colours_the_curves_have_different_marks() {
    let buffer = drawn(&load(), (80, 24), false, true);
    assert!(buffer.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    let goodput: String = lines(&buffer).into_iter().skip_while(|line| !line.starts_with("Goodput")).take(8).collect();
    assert!(goodput.contains("⠤ ↓ down") && goodput.contains("• ↑ up"), "{goodput}");
    let coloured = drawn(&load(), (80, 24), true, true);
    assert!(coloured.content.iter().any(|cell| cell.fg == Color::Cyan));
}

#[test]
fn a_terminal_that_became_small_shows_lines() {
    let lines = lines(&drawn(&load(), (20, 6), true, true));
    assert_eq!(lines[1], "up  7 s left        ");
    assert!(lines[2].starts_with("↑ 9.40 Mbit/s"), "{lines:#?}");
    assert!(lines[3].starts_with("RTT 152 ms"), "{lines:#?}");
    for size in [(1, 1), (3, 40), (200, 1), (39, 12), (40, 11), (40, 12), (65, 9)] {
        drawn(&load(), size, true, true);
        drawn(&LivePicture::new("nothing yet", &[]), size, false, false);
    }
}

#[test]
fn a_stopping_measurement_says_so() {
    let mut picture = load();
    picture.is_stopping = true;
    picture.now = Duration::from_secs(75);
    let lines = lines(&drawn(&picture, (60, 16), true, true));
    assert!(lines[0].ends_with("1:15") && lines[15].starts_with("stopping: the results follow"), "{lines:#?}");
}

/// Path of `hops` hops after 60 rounds: the second one limits its answers, the third one has none, and the last one loses every
/// tenth probe, with a queue of 30 ms from the 40th round on.
fn path(hops: u8) -> LivePicture {
    let mut picture = LivePicture::new("linerate path far.example", &["hops"]);
    picture.apply(&ProgressEvent::phase("hops", None));
    let mut snapshot = HopsSnapshot {
        hops: Vec::new(),
        route: RouteReport { rounds: 60, interval_ns: 1_000_000_000, is_reached: true, ..RouteReport::default() },
        rounds: Vec::new(),
    };
    for distance in 1..=hops {
        let replies = match distance {
            2 => HopReplies::Limited,
            3 => HopReplies::Silent,
            _ if distance == hops => HopReplies::Lossy,
            _ => HopReplies::Complete,
        };
        let time = |round: u64| Duration::from_millis(10 + if distance == hops && round >= 40 { 30 } else { 0 });
        let is_answered = |round: u64| match replies {
            HopReplies::Limited => round.is_multiple_of(3),
            HopReplies::Lossy => round % 10 != 5,
            other => other == HopReplies::Complete,
        };
        let result = |round| HopRound { round, round_trip: Some(time(round)).filter(|_| is_answered(round)) };
        let rounds: Vec<HopRound> = (0..60).map(result).collect();
        let mut times: Vec<Duration> = rounds.iter().filter_map(|result| result.round_trip).collect();
        let address = HopAddress { address: format!("192.0.2.{distance}"), ..HopAddress::default() };
        snapshot.hops.push(PathHop {
            distance,
            rtt: DurationDistribution::of(&mut times),
            unanswered: Some(0.1),
            replies: Some(replies),
            addresses: (!times.is_empty()).then_some(address).into_iter().collect(),
            ..PathHop::default()
        });
        snapshot.rounds.push(rounds);
    }
    picture.show_hops(&snapshot);
    picture
}

#[test]
fn hops_have_their_rounds_in_the_table_and_the_last_one_has_a_chart() {
    for (size, unicode) in [(160, 40), (80, 24), (60, 24)].into_iter().flat_map(|size| [(size, true), (size, false)]) {
        let lines = lines(&drawn(&path(5), size, true, unicode));
        let text = lines.join("\n");
        let (full, half, lost) = if unicode { ("█", "▃", "×") } else { ("#", "-", "x") };
        // The latest ten rounds, 50 to 59.
        let rounds = format!("{}{lost}{}", full.repeat(5), full.repeat(4));
        assert!(lines.iter().any(|line| line.contains("192.0.2.5") && line.contains(&rounds)), "{size:?}:\n{text}");
        let limited = format!("{lost}{full}{lost}{lost}{full}{lost}{lost}{full}{lost}{lost}");
        let row = lines.iter().find(|line| line.contains("192.0.2.2")).expect("a row");
        assert!(row.contains(&limited), "{row}");
        let silent = lines.iter().find(|line| line.trim_start().starts_with("3 *")).expect("a row");
        assert!(silent.contains(&lost.repeat(10)), "{silent}");
        if size.0 == 160 {
            assert!(
                text.contains(&format!("{half}{half}{half}{half}{half}{lost}{half}{half}{half}{half}{full}")),
                "{text}"
            );
        }
        let marked = format!(" 5{}192.0.2.5", if unicode { "▸" } else { ">" });
        assert!(text.contains(&marked), "{size:?}:\n{text}");
        let sign = if unicode { "⠤" } else { "*" };
        let title = format!("Hop 5   {sign} RTT 40.0 ms   {lost} no reply 6/60: loss of the path");
        assert!(lines.iter().any(|line| line.trim_end() == title), "{size:?}:\n{text}");
        assert!(text.contains("0:59 ago") && text.contains("now") && text.contains("40ms"), "{size:?}:\n{text}");
        assert!(rows_with_curve(&lines, "Hop 5", "60 rounds") >= 2, "{text}");
        assert_eq!(text.is_ascii(), !unicode, "{text}");
    }
}

#[test]
fn lost_rounds_are_marks_at_the_top_of_the_chart_and_gaps_of_its_curve() {
    let lines = lines(&drawn(&path(5), (80, 24), true, true));
    let title = lines.iter().position(|line| line.starts_with("Hop 5")).expect("a chart");
    assert_eq!(lines[title + 1].matches('×').count(), 6, "{lines:#?}");
    assert!(lines[title + 2..].iter().all(|line| !line.contains('×')), "{lines:#?}");
    assert!(
        lines[title + 1..].iter().all(|line| !line.starts_with("     0⠤") && !line.starts_with("     0│⣀")),
        "no zeros"
    );
}

#[test]
fn keys_select_the_hop_of_the_chart() {
    let mut picture = path(12);
    let shown = |picture: &LivePicture| lines(&drawn(picture, (80, 24), true, true));
    let title =
        |lines: &[String]| lines.iter().find(|line| line.starts_with("Hop ")).map(|line| line.trim_end().to_owned());
    assert_eq!(title(&shown(&picture)), None, "the whole table is more");
    picture.select_hop(HopSelection::Next);
    assert!(title(&shown(&picture)).expect("a chart").starts_with("Hop 12"), "the first key shows the last hop");
    for _ in 0..20 {
        picture.select_hop(HopSelection::Previous);
    }
    let lines = shown(&picture);
    assert!(title(&lines).expect("a chart").starts_with("Hop 1   ⠤ RTT 10.0 ms"), "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with(" 1▸192.0.2.1 ")), "the selected hop is in view: {lines:#?}");
    picture.select_hop(HopSelection::Next);
    assert_eq!(title(&shown(&picture)).as_deref(), Some("Hop 2   ⠤ RTT 10.0 ms   × no reply 40/60: limits ICMP"));
    picture.select_hop(HopSelection::Next);
    let lines = shown(&picture);
    assert_eq!(title(&lines).as_deref(), Some("Hop 3   × no reply 60/60: silent"));
    assert!(lines.iter().any(|line| line.contains("this hop does not answer")), "{lines:#?}");
    let hops = picture.hops.as_ref().expect("hops").snapshot.clone();
    picture.show_hops(&hops);
    assert!(title(&shown(&picture)).expect("a chart").starts_with("Hop 3"), "the next round keeps the selection");
    picture.select_hop(HopSelection::None);
    assert_eq!(title(&shown(&picture)), None);
}

#[test]
fn hops_are_readable_without_colours_and_at_every_size() {
    let buffer = drawn(&path(5), (80, 24), false, true);
    assert!(buffer.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    for size in [(60, 16), (40, 12), (41, 13), (250, 90)] {
        for hops in [0, 1, 30] {
            let mut picture = path(hops);
            drawn(&picture, size, true, true);
            picture.select_hop(HopSelection::Previous);
            let lines = lines(&drawn(&picture, size, false, false));
            assert_eq!(lines.iter().any(|line| line.starts_with("Hop ")), hops > 0, "{size:?}, {hops}: {lines:#?}");
        }
    }
}
