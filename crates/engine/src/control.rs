//! The control connection: bytes in, bytes out, never blocking for long.

use core::time::Duration;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linerate_sys::poll::{self, PollInterest};
use linerate_sys::{clock, options};
use linerate_units::MonotonicTime;

use crate::tls::{ConnectionUse, DataCipher, ReceiveOutcome, TlsChannel, TlsError};

/// Longest time for which a peer accepts none of a message: it is gone.
const MAX_WRITE_STALL: Duration = Duration::from_secs(10);

/// Longest time for a whole message. The samples of a load connection are 40 kB, which behind a full queue of 240 kbit/s
/// take ten seconds and more; a peer that reads byte by byte does not keep a session's thread for longer.
const MAX_WRITE_TIME: Duration = Duration::from_secs(40);

/// A control connection in non-blocking mode.
#[derive(Debug)]
pub(crate) struct ControlConnection {
    stream: TcpStream,
    /// TLS, which a reading and a writing thread share; only the one that writes sends what it has for the peer.
    tls: Option<Arc<Mutex<TlsChannel>>>,
    unsent: UnsentBytes,
}

/// Bytes that the kernel has not accepted yet.
#[derive(Debug, Default)]
struct UnsentBytes {
    bytes: Vec<u8>,
    written: usize,
    /// Time of the first of them, and of the last progress.
    since: MonotonicTime,
    progress: MonotonicTime,
}

/// Result of a read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ControlRead {
    /// Number of bytes read.
    Bytes(usize),
    /// No data yet.
    Nothing,
    /// The peer has closed, or is gone.
    Closed,
}

impl ControlConnection {
    /// Takes over a connected socket.
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        // State bytes must not wait for earlier acknowledgements (iperf3 `iperf_connect`). A refusal only costs time.
        let _ = options::set_no_delay(&stream, true);
        Ok(Self { stream, tls: None, unsent: UnsentBytes::default() })
    }

    /// Takes over a connected socket on which TLS begins.
    pub(crate) fn secured(stream: TcpStream, tls: TlsChannel) -> io::Result<Self> {
        Ok(Self { tls: Some(Arc::new(Mutex::new(tls))), ..Self::new(stream)? })
    }

    /// Returns the same connection for a thread that only reads. Nothing may be unsent.
    pub(crate) fn reader(&self) -> io::Result<Self> {
        Ok(Self { tls: self.tls.clone(), ..Self::new(self.stream.try_clone()?)? })
    }

    fn tls(&self) -> Option<MutexGuard<'_, TlsChannel>> {
        Some(self.tls.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// True while TLS has not authenticated the ends yet.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls().is_some_and(|tls| tls.is_handshaking())
    }

    /// Use that the client has named in TLS; `None` without TLS.
    pub(crate) fn tls_use(&self) -> Option<ConnectionUse> {
        self.tls().map(|tls| tls.usage())
    }

    /// Reason for which TLS has failed.
    pub(crate) fn tls_failure(&self) -> Option<TlsError> {
        self.tls()?.failure().cloned()
    }

    /// True when the client of a server with TLS uses none.
    pub(crate) fn is_foreign(&self) -> bool {
        self.tls().is_some_and(|tls| tls.is_foreign())
    }

    /// True when bytes can be read that the socket does not announce any more.
    pub(crate) fn has_unread(&self) -> bool {
        self.tls().is_some_and(|mut tls| tls.has_unread())
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// Returns the socket and the encryption of the data that follows; `None` without TLS, or while another thread has it.
    #[cfg_attr(
        not(feature = "tls"),
        expect(unreachable_code, unused_variables, reason = "without TLS there is no channel")
    )]
    pub(crate) fn into_secured(self) -> Option<(TcpStream, DataCipher)> {
        let tls = Arc::into_inner(self.tls?)?.into_inner().unwrap_or_else(PoisonError::into_inner);
        Some((self.stream, tls.into_data()?))
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> ControlRead {
        if self.tls.is_some() {
            return self.read_tls(buffer);
        }
        loop {
            return match self.stream.read(buffer) {
                Ok(0) => ControlRead::Closed,
                Ok(count) => ControlRead::Bytes(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if poll::would_block(&error) => ControlRead::Nothing,
                Err(_) => ControlRead::Closed,
            };
        }
    }

    /// Continues the handshake with what the socket has.
    pub(crate) fn shake_hands(&mut self) -> ControlRead {
        let outcome = loop {
            let Some(mut tls) = self.tls() else { return ControlRead::Nothing };
            if !tls.is_handshaking() && tls.failure().is_none() {
                break ControlRead::Nothing;
            }
            match tls.receive(&self.stream) {
                ReceiveOutcome::Progress => {}
                ReceiveOutcome::Nothing => break ControlRead::Nothing,
                ReceiveOutcome::Closed => break ControlRead::Closed,
            }
        };
        // A peer that closes already does not need the answer.
        let _ = self.flush();
        outcome
    }

    fn read_tls(&mut self, buffer: &mut [u8]) -> ControlRead {
        if self.is_handshaking() {
            let outcome = self.shake_hands();
            if outcome == ControlRead::Closed || self.is_handshaking() {
                return outcome;
            }
        }
        loop {
            let Some(mut tls) = self.tls() else { return ControlRead::Closed };
            match tls.read(buffer) {
                Some(0) => return ControlRead::Closed,
                Some(count) => return ControlRead::Bytes(count),
                None => {}
            }
            match tls.receive(&self.stream) {
                ReceiveOutcome::Progress => {}
                ReceiveOutcome::Nothing => return ControlRead::Nothing,
                ReceiveOutcome::Closed => break,
            }
        }
        // The peer learns the reason of a failure.
        let _ = self.flush();
        ControlRead::Closed
    }

    /// Sends as many of `bytes` as the kernel accepts, and keeps the remainder for [`Self::flush`].
    pub(crate) fn queue(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(mut tls) = self.tls() {
            tls.write(bytes)?;
        } else {
            self.append(bytes);
        }
        self.flush()
    }

    fn append(&mut self, bytes: &[u8]) {
        if self.is_flushed() {
            let now = clock::monotonic_now();
            self.unsent = UnsentBytes { since: now, progress: now, ..UnsentBytes::default() };
        }
        self.unsent.bytes.extend_from_slice(bytes);
    }

    /// Sends a short message outside TLS, if the kernel accepts it, to a client without TLS.
    pub(crate) fn send_plain(&self, bytes: &[u8]) {
        let _ = (&self.stream).write(bytes);
    }

    /// Sends as many of the queued bytes as the kernel accepts. A peer that accepts none for too long is gone.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let sealed = self.tls().map(|mut tls| tls.take_outgoing());
        if let Some(sealed) = sealed.filter(|sealed| !sealed.is_empty()) {
            self.append(&sealed);
        }
        while !self.is_flushed() {
            match self.stream.write(&self.unsent.bytes[self.unsent.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.unsent.written += count;
                    self.unsent.progress = clock::monotonic_now();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if poll::would_block(&error) => {
                    let is_late = self.write_deadline().is_some_and(|deadline| clock::monotonic_now() >= deadline);
                    return if is_late { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) };
                }
                Err(error) => return Err(error),
            }
        }
        self.unsent.bytes = Vec::new();
        self.unsent.written = 0;
        Ok(())
    }

    /// Sends all queued bytes.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        while let Some(deadline) = self.write_deadline() {
            let left = deadline.since(clock::monotonic_now());
            poll::wait_for(&self.stream, PollInterest::WRITE, Some(left))?;
            self.flush()?;
        }
        Ok(())
    }

    /// True when the kernel has accepted all queued bytes.
    pub(crate) fn is_flushed(&self) -> bool {
        self.unsent() == 0
    }

    /// Number of queued bytes.
    pub(crate) fn unsent(&self) -> usize {
        self.unsent.bytes.len() - self.unsent.written
    }

    /// Time at which a peer that accepts no queued byte is gone; `None` without queued bytes.
    pub(crate) fn write_deadline(&self) -> Option<MonotonicTime> {
        (!self.is_flushed()).then(|| write_deadline(self.unsent.since, self.unsent.progress))
    }

    /// Readiness to wait for: to read if `reads`, and to write queued bytes.
    pub(crate) fn interest(&self, reads: bool) -> PollInterest {
        match (reads, !self.is_flushed()) {
            (true, true) => PollInterest::READ_WRITE,
            (true, false) => PollInterest::READ,
            (false, true) => PollInterest::WRITE,
            (false, false) => PollInterest::NONE,
        }
    }

    /// Sends all of `bytes`.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.queue(bytes)?;
        self.finish()
    }
}

/// Deadline of a message that began at `start` and of which the last byte was accepted at `progress`.
fn write_deadline(start: MonotonicTime, progress: MonotonicTime) -> MonotonicTime {
    (progress + MAX_WRITE_STALL).min(start + MAX_WRITE_TIME)
}

impl AsFd for ControlConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn pair() -> (ControlConnection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let peer = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
        (ControlConnection::new(listener.accept().expect("a client").0).expect("an option"), peer)
    }

    fn await_data(control: &ControlConnection) {
        let limit = Some(Duration::from_secs(60));
        assert!(poll::wait_for(control, PollInterest::READ, limit).expect("polls"), "nothing arrives");
    }

    #[test]
    fn slow_peers_have_more_time_than_silent_ones() {
        let at = |seconds: u64| MonotonicTime::from_nanos(seconds * 1_000_000_000);
        for (progress, deadline) in [(5, 15), (9, 19), (35, 45), (40, 45)] {
            assert_eq!(write_deadline(at(5), at(progress)), at(deadline), "{progress}");
        }
    }

    #[test]
    fn reading_never_blocks_and_distinguishes_silence_from_the_end() {
        let (mut control, mut peer) = pair();
        let mut buffer = [0; 4];
        assert_eq!(control.read(&mut buffer), ControlRead::Nothing);
        peer.write_all(b"abcdef").expect("buffer space");
        await_data(&control);
        assert_eq!(control.read(&mut buffer), ControlRead::Bytes(4));
        assert_eq!(control.read(&mut buffer), ControlRead::Bytes(2));
        assert_eq!(&buffer, b"efcd");
        assert_eq!(control.read(&mut buffer), ControlRead::Nothing);
        drop(peer);
        await_data(&control);
        assert_eq!(control.read(&mut buffer), ControlRead::Closed);
    }

    #[test]
    fn a_reset_connection_is_closed() {
        let (mut control, peer) = pair();
        control.send(b"unread").expect("buffer space");
        // Closing with unread data resets the connection.
        poll::wait_for(&peer, PollInterest::READ, Some(Duration::from_secs(60))).expect("polls");
        drop(peer);
        await_data(&control);
        assert_eq!(control.read(&mut [0]), ControlRead::Closed);
        assert!(control.send(b"more").is_err());
    }

    #[test]
    fn queued_bytes_never_block_and_arrive_in_order() {
        let (mut control, mut peer) = pair();
        let message = |step: u8| vec![step; 3_000_000];
        for step in 0..3 {
            control.queue(&message(step)).expect("the peer is there");
        }
        assert!(control.unsent() > 0 && control.write_deadline().is_some(), "more than the buffers hold");
        assert_eq!(control.interest(true), PollInterest::READ_WRITE);
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            peer.read_to_end(&mut all).expect("closed in order");
            all
        });
        while !control.is_flushed() {
            poll::wait_for(&control, PollInterest::WRITE, Some(Duration::from_secs(60))).expect("polls");
            control.flush().expect("the peer reads");
        }
        assert_eq!((control.write_deadline(), control.interest(false)), (None, PollInterest::NONE));
        drop(control);
        assert!(reader.join().expect("no panic") == (0..3).flat_map(message).collect::<Vec<u8>>());
    }

    #[test]
    fn more_than_the_buffers_hold_is_sent_completely() {
        let (mut control, mut peer) = pair();
        let message: Vec<u8> = (0..8_000_000_u32).map(|number| number.to_le_bytes()[1]).collect();
        let expected = message.clone();
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            peer.read_to_end(&mut all).expect("closed in order");
            all
        });
        control.send(&message).expect("the peer reads");
        drop(control);
        assert!(reader.join().expect("no panic") == expected);
    }
}
