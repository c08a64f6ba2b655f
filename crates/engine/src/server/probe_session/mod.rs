//! A probe session's far half: reflects, records and sends for its client, on a thread of its own.
//!
//! The thread reads the client's requests and replies; sockets with much traffic have threads of their own
//! (`crate::probe`). Nothing is sent to an address that has not sent the session's token, nothing goes on when the
//! client is silent, and everything ends with the control connection.

mod activity;
mod facts;
mod loads;
mod rr;
mod streams;
mod time;
mod way;

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use linerate_model::event::{ConnectionEstablished, TestEvent};
use linerate_model::stream::EndpointRole;
use linerate_sys::poll::{self, PollInterest, PollItem, Waker};
use linerate_sys::{clock, host, net, options};
use linerate_units::{ByteCount, MonotonicTime, Port};
use linerate_wire::cookie::{Cookie, SessionToken, TOKEN_LENGTH};
use linerate_wire::error::ErrorCode;
use linerate_wire::probe::{
    BURSTS_FEATURE, PROBE_FEATURE, ProbeMessageDecoder, ProbeResponse, RR_FEATURE, RR_HANDSHAKE_FEATURE,
    RR_OPEN_FEATURE, RequestRefused, RrOrder, ServerHello, StreamRequest,
};
use linerate_wire::quic::{QUIC_FEATURE, QuicOrder};

use super::inbox::{AcceptedStream, SessionMessage};
use super::quic::{QuicGrant, QuicSession, QuicSessionRequest};
use super::rate_watch::RateWatch;
use super::registry::SessionRegistry;
use super::service::ServiceShare;
use super::session::SessionStart;
use crate::control::ControlRead;
use crate::error::Error;
use crate::probe::ProbeError;
use crate::resources::{MemoryLease, ResourceAccount};
use activity::{MAX_IDLE, SessionActivity};
use facts::CollectedFacts;
use loads::LoadConnections;
pub(super) use rr::ConnectionQueue;
use rr::SessionRr;
use streams::SessionStreams;
use time::TrafficTime;
use way::ReturnPath;

/// Silence of the client, which sends a message at least every two seconds, after which this host stops sending …
const MAX_SILENCE_WHILE_SENDING: Duration = Duration::from_secs(15);

/// … and after which its session ends: longer than TCP takes to get through a path that loses half of it.
const MAX_SILENCE: Duration = Duration::from_secs(60);

/// Time limit of an accepted client for its first request.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Interval of the feedback on counted streams (RFC 9097 §8.1).
const FEEDBACK_INTERVAL: Duration = Duration::from_millis(50);

/// Interval of the progress reports on load connections.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// Time since the client's last datagram for which its streams are being received.
const RECEIVING: Duration = Duration::from_secs(1);

/// Pause of a client's records when they exceed the rate of the server.
const RECORD_PAUSE: Duration = Duration::from_millis(10);

/// Interval of looking for transactions, which do not wake this thread.
const TRANSACTION_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Interval of looking at the rate of what the client sends.
const RATE_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Time for the client to close its end after the last message.
const LINGER_TIMEOUT: Duration = Duration::from_millis(500);

/// Reason why the session ends.
#[derive(Debug, PartialEq, Eq)]
enum SessionEnd {
    /// The client has closed, or is gone.
    Closed,
    /// It sent no message for too long.
    Silent,
    /// It sent an invalid message.
    Nonsense(String),
    /// It keeps streams, load connections or records, and uses none of them.
    Idle,
    /// Its traffic exceeds the rate limit of the server.
    TooFast(Option<&'static str>),
    /// Another client needs its slot.
    Displaced,
    /// The server is terminating.
    Terminated,
    /// This server does not admit it.
    NotAdmitted,
}

/// Runs a session to its end, and always unregisters it.
pub(super) fn run(start: SessionStart) {
    struct SessionSlot(Arc<SessionRegistry>, u64, Cookie);
    impl Drop for SessionSlot {
        fn drop(&mut self) {
            self.0.leave(self.1, &self.2);
        }
    }
    let mut entropy = [0; TOKEN_LENGTH];
    let random = host::random_bytes(&mut entropy);
    let token = SessionToken::random(entropy);
    let _leave = SessionSlot(Arc::clone(&start.registry), start.number, Cookie::load(token));
    match (random, Waker::new()) {
        (Ok(()), Ok(waker)) => ServedProbeSession::new(start, token, Arc::new(waker)).serve(),
        (Err(cause), _) | (_, Err(cause)) => {
            let mut observer = start.observer;
            observer.failed(&Error::system(ErrorCode::NEW_TEST, &cause));
        }
    }
}

struct ServedProbeSession {
    start: SessionStart,
    decoder: ProbeMessageDecoder,
    /// Woken by the threads of streams, load connections and the reflector.
    waker: Arc<Waker>,
    way: ReturnPath,
    streams: SessionStreams,
    loads: LoadConnections,
    rr: SessionRr,
    /// QUIC connections; they end with this value.
    quic: Option<Box<dyn QuicSession>>,
    facts: CollectedFacts,
    time: TrafficTime,
    rate: Option<RateWatch>,
    account: ResourceAccount,
    /// Time until which the client's further requests wait, or its answers.
    postponed: Option<MonotonicTime>,
    /// Bytes of the client's messages that have not been handled: each has its answer first.
    unread: Vec<u8>,
    outbox: AnswerOutbox,
    heard: MonotonicTime,
    asked: bool,
    activity: SessionActivity,
    next_feedback: MonotonicTime,
    next_progress: MonotonicTime,
}

/// Result of a request: an answer, or the reason of the refusal.
type RequestOutcome = Result<(), String>;

/// Messages to the client that the kernel has not been given yet.
#[derive(Default)]
struct AnswerOutbox {
    answers: VecDeque<ProbeResponse>,
    /// Memory of records in the answers.
    held: Vec<MemoryLease>,
}

impl AnswerOutbox {
    fn say(&mut self, answer: ProbeResponse) {
        self.answers.push_back(answer);
    }

    /// Keeps the memory of answers leased until they are sent.
    fn hold(&mut self, memory: MemoryLease) {
        self.held.push(memory);
    }
}

impl ServedProbeSession {
    fn new(start: SessionStart, token: SessionToken, waker: Arc<Waker>) -> Self {
        let now = clock::monotonic_now();
        let account = start.account.clone();
        Self {
            decoder: ProbeMessageDecoder::of_requests(),
            way: ReturnPath::new(&start, token, Arc::clone(&waker), account.clone()),
            streams: SessionStreams::new(Arc::clone(&waker), account.clone()),
            rate: RateWatch::new(account.rate(), start.options.rate_averaging, now),
            loads: LoadConnections::new(Cookie::load(token), Arc::clone(&waker), &start.options, account.clone()),
            rr: SessionRr::new(token, account.clone()),
            quic: None,
            account,
            postponed: None,
            facts: CollectedFacts::default(),
            time: TrafficTime::new(start.options.limits.max_duration),
            waker,
            start,
            heard: now,
            asked: false,
            activity: SessionActivity::new(now),
            unread: Vec::new(),
            outbox: AnswerOutbox::default(),
            next_feedback: now,
            next_progress: now,
        }
    }

    fn serve(mut self) {
        let _ = options::set_keepalive(self.start.control.stream(), self.start.options.keepalive);
        let connected = ConnectionEstablished {
            side: EndpointRole::Server,
            host: self.start.peer.ip().to_string(),
            port: Port::new(self.start.peer.port()).unwrap_or(Port::IPERF3),
            control_mss: options::mss(self.start.control.stream()).ok(),
            session: Some(self.start.number),
            request: None,
        };
        self.start.observer.event(&TestEvent::Connected(connected));
        let mut end = self.admit();
        while end.is_ok() {
            end = self.step();
        }
        self.conclude(end.err().unwrap_or(SessionEnd::Closed));
    }

    fn admit(&mut self) -> Result<(), SessionEnd> {
        let quic = self.start.options.quic.as_ref().map(|_| QUIC_FEATURE);
        let handshakes = if cfg!(feature = "tls") { &[RR_HANDSHAKE_FEATURE, RR_OPEN_FEATURE][..] } else { &[] };
        let own = [PROBE_FEATURE, RR_FEATURE, BURSTS_FEATURE];
        let features: Vec<&str> = own.into_iter().chain(quic).chain(handshakes.iter().copied()).collect();
        let hello = ProbeResponse::Hello(ServerHello::new(&features));
        self.start.control.queue(&hello.encode()).map_err(|_| SessionEnd::Closed)?;
        if self.start.options.authenticator.is_none() {
            return Ok(());
        }
        let reason =
            "this server admits only clients with a user name and a password, which probe sessions do not support";
        self.refuse(reason.to_owned())?;
        Err(SessionEnd::NotAdmitted)
    }

    /// Waits for an event, and handles it.
    fn step(&mut self) -> Result<(), SessionEnd> {
        let (control, inbox, own) = self.wait()?;
        self.waker.drain();
        self.postponed = self.postponed.filter(|until| clock::monotonic_now() < *until);
        let mut outbox = core::mem::take(&mut self.outbox);
        if inbox {
            self.take_arrivals(&mut outbox)?;
        }
        if control {
            self.read_control()?;
        }
        self.handle_messages(&mut outbox)?;
        self.way.follow(own, &mut outbox);
        self.streams.follow(&mut outbox);
        self.perform_duties(&mut outbox)?;
        self.flush(&mut outbox)?;
        self.outbox = outbox;
        Ok(())
    }

    /// Sends the answers as far as the client reads them. One at a time is encoded.
    fn flush(&mut self, outbox: &mut AnswerOutbox) -> Result<(), SessionEnd> {
        let control = &mut self.start.control;
        control.flush().map_err(|_| SessionEnd::Closed)?;
        while control.is_flushed() {
            let Some(answer) = outbox.answers.pop_front() else {
                // The leases end after the answers.
                outbox.held.clear();
                return Ok(());
            };
            let (bytes, now) = (answer.encode(), clock::monotonic_now());
            if let Some(rate) = self.account.rate() {
                let size = ByteCount::from_usize(bytes.len());
                if !is_record(&answer) {
                    rate.count(size, now);
                } else if !rate.admits_reply(size, now) {
                    outbox.answers.push_front(answer);
                    self.postponed = Some(now + RECORD_PAUSE);
                    return Ok(());
                }
            }
            control.queue(&bytes).map_err(|_| SessionEnd::Closed)?;
        }
        Ok(())
    }

    /// True when the client does not read its answers, or gets them no faster: it gets no further ones, but all deadlines
    /// hold.
    fn is_blocked(&self) -> bool {
        self.postponed.is_some() || !self.start.control.is_flushed()
    }

    /// Readiness of the control connection, the inbox and the channel's own socket.
    fn wait(&self) -> Result<(bool, bool, bool), SessionEnd> {
        let now = clock::monotonic_now();
        let silence = self.heard + if self.asked { MAX_SILENCE } else { FIRST_REQUEST_TIMEOUT };
        let stops = self.streams.are_sending().then_some(self.heard + MAX_SILENCE_WHILE_SENDING).filter(|at| *at > now);
        let feedback = (self.streams.are_counting() && !self.is_blocked()).then_some(self.next_feedback);
        let progress = (self.loads.are_running() && !self.is_blocked()).then_some(self.next_progress);
        let control = &self.start.control;
        let transactions = self.rr.exists().then_some(now + TRANSACTION_CHECK_INTERVAL);
        let deadlines =
            [Some(silence), stops, feedback, progress, transactions, self.way.deadline(), self.time.deadline()];
        let deadlines =
            deadlines.into_iter().chain([control.write_deadline(), self.next_rate_check(now), self.postponed]);
        let unread = control.has_unread() && !self.is_blocked() && self.unread.is_empty();
        let timeout = deadlines.chain([unread.then_some(now)]).flatten().min().map(|deadline| deadline.since(now));
        let mut items = vec![
            PollItem::new(control, control.interest(!self.is_blocked())),
            PollItem::new(&*self.start.inbox, PollInterest::READ),
            PollItem::new(&*self.waker, PollInterest::READ),
        ];
        items.extend(self.way.dedicated_socket().map(|socket| PollItem::new(socket, PollInterest::READ)));
        poll::wait(&mut items, timeout).map_err(|_| SessionEnd::Closed)?;
        let own = items.get(3).is_some_and(PollItem::is_ready);
        Ok((items[0].is_ready() || unread, items[1].is_ready(), own))
    }

    fn take_arrivals(&mut self, outbox: &mut AnswerOutbox) -> Result<(), SessionEnd> {
        while let Some(arrived) = self.start.inbox.take() {
            match arrived {
                SessionMessage::Tcp(AcceptedStream { stream, cipher: None, .. }) => self.loads.join(stream, outbox),
                SessionMessage::Displaced => return Err(SessionEnd::Displaced),
                SessionMessage::Terminate(_) => return Err(SessionEnd::Terminated),
                SessionMessage::Turn | SessionMessage::Udp(_) | SessionMessage::Tcp(_) => {}
            }
        }
        Ok(())
    }

    fn read_control(&mut self) -> Result<(), SessionEnd> {
        if self.is_blocked() || !self.unread.is_empty() {
            return Ok(());
        }
        let mut buffer = [0; 16 << 10];
        match self.start.control.read(&mut buffer) {
            ControlRead::Bytes(count) => self.unread.extend_from_slice(&buffer[..count]),
            ControlRead::Closed => return Err(SessionEnd::Closed),
            ControlRead::Nothing => {}
        }
        Ok(())
    }

    /// Handles the messages read so far. Many requests at once do not have their answers in memory at once.
    fn handle_messages(&mut self, outbox: &mut AnswerOutbox) -> Result<(), SessionEnd> {
        let unread = core::mem::take(&mut self.unread);
        let mut bytes = &unread[..];
        while !bytes.is_empty() && !self.is_blocked() {
            self.postponed = self.account.postpones_request(clock::monotonic_now());
            if self.postponed.is_some() {
                break;
            }
            let nonsense = |error: &dyn core::fmt::Display| SessionEnd::Nonsense(error.to_string());
            let Some(document) = self.decoder.feed(&mut bytes).map_err(|error| nonsense(&error))? else { break };
            let request = StreamRequest::decode(&document).map_err(|error| nonsense(&error))?;
            self.heard = clock::monotonic_now();
            if let Some(request) = request {
                self.handle_request(&request, outbox);
                self.flush(outbox)?;
            }
        }
        self.unread = bytes.to_vec();
        Ok(())
    }

    fn handle_request(&mut self, request: &StreamRequest, outbox: &mut AnswerOutbox) {
        if !self.asked {
            self.asked = true;
            self.start.registry.mark_parameters_received(self.start.number);
        }
        if !matches!(request, StreamRequest::Alive(_)) {
            self.activity.record(self.heard);
        }
        let way = self.way.datagrams();
        let outcome = match request {
            StreamRequest::Alive(_) => Ok(()),
            StreamRequest::Facts(_) => {
                outbox.say(ProbeResponse::Facts(Box::new(self.facts.read(&self.start))));
                Ok(())
            }
            StreamRequest::Open(_) => self.way.open(outbox),
            StreamRequest::Receive(order) => self.time.admit().and_then(|()| self.streams.receive(*order, way, outbox)),
            StreamRequest::Collect(of) => self.streams.collect(of.stream, outbox),
            StreamRequest::Send(order) => self.time.admit().and_then(|()| self.streams.send(*order, way, outbox)),
            StreamRequest::Rate(order) => {
                self.streams.set_rate(*order);
                Ok(())
            }
            StreamRequest::Stop(of) => self.streams.stop(of.stream, outbox),
            StreamRequest::Load(_) if self.rr.exists() => Err("a test of requests is running: end it first".to_owned()),
            StreamRequest::Quic(order) => self.time.admit().and_then(|()| self.open_quic(*order, outbox)),
            StreamRequest::Load(order) => self.loads.expect(order, &self.start, outbox),
            StreamRequest::LoadStart(of) => self.time.admit().and_then(|()| self.loads.begin(of.connection)),
            StreamRequest::LoadStop(of) => self.loads.end(of.connection, outbox),
            StreamRequest::Rr(order) => self.answer_requests(*order, outbox),
            StreamRequest::RrStop(_) => self.rr.stop(&self.start, outbox),
        };
        if let Err(reason) = outcome {
            outbox.say(ProbeResponse::Refused(refusal(request, reason)));
        }
    }

    /// Starts a test of requests. A load connection that is expected would take one of its connections.
    fn answer_requests(&mut self, order: RrOrder, outbox: &mut AnswerOutbox) -> RequestOutcome {
        self.time.admit()?;
        if self.loads.exist() {
            return Err("the session has load connections: end them first".to_owned());
        }
        self.rr.start(order, &self.start, &self.way, outbox)
    }

    /// Has the server expect QUIC connections of this session, in place of earlier ones.
    fn open_quic(&mut self, order: QuicOrder, outbox: &mut AnswerOutbox) -> RequestOutcome {
        let service = self.start.options.quic.as_ref().ok_or("this server has no QUIC (linerate serve has it)")?;
        self.quic = None;
        let QuicGrant { ready, session } =
            service.open(QuicSessionRequest { order, share: ServiceShare(self.account.clone()), exchange: None })?;
        self.quic = Some(session);
        outbox.say(ProbeResponse::QuicReady(ready));
        Ok(())
    }

    /// Performs the duties due by the clock.
    fn perform_duties(&mut self, outbox: &mut AnswerOutbox) -> Result<(), SessionEnd> {
        let now = clock::monotonic_now();
        let heard = self.way.heard().map_or(self.heard, |heard| heard.max(self.heard));
        let silence = now.since(heard);
        if silence >= if self.asked { MAX_SILENCE } else { FIRST_REQUEST_TIMEOUT } {
            return Err(SessionEnd::Silent);
        }
        self.heard = heard;
        let is_receiving = self.streams.are_receiving() && self.way.heard().is_some_and(|at| now.since(at) < RECEIVING);
        let is_quic_active = self.quic.as_ref().is_some_and(|quic| quic.is_active());
        let is_busy = self.streams.are_sending()
            || self.loads.are_running()
            || self.rr.is_busy(now)
            || is_receiving
            || is_quic_active;
        self.time.follow(now, is_busy);
        self.watch_rate(now)?;
        self.follow_activity(now, is_busy)?;
        if silence >= MAX_SILENCE_WHILE_SENDING || self.time.is_over() {
            self.streams.cease(outbox);
        }
        if self.time.is_over() {
            self.loads.cease(outbox);
            self.rr.cease(&self.start, self.start.options.limits.max_duration);
            self.streams.stop_recording();
            self.quic = None;
        }
        if self.is_blocked() {
            return Ok(());
        }
        if self.streams.are_counting() && now >= self.next_feedback {
            self.next_feedback = next(self.next_feedback, FEEDBACK_INTERVAL, now);
            self.streams.send_feedback(outbox);
        }
        if self.loads.are_running() && now >= self.next_progress {
            self.next_progress = next(self.next_progress, PROGRESS_INTERVAL, now);
            outbox.say(ProbeResponse::LoadProgress(self.loads.progress()));
        }
        Ok(())
    }

    /// With a rate limit and traffic, time of the next look at what the client has sent.
    fn next_rate_check(&self, now: MonotonicTime) -> Option<MonotonicTime> {
        self.rate.as_ref().filter(|_| self.way.datagrams().is_some()).map(|_| now + RATE_CHECK_INTERVAL)
    }

    /// Ends a session whose datagrams exceed the rate of the server; load connections are held to it.
    fn watch_rate(&mut self, now: MonotonicTime) -> Result<(), SessionEnd> {
        let (Some(rate), Some(datagrams)) = (&mut self.rate, self.way.datagrams()) else { return Ok(()) };
        let sessions = || self.start.registry.sessions_with_traffic(self.start.peer.ip(), now);
        match rate.check(now, datagrams.received(), sessions) {
            Some(excess) => Err(SessionEnd::TooFast(excess.detail())),
            None => Ok(()),
        }
    }

    /// Notes activity for the registry. Messages that only keep the session alive are none.
    fn follow_activity(&mut self, now: MonotonicTime, is_busy: bool) -> Result<(), SessionEnd> {
        let traffic = [is_busy.then_some(now), self.way.heard()];
        traffic.into_iter().flatten().for_each(|time| self.activity.record(time));
        if let Some(time) = self.activity.news() {
            self.start.registry.mark_active(self.start.number, time);
        }
        let serves = self.streams.exist() || self.loads.exist() || self.rr.exists() || self.quic.is_some();
        let is_idle = self.activity.is_over(now) && serves;
        if is_idle { Err(SessionEnd::Idle) } else { Ok(()) }
    }

    /// Refuses the whole session.
    fn refuse(&mut self, reason: String) -> Result<(), SessionEnd> {
        let refused = RequestRefused { request: "probe".into(), stream: None, connection: None, reason };
        self.start.control.queue(&ProbeResponse::Refused(refused).encode()).map_err(|_| SessionEnd::Closed)
    }

    fn conclude(mut self, end: SessionEnd) {
        let error = match end {
            SessionEnd::Closed | SessionEnd::Displaced => None,
            SessionEnd::Silent => Some(Error::new(ErrorCode::IDLE_RECEIVER)),
            SessionEnd::Idle => {
                let reason = format!("no traffic for {}", linerate_units::display::duration(MAX_IDLE));
                // A client that does not read it is idle indeed.
                let _ = self.refuse(format!("the session was ended: {reason}"));
                Some(Error::new(ErrorCode::IDLE_RECEIVER).with_detail(reason))
            }
            SessionEnd::TooFast(detail) => {
                let error = Error::new(ErrorCode::TOTAL_RATE);
                let error = match detail {
                    Some(detail) => error.with_detail(detail),
                    None => error,
                };
                let _ = self.refuse(format!("the session was ended: {error} (--server-bitrate-limit)"));
                Some(error)
            }
            SessionEnd::Terminated => Some(Error::new(ErrorCode::SERVER_TERMINATED)),
            SessionEnd::NotAdmitted => Some(Error::new(ErrorCode::AUTHORIZATION)),
            SessionEnd::Nonsense(reason) => Some(Error::new(ErrorCode::CONTROL_READ).with_detail(reason)),
        };
        if let Some(error) = &error {
            self.start.observer.failed(error);
        }
        if self.asked {
            self.start.registry.count_test();
        }
        // The threads end before the client is notified.
        let Self { start, way, streams, loads, mut rr, quic, .. } = self;
        rr.end(&start);
        drop((streams, loads, way, quic));
        if matches!(
            error.map(|error| error.code()),
            Some(ErrorCode::AUTHORIZATION | ErrorCode::CONTROL_READ | ErrorCode::TOTAL_RATE)
        ) {
            let _ = net::close_gracefully(start.control.into_stream(), LINGER_TIMEOUT);
        }
    }
}

/// Next of a series of times that is not past.
fn next(due: MonotonicTime, interval: Duration, now: MonotonicTime) -> MonotonicTime {
    let next = due + interval;
    if next > now { next } else { now + interval }
}

/// True for messages of a size that the client has chosen.
const fn is_record(answer: &ProbeResponse) -> bool {
    matches!(answer, ProbeResponse::Records(_) | ProbeResponse::LoadSamples(_))
}

fn refusal(request: &StreamRequest, reason: String) -> RequestRefused {
    let stream = match request {
        StreamRequest::Receive(order) => Some(order.stream),
        StreamRequest::Send(order) => Some(order.stream),
        StreamRequest::Rate(order) => Some(order.stream),
        StreamRequest::Collect(of) | StreamRequest::Stop(of) => Some(of.stream),
        _ => None,
    };
    let connection = match request {
        StreamRequest::Load(order) => Some(order.connection),
        StreamRequest::LoadStart(of) | StreamRequest::LoadStop(of) => Some(of.connection),
        _ => None,
    };
    RequestRefused { request: request.name().to_owned(), stream, connection, reason }
}

/// Text of an error, for the client.
fn error_text(error: &ProbeError) -> String {
    error.to_string()
}
