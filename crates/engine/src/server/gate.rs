//! Whose turn it is to open UDP streams.
//!
//! A stock client's first UDP datagram carries nothing but four fixed bytes, so only its source tells to which session
//! it belongs. Sessions of different hosts are told apart by their addresses and never wait. Sessions of one host take
//! turns: a client is told to open its streams (0A) when those before it have theirs, or have let their time pass. Stock
//! clients wait for that byte without limit. A session that lets its time pass loses its turn, not its life: what it
//! sends later still finds it, unless a later session of the same host is then in turn.
//!
//! A client behind a translator with several addresses may send its datagrams from another one than its control
//! connection. So a request from an unknown address may be meant for the only session there is; but it may also be
//! anybody's. It has to wait until that session's own address has been silent for a while: a client that sends from
//! there does so at once. Where this host is to send, it never does: it would send to whoever was named.

use core::time::Duration;
use std::net::IpAddr;

use linerate_units::{ByteCount, MonotonicTime, StreamCount};

/// A session's number.
pub(crate) type SessionNumber = u64;

/// Times a round trip that a turn lasts: 0A to the client, its datagram back, and as much again for a busy host.
const ROUND_TRIPS: u32 = 4;
/// A turn is never shorter than this: schedulers need it even where the network does not.
const SHORTEST_TURN: Duration = Duration::from_millis(50);
/// A turn is never longer: nobody else of that host is served meanwhile.
const LONGEST_TURN: Duration = Duration::from_secs(2);
/// So long, or a turn if that is longer, a session's own address goes before unknown ones.
const STRANGERS_WAIT: Duration = Duration::from_secs(1);

/// The sessions that open UDP streams or wait to.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// In order of request.
    sessions: Vec<Waiting>,
}

/// What a session is to open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UdpOpening {
    /// Which session.
    pub(crate) session: SessionNumber,
    /// Address of its control connection.
    pub(crate) client: IpAddr,
    /// How many streams.
    pub(crate) streams: StreamCount,
    /// Size of a datagram.
    pub(crate) block_size: ByteCount,
    /// Whether this host sends on some of them. Then they go to nowhere but the client's own address: else a forged
    /// request would turn the test against somebody else.
    pub(crate) sends: bool,
    /// Round-trip time of its control connection.
    pub(crate) round_trip: Option<Duration>,
}

#[derive(Debug)]
struct Waiting {
    opening: UdpOpening,
    /// Another address from which it has opened a stream.
    elsewhere: Option<IpAddr>,
    turn: Duration,
    remaining: StreamCount,
    /// When the turn ends; `None` before it has begun.
    until: Option<MonotonicTime>,
}

/// Whose a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// This session's: it has one stream more.
    Session(SessionNumber),
    /// Perhaps the only session's: to be asked again then.
    NotBefore(MonotonicTime),
    /// Nobody's.
    Nobody,
}

impl Gate {
    /// A session asks for its turn.
    pub(crate) fn request(&mut self, opening: UdpOpening) {
        let turn = (opening.round_trip.unwrap_or_default() * ROUND_TRIPS).clamp(SHORTEST_TURN, LONGEST_TURN);
        self.sessions.push(Waiting { remaining: opening.streams, opening, elsewhere: None, turn, until: None });
    }

    /// The sessions whose turn begins now.
    pub(crate) fn advance(&mut self, now: MonotonicTime) -> Vec<SessionNumber> {
        let mut begun = Vec::new();
        for index in 0..self.sessions.len() {
            let client = self.sessions[index].opening.client;
            let taken = self.sessions.iter().any(|other| other.opening.client == client && other.in_turn(now));
            let waiting = &mut self.sessions[index];
            if waiting.until.is_none() && !taken {
                waiting.until = Some(now + waiting.turn);
                begun.push(waiting.opening.session);
            }
        }
        begun
    }

    /// To which session a request that came from `source` belongs, and then counts it: the one in turn, else the one
    /// whose turn was last. `size` is that of a repeated request, which has the size of the session's blocks.
    pub(crate) fn claim(&mut self, source: IpAddr, size: Option<ByteCount>, now: MonotonicTime) -> Claim {
        let fits = |waiting: &Waiting| size.is_none_or(|size| size == waiting.opening.block_size);
        let own = |waiting: &Waiting| waiting.sends_from(source) && fits(waiting);
        let position = self
            .latest(|waiting| own(waiting) && waiting.in_turn(now))
            .or_else(|| self.latest(|waiting| own(waiting) && waiting.until.is_some()));
        if let Some(position) = position {
            return Claim::Session(self.take_one(position, now));
        }
        let known = self.sessions.iter().any(|waiting| waiting.sends_from(source));
        let may_be_meant = |waiting: &Waiting| !known && !waiting.opening.sends && fits(waiting);
        let Some(position) = self.only_one().filter(|position| may_be_meant(&self.sessions[*position])) else {
            return Claim::Nobody;
        };
        let waiting = &mut self.sessions[position];
        if let Some(time) = waiting.strangers_from().filter(|time| now < *time) {
            return Claim::NotBefore(time);
        }
        waiting.elsewhere = Some(source);
        Claim::Session(self.take_one(position, now))
    }

    /// Gives a stream to the session at `position`.
    fn take_one(&mut self, position: usize, now: MonotonicTime) -> SessionNumber {
        let waiting = &mut self.sessions[position];
        waiting.remaining = waiting.remaining - StreamCount::new(1);
        waiting.until = Some(now + waiting.turn);
        let session = waiting.opening.session;
        if waiting.remaining.is_zero() {
            self.sessions.remove(position);
        }
        session
    }

    /// A session is over, or its streams have come another way.
    pub(crate) fn leave(&mut self, session: SessionNumber) {
        self.sessions.retain(|waiting| waiting.opening.session != session);
    }

    /// Whether anybody waits or opens streams: then a socket must be there to receive requests.
    pub(crate) fn is_needed(&self) -> bool {
        !self.sessions.is_empty()
    }

    /// When [`Gate::advance`] may have something new to say after `now`; `None` if only other calls can change anything.
    pub(crate) fn next_deadline(&self, now: MonotonicTime) -> Option<MonotonicTime> {
        if self.sessions.iter().all(|waiting| waiting.until.is_some()) {
            return None;
        }
        self.sessions.iter().filter_map(|waiting| waiting.until).filter(|until| *until > now).min()
    }

    fn latest(&self, matches: impl Fn(&Waiting) -> bool) -> Option<usize> {
        let candidates = self.sessions.iter().enumerate().filter(|(_, waiting)| matches(waiting));
        candidates.max_by_key(|(_, waiting)| waiting.until).map(|(position, _)| position)
    }

    fn only_one(&self) -> Option<usize> {
        let mut begun = self.sessions.iter().enumerate().filter(|(_, waiting)| waiting.until.is_some());
        let first = begun.next()?.0;
        begun.next().is_none().then_some(first)
    }
}

impl Waiting {
    fn in_turn(&self, now: MonotonicTime) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    fn sends_from(&self, source: IpAddr) -> bool {
        self.opening.client == source || self.elsewhere == Some(source)
    }

    /// From when on a request from an unknown address may be meant for this session; `None` before its turn.
    fn strangers_from(&self) -> Option<MonotonicTime> {
        // The end of a turn moves with each stream, so it tells when the client was heard last.
        Some(self.until? + STRANGERS_WAIT.saturating_sub(self.turn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const B: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));
    const C: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 3));
    const BLOCK: ByteCount = ByteCount::new(1448);

    fn at(milliseconds: u64) -> MonotonicTime {
        MonotonicTime::from_nanos(1_000_000_000 + milliseconds * 1_000_000)
    }

    fn opening(session: SessionNumber, client: IpAddr, streams: u64) -> UdpOpening {
        let streams = StreamCount::new(streams);
        UdpOpening { session, client, streams, block_size: BLOCK, sends: false, round_trip: None }
    }

    fn gate(requests: &[(SessionNumber, IpAddr, u64)]) -> Gate {
        let mut gate = Gate::default();
        for (session, client, streams) in requests {
            gate.request(opening(*session, *client, *streams));
        }
        gate
    }

    #[test]
    fn different_hosts_do_not_wait_for_each_other() {
        let mut gate = gate(&[(1, A, 1), (2, B, 1)]);
        assert_eq!(gate.advance(at(0)), [1, 2]);
        assert_eq!(gate.claim(B, None, at(1)), Claim::Session(2));
        assert_eq!(gate.claim(A, None, at(1)), Claim::Session(1));
        assert!(!gate.is_needed());
    }

    #[test]
    fn sessions_of_one_host_take_turns() {
        let mut gate = gate(&[(1, A, 2), (2, A, 1)]);
        assert_eq!(gate.advance(at(0)), [1]);
        assert_eq!(gate.claim(A, None, at(1)), Claim::Session(1));
        assert_eq!(gate.advance(at(2)), [] as [SessionNumber; 0]);
        assert_eq!(gate.claim(A, None, at(3)), Claim::Session(1));
        assert_eq!(gate.advance(at(3)), [2]);
        assert_eq!(gate.claim(A, None, at(4)), Claim::Session(2));
    }

    #[test]
    fn a_silent_session_holds_the_next_one_up_for_one_turn_only() {
        let mut gate = gate(&[(1, A, 1), (2, A, 1)]);
        assert_eq!(gate.advance(at(0)), [1]);
        assert_eq!(gate.next_deadline(at(0)), Some(at(50)));
        assert_eq!(gate.advance(at(50)), [2]);
        assert_eq!(gate.claim(A, None, at(51)), Claim::Session(2), "the session in turn comes first");
        assert_eq!(gate.claim(A, None, at(900)), Claim::Session(1), "the late one is still served");
    }

    #[test]
    fn a_far_client_has_more_time() {
        let mut gate = Gate::default();
        gate.request(UdpOpening { round_trip: Some(Duration::from_millis(300)), ..opening(1, A, 1) });
        gate.request(UdpOpening { round_trip: Some(Duration::from_secs(60)), ..opening(2, A, 1) });
        gate.advance(at(0));
        assert_eq!(gate.next_deadline(at(0)), Some(at(1200)));
        assert_eq!(gate.advance(at(1200)), [2]);
        assert_eq!(gate.claim(A, None, at(3199)), Claim::Session(2));
    }

    #[test]
    fn turns_that_are_over_are_nothing_to_wake_up_for() {
        let mut gate = gate(&[(1, A, 1), (2, A, 1), (3, A, 1)]);
        gate.advance(at(0));
        gate.advance(at(50));
        assert_eq!(gate.next_deadline(at(60)), Some(at(100)));
    }

    #[test]
    fn strangers_get_nothing_where_it_is_not_clear_whom_they_mean() {
        let mut gate = gate(&[(1, A, 1), (2, B, 1)]);
        gate.advance(at(0));
        assert_eq!(gate.claim(C, None, at(5000)), Claim::Nobody);
        gate.leave(2);
        assert_eq!(gate.claim(C, None, at(5000)), Claim::Session(1));
        assert_eq!(gate.claim(C, None, at(5000)), Claim::Nobody);
    }

    #[test]
    fn strangers_come_after_the_client_itself() {
        let mut gate = gate(&[(1, A, 3)]);
        assert_eq!(gate.claim(C, None, at(0)), Claim::Nobody, "no turn has begun");
        gate.advance(at(0));
        assert_eq!(gate.claim(C, None, at(999)), Claim::NotBefore(at(1000)));
        assert_eq!(gate.claim(A, None, at(999)), Claim::Session(1));
        assert_eq!(gate.claim(C, None, at(1000)), Claim::NotBefore(at(1999)));
        assert_eq!(gate.claim(C, None, at(1999)), Claim::Session(1));
        assert_eq!(gate.claim(C, None, at(2000)), Claim::Session(1), "now it is known");
        assert!(!gate.is_needed());
    }

    #[test]
    fn strangers_are_never_sent_anything() {
        let mut gate = Gate::default();
        gate.request(UdpOpening { sends: true, ..opening(1, A, 2) });
        gate.advance(at(0));
        assert_eq!(gate.claim(C, None, at(60_000)), Claim::Nobody);
        assert_eq!(gate.claim(A, None, at(60_000)), Claim::Session(1));
    }

    #[test]
    fn a_repeated_request_has_the_size_of_the_blocks() {
        let mut gate = gate(&[(1, A, 2)]);
        gate.advance(at(0));
        for source in [A, C] {
            assert_eq!(gate.claim(source, Some(ByteCount::new(1449)), at(5000)), Claim::Nobody);
        }
        assert_eq!(gate.claim(A, Some(BLOCK), at(5000)), Claim::Session(1));
    }
}
