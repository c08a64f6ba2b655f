//! `linerate baseline`: throughput of this host without a network.

mod arguments;

use std::fmt::Write as _;
use std::path::Path;

use linerate_documents::baseline::BaselineDocument;
use linerate_documents::progress::ProgressEvent;
use linerate_engine::baseline::{self, BaselinePlan, BaselineStep};
use linerate_model::baseline::{HostBaseline, TimedTransfer};
use linerate_model::fact::Fact;
use linerate_report::escape;
use linerate_report::text::wrap_text;
use linerate_report::throughput_text::TextStyle;

pub(crate) use arguments::BaselineArguments;

use crate::cmd::measurement::{DocumentKind, LiveLine, interrupts, print_json};
use crate::console;
use crate::exit::ExitStatus;
use crate::progress;

/// Version of the linerate that measures.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Measures the host and prints the result.
pub(crate) fn run(arguments: &BaselineArguments) -> ExitStatus {
    if !arguments.directory.is_dir() {
        console::error(
            &format!("{} is not a directory; choose another one with --directory", arguments.directory.display()),
            None,
        );
        return ExitStatus::Unable;
    }
    let interrupts = match interrupts() {
        Ok(interrupts) => interrupts,
        Err(exit) => return exit,
    };
    let directory = arguments.directory.canonicalize().unwrap_or_else(|_| arguments.directory.clone());
    let plan = BaselinePlan { directory: directory.clone(), most_bytes: arguments.size, time: arguments.time };
    let mut line = LiveLine::new(arguments.quiet || arguments.json);
    let measured = baseline::measure(&plan, &|| interrupts.pending().is_some(), |step| {
        progress::publish(ProgressEvent::phase(step_name(step), None));
        line.refresh_now();
        line.show(step_name(step), &[]);
    });
    line.clear();
    if arguments.json {
        print_json(DocumentKind::Baseline, &BaselineDocument::new(VERSION, &measured));
    } else {
        console::data(&text(&measured, &directory, console::data_style()));
    }
    match (interrupts.pending(), measured.loopback.known()) {
        (Some(_), _) => ExitStatus::Partial,
        (None, Some(_)) => ExitStatus::Success,
        (None, None) => ExitStatus::Unable,
    }
}

const fn step_name(step: BaselineStep) -> &'static str {
    match step {
        BaselineStep::Loopback => "TCP over loopback",
        BaselineStep::Direct => "the disk, past the page cache",
        BaselineStep::Cached => "the disk, through the page cache",
        BaselineStep::Ciphers => "ciphers",
    }
}

/// Width of the name column.
const NAME_WIDTH: usize = 18;
/// Width of a rate.
const RATE_WIDTH: usize = 10;

/// Renders the rates, one line each, and the reasons for those that are unknown.
fn text(baseline: &HostBaseline, directory: &Path, style: TextStyle) -> String {
    let mut notes: Vec<String> = Vec::new();
    let received = baseline.loopback.clone().map(|loopback| loopback.received);
    let mut lines = vec![format!("{:NAME_WIDTH$}  rate and share of one processor", "")];
    lines.push(row("memory to memory", &[("TCP over loopback", &received)], &mut notes));
    let (direct, cached) = (&baseline.direct, &baseline.cached);
    let pairs = [
        ("disk to memory", &direct.read, &cached.read),
        ("memory to disk", &direct.write, &cached.write),
        ("disk to disk", &direct.copy, &cached.copy),
    ];
    for (name, direct, cached) in pairs {
        lines.push(row(name, &[("past the page cache", direct), ("through it", cached)], &mut notes));
    }
    for (name, fact) in &baseline.ciphers {
        lines.push(row(name, &[("one thread, 16 KiB", fact)], &mut notes));
    }
    let in_memory = if baseline.is_in_memory == Some(true) { ", which is in memory: no disk was tried" } else { "" };
    notes.push(format!("Disk: past the page cache / through it, of {}{in_memory}.", directory_text(directory)));
    notes.push("A transfer is at most as fast as the slowest part that it uses.".to_owned());
    let width = usize::from(style.width.get());
    lines.extend(notes.iter().flat_map(|note| wrap_text(note, width)));
    lines.join("\n") + "\n"
}

fn directory_text(directory: &Path) -> String {
    escape::line(&directory.display().to_string()).into_owned()
}

/// Rates of one part, next to each other; the reasons for unknown ones go to the notes.
fn row(name: &str, rates: &[(&str, &Fact<TimedTransfer>)], notes: &mut Vec<String>) -> String {
    let mut line = format!("{name:NAME_WIDTH$}");
    for (how, fact) in rates {
        let (rate, share) = match fact {
            Fact::Known(transfer) => {
                (transfer.rate().to_string(), transfer.processor_share().map(|share| share.to_string()))
            }
            Fact::Unknown(unread) => {
                let note = format!("Not measured ({how}): {}.", escape::line(&unread.reason));
                if !notes.contains(&note) {
                    notes.push(note);
                }
                ("-".to_owned(), None)
            }
        };
        let _ = write!(line, "  {rate:>RATE_WIDTH$}{:>8}", share.as_deref().unwrap_or("-"));
    }
    line
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linerate_report::throughput_text::TerminalWidth;
    use linerate_units::ByteCount;

    use super::*;

    #[test]
    fn lines_fit_and_missing_rates_have_a_reason() {
        let passage = TimedTransfer {
            bytes: ByteCount::new(1_250_000_000),
            time: Duration::from_secs(1),
            processor_time: Duration::from_millis(995),
        };
        let mut baseline = HostBaseline {
            ciphers: vec![("ChaCha20-Poly1305".to_owned(), Fact::Known(passage))],
            ..HostBaseline::default()
        };
        baseline.cached.write = Fact::Known(passage);
        baseline.direct.read = Fact::absent("this file system does not support direct access");
        for width in [60, 80] {
            let text = text(
                &baseline,
                Path::new("/data"),
                TextStyle { width: TerminalWidth::new(width), ..TextStyle::plain() },
            );
            assert!(text.lines().all(|line| line.chars().count() <= usize::from(width)), "{text}");
        }
        let text = text(&baseline, Path::new("/data"), TextStyle::plain());
        assert!(text.contains("memory to disk               -       -  10.0 Gbit/s  99.5 %\n"), "{text}");
        assert!(
            text.contains("Not measured (past the page cache): this file system does not support direct"),
            "{text}"
        );
        assert!(!text.contains("NaN"));
    }
}
