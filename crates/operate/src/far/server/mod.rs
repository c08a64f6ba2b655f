//! Near side of a session: starts a linerate at the far end that serves this measurement only.

use core::time::Duration;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;

use linerate_model::address_family::AddressFamily;
use linerate_sys::clock::monotonic_now;
use linerate_sys::net::{self, ConnectOptions};
use linerate_sys::signals::InterruptSignals;
use linerate_units::{ByteCount, Port};

use super::address::FarAddress;
use super::connection::{FarConnection, START_TIMEOUT};
use super::lines;
use super::push::{PushLine, PushedProgram};
use super::service::{GREETING_TEXT, SIGN_INTERVAL, SessionAnswer, SessionGreeting, SessionOrder};
use super::ssh::{ResolvedHost, SshDestination};

/// Arguments that start linerate as the server of a session.
const SERVICE_ARGUMENTS: [&str; 2] = ["serve", "--session"];

/// Bytes of the program that are sent at once.
const PUSH_BLOCK: usize = 64 << 10;

/// Time limit of one such block: half a minute each is 17 kbit/s.
const BLOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// Time limit of a connection attempt to the server: a firewall that drops packets gives no answer.
const REACH_TIMEOUT: Duration = Duration::from_secs(3);

/// Most addresses of the host that are tried.
const MAX_ADDRESSES: usize = 4;

/// Server to start.
#[derive(Clone, Copy, Debug)]
pub struct FarServerRequest<'a> {
    /// Host.
    pub address: &'a FarAddress,
    /// Command of the linerate there, with any prefix.
    pub program: &'a str,
    /// Program to copy there for the session, in place of `program`.
    pub push: Option<&'a PushedProgram>,
    /// Key of its only client.
    pub key: &'a str,
    /// Port to listen on; `None` for a free one.
    pub port: Option<Port>,
    /// Address family of the measurement.
    pub family: Option<AddressFamily>,
}

/// Address of a server that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FarEndpoint {
    /// Name or address to connect to.
    pub host: String,
    /// Port.
    pub port: Port,
    /// Program of the server, by which the same host can start it again: for a pushed one, the file of its process.
    pub program: String,
}

/// Server at the far end; it ends when this is dropped, or with this process.
#[derive(Debug)]
pub struct FarServer {
    endpoint: FarEndpoint,
    running: Option<(Sender<()>, JoinHandle<FarConnection>)>,
}

impl FarServer {
    /// Starts the server, and checks that it can be reached from here.
    ///
    /// # Errors
    ///
    /// Text with what was tried, the answer and the remedy; nothing is left at the far end.
    pub fn start(
        request: &FarServerRequest<'_>,
        interrupts: InterruptSignals,
        note: &mut dyn FnMut(&str),
    ) -> Result<Self, String> {
        let FarAddress::Ssh { destination, port } = request.address else {
            return Err(format!("{}: only a host over ssh is measured so (ssh:[USER@]HOST[:PORT])", request.address));
        };
        let ssh = SshDestination { destination, port: *port };
        let resolved = ssh.resolve().map_err(|error| format!("{}: {error}", request.address))?;
        let (mut connection, uploaded) = open(request, ssh, interrupts, note)?;
        // What ssh and the kernel still hold of a program takes at most as long as the part before.
        let patience = START_TIMEOUT + 2 * uploaded;
        let refusal = |line: &str| request.push?.refusal(&PushLine::parse(line)?);
        connection.receive_greeting::<SessionGreeting>(GREETING_TEXT, patience, Some(&interrupts), refusal)?;
        let (port, process) = order(&mut connection, request, interrupts)?;
        let host = resolved.name.clone().unwrap_or_else(|| ssh.host().to_owned());
        if let Err(reason) = reach(&host, port, request.family, interrupts) {
            return Err(connection.refuse(&unreachable(&reason, port, &resolved)));
        }
        let program = match request.push {
            Some(_) => with_program(request.program, &format!("/proc/{process}/exe")),
            None => request.program.to_owned(),
        };
        let (stop, stopped) = mpsc::channel();
        let signing = std::thread::spawn(move || show_presence(connection, &stopped));
        Ok(Self { endpoint: FarEndpoint { host, port, program }, running: Some((stop, signing)) })
    }

    /// Address of the server.
    pub fn endpoint(&self) -> &FarEndpoint {
        &self.endpoint
    }

    /// Ends the server. Returns an error when it had ended before.
    pub fn finish(mut self) -> Result<(), String> {
        self.end()
    }

    fn end(&mut self) -> Result<(), String> {
        let Some((stop, signing)) = self.running.take() else { return Ok(()) };
        drop(stop);
        let Ok(mut connection) = signing.join() else { return Ok(()) };
        if connection.has_ended() {
            return Err(connection.fail("the connection was closed during the measurement"));
        }
        connection.close();
        Ok(())
    }
}

impl Drop for FarServer {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Sends a line now and then, until the session ends.
fn show_presence(mut connection: FarConnection, stopped: &mpsc::Receiver<()>) -> FarConnection {
    while stopped.recv_timeout(SIGN_INTERVAL) == Err(RecvTimeoutError::Timeout) {
        if connection.is_lost() || connection.has_ended() {
            continue;
        }
        let _ = connection.send(b"\n", monotonic_now() + SIGN_INTERVAL);
    }
    connection
}

/// Starts the far program, and copies it there before if it is to be pushed; returns the time that this took.
fn open(
    request: &FarServerRequest<'_>,
    ssh: SshDestination<'_>,
    interrupts: InterruptSignals,
    note: &mut dyn FnMut(&str),
) -> Result<(FarConnection, Duration), String> {
    let name = request.address.to_string();
    let started = match request.push {
        Some(program) => ssh.start(&["-o", "Compression=yes"], [program.remote_command().as_str()].into_iter()),
        None => ssh.start(&[], request.program.split_ascii_whitespace().chain(SERVICE_ARGUMENTS)),
    };
    let started = started.map_err(|error| format!("{name}: {error}"))?;
    let mut connection = FarConnection::new(Box::new(started), name);
    let begun = monotonic_now();
    if let Some(program) = request.push {
        push(&mut connection, program, interrupts, note)?;
    }
    Ok((connection, monotonic_now().since(begun)))
}

/// Copies the program to the far host.
fn push(
    connection: &mut FarConnection,
    program: &PushedProgram,
    interrupts: InterruptSignals,
    note: &mut dyn FnMut(&str),
) -> Result<(), String> {
    let deadline = monotonic_now() + START_TIMEOUT;
    let mut refused: Vec<String> = Vec::new();
    loop {
        match connection.receive_push_line(deadline, interrupts)? {
            PushLine::Host(system) => {
                program.check_host(&system).map_err(|reason| connection.refuse(&reason))?;
            }
            PushLine::Refused(directory) => refused.push(directory),
            PushLine::Ready => break,
            PushLine::Nowhere => {
                let reason = format!(
                    "no directory there takes a program of {} that may be executed (tried: {}): free one, set TMPDIR \
                     there, or install linerate there and omit --push",
                    size(program),
                    refused.join(", ")
                );
                return Err(connection.refuse(&reason));
            }
            other => return Err(connection.fail(&format!("unexpected answer {other:?} before the program was sent"))),
        }
    }
    note(&format!("copying linerate ({}) to {} for this run", size(program), connection.name()));
    for block in program.content.chunks(PUSH_BLOCK) {
        if let Some(signal) = interrupts.pending() {
            return Err(connection.fail(&format!("interrupted: {}", signal.describe())));
        }
        connection.send(block, monotonic_now() + BLOCK_TIMEOUT)?;
    }
    Ok(())
}

fn size(program: &PushedProgram) -> String {
    ByteCount::new(u64::try_from(program.content.len()).unwrap_or(u64::MAX)).to_string()
}

impl FarConnection {
    /// Next line of the script that receives a program.
    fn receive_push_line(
        &mut self,
        deadline: linerate_units::MonotonicTime,
        interrupts: InterruptSignals,
    ) -> Result<PushLine, String> {
        for _ in 0..=super::connection::MAX_NOISE_LINES {
            let line = self.receive_line(deadline, Some(&interrupts))?;
            if let Some(line) = PushLine::parse(&line) {
                return Ok(line);
            }
        }
        Err(self.fail("its shell does not run the script that receives a program (it only prints other lines)"))
    }
}

/// Orders the server; returns its port and process.
fn order(
    connection: &mut FarConnection,
    request: &FarServerRequest<'_>,
    interrupts: InterruptSignals,
) -> Result<(Port, u32), String> {
    let order = SessionOrder { key: request.key.to_owned(), port: request.port };
    let line = lines::encode(&order).map_err(|wrong| connection.fail(&format!("invalid order: {wrong}")))?;
    let deadline = monotonic_now() + START_TIMEOUT;
    connection.send(line.as_bytes(), deadline)?;
    let answer = connection.receive_line(deadline, Some(&interrupts))?;
    match lines::decode(&answer) {
        Ok(SessionAnswer::Serving { port, process }) => Ok((port, process)),
        Ok(SessionAnswer::Failed { reason }) => Err(connection.refuse(&format!("its linerate cannot serve: {reason}"))),
        Err(wrong) => Err(connection.fail(&format!("invalid answer: {wrong}"))),
    }
}

/// Connects to the server once, over one of the host's addresses.
fn reach(host: &str, port: Port, family: Option<AddressFamily>, interrupts: InterruptSignals) -> Result<(), String> {
    let addresses: Vec<SocketAddr> = net::resolve(host, port, family).map_err(|error| error.to_string())?;
    let mut reasons = Vec::new();
    for remote in addresses.into_iter().take(MAX_ADDRESSES) {
        let options = ConnectOptions { timeout: Some(REACH_TIMEOUT), ..ConnectOptions::to(remote) };
        match net::connect_tcp(&options, Some(interrupts.as_fd())) {
            Ok(_) => return Ok(()),
            Err(error) => reasons.push(error.to_string()),
        }
    }
    Err(reasons.join("; "))
}

/// Reason and remedy for a server that listens and cannot be reached.
fn unreachable(reason: &str, port: Port, resolved: &ResolvedHost) -> String {
    let remedy = match &resolved.proxy {
        Some(proxy) => {
            format!("ssh connects through {proxy}, a measurement needs a direct path: measure from a host that has one")
        }
        None => "a firewall may drop it: allow a TCP and UDP port there, and choose it with -p PORT; or run `linerate \
                 serve --open-firewall` there and measure the host without ssh:"
            .to_owned(),
    };
    format!("its linerate listens on port {port}, and no connection from here reaches it: {reason} ({remedy})")
}

/// Command with its last word, the program, replaced.
fn with_program(command: &str, program: &str) -> String {
    let mut words: Vec<&str> = command.split_ascii_whitespace().collect();
    words.pop();
    words.push(program);
    words.join(" ")
}

#[cfg(test)]
mod tests;
