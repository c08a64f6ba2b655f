//! The runs, one on a line.

use std::fmt::Write as _;
use std::num::NonZeroU32;

use linerate_history::{Entry, Filter, HistoryError, moment};
use linerate_model::schema::throughput::Outcome;
use linerate_report::escape;
use linerate_report::throughput_text::Style;
use serde_json::json;

use super::arguments::{FilterArguments, command_of};
use crate::console;
use crate::exit::Exit;

/// How many are shown when no limit is given.
const SHOWN: NonZeroU32 = NonZeroU32::new(20).expect("not zero");

/// A host's column is at most this wide.
const HOST_ROOM: usize = 24;

pub(super) fn run(arguments: &FilterArguments, json: bool) -> Result<Exit, HistoryError> {
    let mut filter = arguments.filter();
    let history = match super::open_existing() {
        // Nothing has been kept yet, which is no error for a list.
        Err(HistoryError::Missing { .. }) if json => {
            console::data(&format!("{:#}\n", document(&[])));
            return Ok(Exit::Success);
        }
        opened => opened?,
    };
    if json {
        console::data(&format!("{:#}\n", document(&history.list(&filter)?)));
        return Ok(Exit::Success);
    }
    // One more than is shown tells whether there are more.
    if arguments.limit.is_none() {
        filter.limit = Some(SHOWN.saturating_add(1));
    }
    let mut entries = history.list(&filter)?;
    let more = arguments.limit.is_none() && entries.len() > SHOWN.get() as usize;
    if more {
        entries.pop();
    }
    if entries.is_empty() {
        let any = !history.list(&Filter { limit: Some(NonZeroU32::MIN), ..Filter::default() })?.is_empty();
        console::note(if any { "no run of the history matches" } else { "the history is empty" });
        return Ok(Exit::Success);
    }
    console::data(&table(&entries, console::data_style()));
    if more {
        console::note(&format!("these are the latest {SHOWN}; --limit N shows more"));
    }
    Ok(Exit::Success)
}

fn document(entries: &[Entry]) -> serde_json::Value {
    let runs: Vec<_> = entries
        .iter()
        .map(|entry| {
            json!({
                "id": entry.id.get(),
                "started_at": moment::rfc3339(entry.started_at),
                "duration_ns": u64::try_from(entry.duration.as_nanos()).unwrap_or(u64::MAX),
                "kind": entry.kind,
                "host": entry.host,
                "outcome": entry.outcome,
                "verdict": entry.verdict,
                "lab_path": entry.lab_path,
                "tags": entry.tags,
            })
        })
        .collect();
    json!({ "schema": 1, "runs": runs })
}

/// In columns that fit the terminal; what came out takes the room that is left.
fn table(entries: &[Entry], style: Style) -> String {
    let (bold, plain) = if style.colour { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
    let width = usize::from(style.width.get());
    let numbers: Vec<String> = entries.iter().map(|entry| entry.id.to_string()).collect();
    let number_room = numbers.iter().map(String::len).max().unwrap_or(0).max(2);
    let hosts: Vec<String> =
        entries.iter().map(|entry| shortened(&escape::line(&entry.host), HOST_ROOM, style)).collect();
    let host_room = hosts.iter().map(|host| host.chars().count()).max().unwrap_or(0).max(4);
    // Number, time, command and host, each with two blanks behind it.
    let rest = width.saturating_sub(number_room + 2 + 16 + 2 + 7 + 2 + host_room + 2);
    let mut text = String::new();
    let heading =
        format!("{:>number_room$}  {:<16}  {:<7}  {:<host_room$}  RESULT", "ID", "TIME (UTC)", "COMMAND", "HOST");
    let _ = writeln!(text, "{bold}{heading}{plain}");
    for ((entry, number), host) in entries.iter().zip(&numbers).zip(&hosts) {
        let result = shortened(&escape::line(&result(entry)), rest, style);
        let (time, command) = (moment::to_the_minute(entry.started_at), command_of(entry.kind));
        let line = format!("{number:>number_room$}  {time}  {command:<7}  {host:<host_room$}  {result}");
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// What the user wrote, how it ended if not well, and what came out.
fn result(entry: &Entry) -> String {
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

/// The first `room` characters, the last of them an ellipsis where something is left out.
pub(super) fn shortened(text: &str, room: usize, style: Style) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let ellipsis = if style.unicode { "…" } else { "~" };
    let kept: String = text.chars().take(room.saturating_sub(1)).collect();
    format!("{}{ellipsis}", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linerate_history::RunId;
    use linerate_model::schema::run::Kind;
    use linerate_units::WallTime;

    use super::*;

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let entry = |host: &str| Entry {
            id: RunId::new(12_345),
            started_at: WallTime::from_unix(Duration::from_secs(1_795_161_279)),
            duration: Duration::from_secs(20),
            kind: Kind::Rfc6349,
            host: host.to_owned(),
            outcome: Outcome::Failed,
            verdict: "A sentence that is far longer than what is left of a line of eighty characters.".to_owned(),
            lab_path: None,
            tags: vec!["before".to_owned()],
        };
        let long = "a.host.with.a.very.long.name.example.org";
        for unicode in [true, false] {
            let text = table(&[entry("b"), entry(long)], Style { unicode, ..Style::plain() });
            assert_eq!(text.lines().count(), 3);
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            assert!(text.contains("[before] failed: A") && text.contains("2026-11-20 07:54"), "{text}");
            assert!(unicode || text.is_ascii(), "{text}");
        }
    }
}
