//! The client's control connection: a thread reads the server's messages, and others wait for those that are theirs.

use core::time::Duration;
use std::collections::HashMap;
use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use linerate_sys::clock;
use linerate_sys::poll::{self, Interest, PollItem, Waker};
use linerate_sys::signals::Interrupts;
use linerate_units::MonotonicTime;
use linerate_wire::probe::{
    Answer, ConnectionNumber, ConnectionRef, Decoder, Empty, FarFacts, Feedback, Goodput, Hello, LoadEnd, LoadProgress,
    LoadReady, LoadSample, MARKER, MOST_SAMPLES, Opened, Ready, Records, Refused, Request, SentReport, StreamNumber,
};

use super::error::{Answering, ProbeError, Result};
use super::load::LoadSide;
use super::lock;
use super::recorder::Arrivals;
use crate::control::{Control, Incoming};

/// The client says this often that it is still there.
const ALIVE_INTERVAL: Duration = Duration::from_secs(2);

/// A server has this long to introduce itself. On a path with seconds of queue that is a few round trips.
const HELLO_LIMIT: Duration = Duration::from_secs(15);

/// A server has this long to answer a request: longer than the retransmissions of a path that loses much.
pub(super) const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// What a server has to tell at length may come this slowly, message after message.
const BATCH_LIMIT: Duration = Duration::from_secs(60);

/// Most refusals that nobody has asked for.
const MOST_REFUSALS: usize = 64;

/// Byte by which iperf3 says that it goes on to the parameters (`PARAM_EXCHANGE`), and that it is busy.
const PARAMETER_EXCHANGE: u8 = 9;
const ACCESS_DENIED: u8 = 255;

/// The control connection.
pub(crate) struct Link {
    writer: Mutex<Control>,
    stream: TcpStream,
    state: Mutex<State>,
    changed: Condvar,
    closing: AtomicBool,
    orders: Waker,
    stop: Option<Interrupts>,
}

/// What has come and nobody has taken yet.
#[derive(Default)]
struct State {
    hello: Option<Hello>,
    facts: Option<FarFacts>,
    opened: Option<Opened>,
    ready: Option<Ready>,
    refused: Vec<Refused>,
    streams: HashMap<StreamNumber, OfStream>,
    loads: HashMap<ConnectionNumber, OfLoad>,
    lost: Option<ProbeError>,
}

#[derive(Default)]
struct OfStream {
    receiving: bool,
    sending: bool,
    feedback: Option<Feedback>,
    sent: Option<SentReport>,
    arrivals: Arrivals,
    batches: u64,
    complete: bool,
}

#[derive(Default)]
struct OfLoad {
    expected: bool,
    ready: Option<LoadReady>,
    progress: Option<LoadProgress>,
    samples: Vec<LoadSample>,
    goodput: Vec<Goodput>,
    batches: u64,
    end: Option<LoadEnd>,
}

/// The reading thread; it ends with this.
pub(super) struct Reading {
    link: Arc<Link>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.link.closing.store(true, Ordering::Release);
        self.link.orders.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Link {
    /// Takes over a connection on which the cookie has been sent, and waits for the server to introduce itself.
    pub(super) fn start(stream: TcpStream, stop: Option<Interrupts>) -> Result<(Arc<Self>, Reading, Hello)> {
        let failed = |cause: io::Error| ProbeError::io("preparing the control connection", &cause);
        let reader = Control::new(stream.try_clone().map_err(failed)?).map_err(failed)?;
        let writer = Mutex::new(Control::new(stream.try_clone().map_err(failed)?).map_err(failed)?);
        let link = Arc::new(Self {
            writer,
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
        let reading = Reading { link: Arc::clone(&link), thread: Some(thread) };
        let hello = match link.wait("hello", HELLO_LIMIT, |state| state.hello.clone()) {
            Err(ProbeError::TimedOut { .. }) => Err(ProbeError::NoProbeService(Answering::Silence)),
            other => other,
        }?;
        Ok((link, reading, hello))
    }

    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Whether messages still get through, as far as is known.
    pub(super) fn is_alive(&self) -> bool {
        lock(&self.state).lost.is_none()
    }

    /// Sends a request.
    pub(super) fn send(&self, request: &Request) -> Result<()> {
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

    fn read_all(&self, mut control: Control) {
        let mut decoder = Decoder::of_answers();
        let mut next_alive = clock::monotonic_now() + ALIVE_INTERVAL;
        let mut buffer = vec![0; 64 << 10];
        while !self.closing.load(Ordering::Acquire) {
            if let Err(error) = self.wait_for_bytes(&control, next_alive) {
                return self.lose(error);
            }
            match control.read(&mut buffer) {
                Incoming::Bytes(count) => {
                    if let Err(error) = self.take(&mut decoder, &buffer[..count]) {
                        return self.lose(error);
                    }
                }
                Incoming::Closed => {
                    let known = lock(&self.state).hello.is_some();
                    return self.lose(if known {
                        ProbeError::Lost("the server has closed it".to_owned())
                    } else {
                        ProbeError::NoProbeService(Answering::Something)
                    });
                }
                Incoming::Nothing => {}
            }
            let now = clock::monotonic_now();
            if now >= next_alive {
                next_alive = now + ALIVE_INTERVAL;
                let introduced = lock(&self.state).hello.is_some();
                if introduced && self.send(&Request::Alive(Empty {})).is_err() {
                    return;
                }
            }
        }
    }

    fn wait_for_bytes(&self, control: &Control, until: MonotonicTime) -> Result<()> {
        let mut items = vec![PollItem::new(control, Interest::READ), PollItem::new(&self.orders, Interest::READ)];
        items.extend(self.stop.as_ref().map(|stop| PollItem::new(stop, Interest::READ)));
        poll::wait(&mut items, Some(until.since(clock::monotonic_now())))?;
        let interrupted = items.get(2).is_some_and(PollItem::is_readable);
        if interrupted { Err(ProbeError::Interrupted) } else { Ok(()) }
    }

    fn take(&self, decoder: &mut Decoder, mut bytes: &[u8]) -> Result<()> {
        let introduced = lock(&self.state).hello.is_some();
        if !introduced
            && decoder.is_empty()
            && let Some(first) = bytes.first().filter(|first| **first != MARKER)
        {
            return Err(ProbeError::NoProbeService(match *first {
                PARAMETER_EXCHANGE => Answering::Iperf3,
                ACCESS_DENIED => Answering::Busy,
                _ => Answering::Something,
            }));
        }
        let nonsense = |reason: String| ProbeError::Lost(format!("the server makes no sense: {reason}"));
        while !bytes.is_empty() {
            let Some(document) = decoder.feed(&mut bytes).map_err(|error| nonsense(error.to_string()))? else {
                break;
            };
            if let Some(answer) = Answer::decode(&document).map_err(|error| nonsense(error.to_string()))? {
                lock(&self.state).note(answer);
                self.changed.notify_all();
            }
        }
        Ok(())
    }

    // Waiting.

    /// Waits until `pick` finds what it looks for.
    fn wait<T>(&self, request: &str, limit: Duration, mut pick: impl FnMut(&mut State) -> Option<T>) -> Result<T> {
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

    fn wait_for_change<'a>(&self, state: MutexGuard<'a, State>, limit: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits for an answer, or for the refusal of what was asked.
    fn wait_answer<T>(
        &self,
        request: &str,
        about: About,
        limit: Duration,
        mut pick: impl FnMut(&mut State) -> Option<T>,
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
        self.wait_answer("facts", About::Nothing, ANSWER_LIMIT, |state| state.facts.take())
    }

    pub(super) fn wait_opened(&self) -> Result<Opened> {
        self.wait_answer("open", About::Nothing, ANSWER_LIMIT, |state| state.opened.take())
    }

    /// Whether the client's datagrams have been seen: where they come from.
    pub(super) fn wait_ready(&self, limit: Duration) -> Result<Ready> {
        self.wait_answer("open", About::Nothing, limit, |state| state.ready.take())
    }

    pub(super) fn wait_receiving(&self, stream: StreamNumber) -> Result<()> {
        let began = |state: &mut State| state.streams.get_mut(&stream).filter(|of| of.receiving).map(drop);
        self.wait_answer("receive", About::Stream(stream), ANSWER_LIMIT, began)
    }

    pub(super) fn wait_sending(&self, stream: StreamNumber) -> Result<()> {
        let began = |state: &mut State| state.streams.get_mut(&stream).filter(|of| of.sending).map(drop);
        self.wait_answer("send", About::Stream(stream), ANSWER_LIMIT, began)
    }

    /// The newest feedback on a stream.
    pub(super) fn feedback(&self, stream: StreamNumber) -> Option<Feedback> {
        lock(&self.state).streams.get(&stream)?.feedback
    }

    /// The first feedback that is newer than `newer_than`; `None` when none comes in time.
    pub(super) fn wait_feedback(
        &self,
        stream: StreamNumber,
        newer_than: Option<Duration>,
        limit: Duration,
    ) -> Result<Option<Feedback>> {
        let newer = |state: &mut State| {
            let feedback = state.streams.get(&stream)?.feedback?;
            newer_than.is_none_or(|time| feedback.time > time).then_some(feedback)
        };
        none_if_late(self.wait_answer("receive", About::Stream(stream), limit, newer))
    }

    pub(super) fn wait_last_feedback(&self, stream: StreamNumber) -> Result<Feedback> {
        let last = |state: &mut State| state.streams.get(&stream)?.feedback.filter(|feedback| feedback.last);
        let feedback = self.wait_answer("stop", About::Stream(stream), ANSWER_LIMIT, last)?;
        lock(&self.state).streams.remove(&stream);
        Ok(feedback)
    }

    /// What became of a stream that the server sends; `None` when it goes on.
    pub(super) fn wait_sent(&self, stream: StreamNumber, limit: Duration) -> Result<Option<SentReport>> {
        let sent = |state: &mut State| state.streams.get(&stream)?.sent;
        none_if_late(self.wait_answer("stop", About::Stream(stream), limit, sent))
    }

    /// All records of a stream: each message has its own time, as there may be many.
    pub(super) fn wait_arrivals(&self, stream: StreamNumber) -> Result<Arrivals> {
        let mut seen = 0;
        loop {
            let step = self.wait_answer("collect", About::Stream(stream), BATCH_LIMIT, |state| {
                let of = state.streams.get_mut(&stream)?;
                (of.complete || of.batches > seen).then_some((of.complete, of.batches))
            })?;
            match step {
                (true, _) => break,
                (false, batches) => seen = batches,
            }
        }
        Ok(lock(&self.state).streams.remove(&stream).map(|of| of.arrivals).unwrap_or_default())
    }

    pub(super) fn wait_load_expected(&self, reference: ConnectionRef, limit: Duration) -> Result<()> {
        let number = reference.connection;
        let expected = |state: &mut State| state.loads.get(&number).filter(|load| load.expected).map(drop);
        self.wait_answer("load", About::Connection(number), limit, expected)
    }

    pub(super) fn wait_load_ready(&self, reference: ConnectionRef, limit: Duration) -> Result<LoadReady> {
        let number = reference.connection;
        self.wait_answer("load", About::Connection(number), limit, |state| state.loads.get(&number)?.ready.clone())
    }

    /// What the server has last told of a load connection.
    pub(super) fn progress(&self, number: ConnectionNumber) -> Option<LoadProgress> {
        lock(&self.state).loads.get(&number)?.progress
    }

    /// All that the server has seen of a load connection.
    pub(super) fn wait_load_end(&self, reference: ConnectionRef) -> Result<LoadSide> {
        let number = reference.connection;
        let mut seen = 0;
        loop {
            let step = self.wait_answer("load_stop", About::Connection(number), BATCH_LIMIT, |state| {
                let load = state.loads.get_mut(&number)?;
                (load.end.is_some() || load.batches > seen).then_some((load.end.is_some(), load.batches))
            })?;
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
            broken: end.broken,
        }))
    }
}

fn none_if_late<T>(outcome: Result<T>) -> Result<Option<T>> {
    match outcome {
        Err(ProbeError::TimedOut { .. }) => Ok(None),
        other => other.map(Some),
    }
}

/// What a request was about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum About {
    Nothing,
    Stream(StreamNumber),
    Connection(ConnectionNumber),
}

impl About {
    fn is_meant(self, request: &str, refused: &Refused) -> bool {
        // A server that refuses the whole session names no request of ours.
        refused.request == "probe"
            || refused.request == request
                && match self {
                    Self::Nothing => true,
                    Self::Stream(stream) => refused.stream == Some(stream),
                    Self::Connection(connection) => refused.connection == Some(connection),
                }
    }
}

impl State {
    fn note(&mut self, answer: Answer) {
        match answer {
            Answer::Hello(hello) => drop(self.hello.get_or_insert(hello)),
            Answer::Facts(facts) => self.facts = Some(*facts),
            Answer::Opened(opened) => self.opened = Some(opened),
            Answer::Ready(ready) => self.ready = Some(ready),
            Answer::Receiving(of) => self.stream(of.stream, |of| of.receiving = true),
            Answer::Sending(of) => self.stream(of.stream, |of| of.sending = true),
            Answer::Sent(report) => self.stream(report.stream, |of| of.sent = Some(report)),
            Answer::Feedback(feedback) => self.stream(feedback.stream, |of| of.feedback = Some(feedback)),
            Answer::Records(records) => self.stream(records.stream, |of| of.add(records)),
            Answer::LoadExpected(of) => self.load(of.connection, |load| load.expected = true),
            Answer::LoadReady(ready) => self.load(ready.connection, |load| load.ready = Some(ready)),
            Answer::LoadProgress(all) => {
                for one in all {
                    self.load(one.connection, |load| load.progress = Some(one));
                }
            }
            Answer::LoadSamples(samples) => self.load(samples.connection, |load| {
                load.batches += 1;
                load.samples.extend(samples.samples);
                load.goodput.extend(samples.goodput);
                load.samples.truncate(MOST_SAMPLES);
                load.goodput.truncate(MOST_SAMPLES);
            }),
            Answer::LoadEnd(end) => self.load(end.connection, |load| load.end = Some(end)),
            Answer::Refused(refused) => {
                if self.refused.len() == MOST_REFUSALS {
                    self.refused.remove(0);
                }
                self.refused.push(refused);
            }
        }
    }

    /// Begins to listen for what the server says of a stream.
    fn stream(&mut self, stream: StreamNumber, note: impl FnOnce(&mut OfStream)) {
        if let Some(of) = self.streams.get_mut(&stream) {
            note(of);
        }
    }

    fn load(&mut self, number: ConnectionNumber, note: impl FnOnce(&mut OfLoad)) {
        if let Some(load) = self.loads.get_mut(&number) {
            note(load);
        }
    }
}

impl OfStream {
    fn add(&mut self, records: Records) {
        self.batches += 1;
        let room = linerate_wire::probe::MOST_RECORDS.saturating_sub(self.arrivals.packets.len());
        self.arrivals.packets.extend(records.packets.into_iter().take(room));
        self.arrivals.not_kept = records.not_kept;
        self.arrivals.dropped_in_host = records.dropped_in_host;
        self.complete = records.last;
    }
}

impl Link {
    /// From now on, what the server says of a stream is kept; of others it is not, whatever it says.
    pub(super) fn expect_stream(&self, stream: StreamNumber) {
        lock(&self.state).streams.insert(stream, OfStream::default());
    }

    /// The same for a load connection.
    pub(super) fn expect_load(&self, number: ConnectionNumber) {
        lock(&self.state).loads.insert(number, OfLoad::default());
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
