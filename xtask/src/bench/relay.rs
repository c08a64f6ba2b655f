//! Relay between a client and its server that notes when the first byte of payload passes.
//!
//! It knows iperf3's protocol so far: the first connection is the control connection, the second one carries data, which
//! begin after the cookie. Every program passes through the same relay.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// Length of the cookie on each connection.
const COOKIE: usize = 37;

/// Number of connections of a test: control and one stream.
const CONNECTIONS: usize = 2;

/// Relay for one test.
pub(super) struct FirstByteRelay {
    port: u16,
    waited: Receiver<Duration>,
}

impl FirstByteRelay {
    /// Starts a relay to the server at `port` of this host.
    pub(super) fn start(port: u16) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen")?;
        let own = listener.local_addr()?.port();
        let (note, waited) = channel();
        thread::spawn(move || relay(&listener, port, &note));
        Ok(Self { port: own, waited })
    }

    /// Port for the client.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Time from the control connection to the first byte; `None` when none came.
    pub(super) fn finish(self) -> Option<Duration> {
        self.waited.try_recv().ok()
    }
}

fn relay(listener: &TcpListener, port: u16, note: &Sender<Duration>) {
    let mut began = None;
    for number in 0..CONNECTIONS {
        let Ok((client, _)) = listener.accept() else { return };
        let began = *began.get_or_insert_with(Instant::now);
        let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { return };
        // The relay adds no wait of its own: Nagle's algorithm would hold back the second of two small pieces.
        let (Ok(()), Ok(())) = (client.set_nodelay(true), server.set_nodelay(true)) else { return };
        let (Ok(client_again), Ok(server_again)) = (client.try_clone(), server.try_clone()) else { return };
        let note = (number + 1 == CONNECTIONS).then(|| (note.clone(), began));
        thread::spawn(move || copy(client, server, note));
        thread::spawn(move || copy(server_again, client_again, None));
    }
}

/// Copies until either end closes, and notes the time of the first byte after the cookie.
fn copy(mut from: TcpStream, mut to: TcpStream, mut note: Option<(Sender<Duration>, Instant)>) {
    let mut buffer = vec![0; 128 << 10];
    let mut total = 0;
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        total += count;
        if total > COOKIE
            && let Some((note, began)) = note.take()
        {
            // The bench may have given up.
            let _ = note.send(began.elapsed());
        }
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    // The other end may have closed already.
    let _ = to.shutdown(Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_after_the_cookie_of_the_second_connection_counts() {
        let server = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let relay = FirstByteRelay::start(server.local_addr().expect("bound").port()).expect("a relay");
        let connect = || TcpStream::connect(("127.0.0.1", relay.port())).expect("it listens");
        let mut control = connect();
        control.write_all(&[1; 100]).expect("sent");
        let (mut at_server, _) = server.accept().expect("the relay");
        at_server.read_exact(&mut [0; 100]).expect("relayed");
        let mut data = connect();
        data.write_all(&[2; COOKIE]).expect("sent");
        let (mut at_server, _) = server.accept().expect("the relay");
        at_server.read_exact(&mut [0; COOKIE]).expect("relayed");
        assert!(relay.waited.try_recv().is_err(), "a cookie is no payload");
        data.write_all(&[3]).expect("sent");
        at_server.read_exact(&mut [0]).expect("relayed");
        assert!(relay.finish().is_some());
    }
}
