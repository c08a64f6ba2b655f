//! Relay between a client and a server, which can be cut.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Relay on a port of its own.
#[derive(Debug)]
pub(crate) struct Relay {
    port: u16,
    state: Arc<RelayState>,
}

#[derive(Debug, Default)]
struct RelayState {
    is_cut: AtomicBool,
    is_over: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

impl Relay {
    /// Relay to a port of this host.
    pub(crate) fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let (own, state) = (listener.local_addr().expect("an address").port(), Arc::new(RelayState::default()));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming() {
                if shared.is_over.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(client) = client else { continue };
                // A cut relay closes what it accepts.
                let server = TcpStream::connect(("127.0.0.1", port));
                if let Some(server) = server.ok().filter(|_| !shared.is_cut.load(Ordering::SeqCst)) {
                    shared.join(&client, &server);
                }
            }
        });
        Self { port: own, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Closes all connections, and accepts no others.
    pub(crate) fn cut(&self) {
        self.state.is_cut.store(true, Ordering::SeqCst);
        for stream in self.state.open.lock().expect("no panic").drain(..) {
            drop(stream.shutdown(Shutdown::Both));
        }
    }

    pub(crate) fn mend(&self) {
        self.state.is_cut.store(false, Ordering::SeqCst);
    }
}

impl RelayState {
    fn join(&self, client: &TcpStream, server: &TcpStream) {
        for (from, to) in [(client, server), (server, client)] {
            let (Ok(mut from), Ok(mut to)) = (from.try_clone(), to.try_clone()) else { return };
            self.open.lock().expect("no panic").extend(from.try_clone());
            thread::spawn(move || {
                let mut buffer = [0; 16 * 1024];
                while let Ok(count @ 1..) = from.read(&mut buffer) {
                    if to.write_all(&buffer[..count]).is_err() {
                        break;
                    }
                }
                drop(to.shutdown(Shutdown::Both));
            });
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::SeqCst);
        self.cut();
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}
