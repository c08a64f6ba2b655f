//! Subject of a run: only runs of one subject are compared.

use core::fmt;

use linerate_model::direction::Direction;

use crate::run::{RunDocument, RunKind, RunResult};

/// Reason why runs are not compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparisonRefusal(String);

impl fmt::Display for ComparisonRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for ComparisonRefusal {}

impl ComparisonRefusal {
    pub(super) fn empty() -> Self {
        Self("cannot compare: a run before and a run after are needed".to_owned())
    }

    pub(super) fn nothing_in_common(before: &RunDocument, after: &RunDocument) -> Self {
        let names = |run: &RunDocument| {
            let names: Vec<&str> = run.figures.iter().map(|figure| figure.name.as_str()).collect();
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        };
        Self(format!(
            "cannot compare: the runs have no figure in common (before: {}; after: {})",
            names(before),
            names(after)
        ))
    }

    fn different(what: &str, before: &str, after: &str) -> Self {
        Self(format!(
            "cannot compare runs of different {what} ({before}, {after}): measure both the same way, and compare those runs"
        ))
    }
}

/// Checks that all runs have one kind, target, path, direction and protocol.
pub(super) fn check<'a>(runs: impl Iterator<Item = &'a RunDocument>) -> Result<(), ComparisonRefusal> {
    let mut runs = runs;
    let Some(first) = runs.next() else { return Ok(()) };
    runs.try_for_each(|other| check_two(first, other))
}

fn check_two(first: &RunDocument, other: &RunDocument) -> Result<(), ComparisonRefusal> {
    let lab = |run: &RunDocument| run.environment.lab.as_ref().map(|lab| (lab.name.clone(), lab.description.clone()));
    let [kinds, targets, directions, transactions, protocols] = [
        [first, other].map(|run| kind_name(run.kind).to_owned()),
        [first, other].map(target),
        [first, other].map(directions),
        [first, other].map(transactions),
        [first, other].map(|run| if is_udp(run) { "UDP" } else { "TCP" }.to_owned()),
    ];
    for (what, [one, two]) in [("kinds", kinds), ("targets", targets)] {
        if one != two {
            return Err(ComparisonRefusal::different(what, &one, &two));
        }
    }
    if lab(first) != lab(other) {
        return Err(ComparisonRefusal::different("paths", &path_name(first), &path_name(other)));
    }
    for (what, [one, two]) in [("directions", directions), ("transactions", transactions), ("protocols", protocols)] {
        if one != two {
            return Err(ComparisonRefusal::different(what, &one, &two));
        }
    }
    Ok(())
}

const fn kind_name(kind: RunKind) -> &'static str {
    match kind {
        RunKind::Throughput => "linerate test",
        RunKind::Path => "linerate path",
        RunKind::Load => "linerate load",
        RunKind::Rfc6349 => "linerate rfc6349",
        RunKind::Rr => "linerate rr",
        RunKind::Diagnose => "linerate diagnose",
        RunKind::Tune => "linerate tune",
        RunKind::Doctor => "linerate doctor",
        RunKind::Web => "tests in a browser",
    }
}

/// Target as the user wrote it.
fn target(run: &RunDocument) -> String {
    run.host.clone()
}

fn path_name(run: &RunDocument) -> String {
    run.environment.lab.as_ref().map_or_else(|| "no emulated path".to_owned(), |lab| format!("lab:{}", lab.name))
}

/// Directions of the data, where all figures of a kind have one name for both. The figures of other kinds name theirs.
fn directions(run: &RunDocument) -> String {
    let of = |direction| match direction {
        Direction::Up => "up",
        Direction::Down => "down",
    };
    match &run.result {
        RunResult::Diagnose(document) => of(document.direction).to_owned(),
        RunResult::Tune(document) => of(transfer_direction(&document.transfer)).to_owned(),
        RunResult::Throughput(_)
        | RunResult::Path(_)
        | RunResult::Load(_)
        | RunResult::Rfc6349(_)
        | RunResult::Rr(_)
        | RunResult::Doctor(_)
        | RunResult::Web(_) => String::new(),
    }
}

/// Kind with its handshake, sizes, flows and schedule of the transactions of `linerate rr`: other ones have another latency.
fn transactions(run: &RunDocument) -> String {
    let RunResult::Rr(document) = &run.result else { return String::new() };
    let rate = document.scheduled_per_second.map_or_else(String::new, |rate| format!(" of {rate}/s"));
    let handshake =
        document.handshake.as_ref().map_or_else(String::new, |handshake| format!(" ({})", handshake.text()));
    format!(
        "{}{handshake}, {} and {} bytes, {} flows, {}{rate}",
        document.mode.title(),
        document.request_bytes,
        document.response_bytes,
        document.flows,
        document.schedule.title(),
    )
}

/// Direction of a transfer with these options of iperf3.
fn transfer_direction(options: &[String]) -> Direction {
    let reversed = options.iter().any(|option| option == "-R" || option == "--reverse");
    if reversed { Direction::Down } else { Direction::Up }
}

fn is_udp(run: &RunDocument) -> bool {
    let options = match &run.result {
        RunResult::Diagnose(document) => &document.transfer,
        RunResult::Tune(document) => &document.transfer,
        _ => &run.arguments,
    };
    options.iter().any(|option| option == "-u" || option == "--udp")
}
