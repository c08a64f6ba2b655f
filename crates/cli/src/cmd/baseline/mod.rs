//! `linerate baseline`: throughput of this host without a network.

mod arguments;

use std::path::Path;

use linerate_documents::baseline::BaselineDocument;
use linerate_documents::progress::ProgressEvent;
use linerate_engine::baseline::{self, BaselinePlan, BaselineStep};
use linerate_model::baseline::{HostBaseline, TimedTransfer};
use linerate_model::fact::Fact;
use linerate_report::escape;
use linerate_report::text::wrap_text;

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
        console::data(&text(&measured, &directory));
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

/// Widths of the name and rate columns.
const NAME_WIDTH: usize = 18;
const RATE_WIDTH: usize = 14;
const WIDTH: usize = 80;

fn text(baseline: &HostBaseline, directory: &Path) -> String {
    let mut lines =
        vec![format!("{:NAME_WIDTH$}{:>RATE_WIDTH$}{:>RATE_WIDTH$}  one processor", "", "rate", "per second")];
    let mut notes: Vec<String> = Vec::new();
    let received = baseline.loopback.clone().map(|loopback| loopback.received);
    push(&mut lines, &mut notes, "memory to memory", "TCP over loopback", &received);
    for (rates, how) in [(&baseline.direct, "past the page cache"), (&baseline.cached, "through the page cache")] {
        push(&mut lines, &mut notes, "disk to memory", how, &rates.read);
        push(&mut lines, &mut notes, "memory to disk", how, &rates.write);
        push(&mut lines, &mut notes, "disk to disk", how, &rates.copy);
    }
    for (name, fact) in &baseline.ciphers {
        push(&mut lines, &mut notes, name, "one thread, 16 KiB", fact);
    }
    let in_memory = if baseline.is_in_memory == Some(true) { ", which is in memory: no disk was tried" } else { "" };
    notes.push(format!("The disk is that of {}{in_memory}.", escape::line(&directory.display().to_string())));
    notes.push("A transfer is at most as fast as the slowest part that it uses.".to_owned());
    let notes: Vec<String> = notes.iter().flat_map(|note| wrap_text(note, WIDTH)).collect();
    format!("{}\n\n{}\n", lines.join("\n"), notes.join("\n"))
}

fn push(lines: &mut Vec<String>, notes: &mut Vec<String>, name: &str, how: &str, fact: &Fact<TimedTransfer>) {
    match fact {
        Fact::Known(passage) => {
            let bytes = passage.bytes.as_f64() / passage.time.as_secs_f64().max(f64::MIN_POSITIVE);
            let size = linerate_units::ByteCount::from_f64(bytes);
            let share = passage.processor_share().map_or_else(|| "-".to_owned(), |share| share.to_string());
            lines.push(format!(
                "{name:NAME_WIDTH$}{:>RATE_WIDTH$}{:>RATE_WIDTH$}  {share:>6}  {how}",
                passage.rate().to_string(),
                size.to_string()
            ));
        }
        Fact::Unknown(unread) => {
            lines.push(format!("{name:NAME_WIDTH$}{:>RATE_WIDTH$}{:>RATE_WIDTH$}  {:>6}  {how}", "-", "-", "-"));
            let note = format!("Not measured ({how}): {}.", escape::line(&unread.reason));
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
        let text = text(&baseline, Path::new("/data"));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("10.0 Gbit/s       1.25 GB  99.5 %  through the page cache"), "{text}");
        assert!(
            text.contains("Not measured (past the page cache): this file system does not support direct"),
            "{text}"
        );
        assert!(!text.contains("NaN"));
    }
}
