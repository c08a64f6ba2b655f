//! Probing of reflectors in turn, and collection of answers and losses.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use linerate_analysis::statistics::SignedDifference;
use linerate_engine::probe::{ProbeOrder, ProbeResult, ProbeSeries, ProbeSession, ProbeTarget};
use linerate_shape::autorate::{ControllerInput, ProbeDelay, ReflectorId, ReflectorSample};
use linerate_sys::icmp::{EchoEvent, EchoOptions, EchoSocket};
use linerate_sys::poll::Waker;
use linerate_units::{MonotonicTime, Port, WallTime};

use super::settings::ReflectorAddress;
use crate::shaping::error::ShapeError;

/// Time after which an unanswered probe is lost.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of reflectors probed at once.
const MAX_PROBED: usize = 6;
/// Minimum interval of ICMP echoes to one host: twenty per second.
const ECHO_INTERVAL: Duration = Duration::from_millis(50);
/// Probes after which a series to a server is restarted, as results are kept in memory.
const MAX_SERIES_LENGTH: u64 = 10_000;
/// Delay before reconnecting to a server whose session was lost.
const RECONNECT_DELAY: Duration = Duration::from_secs(5);
/// Time limit for connecting to a server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Payload of an ICMP echo.
const ECHO_PAYLOAD: [u8; 16] = *b"linerate: shape.";

/// All reflectors, probed or spare.
pub(super) struct ReflectorProbes {
    all: Vec<ProbedReflector>,
    /// Indices of the probed reflectors, and the position of the next one.
    probed: Vec<usize>,
    turn: usize,
    /// Readable after a server's answer.
    answered: Arc<Waker>,
    /// Interval between two probes, over all reflectors.
    interval: Duration,
    /// Time of the next probe.
    next: MonotonicTime,
    paused: bool,
}

struct ProbedReflector {
    address: ReflectorAddress,
    device: String,
    answered: Arc<Waker>,
    way: ReflectorConnection,
    /// Number of probes sent, over all sockets.
    sent: u64,
}

enum ReflectorConnection {
    /// Not probed, or unreachable: time of the next attempt.
    None {
        again: Option<MonotonicTime>,
    },
    Echo(Box<EchoProbes>),
    Server(Box<ServerProbes>),
    /// Another thread connects to the server, which can take seconds.
    Asking(mpsc::Receiver<Option<ServerProbes>>),
}

struct EchoProbes {
    socket: EchoSocket,
    /// Sequence numbers and send times of unanswered requests.
    waiting: VecDeque<(u64, MonotonicTime)>,
    /// First sequence number of this socket.
    base: u64,
    /// True when the answers have timestamps, and the last one's delay by the far clock and round trip.
    has_timestamps: bool,
    last: Option<(i64, Duration)>,
}

struct ServerProbes {
    /// Ends before the session.
    prober: Option<ProbeSeries>,
    session: ProbeSession,
    /// Number of results already handed over.
    done: usize,
    base: u64,
    interval: Duration,
    answered: Arc<Waker>,
}

impl ReflectorProbes {
    /// Opens the sockets of the first of these addresses. Probes leave through `device`, at most one per `interval`.
    pub(super) fn open(
        addresses: &[ReflectorAddress],
        device: &str,
        interval: Duration,
        now: MonotonicTime,
    ) -> Result<Self, ShapeError> {
        let answered = Arc::new(Waker::new()?);
        let of = |address: &ReflectorAddress| ProbedReflector {
            address: address.clone(),
            device: device.to_owned(),
            answered: Arc::clone(&answered),
            way: ReflectorConnection::None { again: None },
            sent: 0,
        };
        let all: Vec<_> = addresses.iter().map(of).collect();
        let first: Vec<usize> = (0..all.len().min(MAX_PROBED)).collect();
        let pings = first.iter().any(|index| !matches!(all[*index].address, ReflectorAddress::Server(..)));
        let politely = if pings { ECHO_INTERVAL / probed_count(&first) } else { Duration::ZERO };
        let mut probes =
            Self { all, probed: first, turn: 0, answered, interval: interval.max(politely), next: now, paused: false };
        let mut last = None;
        let interval = probes.interval_of_each();
        for index in probes.probed.clone() {
            last = probes.all[index].open(interval).err().or(last);
        }
        match last {
            // One reachable reflector suffices at first.
            Some(error) if probes.all.iter().all(|one| matches!(one.way, ReflectorConnection::None { .. })) => {
                Err(error)
            }
            _ => Ok(probes),
        }
    }

    /// Ids of the probed and of the spare reflectors.
    pub(super) fn reflector_ids(&self) -> (Vec<ReflectorId>, Vec<ReflectorId>) {
        let name = |index: usize| ReflectorId::new(u32::try_from(index).unwrap_or(u32::MAX));
        let spare = (0..self.all.len()).filter(|index| !self.probed.contains(index));
        (self.probed.iter().copied().map(name).collect(), spare.map(name).collect())
    }

    /// Display name of a reflector.
    pub(super) fn display_name(&self, name: ReflectorId) -> String {
        let one = self.all.get(name.get() as usize);
        one.map_or_else(|| name.get().to_string(), |one| one.address.to_string())
    }

    /// Interval between two probes, over all reflectors.
    pub(super) const fn interval(&self) -> Duration {
        self.interval
    }

    fn interval_of_each(&self) -> Duration {
        self.interval * probed_count(&self.probed)
    }

    /// Descriptors that become readable when a probe is answered.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let echoes = self.all.iter().filter_map(|one| match &one.way {
            ReflectorConnection::Echo(echo) => Some(echo.socket.as_fd()),
            _ => None,
        });
        echoes.chain([self.answered.as_fd()])
    }

    /// Time of the next ping; `None` while probing pauses, and without ICMP reflectors (other threads probe servers).
    pub(super) fn due(&self) -> Option<MonotonicTime> {
        let pings = self.probed.iter().any(|index| matches!(self.all[*index].way, ReflectorConnection::Echo(_)));
        (pings && !self.paused).then_some(self.next)
    }

    /// Pauses or resumes probing.
    pub(super) fn pause(&mut self, paused: bool, now: MonotonicTime) {
        if self.paused == paused {
            return;
        }
        self.paused = paused;
        self.next = now;
        let interval = if paused { Duration::from_secs(1) } else { self.interval_of_each() };
        for one in &mut self.all {
            match &mut one.way {
                ReflectorConnection::Server(server) => server.set_interval(interval),
                ReflectorConnection::Echo(echo) => echo.waiting.clear(),
                ReflectorConnection::None { .. } | ReflectorConnection::Asking(_) => {}
            }
        }
    }

    /// Probes another reflector in place of one.
    pub(super) fn replace(&mut self, old: ReflectorId, new: ReflectorId) -> Result<(), ShapeError> {
        let (old, new) = (old.get() as usize, new.get() as usize);
        let interval = self.interval_of_each();
        if let Some(place) = self.probed.iter_mut().find(|index| **index == old) {
            *place = new;
        }
        if let Some(one) = self.all.get_mut(old) {
            one.way = ReflectorConnection::None { again: None };
        }
        self.all.get_mut(new).map_or(Ok(()), |one| one.open_in_background(interval))
    }

    /// Sends the probes that are due; missed ones are skipped.
    pub(super) fn send(&mut self, now: MonotonicTime) {
        if self.paused || now < self.next || self.probed.is_empty() {
            return;
        }
        self.next = (self.next + self.interval).max(now);
        let interval = self.interval_of_each();
        self.turn = (self.turn + 1) % self.probed.len();
        let one = &mut self.all[self.probed[self.turn]];
        match &mut one.way {
            ReflectorConnection::Echo(echo) => {
                one.sent += 1;
                // A probe that cannot be sent (the link is down) counts as lost later.
                let number = echo.socket.send(&ECHO_PAYLOAD).map_or(one.sent, |number| echo.base + number);
                echo.waiting.push_back((number, now));
            }
            ReflectorConnection::Server(server) => server.restart_long_series(interval),
            ReflectorConnection::None { again } => {
                if again.is_none_or(|again| now >= again) && one.open_in_background(interval).is_err() {
                    one.way = ReflectorConnection::None { again: Some(now + RECONNECT_DELAY) };
                }
            }
            ReflectorConnection::Asking(_) => {}
        }
    }

    /// Hands over all answers and losses so far.
    pub(super) fn collect(&mut self, now: MonotonicTime, give: &mut dyn FnMut(ControllerInput)) {
        self.answered.drain();
        for (index, one) in self.all.iter_mut().enumerate() {
            let name = ReflectorId::new(u32::try_from(index).unwrap_or(u32::MAX));
            let ended = match &mut one.way {
                ReflectorConnection::Echo(echo) => {
                    echo.collect(name, now, give);
                    false
                }
                ReflectorConnection::Server(server) => server.collect(name, now, give),
                ReflectorConnection::None { .. } => false,
                ReflectorConnection::Asking(answer) => match answer.try_recv() {
                    Ok(Some(server)) => {
                        one.way = ReflectorConnection::Server(Box::new(server));
                        false
                    }
                    Ok(None) | Err(mpsc::TryRecvError::Disconnected) => true,
                    Err(mpsc::TryRecvError::Empty) => false,
                },
            };
            if ended {
                give(ControllerInput::Lost { reflector: name });
                one.way = ReflectorConnection::None { again: Some(now + RECONNECT_DELAY) };
            }
        }
    }
}

/// Number of probed reflectors, at least one.
fn probed_count(probed: &[usize]) -> u32 {
    u32::try_from(probed.len()).unwrap_or(1).max(1)
}

impl ProbedReflector {
    fn open(&mut self, interval: Duration) -> Result<(), ShapeError> {
        // Later sockets continue the count, so that answers to an earlier one are never newer.
        self.sent += 1 << 20;
        self.way = match &self.address {
            ReflectorAddress::Echo(address) => self.pings(*address, false)?,
            ReflectorAddress::Timestamps(address) => self.pings((*address).into(), true)?,
            ReflectorAddress::Server(host, port) => ReflectorConnection::Server(Box::new(ServerProbes::open(
                (host, *port),
                self.sent,
                interval,
                &self.answered,
            )?)),
        };
        Ok(())
    }

    fn pings(&self, address: IpAddr, timestamps: bool) -> Result<ReflectorConnection, ShapeError> {
        let options = EchoOptions { device: Some(self.device.clone()), timestamps, ..EchoOptions::default() };
        let socket = EchoSocket::open(SocketAddr::new(address, 0), &options)?;
        let (waiting, base) = (VecDeque::new(), self.sent);
        Ok(ReflectorConnection::Echo(Box::new(EchoProbes {
            socket,
            waiting,
            base,
            has_timestamps: timestamps,
            last: None,
        })))
    }

    /// Opens without blocking.
    fn open_in_background(&mut self, interval: Duration) -> Result<(), ShapeError> {
        let ReflectorAddress::Server(host, port) = &self.address else { return self.open(interval) };
        self.sent += 1 << 20;
        let (host, port, base, answered) = (host.clone(), *port, self.sent, Arc::clone(&self.answered));
        let (tell, answer) = mpsc::channel();
        let ask = move || {
            // The receiver may be gone.
            let _ = tell.send(ServerProbes::open((&host, port), base, interval, &answered).ok());
        };
        let thread = std::thread::Builder::new().name("reflector".to_owned()).spawn(ask);
        thread.map_err(|cause| {
            ShapeError::impossible(format!("starting a thread: {}", linerate_sys::describe_os_error(&cause)))
        })?;
        self.way = ReflectorConnection::Asking(answer);
        Ok(())
    }
}

/// Resolution of timestamps, and their drift between two answers.
const TIMESTAMP_TOLERANCE: Duration = Duration::from_millis(5);

impl EchoProbes {
    /// Delay of an answer. `None` for a timestamp that is missing, or further from the last one than any delay explains: that
    /// clock was set, or is none. It counts as lost, so that another reflector takes its place when it goes on.
    fn delay(&mut self, round_trip: Duration, up: Option<i64>) -> Option<ProbeDelay> {
        if !self.has_timestamps {
            return Some(ProbeDelay::RoundTrip(round_trip));
        }
        let up = up?;
        let is_odd = self.last.is_some_and(|(last, before)| is_odd_step(up.abs_diff(last), round_trip.max(before)));
        self.last = Some((up, round_trip));
        if is_odd {
            return None;
        }
        let whole = i64::try_from(round_trip.as_nanos()).unwrap_or(i64::MAX);
        let down = SignedDifference::from_nanos(whole.saturating_sub(up));
        Some(ProbeDelay::OneWay { up: SignedDifference::from_nanos(up), down })
    }

    fn collect(&mut self, name: ReflectorId, now: MonotonicTime, give: &mut dyn FnMut(ControllerInput)) {
        // An error here (the link is down) shows as missing answers.
        while let Ok(Some(event)) = self.socket.next_event(Some(Duration::ZERO)) {
            match event {
                EchoEvent::Reply(reply) => {
                    let sequence = self.base + reply.number;
                    self.waiting.retain(|(number, _)| *number != sequence);
                    if let Some(round_trip) = reply.round_trip() {
                        give(match self.delay(round_trip, reply.up_ns()) {
                            Some(delay) => {
                                ControllerInput::Sample(ReflectorSample { reflector: name, sequence, delay })
                            }
                            None => ControllerInput::Lost { reflector: name },
                        });
                    }
                }
                EchoEvent::PathError { number, .. } => {
                    let sequence = number.map(|number| self.base + number);
                    self.waiting.retain(|(number, _)| Some(*number) != sequence);
                    give(ControllerInput::Lost { reflector: name });
                }
            }
        }
        while self.waiting.front().is_some_and(|(_, sent)| now.since(*sent) > PROBE_TIMEOUT) {
            self.waiting.pop_front();
            give(ControllerInput::Lost { reflector: name });
        }
    }
}

impl ServerProbes {
    fn open(
        (host, port): (&str, Port),
        base: u64,
        interval: Duration,
        answered: &Arc<Waker>,
    ) -> Result<Self, ShapeError> {
        let mut target = ProbeTarget::new(host.to_owned(), port);
        target.connect_timeout = Some(CONNECT_TIMEOUT);
        let failed = |error| ShapeError::impossible(format!("starting probes to {host}: {error}"));
        let session = ProbeSession::open(&target, None).map_err(failed)?;
        session.open_datagrams().map_err(failed)?;
        let prober = session.probe(ProbeOrder::every(interval)).map_err(failed)?;
        prober.wake_on_answers(Arc::clone(answered));
        Ok(Self { prober: Some(prober), session, done: 0, base, interval, answered: Arc::clone(answered) })
    }

    fn set_interval(&mut self, interval: Duration) {
        self.interval = interval;
        if let Some(prober) = &self.prober {
            prober.set_interval(interval);
        }
    }

    /// Starts a new series when this one is long; answers in flight are dropped.
    fn restart_long_series(&mut self, interval: Duration) {
        let sent = self.prober.as_ref().map_or(MAX_SERIES_LENGTH, |prober| prober.sent().get());
        if sent < MAX_SERIES_LENGTH {
            return;
        }
        self.base += sent + 1;
        // The old series' thread ends first.
        self.prober = None;
        self.prober = self.session.probe(ProbeOrder::every(interval)).ok();
        if let Some(prober) = &self.prober {
            prober.wake_on_answers(Arc::clone(&self.answered));
        }
        self.done = 0;
    }

    /// Collects answers. True when the session is over.
    fn collect(&mut self, name: ReflectorId, now: MonotonicTime, give: &mut dyn FnMut(ControllerInput)) -> bool {
        let results = self.prober.as_ref().map(|prober| prober.since(self.done)).unwrap_or_default();
        let mut is_whole = true;
        for result in results {
            match one_way_delays(&result) {
                Some(delay) => {
                    let sequence = self.base + u64::from(result.sequence);
                    give(ControllerInput::Sample(ReflectorSample { reflector: name, sequence, delay }));
                }
                None if now.since(result.sent.monotonic) > PROBE_TIMEOUT => {
                    give(ControllerInput::Lost { reflector: name });
                }
                None => is_whole = false,
            }
            // Answers after a gap are handed over again; the controller drops them by number.
            self.done += usize::from(is_whole);
        }
        !self.session.is_alive()
    }
}

/// True when two delays by one far clock differ by more than the longer of their round trips.
fn is_odd_step(difference: u64, round_trip: Duration) -> bool {
    Duration::from_nanos(difference) > round_trip + TIMESTAMP_TOLERANCE
}

/// One-way delays of an answer. The clock offset is in both, with opposite signs; their sum is the round trip of the
/// monotonic clock, which a clock step does not affect.
fn one_way_delays(result: &ProbeResult) -> Option<ProbeDelay> {
    let answer = result.answer?;
    let Some(received) = answer.far_received else { return Some(ProbeDelay::RoundTrip(answer.round_trip)) };
    let up = between(result.sent.wall, received);
    let whole = i64::try_from(answer.round_trip.as_nanos()).unwrap_or(i64::MAX);
    Some(ProbeDelay::OneWay { up, down: SignedDifference::from_nanos(whole.saturating_sub(up.as_nanos())) })
}

fn between(from: WallTime, to: WallTime) -> SignedDifference<Duration> {
    let nanoseconds = |time: WallTime| i128::try_from(time.since_unix_epoch().as_nanos()).unwrap_or(i128::MAX);
    let difference = nanoseconds(to).saturating_sub(nanoseconds(from));
    SignedDifference::from_nanos(i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX }))
}

#[cfg(test)]
mod tests {
    use linerate_engine::probe::ProbeAnswer;
    use linerate_sys::time_stamp::{StampSource, TimeStamp};

    use super::*;

    #[test]
    fn steps_of_a_far_clock_are_no_delay() {
        let round_trip = Duration::from_millis(40);
        // A queue in one direction appears between two answers: at most its round trip.
        assert!(!is_odd_step(40_000_000, round_trip));
        assert!(!is_odd_step(44_000_000, round_trip));
        assert!(is_odd_step(46_000_000, round_trip));
        assert!(is_odd_step(u64::MAX, round_trip));
    }

    fn stamp(wall: u64, monotonic: u64) -> TimeStamp {
        let wall = WallTime::from_unix(Duration::from_millis(wall));
        let monotonic = MonotonicTime::from_nanos(0) + Duration::from_millis(monotonic);
        TimeStamp { wall, monotonic, source: StampSource::Program }
    }

    /// Sent at 1000 ms, 30 ms up, 20 ms down, by a correct far clock; this host's clock steps by `ahead` milliseconds
    /// while the answer is in flight.
    fn answered(ahead: u64) -> ProbeResult {
        let far = WallTime::from_unix(Duration::from_millis(1_030));
        let answer = ProbeAnswer {
            received: stamp(1_050 + ahead, 50),
            round_trip: Duration::from_millis(50),
            far_received: Some(far),
            far_sent: Some(far),
            far_sequence: 0,
            up_time_to_live: None,
            down_time_to_live: None,
            up_type_of_service: None,
            down_type_of_service: None,
        };
        let sent = stamp(1_000, 0);
        ProbeResult { sequence: 0, sent, answer: Some(answer), too_large: false, no_room: false, duplicates: 0 }
    }

    #[test]
    fn a_clock_step_adds_no_delay() {
        let expected = ProbeDelay::OneWay {
            up: SignedDifference::from_nanos(30_000_000),
            down: SignedDifference::from_nanos(20_000_000),
        };
        for ahead in [0, 1_000] {
            assert_eq!(one_way_delays(&answered(ahead)), Some(expected));
        }
    }

    #[test]
    fn an_answer_without_times_gives_the_round_trip() {
        let mut result = answered(0);
        result.answer.as_mut().expect("there is one").far_received = None;
        assert_eq!(one_way_delays(&result), Some(ProbeDelay::RoundTrip(Duration::from_millis(50))));
        result.answer = None;
        assert_eq!(one_way_delays(&result), None);
    }
}
