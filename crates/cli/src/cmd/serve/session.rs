//! `linerate serve --session`: the far end of a measurement over ssh, which serves the linerate that started it.

use std::fs::File;
use std::io::{self, PipeReader};
use std::os::fd::AsFd;

use linerate_engine::Error;
use linerate_engine::server::{Server, ServerObserver, ServerOptions, SessionObserver};
use linerate_model::event::TestEvent;
use linerate_model::report::ServerOutput;
use linerate_operate::far::service::{SessionAnswer, SessionEnd, SessionOrder, SessionService};
use linerate_sys::process;
use linerate_sys::signals::InterruptSignals;
use linerate_units::Port;
use linerate_wire::cookie::AdmissionKey;

use crate::console;
use crate::exit::ExitStatus;

/// Serves until the standard input ends, which is the end of the ssh connection.
pub(crate) fn run() -> ExitStatus {
    // Each session has its own threads; an arena per thread would keep its memory for ever.
    process::limit_malloc_arenas();
    // Without a higher limit of open files, the server only has fewer sessions.
    let _ = process::raise_open_file_limit();
    serve().unwrap_or_else(|text| {
        console::error(&text, None);
        ExitStatus::Unable
    })
}

fn serve() -> Result<ExitStatus, String> {
    let interrupts = InterruptSignals::install().map_err(|cause| cause.to_string())?;
    let input = io::stdin().as_fd().try_clone_to_owned();
    let mut input = File::from(input.map_err(|cause| format!("opening the standard input: {cause}"))?);
    let mut output = io::stdout();
    let Some((service, order)) = SessionService::open(&mut input, &mut output, interrupts)? else {
        return Ok(ExitStatus::Unable);
    };
    let (answer, server) = match start(&order) {
        Ok((port, server)) => (SessionAnswer::Serving { port, process: std::process::id() }, Some(server)),
        Err(reason) => (SessionAnswer::Failed { reason }, None),
    };
    let answered = SessionService::<File>::answer(&mut output, &answer).is_ok();
    let Some(server) = server.filter(|_| answered) else { return Ok(ExitStatus::Unable) };
    // The threads of the server end with this process.
    Ok(match service.wait_for_end(&server) {
        SessionEnd::Connection => ExitStatus::Success,
        SessionEnd::Signal | SessionEnd::Server => ExitStatus::Unable,
    })
}

/// Starts the server; returns its port, and a pipe that is closed when it ends.
fn start(order: &SessionOrder) -> Result<(Port, PipeReader), String> {
    let key = AdmissionKey::from_text(&order.key).ok_or("the key is invalid")?;
    let server = Server::bind(ServerOptions {
        port: order.port,
        admission: Some(key),
        #[cfg(feature = "quic")]
        quic: Some(super::quic::of_addresses(None, None, None, None).map_err(|error| error.to_string())?),
        interval_by_client: true,
        ..ServerOptions::default()
    });
    let server = server.map_err(|error| error.to_string())?;
    let port = Port::new(server.address().port()).ok_or("it has no port")?;
    let (ended, running) = io::pipe().map_err(|cause| cause.to_string())?;
    std::thread::spawn(move || {
        if let Err(error) = server.run(None, &SilentObserver) {
            console::error(&error.to_string(), error.advice());
        }
        drop(running);
    });
    Ok((port, ended))
}

/// Observer that prints nothing: the standard output belongs to the session.
struct SilentObserver;

impl ServerObserver for SilentObserver {
    fn idle(&self, _next_session: u64) {}

    fn session(&self, _number: u64) -> Box<dyn SessionObserver> {
        Box::new(Self)
    }

    fn problem(&self, text: &str) {
        console::error(text, None);
    }
}

impl SessionObserver for SilentObserver {
    fn event(&mut self, _event: &TestEvent) {}

    fn output(&mut self) -> Option<ServerOutput> {
        None
    }

    fn failed(&mut self, _error: &Error) {}
}
