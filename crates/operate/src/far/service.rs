//! Far side of a session: what `linerate serve --session` exchanges with the linerate that started it over ssh.

use core::time::Duration;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use linerate_sys::clock::monotonic_now;
use linerate_sys::poll::{self, PollInterest, PollItem};
use linerate_sys::signals::InterruptSignals;
use linerate_units::Port;
use serde::{Deserialize, Serialize};

use super::lines::{self, LineBuffer};

/// Identifies the greeting among the start output of shells.
pub(super) const GREETING_TEXT: &str = "linerate serve --session";

/// Time limit of the order after the greeting.
const ORDER_TIMEOUT: Duration = Duration::from_secs(60);

/// Interval of the lines by which the near end shows that it is there.
pub(super) const SIGN_INTERVAL: Duration = Duration::from_secs(5);

/// Time without such a line after which the session ends: a network that was cut silently closes no connection.
const MAX_SILENCE: Duration = Duration::from_secs(60);

/// Greeting: first line of the far end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SessionGreeting {
    /// [`GREETING_TEXT`].
    pub(super) hello: String,
    /// Version of linerate.
    pub(super) linerate_version: String,
}

/// Order of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionOrder {
    /// Key of the only client.
    pub key: String,
    /// Port to listen on; `None` lets the kernel choose.
    pub port: Option<Port>,
}

/// Answer to the order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case", deny_unknown_fields)]
pub enum SessionAnswer {
    /// The server listens.
    Serving {
        /// Its port.
        port: Port,
        /// Its process ID, from which the program can be started again.
        process: u32,
    },
    /// It cannot listen.
    Failed {
        /// Reason.
        reason: String,
    },
}

/// Reason for the end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// The near end is gone, or has closed the connection.
    Connection,
    /// A signal arrived.
    Signal,
    /// The server ended by itself.
    Server,
}

/// Conversation over the standard streams of this process.
pub struct SessionService<'a, I> {
    input: &'a mut I,
    lines: LineBuffer,
    interrupts: InterruptSignals,
}

impl<'a, I: Read + AsFd> SessionService<'a, I> {
    /// Greets, and waits for the order; `None` when the near end is gone before.
    ///
    /// # Errors
    ///
    /// Text with the reason.
    pub fn open(
        input: &'a mut I,
        output: &mut impl Write,
        interrupts: InterruptSignals,
    ) -> Result<Option<(Self, SessionOrder)>, String> {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let hello = SessionGreeting { hello: GREETING_TEXT.to_owned(), linerate_version: version };
        // The line feed ends a banner that has none.
        let hello = lines::encode(&hello).map(|line| format!("\n{line}")).map_err(|wrong| wrong.to_string())?;
        if write(output, &hello).is_err() {
            return Ok(None);
        }
        let mut service = Self { input, lines: LineBuffer::default(), interrupts };
        let deadline = monotonic_now() + ORDER_TIMEOUT;
        loop {
            if let Some(line) = service.lines.next().map_err(|wrong| wrong.to_string())? {
                let order = lines::decode(&line).map_err(|wrong| format!("invalid order: {wrong}"))?;
                return Ok(Some((service, order)));
            }
            let left = deadline - monotonic_now();
            if left.is_zero() || service.receive(Some(left), None).is_some() {
                return Ok(None);
            }
        }
    }

    /// Answers the order.
    ///
    /// # Errors
    ///
    /// Error of the write.
    pub fn answer(output: &mut impl Write, answer: &SessionAnswer) -> io::Result<()> {
        write(output, &lines::encode(answer).map_err(|wrong| io::Error::other(wrong.to_string()))?)
    }

    /// Waits for the end of the session; `server` becomes readable when the server ends.
    pub fn wait_for_end(mut self, server: &impl AsFd) -> SessionEnd {
        let mut heard = monotonic_now();
        loop {
            let left = MAX_SILENCE.saturating_sub(monotonic_now().since(heard));
            if left.is_zero() {
                return SessionEnd::Connection;
            }
            let before = self.lines.bytes.len();
            if let Some(end) = self.receive(Some(left), Some(server.as_fd())) {
                return end;
            }
            if self.lines.bytes.len() > before {
                heard = monotonic_now();
                self.lines.bytes.clear();
            }
        }
    }

    /// Waits for bytes, at most this long; returns the end of the session if it is that.
    fn receive(&mut self, limit: Option<Duration>, server: Option<BorrowedFd<'_>>) -> Option<SessionEnd> {
        let mut items = vec![PollItem::new(&*self.input, PollInterest::READ)];
        items.push(PollItem::new(&self.interrupts, PollInterest::READ));
        items.extend(server.as_ref().map(|server| PollItem::new(server, PollInterest::READ)));
        if poll::wait(&mut items, limit).is_err() {
            return Some(SessionEnd::Connection);
        }
        let ready: Vec<bool> = items.iter().map(PollItem::is_ready).collect();
        drop(items);
        if self.interrupts.pending().is_some() {
            return Some(SessionEnd::Signal);
        }
        if ready.get(2) == Some(&true) {
            return Some(SessionEnd::Server);
        }
        if !ready[0] {
            return None;
        }
        let mut block = [0; 4096];
        match self.input.read(&mut block) {
            Ok(0) => Some(SessionEnd::Connection),
            Ok(length) => {
                self.lines.bytes.extend_from_slice(&block[..length]);
                None
            }
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => None,
            Err(_) => Some(SessionEnd::Connection),
        }
    }
}

fn write(output: &mut impl Write, text: &str) -> io::Result<()> {
    output.write_all(text.as_bytes()).and_then(|()| output.flush())
}

#[cfg(test)]
mod tests {
    use std::io::{PipeReader, PipeWriter};

    use super::*;

    fn interrupts() -> InterruptSignals {
        InterruptSignals::install().expect("signals")
    }

    /// Input with these bytes, and its other end, which keeps it open.
    fn input(bytes: &[u8]) -> (PipeReader, PipeWriter) {
        let (reader, mut writer) = io::pipe().expect("descriptors");
        writer.write_all(bytes).expect("buffer space");
        (reader, writer)
    }

    #[test]
    fn an_order_is_answered_until_the_connection_ends() {
        let order = SessionOrder { key: "k".to_owned(), port: Port::new(5299) };
        let (mut reader, mut writer) = input(lines::encode(&order).expect("short").as_bytes());
        let mut output = Vec::new();
        let opened = SessionService::open(&mut reader, &mut output, interrupts()).expect("an order");
        let (service, ordered) = opened.expect("an order");
        let text = String::from_utf8(output).expect("text");
        assert!(text.starts_with("\n{") && text.contains(GREETING_TEXT) && ordered == order, "{text}");
        let mut output = Vec::new();
        let answer = SessionAnswer::Serving { port: Port::IPERF3, process: 7 };
        SessionService::<PipeReader>::answer(&mut output, &answer).expect("memory");
        assert_eq!(lines::decode(&String::from_utf8(output).expect("text")), Ok(answer));
        let (server, running) = io::pipe().expect("descriptors");
        writer.write_all(b"\n").expect("buffer space");
        drop(writer);
        assert_eq!(service.wait_for_end(&server), SessionEnd::Connection);
        drop(running);
    }

    #[test]
    fn a_server_that_ends_ends_the_session() {
        let order = SessionOrder { key: "k".to_owned(), port: None };
        let (mut reader, _writer) = input(lines::encode(&order).expect("short").as_bytes());
        let opened = SessionService::open(&mut reader, &mut Vec::new(), interrupts()).expect("an order");
        let (service, ordered) = opened.expect("an order");
        assert_eq!(ordered.port, None);
        let (server, running) = io::pipe().expect("descriptors");
        drop(running);
        assert_eq!(service.wait_for_end(&server), SessionEnd::Server);
    }

    #[test]
    fn an_order_is_read_strictly() {
        for (bytes, part) in [
            (&b"hello\n"[..], "not a JSON object"),
            (b"{\"schema\":2,\"key\":\"k\",\"port\":null}\n", "schema 2"),
            (b"{\"schema\":1,\"key\":\"k\",\"port\":null,\"run\":\"sh\"}\n", "run"),
            (b"{\"schema\":1,\"key\":\"k\",\"port\":0}\n", "invalid order"),
        ] {
            let (mut reader, _writer) = input(bytes);
            let error = SessionService::open(&mut reader, &mut Vec::new(), interrupts()).err().expect("refused");
            assert!(error.contains(part), "{error}");
        }
        let (mut reader, writer) = input(b"{\"schema\":1");
        drop(writer);
        assert!(SessionService::open(&mut reader, &mut Vec::new(), interrupts()).expect("no error").is_none());
    }
}
