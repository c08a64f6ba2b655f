//! One cell: a server, a client, and its observation.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::cases::Case;
use super::outcome::{Observation, SERVER_REFUSAL};
use crate::workspace;

/// Longest time of a client, and of a server to listen.
const CLIENT_LIMIT: Duration = Duration::from_secs(25);
const LISTEN_LIMIT: Duration = Duration::from_secs(10);

/// Interval at which a child's state is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Ports of the servers, below those that the kernel gives to clients.
const FIRST_PORT: u16 = 21_000;
const LAST_PORT: u16 = 30_000;
static NEXT_PORT: AtomicU16 = AtomicU16::new(FIRST_PORT);

/// Example of iperf3's manual page: mario, rossi.
const USERS: &str = "mario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b\n";

/// Files of the cells, in a directory that is removed at the end.
pub(super) struct Files {
    directory: PathBuf,
    next: AtomicU32,
}

impl Files {
    pub(super) fn create() -> Result<Self> {
        let directory = std::env::temp_dir().join(format!("linerate-interop-{}", std::process::id()));
        let failed = || format!("cannot write into {}", directory.display());
        fs::create_dir_all(&directory).with_context(failed)?;
        fs::write(directory.join("source"), vec![b'x'; 200_000]).with_context(failed)?;
        fs::write(directory.join("users.csv"), USERS).with_context(failed)?;
        Ok(Self { directory, next: AtomicU32::new(0) })
    }

    fn source(&self) -> String {
        self.directory.join("source").display().to_string()
    }

    fn users(&self) -> String {
        self.directory.join("users.csv").display().to_string()
    }

    /// Name of a file that does not exist yet.
    fn new_name(&self) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.directory.join(format!("new-{number}")).display().to_string()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // What is left is in the directory for temporary files.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Case with its two programs.
pub(super) struct Cell<'a> {
    pub(super) case: &'a Case,
    pub(super) client: &'a Path,
    pub(super) server: &'a Path,
    /// Program that has the command line of iperf3 under a subcommand.
    pub(super) linerate: &'a Path,
    /// True when credentials are padded with PKCS#1 on both sides.
    pub(super) pads_pkcs1: bool,
    pub(super) files: &'a Files,
}

impl Cell<'_> {
    /// Runs the server and the client; the server is stopped after it.
    pub(super) fn run(&self) -> Observation {
        let port = free_port();
        let failed = |cause: String| Observation::of(self.case, Some(1), "", &cause);
        let server = match self.start_server(port) {
            Ok(server) => server,
            Err(cause) => return failed(format!("{cause:#}")),
        };
        let result = self.run_client(port);
        drop(server);
        match result {
            Ok((status, stdout, stderr)) => {
                Observation::of(self.case, status, &self.without_paths(&stdout), &self.without_paths(&stderr))
            }
            Err(cause) => failed(format!("{cause:#}")),
        }
    }

    /// Output without the paths of this machine: some programs call themselves by theirs.
    fn without_paths(&self, output: &str) -> String {
        let programs = [self.client, self.server].map(|program| program.display().to_string());
        let named = programs.iter().filter(|path| path.contains('/')).fold(output.to_owned(), |text, path| {
            text.replace(path.as_str(), path.rsplit('/').next().unwrap_or_default())
        });
        named.replace(&self.files.directory.display().to_string(), "{directory}")
    }

    fn start_server(&self, port: u16) -> Result<StoppedOnDrop> {
        let mut command = self.program(self.server);
        command.args(["-s", "-1", "-p", &port.to_string()]).args(self.words(self.case.server, port));
        if self.case.password.is_some() {
            command.args(["--authorized-users-path", &self.files.users(), "--rsa-private-key-path"]);
            command.arg(key("private.pem"));
            command.args(self.padding(self.server));
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut server = StoppedOnDrop(child.context("cannot start the server")?);
        let deadline = Instant::now() + LISTEN_LIMIT;
        while !listens(port) && Instant::now() < deadline {
            ensure!(server.0.try_wait()?.is_none(), SERVER_REFUSAL);
            thread::sleep(POLL_INTERVAL);
        }
        Ok(server)
    }

    /// Runs the client; returns its status (`None`: killed after the limit), stdout and stderr.
    fn run_client(&self, port: u16) -> Result<(Option<i32>, String, String)> {
        let host = if self.case.is_ipv6() { "::1" } else { "127.0.0.1" };
        let mut command = self.program(self.client);
        command.args(["-c", host, "-p", &port.to_string()]).args(self.words(self.case.client, port));
        if !self.case.prints_text() {
            command.arg("-J");
        }
        if !self.case.has_end() {
            command.args(["-t", "1"]);
        }
        if !self.case.has_rate() {
            command.args(["-b", "20M"]);
        }
        if let Some(password) = self.case.password {
            command.args(["--username", "mario", "--rsa-public-key-path"]).arg(key("public.pem"));
            command.args(self.padding(self.client)).env("IPERF3_PASSWORD", password);
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut client = StoppedOnDrop(child.context("cannot start the client")?);
        let stdout = collect(client.0.stdout.take());
        let stderr = collect(client.0.stderr.take());
        let deadline = Instant::now() + CLIENT_LIMIT;
        let status = loop {
            match client.0.try_wait()? {
                Some(status) => break status.code(),
                None if Instant::now() >= deadline => break None,
                None => thread::sleep(POLL_INTERVAL),
            }
        };
        drop(client);
        Ok((status, stdout.join().unwrap_or_default(), stderr.join().unwrap_or_default()))
    }

    fn program(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if program == self.linerate {
            command.arg("iperf3");
        }
        command
    }

    /// Option by which linerate pads like an iperf3 before 3.17, which has no such option.
    fn padding(&self, program: &Path) -> Option<&'static str> {
        (self.pads_pkcs1 && program == self.linerate).then_some("--use-pkcs1-padding")
    }

    fn words(&self, line: &str, port: u16) -> Vec<String> {
        let client_port = (port + (LAST_PORT - FIRST_PORT)).to_string();
        let replaced = |word: &str| match word {
            "{file}" => self.files.source(),
            "{new}" => self.files.new_name(),
            "{port}" => client_port.clone(),
            other => other.to_owned(),
        };
        line.split_whitespace().map(replaced).collect()
    }
}

/// Child process that is killed and waited for at the end.
struct StoppedOnDrop(Child);

impl Drop for StoppedOnDrop {
    fn drop(&mut self) {
        // Both fail only when the child has already been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // A broken pipe ends the output; earlier output is kept.
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn key(name: &str) -> PathBuf {
    workspace::root().join("crates/cli/tests/support/keys").join(name)
}

/// Next port on which a server can listen.
fn free_port() -> u16 {
    loop {
        let port = NEXT_PORT.fetch_add(1, Ordering::Relaxed);
        if port >= LAST_PORT {
            NEXT_PORT.store(FIRST_PORT, Ordering::Relaxed);
        }
        if TcpListener::bind(("127.0.0.1", port)).is_ok() && TcpListener::bind(("::1", port)).is_ok() {
            return port;
        }
    }
}

/// True when a socket listens on `port` (proc(5), `/proc/net/tcp`). A connection would take the turn of the client.
fn listens(port: u16) -> bool {
    let is_listening = |table: String| {
        table.lines().skip(1).any(|line| {
            let mut fields = line.split_whitespace().skip(1);
            let local = fields.next().and_then(|local| local.rsplit_once(':')).map(|(_, port)| port);
            local == Some(format!("{port:04X}").as_str()) && fields.nth(1) == Some("0A")
        })
    };
    ["/proc/net/tcp", "/proc/net/tcp6"].iter().any(|table| fs::read_to_string(table).is_ok_and(is_listening))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listening_port_is_seen_without_a_connection() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback");
        let port = listener.local_addr().expect("bound").port();
        assert!(listens(port));
        drop(listener);
        assert!(!listens(port));
    }
}
