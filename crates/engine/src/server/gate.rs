//! Turns of sessions that open UDP streams.
//!
//! A stock client's first UDP datagram carries only four fixed bytes, so only its source identifies its session.
//! Sessions of different hosts are distinguished by their addresses and never wait. Sessions of one host take turns: a
//! client is asked to open its streams (0A) when the earlier ones have theirs, or have let their turn expire. Stock
//! clients wait for that byte without limit. An expired session loses its turn, but remains valid: later datagrams
//! still reach it, unless a later session of the same host then has the turn.
//!
//! A client behind a translator with several addresses may send its datagrams from another one than its control
//! connection. So a request from an unknown address may be meant for the only session; but it may also be unrelated. It
//! has to wait until that session's own address has been silent for a while: a client that sends from there does so at
//! once. It is never accepted where this host is to send: a forged source would receive the data.

use core::time::Duration;
use std::net::IpAddr;

use linerate_units::{ByteCount, MonotonicTime, StreamCount};

/// Number of a session.
pub(crate) type SessionNumber = u64;

/// Duration of a turn in round trips: 0A to the client, its datagram back, and as much again for a busy host.
const TURN_ROUND_TRIPS: u32 = 4;
/// Shortest turn: schedulers need it even where the network does not.
const MIN_TURN: Duration = Duration::from_millis(50);
/// Turn of the first session of a host, which may be busy; of each further one half, while earlier ones stay silent.
const PATIENT_TURN: Duration = Duration::from_millis(800);
/// Longest turn: other clients of that host wait meanwhile.
const MAX_TURN: Duration = Duration::from_secs(2);
/// Time, or a turn if that is longer, for which a session's own address precedes unknown ones.
const UNKNOWN_ADDRESS_DELAY: Duration = Duration::from_secs(1);

/// Sessions that open UDP streams or wait to.
#[derive(Debug, Default)]
pub(crate) struct UdpTurns {
    /// In order of request.
    sessions: Vec<WaitingSession>,
}

/// UDP streams to open for a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UdpOpening {
    /// Number of the session.
    pub(crate) session: SessionNumber,
    /// Address of its control connection.
    pub(crate) client: IpAddr,
    /// Number of streams.
    pub(crate) streams: StreamCount,
    /// Size of a datagram.
    pub(crate) block_size: ByteCount,
    /// True when this host sends on some of them. Such streams go only to the client's own address: otherwise a forged
    /// request would direct the test at a third party.
    pub(crate) sends: bool,
    /// Round-trip time of its control connection.
    pub(crate) round_trip: Option<Duration>,
}

#[derive(Debug)]
struct WaitingSession {
    opening: UdpOpening,
    /// Another address from which it has opened a stream.
    elsewhere: Option<IpAddr>,
    turn: Duration,
    remaining: StreamCount,
    /// End of the turn; `None` before it has begun.
    until: Option<MonotonicTime>,
}

/// Owner of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestClaim {
    /// This session, which has one stream more.
    Session(SessionNumber),
    /// Possibly the only session: ask again at that time.
    NotBefore(MonotonicTime),
    /// No session.
    NoSession,
}

impl UdpTurns {
    /// Requests a turn for a session.
    pub(crate) fn request(&mut self, opening: UdpOpening) {
        let turn = (opening.round_trip.unwrap_or_default() * TURN_ROUND_TRIPS).clamp(MIN_TURN, MAX_TURN);
        self.sessions.push(WaitingSession { remaining: opening.streams, opening, elsewhere: None, turn, until: None });
    }

    /// Sessions whose turn begins now.
    pub(crate) fn advance(&mut self, now: MonotonicTime) -> Vec<SessionNumber> {
        let mut begun = Vec::new();
        for index in 0..self.sessions.len() {
            let client = self.sessions[index].opening.client;
            let of_client = || self.sessions.iter().filter(|other| other.opening.client == client);
            if self.sessions[index].until.is_some() || of_client().any(|other| other.is_in_turn(now)) {
                continue;
            }
            let silent = u32::try_from(of_client().filter(|other| other.until.is_some()).count()).unwrap_or(u32::MAX);
            let patience = PATIENT_TURN / 2_u32.checked_pow(silent).unwrap_or(u32::MAX);
            let waiting = &mut self.sessions[index];
            waiting.turn = waiting.turn.max(patience);
            waiting.until = Some(now + waiting.turn);
            begun.push(waiting.opening.session);
        }
        begun
    }

    /// Assigns a request from `source` to a session and counts it: the one whose turn it is, else the one with the
    /// latest turn. `size` is that of a repeated request, which has the size of the session's blocks.
    pub(crate) fn claim(&mut self, source: IpAddr, size: Option<ByteCount>, now: MonotonicTime) -> RequestClaim {
        let fits = |waiting: &WaitingSession| size.is_none_or(|size| size == waiting.opening.block_size);
        let own = |waiting: &WaitingSession| waiting.sends_from(source) && fits(waiting);
        let position = self
            .latest(|waiting| own(waiting) && waiting.is_in_turn(now))
            .or_else(|| self.latest(|waiting| own(waiting) && waiting.until.is_some()));
        if let Some(position) = position {
            return RequestClaim::Session(self.assign_stream(position, now));
        }
        let known = self.sessions.iter().any(|waiting| waiting.sends_from(source));
        let may_be_meant = |waiting: &WaitingSession| !known && !waiting.opening.sends && fits(waiting);
        let Some(position) = self.only_one().filter(|position| may_be_meant(&self.sessions[*position])) else {
            return RequestClaim::NoSession;
        };
        let waiting = &mut self.sessions[position];
        if let Some(time) = waiting.unknown_addresses_from().filter(|time| now < *time) {
            return RequestClaim::NotBefore(time);
        }
        waiting.elsewhere = Some(source);
        RequestClaim::Session(self.assign_stream(position, now))
    }

    /// Assigns a stream to the session at `position`.
    fn assign_stream(&mut self, position: usize, now: MonotonicTime) -> SessionNumber {
        let waiting = &mut self.sessions[position];
        waiting.remaining = waiting.remaining - StreamCount::new(1);
        waiting.until = Some(now + waiting.turn);
        let session = waiting.opening.session;
        if waiting.remaining.is_zero() {
            self.sessions.remove(position);
        }
        session
    }

    /// Removes a session that is over, or whose streams arrived otherwise.
    pub(crate) fn leave(&mut self, session: SessionNumber) {
        self.sessions.retain(|waiting| waiting.opening.session != session);
    }

    /// True while a session waits or opens streams: then a socket must receive requests.
    pub(crate) fn is_needed(&self) -> bool {
        !self.sessions.is_empty()
    }

    /// Time of the next useful call of [`UdpTurns::advance`] after `now`; `None` if only other calls can change anything.
    pub(crate) fn next_deadline(&self, now: MonotonicTime) -> Option<MonotonicTime> {
        if self.sessions.iter().all(|waiting| waiting.until.is_some()) {
            return None;
        }
        self.sessions.iter().filter_map(|waiting| waiting.until).filter(|until| *until > now).min()
    }

    fn latest(&self, matches: impl Fn(&WaitingSession) -> bool) -> Option<usize> {
        let candidates = self.sessions.iter().enumerate().filter(|(_, waiting)| matches(waiting));
        candidates.max_by_key(|(_, waiting)| waiting.until).map(|(position, _)| position)
    }

    fn only_one(&self) -> Option<usize> {
        let mut begun = self.sessions.iter().enumerate().filter(|(_, waiting)| waiting.until.is_some());
        let first = begun.next()?.0;
        begun.next().is_none().then_some(first)
    }
}

impl WaitingSession {
    fn is_in_turn(&self, now: MonotonicTime) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    fn sends_from(&self, source: IpAddr) -> bool {
        self.opening.client == source || self.elsewhere == Some(source)
    }

    /// Time from which a request from an unknown address may be meant for this session; `None` before its turn.
    fn unknown_addresses_from(&self) -> Option<MonotonicTime> {
        // The end of a turn moves with each stream, so it shows when the client's last request arrived.
        Some(self.until? + UNKNOWN_ADDRESS_DELAY.saturating_sub(self.turn))
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

    fn gate(requests: &[(SessionNumber, IpAddr, u64)]) -> UdpTurns {
        let mut gate = UdpTurns::default();
        for (session, client, streams) in requests {
            gate.request(opening(*session, *client, *streams));
        }
        gate
    }

    #[test]
    fn different_hosts_do_not_wait_for_each_other() {
        let mut gate = gate(&[(1, A, 1), (2, B, 1)]);
        assert_eq!(gate.advance(at(0)), [1, 2]);
        assert_eq!(gate.claim(B, None, at(1)), RequestClaim::Session(2));
        assert_eq!(gate.claim(A, None, at(1)), RequestClaim::Session(1));
        assert!(!gate.is_needed());
    }

    #[test]
    fn sessions_of_one_host_take_turns() {
        let mut gate = gate(&[(1, A, 2), (2, A, 1)]);
        assert_eq!(gate.advance(at(0)), [1]);
        assert_eq!(gate.claim(A, None, at(1)), RequestClaim::Session(1));
        assert_eq!(gate.advance(at(2)), [] as [SessionNumber; 0]);
        assert_eq!(gate.claim(A, None, at(3)), RequestClaim::Session(1));
        assert_eq!(gate.advance(at(3)), [2]);
        assert_eq!(gate.claim(A, None, at(4)), RequestClaim::Session(2));
    }

    #[test]
    fn a_silent_session_delays_the_next_one_by_one_turn_only() {
        let mut gate = gate(&[(1, A, 1), (2, A, 1)]);
        assert_eq!(gate.advance(at(0)), [1]);
        assert_eq!(gate.next_deadline(at(0)), Some(at(800)));
        assert_eq!(gate.advance(at(800)), [2]);
        assert_eq!(gate.claim(A, None, at(801)), RequestClaim::Session(2), "the session in turn comes first");
        assert_eq!(gate.claim(A, None, at(9000)), RequestClaim::Session(1), "the late one is still served");
    }

    /// The first clients of a busy host have time; those after many silent ones do not wait for all of them as long.
    #[test]
    fn silent_sessions_lose_their_time() {
        let sessions: Vec<(SessionNumber, IpAddr, u64)> = (0..100).map(|number| (number, A, 1)).collect();
        let mut gate = gate(&sessions);
        let mut now = at(0);
        for (session, _, _) in &sessions {
            assert_eq!(gate.advance(now), [*session]);
            now = gate.next_deadline(now).unwrap_or(now);
        }
        let took = now.since(at(0));
        assert!(took <= 2 * PATIENT_TURN + 100 * MIN_TURN, "{took:?}");
    }

    #[test]
    fn a_far_client_has_more_time() {
        let mut gate = UdpTurns::default();
        gate.request(UdpOpening { round_trip: Some(Duration::from_millis(300)), ..opening(1, A, 1) });
        gate.request(UdpOpening { round_trip: Some(Duration::from_secs(60)), ..opening(2, A, 1) });
        gate.advance(at(0));
        assert_eq!(gate.next_deadline(at(0)), Some(at(1200)));
        assert_eq!(gate.advance(at(1200)), [2]);
        assert_eq!(gate.claim(A, None, at(3199)), RequestClaim::Session(2));
    }

    #[test]
    fn expired_turns_cause_no_wake_up() {
        let mut gate = gate(&[(1, A, 1), (2, A, 1), (3, A, 1)]);
        gate.advance(at(0));
        gate.advance(at(800));
        assert_eq!(gate.next_deadline(at(900)), Some(at(1200)));
    }

    #[test]
    fn an_unknown_address_gets_nothing_while_its_session_is_ambiguous() {
        let mut gate = gate(&[(1, A, 1), (2, B, 1)]);
        gate.advance(at(0));
        assert_eq!(gate.claim(C, None, at(5000)), RequestClaim::NoSession);
        gate.leave(2);
        assert_eq!(gate.claim(C, None, at(5000)), RequestClaim::Session(1));
        assert_eq!(gate.claim(C, None, at(5000)), RequestClaim::NoSession);
    }

    #[test]
    fn an_unknown_address_comes_after_the_client_itself() {
        let mut gate = gate(&[(1, A, 3)]);
        assert_eq!(gate.claim(C, None, at(0)), RequestClaim::NoSession, "no turn has begun");
        gate.advance(at(0));
        assert_eq!(gate.claim(C, None, at(999)), RequestClaim::NotBefore(at(1000)));
        assert_eq!(gate.claim(A, None, at(999)), RequestClaim::Session(1));
        assert_eq!(gate.claim(C, None, at(1000)), RequestClaim::NotBefore(at(1999)));
        assert_eq!(gate.claim(C, None, at(1999)), RequestClaim::Session(1));
        assert_eq!(gate.claim(C, None, at(2000)), RequestClaim::Session(1), "now it is known");
        assert!(!gate.is_needed());
    }

    #[test]
    fn an_unknown_address_is_never_sent_anything() {
        let mut gate = UdpTurns::default();
        gate.request(UdpOpening { sends: true, ..opening(1, A, 2) });
        gate.advance(at(0));
        assert_eq!(gate.claim(C, None, at(60_000)), RequestClaim::NoSession);
        assert_eq!(gate.claim(A, None, at(60_000)), RequestClaim::Session(1));
    }

    #[test]
    fn a_repeated_request_has_the_size_of_the_blocks() {
        let mut gate = gate(&[(1, A, 2)]);
        gate.advance(at(0));
        for source in [A, C] {
            assert_eq!(gate.claim(source, Some(ByteCount::new(1449)), at(5000)), RequestClaim::NoSession);
        }
        assert_eq!(gate.claim(A, Some(BLOCK), at(5000)), RequestClaim::Session(1));
    }
}
