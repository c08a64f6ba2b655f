//! `iperf3 -c`.

use std::net::IpAddr;
use std::process::ExitCode;
use std::sync::Arc;

use linerate_engine::Error;
use linerate_engine::client::{self, ClientOptions, UserCredentials};
use linerate_engine::tls::TlsClientOptions;
use linerate_model::event::TestEvent;
use linerate_model::parameters::{EndCondition, TestParameters};
use linerate_report::iperf3_json::{self, Iperf3Document};
use linerate_report::iperf3_text::{Iperf3Renderer, TextOptions};
use linerate_sys::options::KeepaliveSettings;
use linerate_sys::signals::InterruptSignals;
use linerate_sys::{host, process, terminal};
use linerate_units::{ByteCount, Port};
use linerate_wire::ControlDeadlines;
use linerate_wire::authentication::RsaPadding;
use linerate_wire::error::ErrorCode;

use super::args::command::{ClientArguments, ClientAuthentication, CommonArguments, JsonOutput, KeepAlive};
use super::output::{self, Iperf3Output};
use super::{FAILURE, ProcessSetup, error_text, version};
use crate::cmd::network::interface_name;

/// Environment variable of the password; without it, the client asks.
const PASSWORD_VARIABLE: &str = "IPERF3_PASSWORD";

/// Runs a client.
pub(super) fn run(arguments: &ClientArguments) -> ExitCode {
    let prepared = match prepare(&arguments.common, arguments.parameters.title.as_deref()) {
        Ok(prepared) => prepared,
        Err(code) => return code,
    };
    let output = prepared.output;
    let result = client_options(arguments).and_then(|options| {
        let stop = InterruptSignals::install().map_err(|cause| Error::system(ErrorCode::INIT_TEST, &cause))?;
        Ok((options, stop))
    });
    let mut view = ClientView::new(arguments, output);
    let (options, stop) = match result {
        Ok(ready) => ready,
        Err(error) => return view.fail(&error),
    };
    let outcome = client::run(&options, Some(&stop), &mut |event| view.event(event));
    match (outcome.interrupted, outcome.error) {
        (Some(signal), _) => view.interrupted(&signal),
        (None, Some(error)) => view.fail(&error),
        (None, None) => view.done(),
    }
}

/// Sets up the process for either role; the error is the exit code, after reporting the reason.
pub(super) fn prepare(common: &CommonArguments, title: Option<&str>) -> Result<ProcessSetup, ExitCode> {
    let failed = |text: String| {
        output::print_error_line(&format!("iperf3: error - {text}"));
        FAILURE
    };
    let output = Iperf3Output::new(common, title).map_err(|error| failed(error.to_string()))?;
    if let Some(cpu) = common.affinity {
        process::pin_process(cpu).map_err(|cause| failed(error_text(ErrorCode::AFFINITY, &cause)))?;
    }
    let pid_file = match &common.pid_file {
        Some(path) => {
            Some(process::write_pid_file(path).map_err(|cause| failed(error_text(ErrorCode::PID_FILE, &cause)))?)
        }
        None => None,
    };
    Ok(ProcessSetup { output, _pid_file: pid_file })
}

/// Converts the command line to the engine's options.
fn client_options(arguments: &ClientArguments) -> Result<ClientOptions, Error> {
    let common = &arguments.common;
    // Only documents have the server's intervals, also those of an interrupted test.
    let mut parameters = TestParameters { far_reports_at_end: common.json.is_none(), ..arguments.parameters.clone() };
    if let Some(path) = common.file.as_ref().filter(|_| !arguments.end_given) {
        let size = std::fs::metadata(path).map_err(|cause| Error::io(ErrorCode::FILE, &cause))?.len();
        parameters.end = EndCondition::Bytes(ByteCount::new(size));
    }
    Ok(ClientOptions {
        host: arguments.host.clone(),
        port: common.port,
        family: common.address_family,
        bind: bind_address(common, ErrorCode::CONNECT)?,
        device: bind_device(common),
        client_port: arguments.client_port,
        parameters,
        block_size_given: arguments.block_size.is_some(),
        interval: common.interval,
        connect_timeout: arguments.connect_timeout,
        receive_timeout: Some(common.receive_timeout),
        send_timeout: common.send_timeout,
        keepalive: common.control_keep_alive.map(keepalive),
        key: None,
        tls: arguments.tls.clone().map(|trust| Arc::new(TlsClientOptions { trust, certificate: None })),
        credentials: match &arguments.authentication {
            Some(authentication) => Some(credentials(authentication, common.pkcs1_padding)?),
            None => None,
        },
        file: common.file.clone(),
        cpu: None,
        deadlines: ControlDeadlines::default(),
        stall_timeout: client::STALL_TIMEOUT,
        max_exact_time: client::MAX_EXACT_TIME,
        debug: common.shows_debugging(),
    })
}

/// Resolves the address of `-B`; `code` is of what needs it.
pub(super) fn bind_address(common: &CommonArguments, code: ErrorCode) -> Result<Option<IpAddr>, Error> {
    let Some(host) = &common.bind else { return Ok(None) };
    let addresses = linerate_sys::net::resolve(host, Port::IPERF3, common.address_family)
        .map_err(|cause| Error::system(code, &cause))?;
    Ok(addresses.first().map(std::net::SocketAddr::ip))
}

/// Interface behind the link-local address of `-B`, else that of `--bind-dev`: the system binds to the address on it only.
pub(super) fn bind_device(common: &CommonArguments) -> Option<String> {
    let zone = common.bind.as_ref().and_then(|bind| bind.split_once('%')).map(|(_, zone)| zone);
    zone.map(|zone| interface_name(zone).unwrap_or_else(|_| zone.to_owned())).or_else(|| common.bind_device.clone())
}

pub(super) fn keepalive(setting: KeepAlive) -> KeepaliveSettings {
    KeepaliveSettings {
        idle: setting.idle,
        interval: setting.interval,
        probes: setting.count.map(std::num::NonZeroU32::get),
    }
}

fn credentials(authentication: &ClientAuthentication, pkcs1: bool) -> Result<UserCredentials, Error> {
    let refused = |detail: String| Error::new(ErrorCode::CLIENT_AUTHENTICATION).with_detail(detail);
    let path = authentication.public_key.display();
    let public_key = std::fs::read_to_string(&authentication.public_key)
        .map_err(|cause| refused(format!("reading the public key {path}: {cause}")))?;
    let password = match std::env::var(PASSWORD_VARIABLE) {
        Ok(password) => password,
        Err(_) => terminal::read_password("Password: ").map_err(|cause| refused(cause.to_string()))?,
    };
    let padding = if pkcs1 { RsaPadding::Pkcs1 } else { RsaPadding::Oaep };
    Ok(UserCredentials { user: authentication.username.clone(), password, public_key, padding })
}

/// Output of the run.
struct ClientView {
    output: Iperf3Output,
    /// True with options that iperf3 does not have: their errors have more than iperf3's text.
    has_own_options: bool,
    form: ClientRenderer,
}

enum ClientRenderer {
    Text(Box<Iperf3Renderer>),
    Document(Box<Iperf3Document>),
    Stream(Box<iperf3_json::Iperf3EventStream>),
}

impl ClientView {
    fn new(arguments: &ClientArguments, output: Iperf3Output) -> Self {
        let common = &arguments.common;
        let system_information = host::system_information();
        let document = || {
            let mut document = Iperf3Document::new(&version(), &system_information);
            document.labels(arguments.parameters.title.as_deref(), arguments.parameters.extra_data.as_deref());
            document
        };
        let form = match common.json {
            None => {
                let mut renderer = Iperf3Renderer::new(TextOptions {
                    format: common.format,
                    verbose: common.verbose,
                    version: version(),
                    system_information: system_information.clone(),
                });
                output.lines(&rendered(|out| renderer.begin(out)));
                ClientRenderer::Text(Box::new(renderer))
            }
            Some(JsonOutput::Document) => ClientRenderer::Document(Box::new(document())),
            Some(JsonOutput::Stream) => {
                ClientRenderer::Stream(Box::new(iperf3_json::Iperf3EventStream::new(document(), false)))
            }
            Some(JsonOutput::StreamAndDocument) => {
                ClientRenderer::Stream(Box::new(iperf3_json::Iperf3EventStream::new(document(), true)))
            }
        };
        let has_own_options = arguments.tls.is_some() || arguments.parameters.tls_data;
        Self { output, has_own_options, form }
    }

    fn event(&mut self, event: &TestEvent) {
        match event {
            TestEvent::Warning(text) => self.output.message(&format!("warning: {text}")),
            TestEvent::Debug(text) => {
                self.output.lines(&format!("{}\n", linerate_report::escape::text(text)));
            }
            _ => {}
        }
        match &mut self.form {
            ClientRenderer::Text(renderer) => self.output.lines(&rendered(|out| renderer.event(event, out))),
            ClientRenderer::Document(document) => document.event(event),
            ClientRenderer::Stream(stream) => self.output.raw(&rendered(|out| stream.event(event, out))),
        }
    }

    fn fail(mut self, error: &Error) -> ExitCode {
        let text = match error.advice().filter(|_| self.has_own_options) {
            Some(advice) => format!("{error}: {advice}"),
            None => error.to_string(),
        };
        let is_written = self.error(&text);
        if !is_written {
            if error.is_from_server() {
                self.output.message(&format!("iperf3: SERVER ERROR - {error}"));
            }
            self.output.message(&format!("iperf3: error - {text}"));
        }
        self.finish();
        FAILURE
    }

    fn interrupted(mut self, signal: &str) -> ExitCode {
        let text = format!("interrupt - the client has terminated by signal {signal}");
        if !self.error(&text) {
            self.output.message(&format!("iperf3: {text}"));
        }
        self.finish();
        ExitCode::SUCCESS
    }

    fn done(self) -> ExitCode {
        self.finish();
        ExitCode::SUCCESS
    }

    /// Adds the error to the JSON document; returns false when there is none.
    fn error(&mut self, text: &str) -> bool {
        match &mut self.form {
            ClientRenderer::Text(_) => return false,
            ClientRenderer::Document(document) => document.error(text),
            ClientRenderer::Stream(stream) => stream.error(text),
        }
        true
    }

    fn finish(self) {
        match self.form {
            ClientRenderer::Text(_) => {}
            ClientRenderer::Document(document) => self.output.raw(&document.finish()),
            ClientRenderer::Stream(stream) => self.output.raw(&rendered(|out| stream.finish(out))),
        }
    }
}

/// Collects a renderer's output as text.
pub(super) fn rendered(write: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>) -> String {
    let mut bytes = Vec::new();
    // Writing into memory does not fail.
    let _ = write(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}
