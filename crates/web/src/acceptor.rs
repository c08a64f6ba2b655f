//! The listening socket of a service, and the admission of its connections.

use core::future::Future;
use core::time::Duration;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use linerate_engine::server::{ServiceAccess, ServiceLease};
use linerate_sys::clock;
use linerate_sys::net::{self, ListenOptions};
use linerate_units::ByteCount;
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::connection::Connection;
use crate::connection_table::{ConnectionSlot, ConnectionTable};
use crate::server::first;

/// Pause of accepting when the process has no descriptor left.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

/// Time in which a refused client may read the reason, and the most that do.
const REFUSAL_TIME: Duration = Duration::from_millis(500);
const MAX_REFUSALS: usize = 64;

/// Listens; returns the socket and its address, or the reason why it cannot.
pub(crate) fn listen(options: &ListenOptions) -> Result<(TcpListener, SocketAddr), String> {
    let listener = net::listen_tcp(options).map_err(|cause| cause.to_string())?.listener;
    let io_failed = |cause: io::Error| linerate_sys::describe_os_error(&cause);
    listener.set_nonblocking(true).map_err(io_failed)?;
    let address = listener.local_addr().map_err(io_failed)?;
    Ok((listener, address))
}

/// Acceptor of connections, each of which is served by the future that `attend` returns.
pub(crate) struct Acceptor<F> {
    pub(crate) listener: tokio::net::TcpListener,
    pub(crate) table: Arc<ConnectionTable>,
    pub(crate) access: ServiceAccess,
    /// Memory of a connection that waits for a request.
    pub(crate) memory: ByteCount,
    /// Response to a connection beyond the caps; empty for none.
    pub(crate) busy: &'static [u8],
    pub(crate) attend: F,
}

impl<F, A> Acceptor<F>
where
    F: Fn(Arc<Connection>, ServiceLease, ConnectionSlot) -> A,
    A: Future<Output = ()> + Send + 'static,
{
    pub(crate) async fn run(self) {
        let mut number = 0;
        // Refused clients that may still read why.
        let refusals = Arc::default();
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    number += 1;
                    self.take(stream, peer, number, &refusals);
                }
                Err(cause) if cause.kind() == io::ErrorKind::ConnectionAborted => {}
                // Out of descriptors: connections in the backlog are kept, others must end first.
                Err(_) => sleep(EXHAUSTED_PAUSE).await,
            }
        }
    }

    fn take(&self, stream: TcpStream, peer: SocketAddr, number: u64, refusals: &Arc<AtomicUsize>) {
        let _ = stream.set_nodelay(true);
        let connection = Connection::new(stream, net::canonical(peer), number);
        let lease = self.access.share(peer.ip()).lease(self.memory, 1);
        let slot = lease.and_then(|lease| Some((lease, self.table.enter(&connection, clock::monotonic_now())?)));
        match slot {
            Some((lease, slot)) => {
                tokio::spawn((self.attend)(connection, lease, slot));
            }
            None if self.busy.is_empty() => {}
            None => self.refuse(connection, refusals),
        }
    }

    /// Answers that there are too many connections. What has arrived unread would discard the answer, so some clients have a
    /// moment to read it.
    fn refuse(&self, connection: Arc<Connection>, refusals: &Arc<AtomicUsize>) {
        connection.write_now(self.busy);
        let _ = net::shutdown_write(&*connection);
        if refusals.fetch_add(1, Ordering::Relaxed) < MAX_REFUSALS {
            let refusals = Arc::clone(refusals);
            tokio::spawn(async move {
                first(sleep(REFUSAL_TIME), connection.discard_until_end()).await;
                refusals.fetch_sub(1, Ordering::Relaxed);
            });
        } else {
            refusals.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::Ipv4Addr;
    use std::sync::Mutex;

    use super::*;
    use crate::test_support::{PATIENCE, access};

    const BUSY: &[u8] = b"too many";

    type Attended = (Arc<Connection>, ServiceLease, ConnectionSlot);

    /// Connections of the service: eight at most, so four of one address.
    struct Held(Arc<Mutex<Vec<Attended>>>);

    impl Held {
        fn count(&self) -> usize {
            self.0.lock().expect("no panic").len()
        }
    }

    /// Accepts while `clients` use the service on a thread of their own.
    fn while_accepting(busy: &'static [u8], clients: impl FnOnce(SocketAddr, &Held) + Send + 'static) {
        let options = ListenOptions { address: Some(Ipv4Addr::LOCALHOST.into()), ..ListenOptions::default() };
        let (listener, address) = listen(&options).expect("a free port");
        let held = Held(Arc::default());
        let shared = Arc::clone(&held.0);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
        let (end, ended) = tokio::sync::oneshot::channel();
        let clients = std::thread::spawn(move || {
            clients(address, &held);
            let _ = end.send(());
        });
        runtime.expect("a runtime").block_on(async {
            let acceptor = Acceptor {
                listener: tokio::net::TcpListener::from_std(listener).expect("a listening socket"),
                table: ConnectionTable::new(64, Duration::from_secs(60), false),
                access: access(|_| ()),
                memory: ByteCount::from_kibibytes(32),
                busy,
                attend: move |connection, lease, slot| {
                    shared.lock().expect("no panic").push((connection, lease, slot));
                    core::future::ready(())
                },
            };
            first(acceptor.run(), async { drop(ended.await) }).await;
        });
        clients.join().expect("the clients found what they expect");
    }

    fn connect(address: SocketAddr) -> std::net::TcpStream {
        let stream = std::net::TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        stream
    }

    fn all_of(mut stream: std::net::TcpStream) -> Vec<u8> {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("an end");
        bytes
    }

    #[test]
    fn a_connection_beyond_the_share_is_refused_with_the_reason_and_others_go_on() {
        while_accepting(BUSY, |address, held| {
            let clients: Vec<_> = (0..4).map(|_| connect(address)).collect();
            assert_eq!(all_of(connect(address)), BUSY);
            assert_eq!(held.count(), 4);
            let numbers: Vec<u64> =
                held.0.lock().expect("no panic").drain(..).map(|(connection, ..)| connection.number).collect();
            assert_eq!(numbers, [1, 2, 3, 4]);
            assert!(clients.into_iter().all(|client| all_of(client).is_empty()), "they were closed");
            let _client = connect(address);
            crate::test_support::wait_until(|| held.count() == 1);
        });
    }

    #[test]
    fn a_service_without_an_answer_closes_what_is_beyond_the_share() {
        while_accepting(b"", |address, held| {
            let _clients: Vec<_> = (0..4).map(|_| connect(address)).collect();
            assert_eq!(all_of(connect(address)), b"");
            assert_eq!(held.count(), 4);
        });
    }

    #[test]
    fn a_port_in_use_is_refused_with_the_reason_of_the_system() {
        let options = ListenOptions { address: Some(Ipv4Addr::LOCALHOST.into()), ..ListenOptions::default() };
        let (_listener, address) = listen(&options).expect("a free port");
        let taken = ListenOptions { port: linerate_units::Port::new(address.port()), ..options };
        let reason = listen(&taken).expect_err("it is in use");
        assert!(reason.contains("in use"), "{reason}");
    }
}
