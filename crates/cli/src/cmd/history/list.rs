//! List of runs, one per line.

use std::fmt::Write as _;
use std::num::NonZeroU32;

use linerate_documents::civil_time;
use linerate_documents::run_list::{self, ListedRun, RunListDocument};
use linerate_history::result_log::ResultLog;
use linerate_history::{HistoryError, RunFilter};
use linerate_model::report::Outcome;
use linerate_report::escape;
use linerate_report::throughput_text::TextStyle;

use super::arguments::FilterArguments;
use crate::cmd::measurement::{DocumentKind, print_json};
use crate::console;
use crate::exit::ExitStatus;

/// Number of runs shown without a limit.
const DEFAULT_RUN_LIMIT: NonZeroU32 = NonZeroU32::new(20).expect("not zero");

/// Widest column of hosts, in characters.
pub(super) const MAX_HOST_WIDTH: usize = 24;

pub(super) fn run(arguments: &FilterArguments, json: bool) -> Result<ExitStatus, HistoryError> {
    let mut filter = arguments.filter();
    let history = match super::open_existing() {
        // No run has been recorded yet, which is no error for a list.
        Err(HistoryError::Missing { .. }) if json => {
            print_json(DocumentKind::RunList, &document(Vec::new()));
            return Ok(ExitStatus::Success);
        }
        opened => opened?,
    };
    if json {
        print_json(DocumentKind::RunList, &document(history.list(&filter)?));
        return Ok(ExitStatus::Success);
    }
    // One more than is shown reveals further runs.
    if arguments.limit.is_none() {
        filter.limit = Some(DEFAULT_RUN_LIMIT.saturating_add(1));
    }
    let mut entries = history.list(&filter)?;
    let more = arguments.limit.is_none() && entries.len() > DEFAULT_RUN_LIMIT.get() as usize;
    if more {
        entries.pop();
    }
    if entries.is_empty() {
        let any = !history.list(&RunFilter { limit: Some(NonZeroU32::MIN), ..RunFilter::default() })?.is_empty();
        console::note(if any { "no run of the history matches" } else { "the history is empty" });
        return Ok(ExitStatus::Success);
    }
    console::data(&table(&entries, console::data_style()));
    if ResultLog::usual_directory().is_ok_and(|directory| directory.is_dir()) {
        console::note("tests and probes of a monitor or an agent, also failed ones: linerate history list --results");
    }
    if more {
        console::note(&format!("these are the latest {DEFAULT_RUN_LIMIT}; --limit N shows more"));
    }
    Ok(ExitStatus::Success)
}

const fn document(runs: Vec<ListedRun>) -> RunListDocument {
    RunListDocument { schema: run_list::SCHEMA, runs }
}

/// Width of the longest command: `diagnose`.
const COMMAND_WIDTH: usize = 8;

/// Table of columns that fit the terminal; the result takes the remaining width.
fn table(entries: &[ListedRun], style: TextStyle) -> String {
    let (bold, plain) = if style.colour { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
    let width = usize::from(style.width.get());
    let numbers: Vec<String> = entries.iter().map(|entry| entry.id.to_string()).collect();
    let number_width = numbers.iter().map(String::len).max().unwrap_or(0).max(2);
    let hosts: Vec<String> =
        entries.iter().map(|entry| truncate_text(&escape::line(&entry.host), MAX_HOST_WIDTH, style)).collect();
    let host_width = hosts.iter().map(|host| host.chars().count()).max().unwrap_or(0).max(4);
    // Number, time, command and host, each followed by two blanks.
    let result_width = width.saturating_sub(number_width + 2 + 16 + 2 + COMMAND_WIDTH + 2 + host_width + 2);
    let mut text = String::new();
    let heading = format!(
        "{:>number_width$}  {:<16}  {:<COMMAND_WIDTH$}  {:<host_width$}  RESULT",
        "ID", "TIME (UTC)", "COMMAND", "HOST"
    );
    let _ = writeln!(text, "{bold}{heading}{plain}");
    for ((entry, number), host) in entries.iter().zip(&numbers).zip(&hosts) {
        let result = truncate_text(&escape::line(&result(entry)), result_width, style);
        let (time, command) = (civil_time::format_minutes(entry.started_at), entry.kind.command_name());
        let line = format!("{number:>number_width$}  {time}  {command:<COMMAND_WIDTH$}  {host:<host_width$}  {result}");
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// Tags of the run, its outcome unless complete, and its result.
fn result(entry: &ListedRun) -> String {
    let tags: Vec<String> = entry.tags.iter().map(|tag| format!("[{tag}] ")).collect();
    let tags = tags.concat();
    let ending = match entry.outcome {
        Outcome::Complete => "",
        Outcome::Interrupted => "interrupted: ",
        Outcome::PeerTerminated => "ended by the peer: ",
        Outcome::Failed => "failed: ",
    };
    format!("{tags}{ending}{}", entry.verdict)
}

/// First `width` characters, the last of them an ellipsis if anything is omitted.
pub(super) fn truncate_text(text: &str, width: usize, style: TextStyle) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let ellipsis = if style.unicode { "…" } else { "~" };
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}{ellipsis}", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linerate_documents::run::RunKind;
    use linerate_history::RunId;
    use linerate_units::WallTime;

    use super::*;

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let of_kind = |kind: RunKind, host: &str| ListedRun {
            id: RunId::new(12_345),
            started_at: WallTime::from_unix(Duration::from_secs(1_795_161_279)),
            duration: Duration::from_secs(20),
            kind,
            host: host.to_owned(),
            outcome: Outcome::Failed,
            verdict: "A sentence that is far longer than the remainder of a line of eighty characters.".to_owned(),
            lab_path: None,
            tags: vec!["before".to_owned()],
        };
        let entry = |host: &str| of_kind(RunKind::Rfc6349, host);
        let long = "a.host.with.a.very.long.name.example.org";
        for unicode in [true, false] {
            let text = table(&[entry("b"), entry(long)], TextStyle { unicode, ..TextStyle::plain() });
            assert_eq!(text.lines().count(), 3);
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            assert!(text.contains("[before] failed: A") && text.contains("2026-11-20 07:54"), "{text}");
            assert!(unicode || text.is_ascii(), "{text}");
        }
        for kind in [RunKind::Throughput, RunKind::Diagnose, RunKind::Rfc6349] {
            let text = table(&[of_kind(kind, "a.host")], TextStyle::plain());
            let places: Vec<_> = text.lines().map(|line| line.find("HOST").or_else(|| line.find("a.host"))).collect();
            assert_eq!(places[0], places[1], "{text}");
        }
    }
}
