//! Who is probed, in turn; answers, and the lack of them.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use linerate_engine::probe::{ProbeOrder, ProbeResult, ProbeSession, Prober, Target};
use linerate_model::statistics::Signed;
use linerate_shape::autorate::{Delay, Input, ReflectorId, Sample};
use linerate_sys::icmp::{EchoEvent, EchoOptions, EchoSocket};
use linerate_sys::poll::Waker;
use linerate_units::{MonotonicTime, Port, WallTime};

use super::arguments::ReflectorAddress;
use crate::cmd::shape::error::ShapeError;

/// A probe without an answer after this time is lost.
const LATE: Duration = Duration::from_secs(1);
/// Most that are probed at once.
const AT_ONCE: usize = 6;
/// Nobody who answers pings is sent more than twenty in a second.
const ECHO_INTERVAL: Duration = Duration::from_millis(50);
/// A series of probes to a server is ended, and another begun, after so many: their results are kept in memory.
const LONGEST_SERIES: u64 = 10_000;
/// A server whose session was lost is asked again after this time.
const AGAIN: Duration = Duration::from_secs(5);
/// How long connecting to a server may take.
const CONNECTING: Duration = Duration::from_secs(3);
/// What a ping carries: enough to look like one, and little to send.
const PAYLOAD: [u8; 16] = *b"linerate: shape.";

/// All reflectors, probed or in reserve.
pub(super) struct Probes {
    all: Vec<Reflector>,
    /// Indices of those that are probed; who is next.
    probed: Vec<usize>,
    turn: usize,
    /// Readable when a server has answered.
    answered: Arc<Waker>,
    /// Time between two probes of whichever reflectors.
    interval: Duration,
    /// The next probe.
    next: MonotonicTime,
    paused: bool,
}

struct Reflector {
    address: ReflectorAddress,
    device: String,
    answered: Arc<Waker>,
    way: Way,
    /// Probes that were sent, over all sockets.
    sent: u64,
}

enum Way {
    /// Not probed, or not to be reached at present: when to try again.
    None {
        again: Option<MonotonicTime>,
    },
    Echo(Box<Echo>),
    Server(Box<Server>),
    /// Another thread asks the server: connecting can take seconds, in which rates have to be followed all the same.
    Asking(mpsc::Receiver<Option<Server>>),
}

struct Echo {
    socket: EchoSocket,
    /// Numbers and times of requests without an answer.
    waiting: VecDeque<(u64, MonotonicTime)>,
    /// What numbers of this socket begin at.
    base: u64,
}

struct Server {
    /// Ends before the session does.
    prober: Option<Prober>,
    session: ProbeSession,
    /// Results before this one are done with.
    done: usize,
    base: u64,
    interval: Duration,
    answered: Arc<Waker>,
}

impl Probes {
    /// Those of these addresses; opens the sockets of the first ones. Probes leave through `device`, one each `interval` or
    /// fewer.
    pub(super) fn open(
        addresses: &[ReflectorAddress],
        device: &str,
        interval: Duration,
        now: MonotonicTime,
    ) -> Result<Self, ShapeError> {
        let answered = Arc::new(Waker::new()?);
        let of = |address: &ReflectorAddress| Reflector {
            address: address.clone(),
            device: device.to_owned(),
            answered: Arc::clone(&answered),
            way: Way::None { again: None },
            sent: 0,
        };
        let all: Vec<_> = addresses.iter().map(of).collect();
        let first: Vec<usize> = (0..all.len().min(AT_ONCE)).collect();
        let pings = first.iter().any(|index| matches!(all[*index].address, ReflectorAddress::Echo(_)));
        let politely = if pings { ECHO_INTERVAL / count(&first) } else { Duration::ZERO };
        let mut probes =
            Self { all, probed: first, turn: 0, answered, interval: interval.max(politely), next: now, paused: false };
        let mut last = None;
        let interval = probes.interval_of_each();
        for index in probes.probed.clone() {
            last = probes.all[index].open(interval).err().or(last);
        }
        match last {
            // One that can be probed is enough to begin with.
            Some(error) if probes.all.iter().all(|one| matches!(one.way, Way::None { .. })) => Err(error),
            _ => Ok(probes),
        }
    }

    /// The names by which the controller knows them: those that are probed, and those in reserve.
    pub(super) fn names(&self) -> (Vec<ReflectorId>, Vec<ReflectorId>) {
        let name = |index: usize| ReflectorId::new(u32::try_from(index).unwrap_or(u32::MAX));
        let spare = (0..self.all.len()).filter(|index| !self.probed.contains(index));
        (self.probed.iter().copied().map(name).collect(), spare.map(name).collect())
    }

    /// What a reflector is called for a person.
    pub(super) fn title(&self, name: ReflectorId) -> String {
        let one = self.all.get(name.get() as usize);
        one.map_or_else(|| name.get().to_string(), |one| one.address.to_string())
    }

    /// Time between two probes of whichever reflectors.
    pub(super) const fn interval(&self) -> Duration {
        self.interval
    }

    fn interval_of_each(&self) -> Duration {
        self.interval * count(&self.probed)
    }

    /// What becomes readable when a probe is answered.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let echoes = self.all.iter().filter_map(|one| match &one.way {
            Way::Echo(echo) => Some(echo.socket.as_fd()),
            _ => None,
        });
        echoes.chain([self.answered.as_fd()])
    }

    /// When the next ping is due; `None` while probing pauses, and where only servers are probed, which others do.
    pub(super) fn due(&self) -> Option<MonotonicTime> {
        let pings = self.probed.iter().any(|index| matches!(self.all[*index].way, Way::Echo(_)));
        (pings && !self.paused).then_some(self.next)
    }

    /// Pauses, or goes on.
    pub(super) fn pause(&mut self, paused: bool, now: MonotonicTime) {
        if self.paused == paused {
            return;
        }
        self.paused = paused;
        self.next = now;
        let interval = if paused { Duration::from_secs(1) } else { self.interval_of_each() };
        for one in &mut self.all {
            match &mut one.way {
                Way::Server(server) => server.set_interval(interval),
                Way::Echo(echo) => echo.waiting.clear(),
                Way::None { .. } | Way::Asking(_) => {}
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
            one.way = Way::None { again: None };
        }
        self.all.get_mut(new).map_or(Ok(()), |one| one.open_beside(interval))
    }

    /// Sends what is due. Whoever is late does not catch up.
    pub(super) fn send(&mut self, now: MonotonicTime) {
        if self.paused || now < self.next || self.probed.is_empty() {
            return;
        }
        self.next = (self.next + self.interval).max(now);
        let interval = self.interval_of_each();
        self.turn = (self.turn + 1) % self.probed.len();
        let one = &mut self.all[self.probed[self.turn]];
        match &mut one.way {
            Way::Echo(echo) => {
                one.sent += 1;
                // What cannot be sent (the link is down) is waited for like what is lost.
                let number = echo.socket.send(&PAYLOAD).map_or(one.sent, |number| echo.base + number);
                echo.waiting.push_back((number, now));
            }
            Way::Server(server) => server.keep_short(interval),
            Way::None { again } => {
                if again.is_none_or(|again| now >= again) && one.open_beside(interval).is_err() {
                    one.way = Way::None { again: Some(now + AGAIN) };
                }
            }
            Way::Asking(_) => {}
        }
    }

    /// Hands over all answers that are there, and what counts as lost by now.
    pub(super) fn collect(&mut self, now: MonotonicTime, give: &mut dyn FnMut(Input)) {
        self.answered.drain();
        for (index, one) in self.all.iter_mut().enumerate() {
            let name = ReflectorId::new(u32::try_from(index).unwrap_or(u32::MAX));
            let ended = match &mut one.way {
                Way::Echo(echo) => {
                    echo.collect(name, now, give);
                    false
                }
                Way::Server(server) => server.collect(name, now, give),
                Way::None { .. } => false,
                Way::Asking(answer) => match answer.try_recv() {
                    Ok(Some(server)) => {
                        one.way = Way::Server(Box::new(server));
                        false
                    }
                    Ok(None) | Err(mpsc::TryRecvError::Disconnected) => true,
                    Err(mpsc::TryRecvError::Empty) => false,
                },
            };
            if ended {
                give(Input::Lost { reflector: name });
                one.way = Way::None { again: Some(now + AGAIN) };
            }
        }
    }
}

/// How many are probed, to divide by.
fn count(probed: &[usize]) -> u32 {
    u32::try_from(probed.len()).unwrap_or(1).max(1)
}

impl Reflector {
    fn open(&mut self, interval: Duration) -> Result<(), ShapeError> {
        // Later sockets count on, so that an answer to an earlier one is never newer.
        self.sent += 1 << 20;
        self.way = match &self.address {
            ReflectorAddress::Echo(address) => {
                let options = EchoOptions { device: Some(self.device.clone()), ..EchoOptions::default() };
                let socket = EchoSocket::open(SocketAddr::new(*address, 0), &options)?;
                Way::Echo(Box::new(Echo { socket, waiting: VecDeque::new(), base: self.sent }))
            }
            ReflectorAddress::Server(host, port) => {
                Way::Server(Box::new(Server::open((host, *port), self.sent, interval, &self.answered)?))
            }
        };
        Ok(())
    }

    /// The same without waiting for anybody.
    fn open_beside(&mut self, interval: Duration) -> Result<(), ShapeError> {
        let ReflectorAddress::Server(host, port) = &self.address else { return self.open(interval) };
        self.sent += 1 << 20;
        let (host, port, base, answered) = (host.clone(), *port, self.sent, Arc::clone(&self.answered));
        let (tell, answer) = mpsc::channel();
        let ask = move || {
            // Whoever asked may not wait any longer.
            let _ = tell.send(Server::open((&host, port), base, interval, &answered).ok());
        };
        let thread = std::thread::Builder::new().name("reflector".to_owned()).spawn(ask);
        thread.map_err(|cause| {
            ShapeError::unable(format!("starting a thread: {}", linerate_sys::describe_os_error(&cause)))
        })?;
        self.way = Way::Asking(answer);
        Ok(())
    }
}

impl Echo {
    fn collect(&mut self, name: ReflectorId, now: MonotonicTime, give: &mut dyn FnMut(Input)) {
        // What fails here (the link went down) shows as silence.
        while let Ok(Some(event)) = self.socket.next_event(Some(Duration::ZERO)) {
            match event {
                EchoEvent::Reply(reply) => {
                    let sequence = self.base + reply.number;
                    self.waiting.retain(|(number, _)| *number != sequence);
                    if let Some(round_trip) = reply.round_trip() {
                        let sample = Sample { reflector: name, sequence, delay: Delay::RoundTrip(round_trip) };
                        give(Input::Sample(sample));
                    }
                }
                EchoEvent::PathError { number, .. } => {
                    let sequence = number.map(|number| self.base + number);
                    self.waiting.retain(|(number, _)| Some(*number) != sequence);
                    give(Input::Lost { reflector: name });
                }
            }
        }
        while self.waiting.front().is_some_and(|(_, sent)| now.since(*sent) > LATE) {
            self.waiting.pop_front();
            give(Input::Lost { reflector: name });
        }
    }
}

impl Server {
    fn open(
        (host, port): (&str, Port),
        base: u64,
        interval: Duration,
        answered: &Arc<Waker>,
    ) -> Result<Self, ShapeError> {
        let mut target = Target::new(host.to_owned(), port);
        target.connect_timeout = Some(CONNECTING);
        let failed = |error| ShapeError::unable(format!("asking {host} for probes: {error}"));
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

    /// Begins another series when this one has grown long; answers that are still on their way are given up.
    fn keep_short(&mut self, interval: Duration) {
        let sent = self.prober.as_ref().map_or(LONGEST_SERIES, |prober| prober.sent().get());
        if sent < LONGEST_SERIES {
            return;
        }
        self.base += sent + 1;
        // One after the other: the old one's thread ends first.
        self.prober = None;
        self.prober = self.session.probe(ProbeOrder::every(interval)).ok();
        if let Some(prober) = &self.prober {
            prober.wake_on_answers(Arc::clone(&self.answered));
        }
        self.done = 0;
    }

    /// Whether the session is over.
    fn collect(&mut self, name: ReflectorId, now: MonotonicTime, give: &mut dyn FnMut(Input)) -> bool {
        let results = self.prober.as_ref().map(|prober| prober.since(self.done)).unwrap_or_default();
        let mut is_whole = true;
        for result in results {
            match sample_of(&result) {
                Some(delay) => {
                    let sequence = self.base + u64::from(result.sequence);
                    give(Input::Sample(Sample { reflector: name, sequence, delay }));
                }
                None if now.since(result.sent.monotonic) > LATE => give(Input::Lost { reflector: name }),
                None => is_whole = false,
            }
            // Answers behind a gap are handed over again, and left out by their numbers.
            self.done += usize::from(is_whole);
        }
        !self.session.is_alive()
    }
}

/// The one-way delays of an answer. The clocks' difference is in both, with opposite signs; their sum is the round trip of
/// the monotonic clock, also when somebody sets a clock meanwhile.
fn sample_of(result: &ProbeResult) -> Option<Delay> {
    let answer = result.answer?;
    let Some(received) = answer.far_received else { return Some(Delay::RoundTrip(answer.round_trip)) };
    let up = between(result.sent.wall, received);
    let whole = i64::try_from(answer.round_trip.as_nanos()).unwrap_or(i64::MAX);
    Some(Delay::OneWay { up, down: Signed::from_nanos(whole.saturating_sub(up.as_nanos())) })
}

fn between(from: WallTime, to: WallTime) -> Signed<Duration> {
    let nanoseconds = |time: WallTime| i128::try_from(time.since_unix_epoch().as_nanos()).unwrap_or(i128::MAX);
    let difference = nanoseconds(to).saturating_sub(nanoseconds(from));
    Signed::from_nanos(i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX }))
}

#[cfg(test)]
mod tests {
    use linerate_engine::probe::ProbeAnswer;
    use linerate_sys::time_stamp::{StampSource, TimeStamp};

    use super::*;

    fn stamp(wall: u64, monotonic: u64) -> TimeStamp {
        let wall = WallTime::from_unix(Duration::from_millis(wall));
        let monotonic = MonotonicTime::from_nanos(0) + Duration::from_millis(monotonic);
        TimeStamp { wall, monotonic, source: StampSource::Program }
    }

    /// Sent at 1000 ms, 30 ms up, 20 ms down, by a far clock that is right; this host's is set by so many milliseconds while
    /// the answer is on its way.
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
    fn a_clock_that_is_set_meanwhile_makes_nothing_late() {
        let expected = Delay::OneWay { up: Signed::from_nanos(30_000_000), down: Signed::from_nanos(20_000_000) };
        for ahead in [0, 1_000] {
            assert_eq!(sample_of(&answered(ahead)), Some(expected));
        }
    }

    #[test]
    fn whoever_says_no_times_tells_the_round_trip() {
        let mut result = answered(0);
        result.answer.as_mut().expect("there is one").far_received = None;
        assert_eq!(sample_of(&result), Some(Delay::RoundTrip(Duration::from_millis(50))));
        result.answer = None;
        assert_eq!(sample_of(&result), None);
    }
}
