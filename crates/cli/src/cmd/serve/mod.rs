//! `linerate serve`: the server for everything, in the foreground, one line per test.

mod arguments;
mod limits;
#[cfg(feature = "quic")]
mod quic;
#[cfg(feature = "responsiveness")]
mod responsiveness;
mod session;
mod stamp;
#[cfg(feature = "web")]
mod web;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use linerate_engine::Error;
use linerate_engine::server::{Server, ServerObserver, ServerOptions, SessionObserver};
use linerate_model::event::{TestEvent, TestStart};
use linerate_model::parameters::{TestDirection, TestProtocol};
use linerate_model::report::{ServerOutput, SideReport, TestReport, TestTermination};
use linerate_model::stream::StreamRole;
use linerate_report::escape;
use linerate_report::iperf3_json::Iperf3Document;
use linerate_report::iperf3_text::{Iperf3Renderer, TextOptions};
use linerate_sys::firewall::hold_open;
use linerate_sys::signals::InterruptSignals;
use linerate_sys::{clock, host, process};
use linerate_units::{ByteCount, Port, display};
use linerate_wire::authentication::{Authenticator, DEFAULT_SKEW, RsaPadding};
use linerate_wire::error::ErrorCode;

use super::measurement::family;
pub(crate) use arguments::ServeArguments;
use limits::ServeLimits;
pub(crate) use session::run as run_session;

use crate::console;
use crate::exit::ExitStatus;
use crate::firewall::FirewallGuard;
use crate::retained_output::{RetainedMemory, RetainedOutput};

/// Serves until a signal arrives.
pub(crate) fn run(arguments: &ServeArguments) -> ExitStatus {
    if let Some(port) = arguments.firewall_guard {
        let held = Port::new(port).is_some_and(|port| hold_open(port, &mut std::io::stdout().lock()));
        return if held { ExitStatus::Success } else { ExitStatus::Unable };
    }
    // Each session has its own threads; an arena per thread would keep its memory for ever.
    process::limit_malloc_arenas();
    // Without a higher limit of open files, the server only has fewer sessions.
    let _ = process::raise_open_file_limit();
    let server = match server_options(arguments).and_then(Server::bind) {
        Ok(server) => server,
        Err(error) => {
            console::error(&error.to_string(), error.advice());
            return ExitStatus::Unable;
        }
    };
    match serve(arguments, server) {
        Ok(exit) => exit,
        Err(cause) => {
            console::error(&cause.to_string(), None);
            ExitStatus::from_error(&cause)
        }
    }
}

fn serve(arguments: &ServeArguments, server: Server) -> linerate_sys::Result<ExitStatus> {
    #[cfg(feature = "web")]
    let web = arguments.web.map(|address| web::BoundWebPage::bind(address, arguments));
    #[cfg(feature = "web")]
    let Some(web) = succeeded(web.transpose()) else { return Ok(ExitStatus::Unable) };
    #[cfg(feature = "responsiveness")]
    let responsiveness =
        arguments.responsiveness.map(|address| responsiveness::BoundResponsiveness::bind(address, arguments));
    #[cfg(feature = "responsiveness")]
    let Some(responsiveness) = succeeded(responsiveness.transpose()) else { return Ok(ExitStatus::Unable) };
    let stop = InterruptSignals::install()?;
    let port = Port::new(server.address().port()).unwrap_or(Port::IPERF3);
    let firewall = open_firewall(arguments, &server, port)?;
    if let Some(user) = &arguments.user {
        process::drop_privileges(user)?;
    }
    announce(&server, port);
    #[cfg(feature = "web")]
    let web = web.map(|web| web.start(&server, arguments));
    #[cfg(feature = "web")]
    let Some(_web) = succeeded(web.transpose()) else { return Ok(ExitStatus::Unable) };
    #[cfg(feature = "responsiveness")]
    let responsiveness = responsiveness.map(|bound| bound.start(&server));
    #[cfg(feature = "responsiveness")]
    let Some(_responsiveness) = succeeded(responsiveness.transpose()) else { return Ok(ExitStatus::Unable) };
    let result = server.run(Some(&stop), &ServeObserver { json: arguments.json });
    for guard in firewall {
        guard.close(console::note);
    }
    Ok(match result {
        Ok(()) => ExitStatus::Success,
        Err(error) => {
            console::error(&error.to_string(), error.advice());
            ExitStatus::Unable
        }
    })
}

/// Result of a step without which nothing is served; `None` after printing its problem.
#[cfg(any(feature = "web", feature = "responsiveness"))]
fn succeeded<T>(step: Result<T, String>) -> Option<T> {
    step.inspect_err(|problem| console::error(problem, None)).ok()
}

/// Opens the ports of the server in the firewall, if the user wants that.
fn open_firewall(arguments: &ServeArguments, server: &Server, port: Port) -> linerate_sys::Result<Vec<FirewallGuard>> {
    #[cfg(feature = "quic")]
    let quic = arguments.quic_port;
    #[cfg(not(feature = "quic"))]
    let quic = None;
    let reflector = server.reflector_port().filter(|reflector| *reflector != port);
    let ports = [Some(port), quic, reflector].into_iter().flatten();
    ports.map(|port| FirewallGuard::open_if(arguments.open_firewall, port, console::note)).collect()
}

/// Prints clients, ports and key of the server.
fn announce(server: &Server, port: Port) {
    console::note(&format!(
        "linerate {} serves {} on port {port} (TCP and UDP){}{}; Ctrl-C stops it",
        env!("CARGO_PKG_VERSION"),
        if server.has_tls() { "linerate clients with TLS" } else { "iperf3 and linerate clients" },
        server.reflector_port().map_or_else(String::new, |port| format!(", STAMP senders on port {port} (UDP)")),
        if server.is_without_ipv6() { ", IPv4 only" } else { "" },
    ));
    if let Some(pin) = server.tls_pin() {
        console::note(&format!("clients recognize this server by --tls-pin {pin}"));
    }
}

fn server_options(arguments: &ServeArguments) -> Result<ServerOptions, Error> {
    let limits = ServeLimits::of(arguments);
    Ok(ServerOptions {
        address: arguments.network.bind,
        port: Port::new(arguments.port),
        family: family(&arguments.network),
        device: arguments.network.bind_dev.clone(),
        max_sessions: limits.max_sessions,
        queue: arguments.queue,
        limits: limits.requests,
        choices: limits.choices,
        authenticator: match (&arguments.rsa_private_key_path, &arguments.authorized_users_path) {
            (Some(key), Some(users)) => Some(Arc::new(authenticator(key, users)?)),
            _ => None,
        },
        tls: arguments.tls.server().map_err(|cause| Error::new(ErrorCode::LISTEN).with_detail(cause.to_string()))?,
        // The server's own document keeps the server's intervals.
        interval_by_client: !arguments.json,
        stall_timeout: limits.stall_timeout,
        read_rate: arguments.read_rate.filter(|rate| !rate.is_zero()),
        stamp: stamp::stamp_options(arguments)?,
        dial: arguments.dial.clone(),
        #[cfg(feature = "quic")]
        quic: Some(quic::service(arguments)?),
        ..ServerOptions::default()
    })
}

fn authenticator(key: &Path, users: &Path) -> Result<Authenticator, Error> {
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|cause| {
            Error::new(ErrorCode::SERVER_AUTHENTICATION).with_detail(format!("reading {}: {cause}", path.display()))
        })
    };
    Authenticator::new(&read(key)?, &read(users)?, RsaPadding::Oaep, DEFAULT_SKEW)
        .map_err(|cause| Error::new(ErrorCode::SERVER_AUTHENTICATION).with_detail(cause.to_string()))
}

struct ServeObserver {
    json: bool,
}

impl ServerObserver for ServeObserver {
    fn idle(&self, _next_session: u64) {}

    fn session(&self, number: u64) -> Box<dyn SessionObserver> {
        let system_information = host::system_information();
        let version = format!("iperf {}", crate::iperf3::help::IPERF3_PROFILE);
        let text = TextOptions {
            version: version.clone(),
            system_information: system_information.clone(),
            ..TextOptions::default()
        };
        Box::new(ServeSession {
            number,
            client: String::new(),
            start: None,
            document: self.json.then(|| Iperf3Document::new(&version, &system_information)),
            renderer: Iperf3Renderer::new(text),
            shown: RetainedOutput::default(),
            intervals: RetainedMemory::default(),
        })
    }

    fn problem(&self, text: &str) {
        console::error(text, None);
    }

    fn note(&self, text: &str) {
        console::note(text);
    }
}

/// Output of one session: a line when it ends.
struct ServeSession {
    number: u64,
    client: String,
    start: Option<TestStart>,
    document: Option<Iperf3Document>,
    /// Renderer for clients that request the server's output, in iperf3's format.
    renderer: Iperf3Renderer,
    shown: RetainedOutput,
    /// Memory of the intervals in the document.
    intervals: RetainedMemory,
}

impl SessionObserver for ServeSession {
    fn event(&mut self, event: &TestEvent) {
        if let Some(document) = &mut self.document {
            match event {
                TestEvent::Interval(interval) if !self.intervals.admits(interval) => document.leave_interval_out(),
                _ => document.event(event),
            }
        }
        let mut text = Vec::new();
        // Writing into memory does not fail.
        let _ = self.renderer.event(event, &mut text);
        let keep = self.start.as_ref().is_none_or(|start| start.parameters.get_server_output);
        if keep {
            self.shown.push(&String::from_utf8_lossy(&text));
        }
        match event {
            TestEvent::Connected(connected) => self.client.clone_from(&connected.host),
            TestEvent::Started(start) => self.start = Some((**start).clone()),
            TestEvent::Warning(text) => console::note(&format!("#{} {}: {text}", self.number, self.client)),
            TestEvent::Finished(report) => self.finished(report),
            TestEvent::Interval(_) | TestEvent::FarInterval(_) | TestEvent::Debug(_) => {}
        }
    }

    fn output(&mut self) -> Option<ServerOutput> {
        Some(ServerOutput::Text(self.shown.take()))
    }

    fn failed(&mut self, error: &Error) {
        let detail = error.advice().map_or_else(|| error.to_string(), str::to_owned);
        console::note(&format!("{} #{} {}: {}", local_time(), self.number, self.client, escape::line(&detail)));
    }
}

impl ServeSession {
    fn finished(&mut self, report: &TestReport) {
        if let Some(document) = self.document.take() {
            console::data(&document.finish_line());
            return;
        }
        let Some(start) = &self.start else { return };
        if report.termination == TestTermination::Complete {
            console::data(&format!("{} #{} {}\n", local_time(), self.number, summary(&self.client, start, report)));
        }
    }
}

fn local_time() -> String {
    clock::format_local(clock::realtime_now(), "%H:%M:%S")
}

/// Summary such as `192.0.2.7: TCP 4 streams, from the client 9.41 Gbit/s in 10.0 s`.
fn summary(client: &str, start: &TestStart, report: &TestReport) -> String {
    let parameters = &start.parameters;
    let protocol = match parameters.protocol {
        TestProtocol::Tcp => "TCP",
        TestProtocol::Udp => "UDP",
    };
    let streams = match parameters.parallel.get() {
        1 => "1 stream".to_owned(),
        count => format!("{count} streams"),
    };
    let mut text = format!("{client}: {protocol} {streams}");
    for (role, label, direction) in [
        (StreamRole::Receiver, "from the client", TestDirection::Forward),
        (StreamRole::Sender, "to the client", TestDirection::Reverse),
    ] {
        if parameters.direction == direction || parameters.direction == TestDirection::Bidirectional {
            let sides: Vec<SideReport> = report
                .streams
                .iter()
                .filter(|stream| stream.description.role == role)
                .filter_map(|stream| if role == StreamRole::Receiver { stream.received } else { stream.sent })
                .collect();
            let bytes: ByteCount = sides.iter().map(|side| side.bytes).sum();
            let time = sides.iter().map(|side| side.duration).max().unwrap_or_default();
            let rate = display::rate(bytes.rate_over(time));
            let _ = write!(text, ", {label} {rate} in {}", display::duration(time));
        }
    }
    if let Some(others @ 1..) = report.overlapping_tests {
        let _ = write!(text, ", during {}", display::counted(others, "other test"));
    }
    text
}
