//! A probe session's far half: reflects, records and sends for its client, on a thread of its own.
//!
//! The thread reads the client's requests, and tells it what comes of them; sockets that carry much have threads of
//! their own (`crate::probe`). Nothing is sent to an address from which the session's token has not come, nothing goes
//! on when the client is silent, and all ends with the control connection.

mod facts;
mod loads;
mod streams;
mod way;

use core::time::Duration;
use std::sync::Arc;

use linerate_model::event::{Connected, Event};
use linerate_model::stream::Side;
use linerate_sys::poll::{self, Interest, PollItem, Waker};
use linerate_sys::{clock, host, net, options};
use linerate_units::{MonotonicTime, Port};
use linerate_wire::cookie::{Cookie, TOKEN_LENGTH, Token};
use linerate_wire::error::ErrorCode;
use linerate_wire::probe::{Answer, Decoder, FEATURE, Hello, Refused, Request};

use super::registry::{Arrived, Registry};
use super::session::SessionStart;
use crate::control::Incoming;
use crate::error::Error;
use crate::probe::ProbeError;
use facts::Facts;
use loads::Loads;
use streams::Streams;
use way::Way;

/// A client says something at least every two seconds. After this long a silent one gets nothing more sent …
const SILENCE_STOPS: Duration = Duration::from_secs(15);

/// … and after this long its session is over: longer than TCP takes to get through a path that loses half of it.
const SILENCE_ENDS: Duration = Duration::from_secs(60);

/// A client that was let in has this long for its first request.
const FIRST_REQUEST: Duration = Duration::from_secs(30);

/// How often the feedback on counted streams is sent (RFC 9097 §8.1).
const FEEDBACK_INTERVAL: Duration = Duration::from_millis(50);

/// How often the client is told how its load connections stand.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// When all has been said, the client has this long to close its end.
const LINGER: Duration = Duration::from_millis(500);

/// Why the session ends.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// The client has closed, or is gone.
    Closed,
    /// It said nothing for too long.
    Silent,
    /// It made no sense.
    Nonsense(String),
    /// Its place is needed.
    Displaced,
    /// The server goes down.
    Terminated,
    /// This server does not let it in.
    NotAdmitted,
}

/// Runs a session to its end, and takes it off the books whatever happens.
pub(super) fn run(start: SessionStart) {
    struct Leave(Arc<Registry>, u64, Cookie);
    impl Drop for Leave {
        fn drop(&mut self) {
            self.0.leave(self.1, &self.2);
        }
    }
    let mut entropy = [0; TOKEN_LENGTH];
    let random = host::random_bytes(&mut entropy);
    let token = Token::random(entropy);
    let _leave = Leave(Arc::clone(&start.registry), start.number, Cookie::load(token));
    match (random, Waker::new()) {
        (Ok(()), Ok(waker)) => Session::new(start, token, Arc::new(waker)).serve(),
        (Err(cause), _) | (_, Err(cause)) => {
            let mut observer = start.observer;
            observer.failed(&Error::system(ErrorCode::NEW_TEST, &cause));
        }
    }
}

struct Session {
    start: SessionStart,
    decoder: Decoder,
    /// Woken by the threads of streams, load connections and the reflector.
    waker: Arc<Waker>,
    way: Way,
    streams: Streams,
    loads: Loads,
    facts: Facts,
    heard: MonotonicTime,
    asked: bool,
    next_feedback: MonotonicTime,
    next_progress: MonotonicTime,
}

/// What a request comes to: an answer, or the reason why not.
type Outcome = Result<(), String>;

/// What is to be said to the client.
#[derive(Default)]
struct Outbox(Vec<Answer>);

impl Outbox {
    fn say(&mut self, answer: Answer) {
        self.0.push(answer);
    }
}

impl Session {
    fn new(start: SessionStart, token: Token, waker: Arc<Waker>) -> Self {
        let now = clock::monotonic_now();
        let most_rate = start.options.limits.max_total_rate;
        Self {
            decoder: Decoder::of_requests(),
            way: Way::new(&start, token, Arc::clone(&waker)),
            streams: Streams::new(Arc::clone(&waker), most_rate),
            loads: Loads::new(Cookie::load(token), Arc::clone(&waker), most_rate),
            facts: Facts::default(),
            waker,
            start,
            heard: now,
            asked: false,
            next_feedback: now,
            next_progress: now,
        }
    }

    fn serve(mut self) {
        let _ = options::set_keepalive(self.start.control.stream(), self.start.options.keepalive);
        let connected = Connected {
            side: Side::Server,
            host: self.start.peer.ip().to_string(),
            port: Port::new(self.start.peer.port()).unwrap_or(Port::IPERF3),
            control_mss: options::mss(self.start.control.stream()).ok(),
            session: Some(self.start.number),
        };
        self.start.observer.event(&Event::Connected(connected));
        let mut end = self.admit();
        while end.is_ok() {
            end = self.step();
        }
        self.conclude(end.err().unwrap_or(End::Closed));
    }

    fn admit(&mut self) -> Result<(), End> {
        self.send(&Answer::Hello(Hello::new(&[FEATURE])))?;
        if self.start.options.authenticator.is_none() {
            return Ok(());
        }
        let reason =
            "this server lets in only clients with a user name and a password, which probe sessions do not have";
        let refused = Refused { request: "probe".into(), stream: None, connection: None, reason: reason.into() };
        self.send(&Answer::Refused(refused))?;
        Err(End::NotAdmitted)
    }

    fn send(&mut self, answer: &Answer) -> Result<(), End> {
        self.start.control.send(&answer.encode()).map_err(|_| End::Closed)
    }

    /// Waits for something to happen, and sees to it.
    fn step(&mut self) -> Result<(), End> {
        let (control, inbox, own) = self.wait()?;
        self.waker.drain();
        let mut outbox = Outbox::default();
        if inbox {
            self.take_arrivals(&mut outbox)?;
        }
        if control {
            self.read_control(&mut outbox)?;
        }
        self.way.follow(own, &mut outbox);
        self.streams.follow(&mut outbox);
        self.be_punctual(&mut outbox)?;
        outbox.0.iter().try_for_each(|answer| self.send(answer))
    }

    /// Which of control connection, inbox and the way's own socket is ready.
    fn wait(&self) -> Result<(bool, bool, bool), End> {
        let now = clock::monotonic_now();
        let silence = self.heard + if self.asked { SILENCE_ENDS } else { FIRST_REQUEST };
        let stops = self.streams.are_sending().then_some(self.heard + SILENCE_STOPS).filter(|at| *at > now);
        let feedback = self.streams.are_counting().then_some(self.next_feedback);
        let progress = self.loads.are_running().then_some(self.next_progress);
        let deadlines = [Some(silence), stops, feedback, progress, self.way.deadline()];
        let timeout = deadlines.into_iter().flatten().min().map(|deadline| deadline.since(now));
        let mut items = vec![
            PollItem::new(&self.start.control, Interest::READ),
            PollItem::new(&*self.start.inbox, Interest::READ),
            PollItem::new(&*self.waker, Interest::READ),
        ];
        items.extend(self.way.own_socket().map(|socket| PollItem::new(socket, Interest::READ)));
        poll::wait(&mut items, timeout).map_err(|_| End::Closed)?;
        let own = items.get(3).is_some_and(PollItem::is_ready);
        Ok((items[0].is_ready(), items[1].is_ready(), own))
    }

    fn take_arrivals(&mut self, outbox: &mut Outbox) -> Result<(), End> {
        while let Some(arrived) = self.start.inbox.take() {
            match arrived {
                Arrived::Tcp(stream) => self.loads.join(stream, outbox),
                Arrived::Displaced => return Err(End::Displaced),
                Arrived::Terminate(_) => return Err(End::Terminated),
                Arrived::Turn | Arrived::Udp(_) => {}
            }
        }
        Ok(())
    }

    fn read_control(&mut self, outbox: &mut Outbox) -> Result<(), End> {
        let mut buffer = [0; 16 << 10];
        let count = match self.start.control.read(&mut buffer) {
            Incoming::Bytes(count) => count,
            Incoming::Closed => return Err(End::Closed),
            Incoming::Nothing => return Ok(()),
        };
        let mut bytes = &buffer[..count];
        while !bytes.is_empty() {
            let nonsense = |error: &dyn core::fmt::Display| End::Nonsense(error.to_string());
            let Some(document) = self.decoder.feed(&mut bytes).map_err(|error| nonsense(&error))? else { break };
            let request = Request::decode(&document).map_err(|error| nonsense(&error))?;
            self.heard = clock::monotonic_now();
            if let Some(request) = request {
                self.obey(&request, outbox);
            }
        }
        Ok(())
    }

    fn obey(&mut self, request: &Request, outbox: &mut Outbox) {
        if !self.asked {
            self.asked = true;
            self.start.registry.has_asked(self.start.number);
        }
        let way = self.way.datagrams();
        let outcome = match request {
            Request::Alive(_) => Ok(()),
            Request::Facts(_) => {
                outbox.say(Answer::Facts(Box::new(self.facts.read(&self.start))));
                Ok(())
            }
            Request::Open(_) => self.way.open(outbox),
            Request::Receive(order) => self.streams.receive(*order, way, outbox),
            Request::Collect(of) => self.streams.collect(of.stream, outbox),
            Request::Send(order) => self.streams.send(*order, way, outbox),
            Request::Rate(order) => {
                self.streams.set_rate(*order);
                Ok(())
            }
            Request::Stop(of) => self.streams.stop(of.stream, outbox),
            Request::Load(order) => self.loads.expect(order, &self.start, outbox),
            Request::LoadStart(of) => self.loads.begin(of.connection),
            Request::LoadStop(of) => self.loads.end(of.connection, outbox),
        };
        if let Err(reason) = outcome {
            outbox.say(Answer::Refused(refusal(request, reason)));
        }
    }

    /// Does what is due by the clock.
    fn be_punctual(&mut self, outbox: &mut Outbox) -> Result<(), End> {
        let now = clock::monotonic_now();
        let heard = self.way.heard().map_or(self.heard, |heard| heard.max(self.heard));
        let silence = now.since(heard);
        if silence >= if self.asked { SILENCE_ENDS } else { FIRST_REQUEST } {
            return Err(End::Silent);
        }
        self.heard = heard;
        if silence >= SILENCE_STOPS {
            self.streams.cease(outbox);
        }
        if self.streams.are_counting() && now >= self.next_feedback {
            self.next_feedback = next(self.next_feedback, FEEDBACK_INTERVAL, now);
            self.streams.give_feedback(outbox);
        }
        if self.loads.are_running() && now >= self.next_progress {
            self.next_progress = next(self.next_progress, PROGRESS_INTERVAL, now);
            outbox.say(Answer::LoadProgress(self.loads.progress()));
        }
        Ok(())
    }

    fn conclude(mut self, end: End) {
        let error = match end {
            End::Closed | End::Displaced => None,
            End::Silent => Some(Error::new(ErrorCode::IDLE_RECEIVER)),
            End::Terminated => Some(Error::new(ErrorCode::SERVER_TERMINATED)),
            End::NotAdmitted => Some(Error::new(ErrorCode::AUTHORIZATION)),
            End::Nonsense(reason) => Some(Error::new(ErrorCode::CONTROL_READ).with_detail(reason)),
        };
        if let Some(error) = &error {
            self.start.observer.failed(error);
        }
        if self.asked {
            self.start.registry.count_test();
        }
        // The threads end before the client is told.
        let Self { start, way, streams, loads, .. } = self;
        drop((streams, loads, way));
        if matches!(error.map(|error| error.code()), Some(ErrorCode::AUTHORIZATION | ErrorCode::CONTROL_READ)) {
            let _ = net::close_gracefully(start.control.into_stream(), LINGER);
        }
    }
}

/// The next of a series of times that is not past.
fn next(due: MonotonicTime, interval: Duration, now: MonotonicTime) -> MonotonicTime {
    let next = due + interval;
    if next > now { next } else { now + interval }
}

fn refusal(request: &Request, reason: String) -> Refused {
    let stream = match request {
        Request::Receive(order) => Some(order.stream),
        Request::Send(order) => Some(order.stream),
        Request::Rate(order) => Some(order.stream),
        Request::Collect(of) | Request::Stop(of) => Some(of.stream),
        _ => None,
    };
    let connection = match request {
        Request::Load(order) => Some(order.connection),
        Request::LoadStart(of) | Request::LoadStop(of) => Some(of.connection),
        _ => None,
    };
    Refused { request: request.name().to_owned(), stream, connection, reason }
}

/// An error in words, for the client.
fn words(error: &ProbeError) -> String {
    error.to_string()
}
