//! The client's control connection: one thread reads the server's messages, and others wait for their answers.

use core::time::Duration;
use std::collections::HashMap;
use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use linerate_sys::clock;
use linerate_sys::poll::{self, PollInterest, PollItem, Waker};
use linerate_sys::signals::InterruptSignals;
use linerate_units::MonotonicTime;
use linerate_wire::probe::{
    ConnectionNumber, ConnectionRef, DatagramsReady, EmptyContent, FarFacts, GoodputSample, LoadEnd, LoadReady,
    LoadSample, MARKER, MAX_LOAD_SAMPLES, ProbeMessageDecoder, ProbeResponse, RecordBatch, ReflectorOpened,
    RequestRefused, RrReady, RrReport, SentReport, ServerHello, StreamFeedback, StreamNumber, StreamRequest,
};
use linerate_wire::quic::QuicReady;

use super::error::{AnsweringService, ProbeError, Result};
use super::load::LoadSide;
use super::lock;
use super::recorder::PacketArrivals;
use crate::control::{ControlConnection, ControlRead};

/// Interval of the client's keepalive messages.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);

/// Time limit for a server's hello. On a path with seconds of queue that is a few round trips.
const HELLO_TIMEOUT: Duration = Duration::from_secs(15);

/// Time limit for the answer to a request: longer than the retransmissions on a very lossy path.
pub(super) const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// Time limit for each message of a long reply.
const BATCH_TIMEOUT: Duration = Duration::from_secs(60);

/// Time limit for all messages of a long reply: the records of a stream on the slowest path take minutes.
const REPLY_TIMEOUT: Duration = Duration::from_secs(600);

/// Most unsolicited refusals kept.
const MAX_REFUSALS: usize = 64;

/// Bytes by which iperf3 continues with the parameters (`PARAM_EXCHANGE`), and reports that it is busy.
const PARAMETER_EXCHANGE: u8 = 9;
const ACCESS_DENIED: u8 = 255;

/// Byte before an error code, and the code of a server that wants TLS.
const SERVER_ERROR: u8 = 254;
const AUTHORIZATION: [u8; 4] = 142_i32.to_be_bytes();

/// The control connection.
pub(crate) struct ControlLink {
    writer: Mutex<ControlConnection>,
    stream: TcpStream,
    state: Mutex<ProbeLinkState>,
    changed: Condvar,
    closing: AtomicBool,
    orders: Waker,
    stop: Option<InterruptSignals>,
}

/// Messages received and not yet consumed.
#[derive(Default)]
struct ProbeLinkState {
    hello: Option<ServerHello>,
    facts: Option<FarFacts>,
    opened: Option<ReflectorOpened>,
    quic: Option<QuicReady>,
    ready: Option<DatagramsReady>,
    refused: Vec<RequestRefused>,
    rr_ready: Option<RrReady>,
    rr_end: Option<RrReport>,
    streams: HashMap<StreamNumber, StreamState>,
    loads: HashMap<ConnectionNumber, LoadConnectionState>,
    lost: Option<ProbeError>,
}

#[derive(Default)]
struct StreamState {
    receiving: bool,
    sending: bool,
    feedback: Option<StreamFeedback>,
    sent: Option<SentReport>,
    arrivals: PacketArrivals,
    batches: u64,
    complete: bool,
}

#[derive(Default)]
struct LoadConnectionState {
    expected: bool,
    ready: Option<LoadReady>,
    samples: Vec<LoadSample>,
    goodput: Vec<GoodputSample>,
    batches: u64,
    end: Option<LoadEnd>,
}

/// The reading thread; dropping this ends it.
pub(super) struct ReadingThread {
    link: Arc<ControlLink>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for ReadingThread {
    fn drop(&mut self) {
        self.link.closing.store(true, Ordering::Release);
        self.link.orders.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl ControlLink {
    /// Starts on a connection on which the cookie has been sent, and waits for the server's hello.
    pub(super) fn start(
        control: ControlConnection,
        stop: Option<InterruptSignals>,
    ) -> Result<(Arc<Self>, ReadingThread, ServerHello)> {
        let failed = |cause: io::Error| ProbeError::io("preparing the control connection", &cause);
        let reader = control.reader().map_err(failed)?;
        let stream = control.stream().try_clone().map_err(failed)?;
        let link = Arc::new(Self {
            writer: Mutex::new(control),
            stream,
            state: Mutex::default(),
            changed: Condvar::new(),
            closing: AtomicBool::new(false),
            orders: Waker::new()?,
            stop,
        });
        let reading = Arc::clone(&link);
        let thread = std::thread::Builder::new().name("probe-control".into()).stack_size(512 << 10);
        let thread = thread.spawn(move || reading.read_all(reader)).map_err(failed)?;
        let reading = ReadingThread { link: Arc::clone(&link), thread: Some(thread) };
        let hello = match link.wait("hello", HELLO_TIMEOUT, |state| state.hello.clone()) {
            Err(ProbeError::TimedOut { .. }) => Err(ProbeError::NoProbeService(AnsweringService::Silence)),
            other => other,
        }?;
        Ok((link, reading, hello))
    }

    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// True while messages still get through, as far as is known.
    pub(super) fn is_alive(&self) -> bool {
        lock(&self.state).lost.is_none()
    }

    /// Sends a request.
    pub(super) fn send(&self, request: &StreamRequest) -> Result<()> {
        if let Some(lost) = &lock(&self.state).lost {
            return Err(lost.clone());
        }
        let sent = lock(&self.writer).send(&request.encode());
        sent.map_err(|cause| {
            let error = ProbeError::Lost(linerate_sys::describe_os_error(&cause));
            self.lose(error.clone());
            error
        })
    }

    fn lose(&self, error: ProbeError) {
        lock(&self.state).lost.get_or_insert(error);
        self.changed.notify_all();
    }

    // Reading.

    fn read_all(&self, mut control: ControlConnection) {
        let mut decoder = ProbeMessageDecoder::of_answers();
        let mut next_alive = clock::monotonic_now() + KEEPALIVE_INTERVAL;
        let mut buffer = vec![0; 64 << 10];
        while !self.closing.load(Ordering::Acquire) {
            if let Err(error) = self.wait_for_bytes(&control, next_alive) {
                return self.lose(error);
            }
            match control.read(&mut buffer) {
                ControlRead::Bytes(count) => {
                    if let Err(error) = self.take(&mut decoder, &buffer[..count]) {
                        return self.lose(error);
                    }
                }
                ControlRead::Closed => {
                    if let Some(failure) = control.tls_failure() {
                        return self.lose(failure.into());
                    }
                    let known = lock(&self.state).hello.is_some();
                    return self.lose(if known {
                        ProbeError::Lost("the server closed it".to_owned())
                    } else {
                        ProbeError::NoProbeService(AnsweringService::Something)
                    });
                }
                ControlRead::Nothing => {}
            }
            let now = clock::monotonic_now();
            if now >= next_alive {
                next_alive = now + KEEPALIVE_INTERVAL;
                let introduced = lock(&self.state).hello.is_some();
                if introduced && self.send(&StreamRequest::Alive(EmptyContent {})).is_err() {
                    return;
                }
            }
        }
    }

    fn wait_for_bytes(&self, control: &ControlConnection, until: MonotonicTime) -> Result<()> {
        let mut items =
            vec![PollItem::new(control, PollInterest::READ), PollItem::new(&self.orders, PollInterest::READ)];
        items.extend(self.stop.as_ref().map(|stop| PollItem::new(stop, PollInterest::READ)));
        let left = if control.has_unread() { Duration::ZERO } else { until.since(clock::monotonic_now()) };
        poll::wait(&mut items, Some(left))?;
        let interrupted = items.get(2).is_some_and(PollItem::is_readable);
        if interrupted { Err(ProbeError::Interrupted) } else { Ok(()) }
    }

    fn take(&self, decoder: &mut ProbeMessageDecoder, mut bytes: &[u8]) -> Result<()> {
        let introduced = lock(&self.state).hello.is_some();
        if !introduced
            && decoder.is_empty()
            && let Some(first) = bytes.first().filter(|first| **first != MARKER)
        {
            return Err(ProbeError::NoProbeService(match *first {
                PARAMETER_EXCHANGE => AnsweringService::Iperf3,
                ACCESS_DENIED => AnsweringService::Busy,
                SERVER_ERROR if bytes.get(1..5) == Some(&AUTHORIZATION) => AnsweringService::WantsTls,
                _ => AnsweringService::Something,
            }));
        }
        let nonsense = |reason: String| ProbeError::Lost(format!("invalid message from the server: {reason}"));
        while !bytes.is_empty() {
            let Some(document) = decoder.feed(&mut bytes).map_err(|error| nonsense(error.to_string()))? else {
                break;
            };
            if let Some(answer) = ProbeResponse::decode(&document).map_err(|error| nonsense(error.to_string()))? {
                lock(&self.state).note(answer);
                self.changed.notify_all();
            }
        }
        Ok(())
    }

    // Waiting.

    /// Waits until `pick` returns a value.
    fn wait<T>(
        &self,
        request: &str,
        limit: Duration,
        mut pick: impl FnMut(&mut ProbeLinkState) -> Option<T>,
    ) -> Result<T> {
        let deadline = clock::monotonic_now() + limit;
        let mut state = lock(&self.state);
        loop {
            if let Some(found) = pick(&mut state) {
                return Ok(found);
            }
            if let Some(lost) = &state.lost {
                return Err(lost.clone());
            }
            let left = deadline.since(clock::monotonic_now());
            if left.is_zero() {
                return Err(ProbeError::TimedOut { request: request.to_owned(), after: limit });
            }
            state = self.wait_for_change(state, left);
        }
    }

    fn wait_for_change<'a>(
        &self,
        state: MutexGuard<'a, ProbeLinkState>,
        limit: Duration,
    ) -> MutexGuard<'a, ProbeLinkState> {
        self.changed.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits for an answer, or for the refusal of the request.
    fn wait_answer<T>(
        &self,
        request: &str,
        about: RequestSubject,
        limit: Duration,
        mut pick: impl FnMut(&mut ProbeLinkState) -> Option<T>,
    ) -> Result<T> {
        let outcome = self.wait(request, limit, |state| {
            if let Some(found) = pick(state) {
                return Some(Ok(found));
            }
            let refusal = state.refused.iter().position(|refused| about.is_meant(request, refused))?;
            Some(Err(state.refused.remove(refusal)))
        })?;
        outcome.map_err(|refused| ProbeError::Refused { request: refused.request, reason: refused.reason })
    }

    pub(super) fn wait_facts(&self) -> Result<FarFacts> {
        self.wait_answer("facts", RequestSubject::Nothing, ANSWER_LIMIT, |state| state.facts.take())
    }

    pub(super) fn wait_opened(&self) -> Result<ReflectorOpened> {
        self.wait_answer("open", RequestSubject::Nothing, ANSWER_LIMIT, |state| state.opened.take())
    }

    pub(super) fn wait_quic(&self) -> Result<QuicReady> {
        self.wait_answer("quic", RequestSubject::Nothing, ANSWER_LIMIT, |state| state.quic.take())
    }

    /// Waits until the server has seen the client's datagrams; returns their source.
    pub(super) fn wait_ready(&self, limit: Duration) -> Result<DatagramsReady> {
        self.wait_answer("open", RequestSubject::Nothing, limit, |state| state.ready.take())
    }

    pub(super) fn wait_rr_ready(&self) -> Result<RrReady> {
        self.wait_answer("rr", RequestSubject::Nothing, ANSWER_LIMIT, |state| state.rr_ready.take())
    }

    pub(super) fn wait_rr_end(&self) -> Result<RrReport> {
        self.wait_answer("rr_stop", RequestSubject::Nothing, ANSWER_LIMIT, |state| state.rr_end.take())
    }

    pub(super) fn wait_receiving(&self, stream: StreamNumber) -> Result<()> {
        let began = |state: &mut ProbeLinkState| state.streams.get_mut(&stream).filter(|of| of.receiving).map(drop);
        self.wait_answer("receive", RequestSubject::Stream(stream), ANSWER_LIMIT, began)
    }

    pub(super) fn wait_sending(&self, stream: StreamNumber) -> Result<()> {
        let began = |state: &mut ProbeLinkState| state.streams.get_mut(&stream).filter(|of| of.sending).map(drop);
        self.wait_answer("send", RequestSubject::Stream(stream), ANSWER_LIMIT, began)
    }

    /// First feedback newer than `newer_than`; `None` when none arrives in time.
    pub(super) fn wait_feedback(
        &self,
        stream: StreamNumber,
        newer_than: Option<Duration>,
        limit: Duration,
    ) -> Result<Option<StreamFeedback>> {
        let newer = |state: &mut ProbeLinkState| {
            let feedback = state.streams.get(&stream)?.feedback?;
            newer_than.is_none_or(|time| feedback.time > time).then_some(feedback)
        };
        none_if_late(self.wait_answer("receive", RequestSubject::Stream(stream), limit, newer))
    }

    pub(super) fn wait_last_feedback(&self, stream: StreamNumber) -> Result<StreamFeedback> {
        let last = |state: &mut ProbeLinkState| state.streams.get(&stream)?.feedback.filter(|feedback| feedback.last);
        let feedback = self.wait_answer("stop", RequestSubject::Stream(stream), ANSWER_LIMIT, last)?;
        lock(&self.state).streams.remove(&stream);
        Ok(feedback)
    }

    /// Final report on a stream that the server sends; `None` when it goes on.
    pub(super) fn wait_sent(&self, stream: StreamNumber, limit: Duration) -> Result<Option<SentReport>> {
        let sent = |state: &mut ProbeLinkState| state.streams.get(&stream)?.sent;
        none_if_late(self.wait_answer("stop", RequestSubject::Stream(stream), limit, sent))
    }

    /// All records of a stream; a time limit applies to each message, as there may be many, and one to all.
    pub(super) fn wait_arrivals(&self, stream: StreamNumber) -> Result<PacketArrivals> {
        let (mut seen, end) = (0, clock::monotonic_now() + REPLY_TIMEOUT);
        loop {
            let step = self.wait_answer(
                "collect",
                RequestSubject::Stream(stream),
                batch_limit(end, clock::monotonic_now()),
                |state| {
                    let of = state.streams.get_mut(&stream)?;
                    (of.complete || of.batches > seen).then_some((of.complete, of.batches))
                },
            )?;
            match step {
                (true, _) => break,
                (false, batches) => seen = batches,
            }
        }
        Ok(lock(&self.state).streams.remove(&stream).map(|of| of.arrivals).unwrap_or_default())
    }

    pub(super) fn wait_load_expected(&self, reference: ConnectionRef, limit: Duration) -> Result<()> {
        let number = reference.connection;
        let expected = |state: &mut ProbeLinkState| state.loads.get(&number).filter(|load| load.expected).map(drop);
        self.wait_answer("load", RequestSubject::Connection(number), limit, expected)
    }

    pub(super) fn wait_load_ready(&self, reference: ConnectionRef, limit: Duration) -> Result<LoadReady> {
        let number = reference.connection;
        self.wait_answer("load", RequestSubject::Connection(number), limit, |state| {
            state.loads.get(&number)?.ready.clone()
        })
    }

    /// Full record of a load connection from the server.
    pub(super) fn wait_load_end(&self, reference: ConnectionRef) -> Result<LoadSide> {
        let number = reference.connection;
        let (mut seen, end) = (0, clock::monotonic_now() + REPLY_TIMEOUT);
        loop {
            let step = self.wait_answer(
                "load_stop",
                RequestSubject::Connection(number),
                batch_limit(end, clock::monotonic_now()),
                |state| {
                    let load = state.loads.get_mut(&number)?;
                    (load.end.is_some() || load.batches > seen).then_some((load.end.is_some(), load.batches))
                },
            )?;
            match step {
                (true, _) => break,
                (false, batches) => seen = batches,
            }
        }
        let load = lock(&self.state).loads.remove(&number).unwrap_or_default();
        Ok(load.end.map_or_else(LoadSide::default, |end| LoadSide {
            bytes: end.bytes,
            time: end.time,
            samples: load.samples,
            goodput: load.goodput,
            broken: end.error,
        }))
    }
}

/// Time limit for the next message of a long reply that must be complete at `end`.
fn batch_limit(end: MonotonicTime, now: MonotonicTime) -> Duration {
    BATCH_TIMEOUT.min(end.since(now))
}

fn none_if_late<T>(outcome: Result<T>) -> Result<Option<T>> {
    match outcome {
        Err(ProbeError::TimedOut { .. }) => Ok(None),
        other => other.map(Some),
    }
}

/// Subject of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RequestSubject {
    Nothing,
    Stream(StreamNumber),
    Connection(ConnectionNumber),
}

impl RequestSubject {
    fn is_meant(self, request: &str, refused: &RequestRefused) -> bool {
        // A server that refuses the whole session names no request.
        refused.request == "probe"
            || refused.request == request
                && match self {
                    Self::Nothing => true,
                    Self::Stream(stream) => refused.stream == Some(stream),
                    Self::Connection(connection) => refused.connection == Some(connection),
                }
    }
}

impl ProbeLinkState {
    fn note(&mut self, answer: ProbeResponse) {
        match answer {
            ProbeResponse::Hello(hello) => drop(self.hello.get_or_insert(hello)),
            ProbeResponse::Facts(facts) => self.facts = Some(*facts),
            ProbeResponse::Opened(opened) => self.opened = Some(opened),
            ProbeResponse::QuicReady(ready) => self.quic = Some(ready),
            ProbeResponse::Ready(ready) => self.ready = Some(ready),
            ProbeResponse::Receiving(of) => self.stream(of.stream, |of| of.receiving = true),
            ProbeResponse::Sending(of) => self.stream(of.stream, |of| of.sending = true),
            ProbeResponse::Sent(report) => self.stream(report.stream, |of| of.sent = Some(report)),
            ProbeResponse::Feedback(feedback) => self.stream(feedback.stream, |of| of.feedback = Some(feedback)),
            ProbeResponse::Records(records) => self.stream(records.stream, |of| of.add(records)),
            ProbeResponse::LoadExpected(of) => self.load(of.connection, |load| load.expected = true),
            ProbeResponse::LoadReady(ready) => self.load(ready.connection, |load| load.ready = Some(ready)),
            // This end's own samples show it, and the record at the end is complete.
            ProbeResponse::LoadProgress(_) => {}
            ProbeResponse::LoadSamples(samples) => self.load(samples.connection, |load| {
                load.batches += 1;
                load.samples.extend(samples.samples);
                load.goodput.extend(samples.goodput);
                load.samples.truncate(MAX_LOAD_SAMPLES);
                load.goodput.truncate(MAX_LOAD_SAMPLES);
            }),
            ProbeResponse::LoadEnd(end) => self.load(end.connection, |load| load.end = Some(end)),
            ProbeResponse::RrReady(ready) => self.rr_ready = Some(ready),
            ProbeResponse::RrEnd(report) => self.rr_end = Some(report),
            ProbeResponse::Refused(refused) => {
                if self.refused.len() == MAX_REFUSALS {
                    self.refused.remove(0);
                }
                self.refused.push(refused);
            }
        }
    }

    /// Stores a message about an expected stream.
    fn stream(&mut self, stream: StreamNumber, note: impl FnOnce(&mut StreamState)) {
        if let Some(of) = self.streams.get_mut(&stream) {
            note(of);
        }
    }

    fn load(&mut self, number: ConnectionNumber, note: impl FnOnce(&mut LoadConnectionState)) {
        if let Some(load) = self.loads.get_mut(&number) {
            note(load);
        }
    }
}

impl StreamState {
    fn add(&mut self, records: RecordBatch) {
        self.batches += 1;
        let room = linerate_wire::probe::MAX_SESSION_RECORDS.saturating_sub(self.arrivals.packets.len());
        self.arrivals.packets.extend(records.packets.into_iter().take(room));
        self.arrivals.not_kept = records.not_kept;
        self.arrivals.dropped_in_host = records.dropped_in_host;
        self.complete = records.last;
    }
}

impl ControlLink {
    /// Keeps messages about this stream from now on; those about unexpected streams are dropped.
    pub(super) fn expect_stream(&self, stream: StreamNumber) {
        lock(&self.state).streams.insert(stream, StreamState::default());
    }

    /// The same for a load connection.
    pub(super) fn expect_load(&self, number: ConnectionNumber) {
        lock(&self.state).loads.insert(number, LoadConnectionState::default());
    }
}

impl AsFd for ControlLink {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reply_has_a_limit_for_each_message_and_one_for_all() {
        let at = |seconds: u64| MonotonicTime::from_nanos(seconds * 1_000_000_000);
        let end = at(5) + REPLY_TIMEOUT;
        for (now, left) in [(5, 60), (500, 60), (590, 15), (605, 0), (700, 0)] {
            assert_eq!(batch_limit(end, at(now)), Duration::from_secs(left), "{now}");
        }
    }
}
