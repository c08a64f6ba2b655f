//! Results of all paths as a Markdown page.

use std::fmt::Write as _;

use super::tuned::TunedPath;

/// Formats the page of these paths, out of a library of `all`.
pub(super) fn page(done: &[TunedPath], all: usize) -> String {
    let mut page = format!(
        "# Effect of `linerate tune` in the lab\n\n\
        {} with its label (the built-in cause), the location of that cause, and the result of one run of `linerate \
        tune lab:NAME --yes`. Written by `cargo xtask effect`.\n\n{}\n\
        Rates in Mbit/s of payload, after slow start; \"capacity\" is the payload capacity of the path. The share is \
        relative to the reachable rate: for paths with a cause in a host, the mean of three transfers without these \
        causes (the settings removed from the path's description, buffers of 1 GiB), at most the capacity, after as \
        many seconds as a trial omits. Round trips \
        in ms: 95th percentile under the transfer's own load. A ✗ marks results that do not match the label.\n\n\
        | path | label | place | before | after | capacity | share | round trip before | after | in effect | outcome \
        |\n\
        |---|---|---|---:|---:|---:|---:|---:|---:|---|---|\n",
        scope(done, all),
        counts(done),
    );
    for one in done {
        let _ = writeln!(page, "{}", row(one));
    }
    let wrong: Vec<&TunedPath> = done.iter().filter(|one| !one.is_as_expected()).collect();
    if !wrong.is_empty() {
        page.push_str("\n## Not as expected\n\n");
        for one in wrong {
            let _ = writeln!(page, "* **{}**: {}", one.path.name, escaped(&one.complaint()));
        }
    }
    page
}

fn scope(done: &[TunedPath], all: usize) -> String {
    if done.len() == all { "Every path of the library".to_owned() } else { format!("{} of {all} paths", done.len()) }
}

/// Formats the number of paths with the expected result.
fn counts(done: &[TunedPath]) -> String {
    let (hosts, others): (Vec<&TunedPath>, Vec<&TunedPath>) =
        done.iter().partition(|one| one.path.is_limited_by_a_host());
    let repaired = hosts.iter().filter(|one| one.is_repaired()).count();
    let untouched = others.iter().filter(|one| one.is_untouched()).count();
    let mut text = format!(
        "* **{repaired} of {}** paths with a cause in a host's settings reach at least 95 % of the reachable rate, \
        with a round trip under load of at most 1.2 times the previous one, at most twice that where goodput grew \
        more, or one that is less than 5 ms longer: the limits of the goal `wan-bulk`.\n\
        * On **{untouched} of {}** other paths nothing was changed or tried.\n",
        hosts.len(),
        others.len()
    );
    let harmful = done.iter().filter(|one| one.is_harmful()).count();
    let lowered: usize = done.iter().map(|one| one.lowered.len()).sum();
    let _ = writeln!(
        text,
        "* **{harmful}** changes stay in effect that cost more than the goal allows; **{lowered}** lower a ceiling of a \
         whole host."
    );
    let helped = others.iter().filter(|one| one.helps_a_program()).count();
    if helped > 0 {
        let _ = writeln!(
            text,
            "* On {helped} of these others a program asks for more than a setting of its host grants: raising it gained, \
             and was kept."
        );
    }
    let living = others.iter().filter(|one| one.outcome == "kept" && one.works_around_path).count();
    if living > 0 {
        let _ = writeln!(
            text,
            "* On {living} of these others a change is in effect that works around a cause on the path."
        );
    }
    let taken_back = others.iter().filter(|one| one.outcome == "rolled_back").count();
    if taken_back > 0 {
        let _ = writeln!(text, "* On {taken_back} of these others a change was tried and rolled back.");
    }
    text
}

fn row(one: &TunedPath) -> String {
    let rate = |rate: Option<f64>| rate.map_or("–".to_owned(), |rate| format!("{:.1}", rate / 1e6));
    let time = |time: Option<f64>| time.map_or("–".to_owned(), |time| format!("{:.1}", time * 1e3));
    let share = one.share().map_or("–".to_owned(), |share| format!("{:.1} %", share * 100.0));
    let mark = if one.is_as_expected() { "" } else { " ✗" };
    format!(
        "| {}{mark} | {} | {} | {} | {} | {} | {share} | {} | {} | {} | {} |",
        one.path.name,
        one.path.label,
        one.path.location,
        rate(one.before),
        rate(one.after),
        rate(one.capacity),
        time(one.round_trip_before),
        time(one.round_trip_after),
        escaped(&changes_in_effect(one)),
        one.title(),
    )
}

fn changes_in_effect(one: &TunedPath) -> String {
    let kept: Vec<String> = one.changes.iter().map(|change| format!("`{change}`")).collect();
    if kept.is_empty() { "–".to_owned() } else { kept.join("<br>") }
}

/// Joins a text to one line, without column separators.
fn escaped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "/")
}

#[cfg(test)]
mod tests {
    use super::super::tuned::tests::{kept, nothing, path};
    use super::*;

    fn three() -> Vec<TunedPath> {
        vec![
            TunedPath::read(&path("fine", "receive-window", "receiver"), &kept(96e6, 0.0200)),
            TunedPath::read(&path("full", "link-rate", "nowhere"), &nothing()),
            TunedPath::failed(&path("lost", "loss", "network"), "a | b\nc"),
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
            "| fine | receive-window | receiver | 25.0 | 96.0 | 100.0 | 96.0 % | 20.0 | 20.0 | `far net.ipv4.tcp_rmem \
             = 4096 131072 999424` | kept |"
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
        assert!(!page.contains("works around"), "{page}");
    }

    #[test]
    fn workarounds_are_counted_separately() {
        let mut document = kept(96e6, 0.020);
        document["rounds"][0]["lives_with_the_path"] = true.into();
        let done = [TunedPath::read(&path("lossy", "loss", "network"), &document)];
        let page = page(&done, 81);
        assert!(
            page.contains("1 of 81 paths") && page.contains("On 1 of these others a change is in effect"),
            "{page}"
        );
    }
}
