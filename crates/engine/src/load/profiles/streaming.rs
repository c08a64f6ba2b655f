//! Video stream: segments over TCP, as responses of the far end, in a session of their own.

use core::time::Duration;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};

use linerate_analysis::traffic_profiles::{LADDER, MediaSegment, StreamingPlayer};
use linerate_model::rr::RrMode;
use linerate_sys::net::SocketSettings;
use linerate_sys::{clock, options, poll, tcp_info};
use linerate_units::{ByteCount, MonotonicTime};
use linerate_wire::probe::RrOrder;

use super::super::measure::LoadTest;
use super::super::record::LoadRecord;
use super::super::traffic::OwnBytes;
use super::{ProfileTraffic, RunningTraffic, TICK, Ticker, wait};
use crate::phases::AbortReason;
use crate::probe::{ProbeError, ProbeSession};

/// Bytes of a response: a segment is requested as several, so that its size can change.
const RESPONSE: ByteCount = ByteCount::new(62_500);

const _: () = assert!(LADDER[0].get().is_multiple_of(RESPONSE.get()), "a segment is a whole number of responses");

/// Plays a video stream.
pub(super) fn run(
    record: &mut LoadRecord<'_>,
    test: &mut LoadTest<'_>,
    time: Duration,
    ticker: Ticker<'_>,
) -> Result<RunningTraffic, AbortReason> {
    // A session with load connections accepts no other ones.
    let session = ProbeSession::open(test.session.target(), record.stop)?;
    let order =
        RrOrder { mode: RrMode::Tcp, request: ByteCount::new(1), response: RESPONSE, flows: 1, keeps_open: false };
    session.far_rr(order)?;
    let stream = session.join_connection(SocketSettings::default())?;
    options::set_receive_timeout(&stream, Some(TICK)).map_err(ProbeError::from)?;
    let start = clock::monotonic_now();
    let viewer = Viewer { start, end: start + time, stopping: AtomicBool::new(false) };
    let played = std::thread::scope(|scope| {
        let playing = scope.spawn(|| viewer.play(&stream));
        let waited = wait(record, test, viewer.end, ticker, &|| playing.is_finished());
        viewer.stopping.store(true, Ordering::Release);
        let played = playing.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
        waited.map(|()| played)
    })?;
    let own = tcp_info::read(&stream).as_ref().map(OwnBytes::of_socket).unwrap_or_default();
    test.profile_bytes = test.profile_bytes.and(own);
    drop(stream);
    let _ = session.far_rr_stop();
    let end = clock::monotonic_now().min(viewer.end);
    let figures = played.map_err(|cause| ProbeError::io("receiving a segment", &cause))?.finish(end.since(start));
    Ok(RunningTraffic::Complete(ProfileTraffic::Stream(figures)))
}

/// Thread that requests segments and receives them.
struct Viewer {
    start: MonotonicTime,
    end: MonotonicTime,
    stopping: AtomicBool,
}

impl Viewer {
    fn is_over(&self) -> bool {
        self.stopping.load(Ordering::Acquire) || clock::monotonic_now() >= self.end
    }

    fn play(&self, stream: &TcpStream) -> io::Result<StreamingPlayer> {
        let mut player = StreamingPlayer::default();
        let mut buffer = vec![0; 64 << 10];
        while !self.is_over() {
            let next = self.start + player.next_request();
            if clock::monotonic_now() < next {
                clock::sleep_until(next.min(clock::monotonic_now() + TICK));
                continue;
            }
            let (segment, requested) = (player.segment(), clock::monotonic_now().since(self.start));
            if !self.receive(stream, segment, &mut buffer)? {
                break;
            }
            player.complete(segment, requested, clock::monotonic_now().since(self.start));
        }
        Ok(player)
    }

    /// Requests a segment and receives it; `false` when the run is over before.
    fn receive(&self, mut stream: &TcpStream, segment: MediaSegment, buffer: &mut [u8]) -> io::Result<bool> {
        let responses = segment.size.to_usize() / RESPONSE.to_usize();
        stream.write_all(&vec![0; responses])?;
        let mut left = segment.size.to_usize();
        while left > 0 {
            let most = left.min(buffer.len());
            match stream.read(&mut buffer[..most]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => left -= count,
                Err(error) if poll::is_temporary(&error) => {}
                Err(error) => return Err(error),
            }
            if self.is_over() {
                return Ok(left == 0);
            }
        }
        Ok(true)
    }
}
