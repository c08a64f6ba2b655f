//! `linerate path HOST`: properties of the path itself, per direction.

mod arguments;
mod document;
mod figures;
mod progress;

use std::time::Duration;

use linerate_engine::path::{self, PathOptions, PathPhase};
use linerate_engine::probe::ProbeTarget;
use linerate_model::report::Outcome;
use linerate_units::{PacketCount, Port};

pub(crate) use arguments::PathArguments;
pub(crate) use document::history_record;
pub(crate) use progress::PathProgressDisplay;

use crate::cmd::listen::DialedServer;
use crate::cmd::measurement::{hint_no_server, interrupts};
use crate::console;
use crate::exit::ExitStatus;

/// Packets per direction, and the smallest number of them.
const DEFAULT_COUNT: u64 = 1000;
const MIN_COUNT: u64 = 10;

/// Mean time between two packets.
const DEFAULT_INTERVAL: Duration = Duration::from_millis(5);

/// Measures, prints and records.
pub(crate) fn run(arguments: &PathArguments) -> ExitStatus {
    let stop = match interrupts() {
        Ok(stop) => stop,
        Err(exit) => return exit,
    };
    let server = match arguments.listen.server(&arguments.common, stop) {
        Ok(server) => server,
        Err(exit) => return exit,
    };
    let dialed =
        server.map(|DialedServer { host, common }| PathArguments { host: Some(host), common, ..arguments.clone() });
    let arguments = dialed.as_ref().unwrap_or(arguments);
    let options = match options(arguments) {
        Ok(options) => options,
        Err(reason) => {
            console::error(&format!("path: {reason}"), None);
            return ExitStatus::Unable;
        }
    };
    let surroundings = arguments.common.local_environment(arguments.host());
    if let Err(exit) = arguments.common.draw("path", arguments.host(), arguments.live, &planned(arguments), stop) {
        return exit;
    }
    let mut progress = PathProgressDisplay::new(arguments.common.quiet, " (--max-traffic, --no-capacity)");
    let outcome = path::run(&options, Some(stop), &mut |event| progress.event(event));
    progress.finish();
    crate::progress::close_picture();
    let document = &outcome.document;
    let measured = document.rtt.best.is_some() || !document.hops.is_empty() || document.is_stream_only();
    let exit = match (outcome.document.termination.outcome(), measured) {
        (Outcome::Complete, _) => ExitStatus::Success,
        (Outcome::Interrupted, _) | (_, true) => ExitStatus::Partial,
        _ => ExitStatus::Unable,
    };
    if let Some(error) = &outcome.error {
        console::error(&error.to_string(), None);
        if asks_for_server(arguments) {
            hint_no_server(error, "measures by ICMP and STAMP alone");
        }
    }
    if exit != ExitStatus::Unable {
        let run = history_record(&outcome, surroundings);
        arguments.common.print_and_record(&run);
        if arguments.hops.hops {
            arguments.common.show_tables(&run);
        }
    }
    exit
}

/// True when a server would have been used: neither hops alone nor a stream alone need one.
fn asks_for_server(arguments: &PathArguments) -> bool {
    let without = arguments.no_server || arguments.hops.hops || arguments.stream.is_requested();
    !without && !arguments.common.dialed_in
}

/// Phases, as far as the command line tells.
fn planned(arguments: &PathArguments) -> Vec<&'static str> {
    if arguments.hops.hops {
        return vec![PathPhase::Hops.name()];
    }
    if arguments.stream.is_requested() {
        let waiting = [PathPhase::Waiting].into_iter().filter(|_| arguments.stream.receive);
        return waiting.chain([PathPhase::Stream]).map(PathPhase::name).collect();
    }
    let capacity = [PathPhase::CapacityUp, PathPhase::CapacityDown, PathPhase::Policer];
    let always = [PathPhase::Idle, PathPhase::Marks, PathPhase::Hops];
    let mtu = [PathPhase::PathMtu].into_iter().filter(|_| !arguments.no_mtu);
    let all = mtu.chain(always).chain(capacity.into_iter().filter(|_| !arguments.no_capacity));
    all.map(PathPhase::name).collect()
}

fn options(arguments: &PathArguments) -> Result<PathOptions, String> {
    // A reflector's own port means that no server is expected.
    let without_server = arguments.no_server || arguments.stamp_port != Port::STAMP;
    let target = ProbeTarget { without_server, ..arguments.common.target(arguments.host()) };
    let count = arguments.count.unwrap_or(DEFAULT_COUNT);
    let blind = arguments.stream.stream(arguments.count)?;
    if count < MIN_COUNT && !arguments.hops.hops {
        return Err(format!(
            "--count {count}: loss and delay need {MIN_COUNT} packets or more (rounds of --hops need not)"
        ));
    }
    Ok(PathOptions {
        stamp_port: arguments.stamp_port,
        count: PacketCount::new(count),
        interval: arguments.interval.unwrap_or(DEFAULT_INTERVAL),
        poisson: !arguments.periodic,
        path_mtu: !arguments.no_mtu,
        capacity: !arguments.no_capacity,
        max_rate: arguments.max_rate,
        max_traffic: arguments.max_traffic,
        route: Box::new(arguments.route()?),
        only_hops: arguments.hops.hops,
        blind,
        ..PathOptions::new(target)
    })
}
