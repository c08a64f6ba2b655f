//! `linerate rr HOST`: requests and responses.

mod arguments;
mod document;
mod figures;
mod progress;

use linerate_engine::probe::ProbeError;
use linerate_engine::rr::{self, RrOptions};
use linerate_model::report::Outcome;
use linerate_sys::host;
use linerate_units::display;

pub(crate) use arguments::RrArguments;

use crate::cmd::listen::DialedServer;
use crate::cmd::measurement::{interrupts, quic_transactions};
use crate::console;
use crate::exit::ExitStatus;
use progress::RrProgressDisplay;

/// Measures, prints and records.
pub(crate) fn run(arguments: &RrArguments) -> ExitStatus {
    let stop = match interrupts() {
        Ok(stop) => stop,
        Err(exit) => return exit,
    };
    let server = match arguments.listen.server(&arguments.common, stop) {
        Ok(server) => server,
        Err(exit) => return exit,
    };
    let dialed =
        server.map(|DialedServer { host, common }| RrArguments { host: Some(host), common, ..arguments.clone() });
    let arguments = dialed.as_ref().unwrap_or(arguments);
    let options = match options(arguments) {
        Ok(options) => options,
        Err(text) => {
            console::error(&text, None);
            return ExitStatus::Unable;
        }
    };
    let surroundings = arguments.common.local_environment(arguments.host());
    let mut progress = RrProgressDisplay::new(arguments.common.quiet);
    let outcome = rr::run(&options, Some(stop), &mut |event| progress.event(event));
    progress.finish();
    if let Some(error) = &outcome.error {
        console::error(&error.to_string(), None);
        if let ProbeError::NoProbeService(_) = error {
            console::note(REMEDY);
        }
    }
    let document = &outcome.document;
    let exit = match (document.termination.outcome(), document.transactions > 0) {
        (Outcome::Complete, true) if document.failures.is_empty() => ExitStatus::Success,
        (_, true) | (Outcome::Interrupted, false) => ExitStatus::Partial,
        _ => ExitStatus::Unable,
    };
    if exit != ExitStatus::Unable {
        arguments.common.print_and_record(&document::history_record(&outcome, surroundings));
    }
    exit
}

/// Needs of the far end.
const REMEDY: &str =
    "Requests need a linerate of this version there: run `linerate serve` on it, or measure ssh:USER@HOST.";

fn options(arguments: &RrArguments) -> Result<RrOptions, String> {
    let mode = arguments.kind.mode();
    let most = mode.max_message_bytes();
    if let Some(size) = [arguments.request, arguments.response].into_iter().find(|size| size.get() > most) {
        return Err(format!(
            "{} do not fit into a datagram: with --udp a size is {most} bytes at most",
            display::size(size)
        ));
    }
    let usual = RrOptions::new(arguments.common.target(arguments.host()), mode);
    Ok(RrOptions {
        request: arguments.request,
        response: arguments.response,
        flows: arguments.flows,
        time: arguments.time,
        rate: arguments.rate,
        poisson: if arguments.poisson { Some(seed()?) } else { None },
        timeout: arguments.timeout.unwrap_or(usual.timeout),
        quic: quic_transactions(),
        ..usual
    })
}

/// A seed of this run: two runs do not have the same intervals.
fn seed() -> Result<u64, String> {
    let mut bytes = [0; 8];
    host::random_bytes(&mut bytes).map_err(|cause| cause.to_string())?;
    Ok(u64::from_le_bytes(bytes))
}
