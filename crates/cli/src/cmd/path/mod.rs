//! `linerate path HOST`: properties of the path itself, per direction.

mod arguments;
mod document;
mod figures;
mod progress;

use linerate_engine::path::{self, PathOptions, PathPhase};
use linerate_engine::probe::ProbeTarget;
use linerate_model::report::Outcome;
use linerate_units::{PacketCount, Port};

pub(crate) use arguments::PathArguments;
pub(crate) use progress::PathProgressDisplay;

use crate::cmd::measurement::{hint_no_server, interrupts};
use crate::console;
use crate::exit::ExitStatus;

/// Measures, prints and records.
pub(crate) fn run(arguments: &PathArguments) -> ExitStatus {
    let stop = match interrupts() {
        Ok(stop) => stop,
        Err(exit) => return exit,
    };
    let surroundings = arguments.common.local_environment(&arguments.host);
    if let Err(exit) = arguments.common.draw("path", &arguments.host, arguments.live, &planned(arguments), stop) {
        return exit;
    }
    let mut progress = PathProgressDisplay::new(arguments.common.quiet, " (--max-traffic, --no-capacity)");
    let outcome = path::run(&options(arguments), Some(stop), &mut |event| progress.event(event));
    progress.finish();
    crate::progress::close_picture();
    let measured = outcome.document.rtt.best.is_some();
    let exit = match (outcome.document.termination.outcome(), measured) {
        (Outcome::Complete, _) => ExitStatus::Success,
        (Outcome::Interrupted, _) | (_, true) => ExitStatus::Partial,
        _ => ExitStatus::Unable,
    };
    if let Some(error) = &outcome.error {
        console::error(&error.to_string(), None);
        hint_no_server(error, "measures by ICMP and STAMP alone");
    }
    if exit != ExitStatus::Unable {
        arguments.common.print_and_record(&document::history_record(&outcome, surroundings));
    }
    exit
}

/// Phases, as far as the command line tells.
fn planned(arguments: &PathArguments) -> Vec<&'static str> {
    let capacity = [PathPhase::CapacityUp, PathPhase::CapacityDown, PathPhase::Policer];
    let always = [PathPhase::Idle, PathPhase::Marks, PathPhase::Hops];
    let mtu = [PathPhase::PathMtu].into_iter().filter(|_| !arguments.no_mtu);
    let all = mtu.chain(always).chain(capacity.into_iter().filter(|_| !arguments.no_capacity));
    all.map(PathPhase::name).collect()
}

fn options(arguments: &PathArguments) -> PathOptions {
    // A reflector's own port means that no server is expected.
    let without_server = arguments.no_server || arguments.stamp_port != Port::STAMP;
    let target = ProbeTarget { without_server, ..arguments.common.target(&arguments.host) };
    PathOptions {
        stamp_port: arguments.stamp_port,
        count: PacketCount::new(arguments.count),
        interval: arguments.interval,
        poisson: !arguments.periodic,
        path_mtu: !arguments.no_mtu,
        capacity: !arguments.no_capacity,
        max_rate: arguments.max_rate,
        max_traffic: arguments.max_traffic,
        ..PathOptions::new(target)
    }
}
