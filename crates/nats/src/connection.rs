//! Connection to the servers, with the runtime that serves it.

use core::time::Duration;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use async_nats::jetstream;
use async_nats::jetstream::context::{AccountErrorKind, ContextBuilder};
use async_nats::{Client, ConnectError, ConnectErrorKind, ServerAddr};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::error::{MAX_OPERATION, NatsError, chain};
use crate::settings::NatsSettings;

/// Oldest version with repeated schedules.
const MIN_VERSION: (u64, u64) = (2, 14);

/// Longest time for one request.
const REQUEST_TIME: Duration = Duration::from_secs(4);

/// Time after which a request is repeated.
const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// Time between signs of life to the server; a connection without two answers is made anew.
const PING_INTERVAL: Duration = Duration::from_secs(5);

/// Connection of a fleet. Copies share it; it ends with the last of them. A lost connection is made anew by itself.
#[derive(Clone, Debug)]
pub struct NatsFleet {
    connection: Arc<Connection>,
}

#[derive(Debug)]
struct Connection {
    handle: Handle,
    client: Client,
    context: jetstream::Context,
    fleet: String,
    servers: String,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl NatsFleet {
    /// Connects, and checks the version of the server and that it has `JetStream`.
    pub fn connect(settings: &NatsSettings) -> Result<Self, NatsError> {
        let addresses = settings.addresses()?;
        let options =
            settings.options()?.name("linerate").ping_interval(PING_INTERVAL).request_timeout(Some(REQUEST_TIME));
        let (handle, end, thread) = start_runtime()?;
        let servers = settings.servers.join(", ");
        let client = handle
            .block_on(options.connect(&addresses[..]))
            .map_err(|error| handle.block_on(explain(settings, &addresses, error)))?;
        let context = {
            let _runtime = handle.enter();
            ContextBuilder::new().timeout(REQUEST_TIME).ack_timeout(REQUEST_TIME).build(client.clone())
        };
        let fleet = settings.fleet.clone();
        let connection = Connection { handle, client, context, fleet, servers, end: Some(end), thread: Some(thread) };
        let connected = Self { connection: Arc::new(connection) };
        connected.check_server()?;
        Ok(connected)
    }

    fn check_server(&self) -> Result<(), NatsError> {
        let info = self.client().server_info();
        if version(&info.version).is_none_or(|found| found < MIN_VERSION) {
            return Err(NatsError::OldServer { server: self.servers().to_owned(), version: info.version });
        }
        self.retrying("asking for JetStream", || async {
            self.context().query_account().await.map(drop).map_err(|error| match error.kind() {
                AccountErrorKind::JetStreamUnavailable | AccountErrorKind::JetStream(_) if !info.jetstream => {
                    NatsError::NoJetStream { server: self.servers().to_owned(), answer: chain(&error) }
                }
                AccountErrorKind::JetStream(answer)
                    if answer.error_code() == jetstream::ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT =>
                {
                    NatsError::NoJetStream { server: self.servers().to_owned(), answer: chain(&error) }
                }
                _ => self.failed("asking for JetStream", &error),
            })
        })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.connection.client
    }

    pub(crate) fn context(&self) -> &jetstream::Context {
        &self.connection.context
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.connection.handle
    }

    /// Servers as given.
    #[must_use]
    pub fn servers(&self) -> &str {
        &self.connection.servers
    }

    pub(crate) fn fleet(&self) -> &str {
        &self.connection.fleet
    }

    pub(crate) fn wait<T>(&self, operation: impl Future<Output = T>) -> T {
        self.connection.handle.block_on(operation)
    }

    /// Repeats an operation that has the same effect each time, while servers elect a leader or a connection is lost.
    pub(crate) fn retrying<T, F: Future<Output = Result<T, NatsError>>>(
        &self,
        action: &str,
        operation: impl Fn() -> F,
    ) -> Result<T, NatsError> {
        let repeated = async {
            loop {
                match operation().await {
                    Err(error) if error.is_transient() => tokio::time::sleep(RETRY_PAUSE).await,
                    other => return other,
                }
            }
        };
        self.wait(async {
            match tokio::time::timeout(MAX_OPERATION, repeated).await {
                Ok(ended) => ended,
                // The last answer, or that there is none.
                Err(_) => operation().await,
            }
        })
        .map_err(|error| if error.is_transient() { self.late(action, error) } else { error })
    }

    fn late(&self, action: &str, error: NatsError) -> NatsError {
        match error {
            NatsError::Request { answer, .. } => NatsError::Request {
                action: action.to_owned(),
                server: self.servers().to_owned(),
                answer: format!("{answer}, for {} s", MAX_OPERATION.as_secs()),
            },
            other => other,
        }
    }

    pub(crate) fn failed(&self, action: &str, error: &(dyn core::error::Error + 'static)) -> NatsError {
        NatsError::Request { action: action.to_owned(), server: self.servers().to_owned(), answer: chain(error) }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Acknowledgements leave before the connection ends.
        let flush = async { tokio::time::timeout(Duration::from_secs(1), self.client.flush()).await };
        drop(self.handle.block_on(flush));
        if let Some(end) = self.end.take() {
            let _ = end.send(());
        }
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Runtime on a thread of its own, which ends with a message.
fn start_runtime() -> Result<(Handle, oneshot::Sender<()>, JoinHandle<()>), NatsError> {
    let failed = |cause: io::Error| NatsError::Setting(format!("starting the thread of the connection: {cause}"));
    let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let handle = runtime.handle().clone();
    let (end, ended) = oneshot::channel();
    let serve = move || {
        drop(runtime.block_on(ended));
        runtime.shutdown_timeout(Duration::from_secs(1));
    };
    let thread = thread::Builder::new().name("nats".to_owned()).spawn(serve).map_err(failed)?;
    Ok((handle, end, thread))
}

fn version(text: &str) -> Option<(u64, u64)> {
    let mut numbers = text.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Error of the server that refuses, or of the first one: a client tries them in any order, and reports the last.
async fn explain(settings: &NatsSettings, addresses: &[ServerAddr], error: ConnectError) -> NatsError {
    let mut shown = (settings.servers.join(", "), error);
    if addresses.len() > 1 {
        for (server, address) in settings.servers.iter().zip(addresses) {
            let Ok(options) = settings.options() else { continue };
            let Err(error) = options.connect(address).await else { continue };
            let is_refusal = is_refusal(&error);
            shown = (server.clone(), error);
            if is_refusal {
                break;
            }
        }
    }
    let (server, error) = shown;
    NatsError::NotConnected { server, remedy: remedy(&error), is_refusal: is_refusal(&error), answer: chain(&error) }
}

fn is_refusal(error: &ConnectError) -> bool {
    use ConnectErrorKind::{Authentication, AuthorizationViolation, Tls};
    matches!(error.kind(), Authentication | AuthorizationViolation | Tls)
        || chain(error).to_lowercase().contains("certificate")
}

fn remedy(error: &ConnectError) -> &'static str {
    let text = chain(error).to_lowercase();
    match error.kind() {
        _ if text.contains("unknownissuer") || text.contains("invalid peer certificate") => {
            "name the authority that signed the server's certificate with --nats-ca"
        }
        _ if text.contains("certificate") => "check the certificates (--nats-ca, --nats-certificate, --nats-key)",
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
            "check the login (--nats-credentials, --nats-password or --nats-token)"
        }
        ConnectErrorKind::Tls => "check the certificates (--nats-ca, --nats-certificate, --nats-key)",
        ConnectErrorKind::Dns => "check the name of the server",
        _ => "check that nats-server runs there and that its port is open",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_numbers() {
        for (text, is_enough) in
            [("2.14.0", true), ("2.9.10", false), ("3.0.0-RC.1", true), ("2.14", true), ("x", false)]
        {
            assert_eq!(version(text).is_some_and(|found| found >= MIN_VERSION), is_enough, "{text}");
        }
    }

    #[test]
    fn a_closed_port_is_reported_with_the_server_and_the_remedy() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let server = format!("nats://{}", listener.local_addr().expect("an address"));
        drop(listener);
        let error = NatsFleet::connect(&NatsSettings::new(vec![server.clone()], "fleet")).expect_err("refused");
        let text = error.to_string();
        assert!(text.starts_with(&format!("connecting to {server}: ")), "{text}");
        assert!(text.contains("refused") && text.ends_with("its port is open"), "{text}");
        assert!(error.is_transient());
    }
}
