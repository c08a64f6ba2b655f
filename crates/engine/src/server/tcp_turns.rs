//! Turns of sessions that open TCP streams with a window.
//!
//! A window (`-w`) decides the handshake: the window, its scale and so the segments of the sender follow from the
//! listener's buffers. Connections with a window therefore arrive on a listener of their own, which gets them by the
//! client's address. So while a session with a window opens its streams, no other session of that client opens any, and
//! sessions of other clients do only with the same window. Sessions without a window wait for nothing else.

use core::time::Duration;
use std::net::IpAddr;

use linerate_sys::net::MAX_STEERED_CLIENTS;
use linerate_units::{ByteCount, MonotonicTime, StreamCount};

use super::gate::SessionNumber;

/// Duration of a turn in round trips, to which one for each stream comes.
const TURN_ROUND_TRIPS: u64 = 4;
/// Shortest turn: a client on a busy host needs time to connect.
const MIN_TURN: Duration = Duration::from_millis(500);
/// Longest turn: others wait meanwhile.
const MAX_TURN: Duration = Duration::from_secs(4);
/// Longest wait for a turn. Then the window is set after the handshake: a client that lets its turns expire delays the
/// others no longer.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// TCP streams to open for a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpOpening {
    /// Number of the session.
    pub(crate) session: SessionNumber,
    /// Address of its control connection.
    pub(crate) client: IpAddr,
    /// Number of streams.
    pub(crate) streams: StreamCount,
    /// Requested size of the buffers.
    pub(crate) window: Option<ByteCount>,
    /// Round-trip time of its control connection.
    pub(crate) round_trip: Option<Duration>,
}

/// Clients whose connections have a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WindowSteering {
    pub(crate) window: ByteCount,
    pub(crate) clients: Vec<IpAddr>,
}

/// Sessions that open TCP streams or wait to.
#[derive(Debug, Default)]
pub(crate) struct TcpTurns {
    /// In order of request.
    sessions: Vec<OpeningSession>,
}

#[derive(Debug)]
struct OpeningSession {
    opening: TcpOpening,
    requested: MonotonicTime,
    /// End of the turn; `None` before it has begun.
    until: Option<MonotonicTime>,
}

impl TcpTurns {
    /// Requests a turn for a session.
    pub(crate) fn request(&mut self, opening: TcpOpening, now: MonotonicTime) {
        self.sessions.push(OpeningSession { opening, requested: now, until: None });
    }

    /// Sessions whose turn begins now.
    pub(crate) fn advance(&mut self, now: MonotonicTime) -> Vec<SessionNumber> {
        let mut begun = Vec::new();
        for index in 0..self.sessions.len() {
            if self.sessions[index].until.is_none() && self.begin_at(index, now) {
                begun.push(self.sessions[index].opening.session);
            }
        }
        begun
    }

    /// Begins a session's turn, unless it has to wait.
    pub(crate) fn begin(&mut self, session: SessionNumber, now: MonotonicTime) -> bool {
        let index = self.sessions.iter().position(|waiting| waiting.opening.session == session);
        index.is_some_and(|index| self.begin_at(index, now))
    }

    fn begin_at(&mut self, index: usize, now: MonotonicTime) -> bool {
        if now.since(self.sessions[index].requested) >= MAX_WAIT {
            self.sessions[index].opening.window = None;
        }
        let begins = !self.has_to_wait(index, now);
        if begins {
            let waiting = &mut self.sessions[index];
            waiting.until = Some(now + waiting.opening.turn());
        }
        begins
    }

    fn has_to_wait(&self, index: usize, now: MonotonicTime) -> bool {
        let own = &self.sessions[index].opening;
        let is_before = |(position, other): (usize, &OpeningSession)| match other.until {
            Some(until) => now < until,
            None => position < index,
        };
        let others =
            || self.sessions.iter().enumerate().filter(|other| is_before(*other)).map(|(_, other)| &other.opening);
        others().any(|other| own.excludes(other))
            || own.window.is_some() && others().filter(|other| other.window.is_some()).count() >= MAX_STEERED_CLIENTS
    }

    /// Clients that get the listener for windows now.
    pub(crate) fn steering(&self, now: MonotonicTime) -> Option<WindowSteering> {
        let in_turn = self.sessions.iter().filter(|session| session.until.is_some_and(|until| now < until));
        let windows = in_turn.filter_map(|session| Some((session.opening.window?, session.opening.client)));
        let window = windows.clone().next()?.0;
        Some(WindowSteering { window, clients: windows.map(|(_, client)| client).collect() })
    }

    /// Removes a session that has its streams, or is over.
    pub(crate) fn leave(&mut self, session: SessionNumber) {
        self.sessions.retain(|opening| opening.opening.session != session);
    }

    /// Time of the next useful call of [`TcpTurns::advance`] after `now`; `None` if only other calls can change anything.
    pub(crate) fn next_deadline(&self, now: MonotonicTime) -> Option<MonotonicTime> {
        let matters = |session: &&OpeningSession| session.until.is_none() || session.opening.window.is_some();
        if !self.sessions.iter().any(|session| matters(&session)) {
            return None;
        }
        let end = |session: &OpeningSession| session.until.unwrap_or(session.requested + MAX_WAIT);
        self.sessions.iter().map(end).filter(|end| *end > now).min()
    }
}

impl TcpOpening {
    fn turn(&self) -> Duration {
        let round_trips = u32::try_from(TURN_ROUND_TRIPS + self.streams.get()).unwrap_or(u32::MAX);
        self.round_trip.unwrap_or_default().saturating_mul(round_trips).clamp(MIN_TURN, MAX_TURN)
    }

    /// True when both must not open streams at the same time.
    fn excludes(&self, other: &Self) -> bool {
        match (self.window, other.window) {
            (None, None) => false,
            (Some(_), None) | (None, Some(_)) => self.client == other.client,
            (Some(own), Some(other)) => own != other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const B: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));
    const SMALL: Option<ByteCount> = Some(ByteCount::from_kibibytes(5));
    const LARGE: Option<ByteCount> = Some(ByteCount::from_kibibytes(64));
    const NONE: [SessionNumber; 0] = [];

    fn at(milliseconds: u64) -> MonotonicTime {
        MonotonicTime::from_nanos(1_000_000_000 + milliseconds * 1_000_000)
    }

    fn turns(requests: &[(SessionNumber, IpAddr, Option<ByteCount>)]) -> TcpTurns {
        let mut turns = TcpTurns::default();
        for (session, client, window) in requests {
            let opening = TcpOpening {
                session: *session,
                client: *client,
                streams: StreamCount::new(1),
                window: *window,
                round_trip: None,
            };
            turns.request(opening, at(0));
        }
        turns
    }

    fn steering(window: Option<ByteCount>, clients: &[IpAddr]) -> Option<WindowSteering> {
        Some(WindowSteering { window: window?, clients: clients.to_vec() })
    }

    #[test]
    fn sessions_without_a_window_never_wait() {
        let mut turns = turns(&[(1, A, None), (2, A, None), (3, B, None)]);
        assert_eq!(turns.advance(at(0)), [1, 2, 3]);
        assert_eq!(turns.steering(at(0)), None);
    }

    #[test]
    fn a_window_is_for_one_session_of_a_client_at_a_time() {
        let mut turns = turns(&[(1, A, SMALL), (2, A, None), (3, B, None)]);
        assert_eq!(turns.advance(at(0)), [1, 3], "the other client does not wait");
        assert_eq!(turns.steering(at(0)), steering(SMALL, &[A]));
        turns.leave(1);
        assert_eq!(turns.advance(at(1)), [2]);
        assert_eq!(turns.steering(at(1)), None);
    }

    #[test]
    fn a_window_waits_for_streams_of_its_client_that_are_being_opened() {
        let mut turns = turns(&[(1, A, None), (2, A, SMALL), (3, A, None)]);
        assert_eq!(turns.advance(at(0)), [1], "a later one does not overtake");
        turns.leave(1);
        assert_eq!(turns.advance(at(1)), [2]);
        turns.leave(2);
        assert_eq!(turns.advance(at(2)), [3]);
    }

    #[test]
    fn equal_windows_share_the_listener_and_others_wait() {
        let mut turns = turns(&[(1, A, SMALL), (2, B, SMALL), (3, B, LARGE)]);
        assert_eq!(turns.advance(at(0)), [1, 2]);
        assert_eq!(turns.steering(at(0)), steering(SMALL, &[A, B]));
        turns.leave(1);
        assert_eq!(turns.advance(at(1)), NONE);
        turns.leave(2);
        assert_eq!(turns.advance(at(2)), [3]);
        assert_eq!(turns.steering(at(2)), steering(LARGE, &[B]));
    }

    #[test]
    fn a_client_that_opens_nothing_loses_its_turn() {
        let mut turns = turns(&[(1, A, SMALL), (2, A, None)]);
        assert_eq!(turns.advance(at(0)), [1]);
        assert_eq!(turns.next_deadline(at(0)), Some(at(500)));
        assert_eq!(turns.advance(at(499)), NONE);
        assert_eq!(turns.advance(at(500)), [2]);
        assert_eq!(turns.steering(at(500)), None);
    }

    #[test]
    fn many_silent_clients_delay_a_window_for_five_seconds_only() {
        let silent = |number: u8| (u64::from(number), A, Some(ByteCount::new(u64::from(number) * 4096)));
        let mut requests: Vec<_> = (1..=100).map(silent).collect();
        requests.push((101, B, SMALL));
        let mut turns = turns(&requests);
        let begun: Vec<SessionNumber> = (0..=50).flat_map(|step| turns.advance(at(step * 100))).collect();
        assert_eq!(begun.len(), 101);
        assert_eq!(turns.next_deadline(at(5001)), Some(at(5500)));
    }

    #[test]
    fn a_far_client_with_many_streams_has_more_time() {
        let round_trip = Some(Duration::from_millis(100));
        let opening = TcpOpening { session: 1, client: A, streams: StreamCount::new(8), window: SMALL, round_trip };
        assert_eq!(opening.turn(), Duration::from_millis(1200));
        assert_eq!(TcpOpening { streams: StreamCount::new(128), ..opening }.turn(), MAX_TURN);
    }

    #[test]
    fn the_listener_gets_no_more_clients_than_it_can_tell_apart() {
        let client = |number: u8| (u64::from(number), IpAddr::from([10, 0, 0, number]), SMALL);
        let requests: Vec<_> = (1..=70).map(client).collect();
        let mut turns = turns(&requests);
        assert_eq!(turns.advance(at(0)).len(), MAX_STEERED_CLIENTS);
    }
}
