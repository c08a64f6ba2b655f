//! `iperf3 -s`, for many clients at once.

use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use linerate_engine::Error;
use linerate_engine::server::{DEFAULT_MAX_SESSIONS, Server, ServerObserver, ServerOptions, SessionObserver};
use linerate_model::event::TestEvent;
use linerate_model::report::{ServerOutput, TestTermination};
use linerate_report::iperf3_json::{Iperf3Document, Iperf3EventStream};
use linerate_report::iperf3_text::{Iperf3Renderer, TextOptions};
use linerate_sys::signals::InterruptSignals;
use linerate_sys::{host, process};
use linerate_units::Port;
use linerate_wire::authentication::{Authenticator, RsaPadding};
use linerate_wire::error::ErrorCode;
use linerate_wire::parameters::ServerLimits;

use super::args::command::{JsonOutput, ServerArguments, ServerAuthentication};
use super::client::{bind_address, bind_device, keepalive, prepare, rendered};
use super::output::Iperf3Output;
use super::{FAILURE, version};
use crate::firewall::FirewallGuard;
use crate::retained_output::{RetainedMemory, RetainedOutput};

/// Runs a server until a signal arrives, or with `-1` until one test is over.
pub(super) fn run(arguments: &ServerArguments) -> ExitCode {
    // Each session has its own threads; an arena per thread would keep its memory for ever.
    process::limit_malloc_arenas();
    // Without a higher limit of open files, the server only has fewer sessions.
    let _ = process::raise_open_file_limit();
    let server = match server_options(arguments).and_then(Server::bind) {
        Ok(server) => server,
        Err(error) => return refuse(arguments, &error),
    };
    if arguments.daemon
        && let Err(cause) = process::daemonize()
    {
        return refuse(arguments, &Error::system(ErrorCode::DAEMON, &cause));
    }
    let prepared = match prepare(&arguments.common, None) {
        Ok(prepared) => prepared,
        Err(code) => return code,
    };
    let output = prepared.output;
    if server.is_without_ipv6() {
        output.message("warning: this system does not seem to support IPv6 - trying IPv4");
    }
    match serve(arguments, server, &output) {
        Ok(code) => code,
        Err(error) => fail(arguments, output, &error),
    }
}

fn serve(arguments: &ServerArguments, server: Server, output: &Iperf3Output) -> Result<ExitCode, Error> {
    let failed = |cause: linerate_sys::Error| Error::system(ErrorCode::INIT_TEST, &cause);
    let stop = InterruptSignals::install().map_err(failed)?;
    let port = Port::new(server.address().port()).unwrap_or(arguments.common.port);
    let firewall =
        FirewallGuard::open_if(arguments.open_firewall, port, |text| output.message(text)).map_err(failed)?;
    if let Some(user) = &arguments.user {
        process::drop_privileges(user).map_err(failed)?;
    }
    let observer = Iperf3ServerObserver::new(arguments, output.clone(), port);
    if observer.json.is_none() {
        output.lines(&rendered(|out| observer.renderer().begin(out)));
    }
    let result = server.run(Some(&stop), &observer);
    firewall.close(|text| output.message(text));
    result?;
    if let Some(signal) = stop.pending() {
        let text = format!("interrupt - the server has terminated by signal {}", signal.describe());
        observer.ended(&text);
    }
    Ok(ExitCode::SUCCESS)
}

/// Reports the reason why a server did not start. iperf3 adds a line when it cannot listen (`run` in `main.c`).
fn refuse(arguments: &ServerArguments, error: &Error) -> ExitCode {
    let exits = error.code() == ErrorCode::LISTEN;
    // The log file may be the one that cannot be opened.
    let Ok(output) = Iperf3Output::new(&arguments.common, None) else {
        super::output::print_error_line(&format!("iperf3: error - {error}"));
        return FAILURE;
    };
    let code = fail(arguments, output.clone(), error);
    if exits {
        output.message("iperf3: exiting");
    }
    code
}

/// Reports the error that ended the server.
fn fail(arguments: &ServerArguments, output: Iperf3Output, error: &Error) -> ExitCode {
    Iperf3ServerObserver::new(arguments, output, arguments.common.port).ended(&format!("error - {error}"));
    FAILURE
}

fn server_options(arguments: &ServerArguments) -> Result<ServerOptions, Error> {
    let common = &arguments.common;
    let defaults = ServerOptions::default();
    let limit = arguments.bitrate_limit;
    let most = arguments.max_sessions.map(|most| NonZeroUsize::new(most.get() as usize).unwrap_or(NonZeroUsize::MIN));
    Ok(ServerOptions {
        address: bind_address(common, ErrorCode::LISTEN)?,
        port: Some(common.port),
        family: common.address_family,
        device: bind_device(common),
        multipath: arguments.multipath,
        max_sessions: most.unwrap_or(DEFAULT_MAX_SESSIONS),
        queue: arguments.queue,
        one_off: arguments.one_off,
        idle_timeout: arguments.idle_timeout,
        limits: ServerLimits {
            max_duration: arguments.max_duration,
            max_total_rate: limit.map(|limit| limit.rate).filter(|rate| !rate.is_zero()),
            udp: common.file.is_none(),
            ..ServerLimits::default()
        },
        choices: defaults.choices,
        rate_averaging: limit.map_or(defaults.rate_averaging, |limit| limit.averaging),
        admission: None,
        tls: None,
        authenticator: match &arguments.authentication {
            Some(authentication) => Some(Arc::new(authenticator(authentication, common.pkcs1_padding)?)),
            None => None,
        },
        interval_by_client: false,
        interval: common.interval,
        stall_timeout: common.receive_timeout,
        send_timeout: common.send_timeout,
        keepalive: common.control_keep_alive.map_or(defaults.keepalive, keepalive),
        file: common.file.clone(),
        read_rate: None,
        cpu: common.affinity,
        deadlines: defaults.deadlines,
        // The server of iperf3 has one port.
        stamp: None,
        dial: None,
        quic: None,
        debug: common.shows_debugging(),
    })
}

fn authenticator(authentication: &ServerAuthentication, pkcs1: bool) -> Result<Authenticator, Error> {
    let refused = |detail: String| Error::new(ErrorCode::SERVER_AUTHENTICATION).with_detail(detail);
    let key = std::fs::read_to_string(&authentication.private_key)
        .map_err(|cause| refused(format!("reading {}: {cause}", authentication.private_key.display())))?;
    let users = std::fs::read_to_string(&authentication.users).map_err(|_| Error::new(ErrorCode::AUTHORIZED_USERS))?;
    let padding = if pkcs1 { RsaPadding::Pkcs1 } else { RsaPadding::Oaep };
    Authenticator::new(&key, &users, padding, authentication.time_skew).map_err(|cause| refused(cause.to_string()))
}

struct Iperf3ServerObserver {
    output: Iperf3Output,
    port: Port,
    json: Option<JsonOutput>,
    text: TextOptions,
    /// Number of sessions with output.
    active: Arc<AtomicU64>,
    /// True when a session's document states the signal.
    reported_signal: Arc<AtomicBool>,
}

impl Iperf3ServerObserver {
    fn new(arguments: &ServerArguments, output: Iperf3Output, port: Port) -> Self {
        let common = &arguments.common;
        let text = TextOptions {
            format: common.format,
            verbose: common.verbose,
            version: version(),
            system_information: host::system_information(),
        };
        Self { output, port, json: common.json, text, active: Arc::default(), reported_signal: Arc::default() }
    }

    /// Reports the signal or the error that ended the server; with `-J` in a document, even if there was no session.
    fn ended(&self, text: &str) {
        let mut form = self.session_renderer();
        if let SessionRenderer::Text(_) = form {
            self.output.message(&format!("iperf3: {text}"));
        } else if !self.reported_signal.load(Ordering::Relaxed) {
            form.error(text);
            form.finish(&self.output);
        }
    }

    fn renderer(&self) -> Iperf3Renderer {
        Iperf3Renderer::new(self.text.clone())
    }

    /// Creates the renderer of the next session.
    fn session_renderer(&self) -> SessionRenderer {
        let document = || Iperf3Document::new(&self.text.version, &self.text.system_information);
        match self.json {
            None => SessionRenderer::Text(Box::new(self.renderer())),
            Some(JsonOutput::Document) => SessionRenderer::Document(Box::new(document())),
            Some(JsonOutput::Stream) => SessionRenderer::Stream(Box::new(Iperf3EventStream::new(document(), false))),
            Some(JsonOutput::StreamAndDocument) => {
                SessionRenderer::Stream(Box::new(Iperf3EventStream::new(document(), true)))
            }
        }
    }
}

impl ServerObserver for Iperf3ServerObserver {
    fn idle(&self, next_session: u64) {
        if self.json.is_none() {
            self.output.lines(&rendered(|out| self.renderer().listening(self.port, next_session, out)));
        }
    }

    fn session(&self, number: u64) -> Box<dyn SessionObserver> {
        self.active.fetch_add(1, Ordering::Relaxed);
        Box::new(Iperf3ServerSession {
            number,
            output: self.output.clone(),
            active: Arc::clone(&self.active),
            reported_signal: Arc::clone(&self.reported_signal),
            form: self.session_renderer(),
            shown: RetainedOutput::default(),
            intervals: RetainedMemory::default(),
            keep: true,
        })
    }

    fn problem(&self, text: &str) {
        self.output.message(&format!("iperf3: {text}"));
    }
}

/// Renderer of a session.
enum SessionRenderer {
    Text(Box<Iperf3Renderer>),
    Document(Box<Iperf3Document>),
    Stream(Box<Iperf3EventStream>),
}

impl SessionRenderer {
    /// Sets the error of a document.
    fn error(&mut self, text: &str) {
        match self {
            Self::Text(_) => {}
            Self::Document(document) => document.error(text),
            Self::Stream(stream) => stream.error(text),
        }
    }

    /// Prints a document, or the end of one.
    fn finish(&self, output: &Iperf3Output) {
        match self {
            Self::Text(_) => {}
            Self::Document(document) => output.raw(&Iperf3Document::clone(document).finish()),
            Self::Stream(stream) => output.raw(&rendered(|out| Iperf3EventStream::clone(stream).finish(out))),
        }
    }
}

struct Iperf3ServerSession {
    number: u64,
    output: Iperf3Output,
    active: Arc<AtomicU64>,
    reported_signal: Arc<AtomicBool>,
    form: SessionRenderer,
    /// Retained output, for a client that requests it.
    shown: RetainedOutput,
    /// Memory of the intervals in a document.
    intervals: RetainedMemory,
    keep: bool,
}

impl Iperf3ServerSession {
    /// Prefix of each line while several sessions run.
    fn line_mark(&self) -> String {
        if self.active.load(Ordering::Relaxed) > 1 { format!("#{} ", self.number) } else { String::new() }
    }

    /// Prints lines, and retains them while the client may request them.
    fn show(&mut self, text: &str) {
        self.output.marked_lines(&self.line_mark(), text);
        if self.keep {
            self.shown.push(text);
        } else {
            self.shown.clear();
        }
    }
}

impl SessionObserver for Iperf3ServerSession {
    fn event(&mut self, event: &TestEvent) {
        match event {
            TestEvent::Warning(text) => self.output.message(&format!("warning: {text}")),
            TestEvent::Debug(text) => {
                self.output.marked_lines(&self.line_mark(), &format!("{}\n", linerate_report::escape::text(text)));
            }
            _ => {}
        }
        match event {
            TestEvent::Started(start) => self.keep = start.parameters.get_server_output,
            TestEvent::Finished(report) if matches!(report.termination, TestTermination::Interrupted { .. }) => {
                self.reported_signal.store(true, Ordering::Relaxed);
            }
            _ => {}
        }
        match &mut self.form {
            SessionRenderer::Text(renderer) => {
                let text = rendered(|out| renderer.event(event, out));
                self.show(&text);
            }
            SessionRenderer::Document(document) => match event {
                TestEvent::Interval(interval) if !self.intervals.admits(interval) => document.leave_interval_out(),
                _ => document.event(event),
            },
            SessionRenderer::Stream(stream) => {
                let text = match event {
                    TestEvent::Interval(interval) if !self.intervals.admits(interval) => {
                        rendered(|out| stream.interval_without_retention(interval, out))
                    }
                    _ => rendered(|out| stream.event(event, out)),
                };
                self.output.raw(&text);
            }
        }
    }

    fn output(&mut self) -> Option<ServerOutput> {
        Some(match &self.form {
            SessionRenderer::Text(_) => ServerOutput::Text(self.shown.take()),
            SessionRenderer::Document(document) => ServerOutput::Json(Iperf3Document::clone(document).finish()),
            SessionRenderer::Stream(stream) => ServerOutput::Json(stream.document().clone().finish()),
        })
    }

    fn failed(&mut self, error: &Error) {
        let text = error_text(error);
        if let SessionRenderer::Text(_) = self.form {
            self.output.message(&format!("{}iperf3: {text}", self.line_mark()));
        }
        self.form.error(&text);
    }
}

/// Text of a session's error as iperf3's server writes it, also into its document.
fn error_text(error: &Error) -> String {
    match error.code() {
        ErrorCode::CLIENT_TERMINATED => error.to_string(),
        ErrorCode::CONTROL_CLOSED => "the client has unexpectedly closed the connection".to_owned(),
        _ => format!("error - {error}"),
    }
}

impl Drop for Iperf3ServerSession {
    fn drop(&mut self) {
        self.active.fetch_sub(1, Ordering::Relaxed);
        self.form.finish(&self.output);
    }
}
