//! Command that follows from a result, with the run's own values.

use linerate_documents::diagnose::DiagnoseDocument;
use linerate_documents::doctor::DoctorDocument;
use linerate_documents::run::{RunDocument, RunResult};
use linerate_documents::tune::TuneOutcome;
use linerate_model::diagnosis::{Cause, CauseLocation, TuneScope};
use linerate_model::direction::Direction;
use linerate_model::load::{LatencyGrade, LoadDocument, PhaseKind};
use linerate_units::Port;

/// Returns the command that goes on from the run; `None` where nothing follows.
pub(super) fn next_command(run: &RunDocument) -> Option<String> {
    let target = Target::of(run)?;
    match &run.result {
        RunResult::Path(path) if path.is_stream_only() => None,
        RunResult::Throughput(_) | RunResult::Path(_) | RunResult::Rfc6349(_) => Some(target.command("diagnose")),
        RunResult::Load(document) => shape(document, run, &target),
        RunResult::Diagnose(document) => after_diagnosis(document, &target),
        RunResult::Tune(document) => after_tuning(document.outcome, &target),
        RunResult::Doctor(document) => after_doctor(document, run, &target),
        RunResult::Rr(_) => Some(target.command("load")),
        // A browser answers no command.
        RunResult::Web(_) => None,
    }
}

/// Host and port in a command line.
struct Target {
    arguments: String,
    /// True for a server that dials in, for which only commands that measure wait.
    dialed_in: bool,
}

impl Target {
    /// Returns `None` for a run without a far end.
    fn of(run: &RunDocument) -> Option<Self> {
        if run.host.is_empty() {
            return None;
        }
        if let Some(listen) = run.arguments.iter().find(|argument| is_option(argument, "--listen")) {
            return Some(Self { arguments: listen.clone(), dialed_in: true });
        }
        // A server over ssh has another port in each run.
        let has_own_port = run.host.starts_with("lab:") || run.host.starts_with("ssh:");
        let port =
            if run.port == Port::IPERF3.get() || has_own_port { String::new() } else { format!(" -p {}", run.port) };
        let push = run.arguments.iter().find(|argument| is_option(argument, "--push"));
        let push = push.map_or_else(String::new, |push| format!(" {push}"));
        Some(Self { arguments: format!("{}{port}{push}", run.host), dialed_in: false })
    }

    fn is_in_lab(&self) -> bool {
        self.arguments.starts_with("lab:")
    }

    fn command(&self, name: &str) -> String {
        format!("linerate {name} {}", self.arguments)
    }

    /// The same for `linerate tune`, with the options for its scope. In the lab both hosts are at hand.
    fn tune_within(&self, scope: TuneScope, direction: Direction) -> Option<String> {
        let host = self.arguments.split(' ').next().unwrap_or_default();
        let is_at_hand = self.is_in_lab() || host.starts_with("ssh:");
        let far = if scope.far && !is_at_hand { format!(" --far ssh:{host}") } else { String::new() };
        let work_around = if scope.work_around { " --work-around" } else { "" };
        let reverse = if direction == Direction::Down { " -- -R" } else { "" };
        Some(format!("{}{far}{work_around}{reverse}", self.tune()?))
    }

    /// The same for `linerate tune`, which changes this host; in the lab no privilege is needed.
    fn tune(&self) -> Option<String> {
        let sudo = if self.is_in_lab() { "" } else { "sudo " };
        (!self.dialed_in).then(|| format!("{sudo}{}", self.command("tune")))
    }
}

/// True for an option with or without a value.
fn is_option(argument: &str, name: &str) -> bool {
    argument.strip_prefix(name).is_some_and(|value| value.is_empty() || value.starts_with('='))
}

fn after_diagnosis(document: &DiagnoseDocument, target: &Target) -> Option<String> {
    let first = document.verdicts.first()?;
    if let Some(scope) = first.tune {
        return target.tune_within(scope, document.direction);
    }
    match (first.cause, first.cause.location()) {
        (Cause::Bufferbloat | Cause::LinkRate, _) => Some(target.command("load")),
        (_, CauseLocation::Unknown) => {
            Some(format!("{} --{} -t 30", target.command("diagnose"), without_time(&document.transfer)))
        }
        _ => None,
    }
}

/// Options of the transfer, each after a space, without its time.
fn without_time(transfer: &[String]) -> String {
    let mut options = String::new();
    let mut rest = transfer.iter();
    while let Some(option) = rest.next() {
        match option.as_str() {
            "-t" | "--time" => {
                rest.next();
            }
            other if other.starts_with("-t") || other.starts_with("--time=") => {}
            other => {
                options.push(' ');
                options.push_str(other);
            }
        }
    }
    options
}

fn after_tuning(outcome: TuneOutcome, target: &Target) -> Option<String> {
    match outcome {
        // Hosts of the lab are gone with their settings.
        TuneOutcome::Kept if target.is_in_lab() => None,
        TuneOutcome::Kept => Some("sudo linerate tune undo".to_owned()),
        TuneOutcome::Planned => target.tune(),
        TuneOutcome::NothingToChange => Some(target.command("load")),
        TuneOutcome::RolledBack | TuneOutcome::Declined | TuneOutcome::Aborted => None,
    }
}

fn after_doctor(document: &DoctorDocument, run: &RunDocument, target: &Target) -> Option<String> {
    let load = document.load_after.as_deref().or(document.load_before.as_deref());
    load.and_then(|load| shape(load, run, target))
        .or_else(|| document.tune.as_ref().and_then(|tune| after_tuning(tune.outcome, target)))
}

/// Command that shapes the link to the measured rates; `None` where the load adds little delay.
fn shape(document: &LoadDocument, run: &RunDocument, target: &Target) -> Option<String> {
    if document.grade.as_ref()?.letter <= LatencyGrade::B {
        return None;
    }
    let device = &run.environment.near.as_ref()?.interface.as_ref()?.name;
    let goodput = |kind: PhaseKind| document.phases.iter().find(|phase| phase.kind == kind);
    let up = goodput(PhaseKind::Up).and_then(|phase| phase.goodput_up_bits_per_second).map(|rate| ("up", rate));
    let down = goodput(PhaseKind::Down).and_then(|phase| phase.goodput_down_bits_per_second).map(|rate| ("down", rate));
    // Payload is a few percent below the link's rate, which is where a shaper belongs.
    let rates: Vec<String> =
        [up, down].into_iter().flatten().map(|(name, rate)| format!("--{name} {}", rounded_down(rate))).collect();
    let sudo = if target.is_in_lab() { "" } else { "sudo " };
    let verify = if target.dialed_in { String::new() } else { format!(" --verify {}", target.arguments) };
    (!rates.is_empty()).then(|| format!("{sudo}linerate shape {device} {}{verify}", rates.join(" ")))
}

/// Rate with two significant digits, rounded down, as the command line takes it: `220k`, `9.4M`.
fn rounded_down(bits_per_second: f64) -> String {
    let scale = [(1e9, "G"), (1e6, "M"), (1e3, "k")].into_iter().find(|(scale, _)| bits_per_second >= *scale);
    let (scale, unit) = scale.unwrap_or((1.0, ""));
    let value = bits_per_second / scale;
    let step = if value >= 100.0 {
        10.0
    } else if value >= 10.0 {
        1.0
    } else {
        0.1
    };
    let value = (value / step).floor() * step;
    let text = format!("{value:.1}");
    format!("{}{unit}", text.strip_suffix(".0").unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use super::{rounded_down, without_time};

    #[test]
    fn a_longer_transfer_keeps_the_other_options() {
        let transfer = ["-R", "-t", "1", "-P", "2"].map(str::to_owned);
        assert_eq!(without_time(&transfer), " -R -P 2");
        assert_eq!(without_time(&["-t1".to_owned(), "--time=4".to_owned()]), "");
    }

    #[test]
    fn rates_are_rounded_down_to_what_the_command_line_takes() {
        let shown = [225_400.0, 9_440_000.0, 95_300_000.0, 941e6, 999.0, 1e9].map(rounded_down);
        assert_eq!(shown, ["220k", "9.4M", "95M", "940M", "990", "1G"]);
    }
}
