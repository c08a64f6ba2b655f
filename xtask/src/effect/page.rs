//! The table as Markdown.

use std::fmt::Write as _;

use super::tuned::Tuned;

/// The page of these paths, of a library with `all`.
pub(super) fn page(done: &[Tuned], all: usize) -> String {
    let mut page = format!(
        "# What `linerate tune` does in the lab\n\n\
         {} with the label of what was built in, where that lies, and what one run of `linerate tune lab:NAME --yes` made \
         of it. Made by `cargo xtask effect`.\n\n{}\n\
         Rates in Mbit/s of payload, after slow start; \"carries\" is what the path has room for. The share is that of what \
         can be reached: what the path carries, or less where its losses or the application allow less. Round trips in ms: \
         what the slowest twentieth exceeds under the transfer's own load. A ✗ marks what is not as its label asks for.\n\n\
         | path | label | place | before | after | carries | share | round trip before | after | in force | outcome |\n\
         |---|---|---|---:|---:|---:|---:|---:|---:|---|---|\n",
        whole(done, all),
        counts(done),
    );
    for one in done {
        let _ = writeln!(page, "{}", row(one));
    }
    let wrong: Vec<&Tuned> = done.iter().filter(|one| !one.is_as_expected()).collect();
    if !wrong.is_empty() {
        page.push_str("\n## Not as expected\n\n");
        for one in wrong {
            let _ = writeln!(page, "* **{}**: {}", one.path.name, escaped(&one.complaint()));
        }
    }
    page
}

fn whole(done: &[Tuned], all: usize) -> String {
    if done.len() == all { "Every path of the library".to_owned() } else { format!("{} of {all} paths", done.len()) }
}

/// How many came out as they should.
fn counts(done: &[Tuned]) -> String {
    let (hosts, others): (Vec<&Tuned>, Vec<&Tuned>) = done.iter().partition(|one| one.path.is_limited_by_a_host());
    let repaired = hosts.iter().filter(|one| one.is_repaired()).count();
    let untouched = others.iter().filter(|one| one.is_untouched()).count();
    let mut text = format!(
        "* **{repaired} of {}** paths with a cause in a host's settings reach at least 95 % of what can be reached, with a \
         round trip under load of at most 1.2 times what it was.\n\
         * On **{untouched} of {}** other paths nothing was changed or tried.\n",
        hosts.len(),
        others.len()
    );
    let living = others.iter().filter(|one| one.outcome == "kept" && one.lives_with_the_path).count();
    if living > 0 {
        let _ =
            writeln!(text, "* On {living} of these others a change is in force that lives with a cause on the path.");
    }
    let taken_back = others.iter().filter(|one| one.outcome == "rolled_back").count();
    if taken_back > 0 {
        let _ = writeln!(text, "* On {taken_back} of these others something was tried and taken back.");
    }
    text
}

fn row(one: &Tuned) -> String {
    let rate = |rate: Option<f64>| rate.map_or("–".to_owned(), |rate| format!("{:.1}", rate / 1e6));
    let time = |time: Option<f64>| time.map_or("–".to_owned(), |time| format!("{:.1}", time * 1e3));
    let share = one.share().map_or("–".to_owned(), |share| format!("{:.1} %", share * 100.0));
    let mark = if one.is_as_expected() { "" } else { " ✗" };
    format!(
        "| {}{mark} | {} | {} | {} | {} | {} | {share} | {} | {} | {} | {} |",
        one.path.name,
        one.path.label,
        one.path.place,
        rate(one.before),
        rate(one.after),
        rate(one.capacity),
        time(one.round_trip_before),
        time(one.round_trip_after),
        escaped(&in_force(one)),
        one.title(),
    )
}

fn in_force(one: &Tuned) -> String {
    let kept: Vec<String> = one.changed.iter().map(|change| format!("`{change}`")).collect();
    if kept.is_empty() { "–".to_owned() } else { kept.join("<br>") }
}

/// One line that leaves a table's columns alone.
fn escaped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "/")
}

#[cfg(test)]
mod tests {
    use super::super::tuned::tests::{kept, nothing, path};
    use super::*;

    fn three() -> Vec<Tuned> {
        vec![
            Tuned::read(&path("fine", "receive-window", "receiver"), &kept(96e6, 0.0200)),
            Tuned::read(&path("full", "link-rate", "nowhere"), &nothing()),
            Tuned::failed(&path("lost", "loss", "network"), "a | b\nc"),
        ]
    }

    #[test]
    fn a_row_has_a_cell_for_each_column() {
        let page = page(&three(), 3);
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(rows.len(), 5, "{page}");
        assert!(rows.iter().all(|row| row.matches('|').count() == 12), "{page}");
        assert_eq!(
            rows[2],
            "| fine | receive-window | receiver | 25.0 | 96.0 | 100.0 | 96.0 % | 20.0 | 20.0 | `far net.ipv4.tcp_rmem = 4096 \
             131072 999424` | kept |"
        );
        assert!(rows[3].starts_with("| full | link-rate | nowhere | 99.0 | – | 100.0 | 99.0 % | 30.0 | – | – |"));
        assert!(rows[4].starts_with("| lost ✗ |"));
    }

    #[test]
    fn the_counts_are_of_hosts_and_of_all_others() {
        let page = page(&three(), 3);
        assert!(page.contains("**1 of 1** paths with a cause in a host's settings"), "{page}");
        assert!(page.contains("On **1 of 2** other paths"), "{page}");
        assert!(page.contains("Every path of the library") && page.contains("## Not as expected"), "{page}");
        assert!(page.contains("* **lost**: no result: a / b c\n"), "{page}");
        assert!(!page.contains("lives with"), "{page}");
    }

    #[test]
    fn what_lives_with_a_path_is_counted_apart() {
        let mut document = kept(96e6, 0.020);
        document["rounds"][0]["lives_with_the_path"] = true.into();
        let done = [Tuned::read(&path("lossy", "loss", "network"), &document)];
        let page = page(&done, 81);
        assert!(page.contains("1 of 81 paths") && page.contains("On 1 of these others a change is in force"), "{page}");
    }
}
