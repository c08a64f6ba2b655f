//! Hosts over ssh (`ssh:[USER@]HOST[:PORT]`): a server there for the time of one command.

use linerate_model::address_family::AddressFamily;
use linerate_operate::far::{FarAddress, FarServer, FarServerRequest, PushedProgram};
use linerate_sys::host;
use linerate_units::Port;
use linerate_wire::cookie::{AdmissionKey, KEY_LENGTH};

use crate::app::CliCommand;
use crate::cmd::measurement::{FarArguments, FarSession, MeasurementArguments, family, interrupts};
use crate::cmd::tune::TuneOptions;
use crate::console;
use crate::exit::ExitStatus;

/// Starts the server on the host of a command, if that is over ssh.
pub(crate) fn open(command: &mut CliCommand) -> Result<Option<FarServer>, ExitStatus> {
    match command {
        CliCommand::Path(arguments) => of_optional_host(arguments.host.as_deref(), &mut arguments.common),
        CliCommand::Load(arguments) => of_optional_host(arguments.host.as_deref(), &mut arguments.common),
        CliCommand::Rfc6349(arguments) => of_host(&arguments.host, &mut arguments.common),
        CliCommand::Rr(arguments) => of_optional_host(arguments.host.as_deref(), &mut arguments.common),
        CliCommand::Diagnose(arguments) => of_optional_host(arguments.host.as_deref(), &mut arguments.common),
        CliCommand::Tune(arguments) => {
            of_changed_host(arguments.host.as_deref(), &mut arguments.options, &mut arguments.common)
        }
        CliCommand::Doctor(arguments) => {
            of_changed_host(arguments.host.as_deref(), &mut arguments.options, &mut arguments.common)
        }
        CliCommand::Shape(arguments) => {
            let verify = &mut arguments.verify;
            let host = verify.verify.clone();
            start(host.as_deref(), SessionOptions { port: verify.port, family: None, is_quiet: false }, &mut verify.far)
        }
        _ => Ok(None),
    }
}

/// Ends the server, and reports a connection that was lost before.
pub(crate) fn close(server: Option<FarServer>) {
    if let Some(Err(problem)) = server.map(FarServer::finish) {
        console::error(&problem, None);
    }
}

/// Starts the server on the host of a measurement, if that is over ssh.
pub(crate) fn of_host(host: &str, common: &mut MeasurementArguments) -> Result<Option<FarServer>, ExitStatus> {
    of_optional_host(Some(host), common)
}

fn of_optional_host(host: Option<&str>, common: &mut MeasurementArguments) -> Result<Option<FarServer>, ExitStatus> {
    let options = SessionOptions { port: common.port, family: family(&common.network), is_quiet: common.quiet };
    start(host, options, &mut common.far)
}

/// As [`of_host`]; the host can also be changed, unless another one was given for that.
fn of_changed_host(
    host: Option<&str>,
    options: &mut TuneOptions,
    common: &mut MeasurementArguments,
) -> Result<Option<FarServer>, ExitStatus> {
    let over_ssh = host.map(FarAddress::of_host).transpose().map_err(|text| refuse(&text))?.flatten();
    if over_ssh.is_none() && options.far.is_some() && common.far.push.is_none() {
        return Ok(None);
    }
    let server = of_optional_host(host, common)?;
    options.far = options.far.take().or(over_ssh);
    Ok(server)
}

/// Options of a session that are not those of the far program.
#[derive(Clone, Copy)]
struct SessionOptions {
    port: Option<Port>,
    family: Option<AddressFamily>,
    is_quiet: bool,
}

fn start(host: Option<&str>, options: SessionOptions, far: &mut FarArguments) -> Result<Option<FarServer>, ExitStatus> {
    let Some(address) = host.map(FarAddress::of_host).transpose().map_err(|text| refuse(&text))?.flatten() else {
        return without_ssh(far, host.is_some());
    };
    if far.tls.options().is_some() {
        return Err(refuse(
            "the server that is started over ssh has no TLS: omit the TLS options, or start `linerate serve --tls` \
            there and give its host without ssh:",
        ));
    }
    let push = far.push.as_deref().map(PushedProgram::read).transpose().map_err(|text| refuse(&text))?;
    let key = new_key()?;
    let request = FarServerRequest {
        address: &address,
        program: far.program(),
        push: push.as_ref(),
        key: &key.to_string(),
        port: options.port,
        family: options.family,
    };
    let stop = interrupts()?;
    let mut note = |text: &str| {
        if !options.is_quiet {
            console::note(text);
        }
    };
    let server = FarServer::start(&request, stop, &mut note).map_err(|text| {
        let exit = refuse(&text);
        if stop.pending().is_some() { ExitStatus::Partial } else { exit }
    })?;
    let endpoint = server.endpoint();
    far.session = Some(FarSession {
        address: address.clone(),
        host: endpoint.host.clone(),
        port: endpoint.port,
        key,
        program: endpoint.program.clone(),
    });
    Ok(Some(server))
}

/// Refuses options that would have no effect.
fn without_ssh(far: &FarArguments, has_host: bool) -> Result<Option<FarServer>, ExitStatus> {
    let option = match far {
        FarArguments { push: Some(_), .. } => "--push",
        FarArguments { far_program: Some(_), .. } => "--far-program",
        _ if !has_host && far.tls.options().is_some() => {
            return Err(refuse("the TLS options are for measurements with a server: give its host"));
        }
        _ => return Ok(None),
    };
    Err(refuse(&format!("{option} is for a host over ssh: give the host as ssh:[USER@]HOST[:PORT]")))
}

fn new_key() -> Result<AdmissionKey, ExitStatus> {
    let mut entropy = [0; KEY_LENGTH];
    host::random_bytes(&mut entropy).map_err(|cause| refuse(&cause.to_string()))?;
    Ok(AdmissionKey::random(entropy))
}

fn refuse(text: &str) -> ExitStatus {
    console::error(text, None);
    ExitStatus::Unable
}
