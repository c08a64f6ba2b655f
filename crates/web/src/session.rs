//! One session: the traffic of one browser, its limits, and the record of its phases.

use core::time::Duration;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linerate_engine::server::{ServiceAccess, ServiceLease, ServiceRefusal, ServiceSession, TrafficShare};
use linerate_model::direction::Direction;
use linerate_sys::clock;
use linerate_units::{ByteCount, MonotonicTime, WallTime};

use crate::connection::Connection;
use crate::sampling::SessionRecord;

/// Time without a request or a transfer after which a session ends.
const MAX_IDLE: Duration = Duration::from_secs(30);

/// Longest life of a session.
const MAX_LIFE: Duration = Duration::from_secs(600);

/// Most transfers of one session at once.
pub(crate) const MAX_TRANSFERS: u32 = 16;

/// Memory of a transfer: the buffers of its connection in use.
const TRANSFER_MEMORY: ByteCount = ByteCount::from_kibibytes(192);

/// Memory of the record of a session.
const RECORD_MEMORY: ByteCount = ByteCount::from_kibibytes(768);

/// A session.
#[derive(Debug)]
pub(crate) struct WebSession {
    pub(crate) client: IpAddr,
    pub(crate) browser: Option<String>,
    pub(crate) started: MonotonicTime,
    pub(crate) started_at: WallTime,
    service: ServiceSession,
    share: Option<TrafficShare>,
    max_duration: Option<Duration>,
    max_transfers: u32,
    state: Mutex<SessionState>,
    _record: Option<ServiceLease>,
}

#[derive(Debug)]
struct SessionState {
    transfers: u32,
    /// Start of the traffic that runs now.
    busy_since: Option<MonotonicTime>,
    /// Duration of the traffic before.
    used: Duration,
    active: MonotonicTime,
    ended: Option<String>,
    record: Option<SessionRecord>,
}

impl WebSession {
    /// Opens a session of at most `max_transfers` at once; `records` for one that ends in a result.
    pub(crate) fn open(
        access: &ServiceAccess,
        client: IpAddr,
        browser: Option<String>,
        max_transfers: u32,
        records: bool,
    ) -> Result<Arc<Self>, ServiceRefusal> {
        let service = access.open(client)?;
        let lease = if records {
            let no_memory =
                || ServiceRefusal::Exhausted("the server has no memory left for one more session".to_owned());
            Some(service.lease(RECORD_MEMORY).ok_or_else(no_memory)?)
        } else {
            None
        };
        let started = clock::monotonic_now();
        let share = service.traffic_share();
        Ok(Arc::new(Self {
            client,
            browser,
            started,
            started_at: clock::realtime_now(),
            share,
            service,
            max_duration: access.max_duration(),
            max_transfers,
            state: Mutex::new(SessionState {
                transfers: 0,
                busy_since: None,
                used: Duration::ZERO,
                active: started,
                ended: None,
                record: records.then(|| SessionRecord::new(started)),
            }),
            _record: lease,
        }))
    }

    pub(crate) fn number(&self) -> u64 {
        self.service.number()
    }

    /// Records a request.
    pub(crate) fn touch(&self) {
        self.lock().active = clock::monotonic_now();
    }

    /// Begins a transfer.
    ///
    /// # Errors
    ///
    /// The reason why it may not begin.
    pub(crate) fn begin(
        self: &Arc<Self>,
        direction: Direction,
        connection: &Arc<Connection>,
    ) -> Result<Transfer, String> {
        let memory = self.service.lease(TRANSFER_MEMORY);
        let memory = memory.ok_or("the server has no memory left for one more transfer of your address")?;
        let now = clock::monotonic_now();
        let mut state = self.lock();
        self.check(&state, now)?;
        if state.transfers >= self.max_transfers {
            return Err(format!("a session has at most {} transfers at once", self.max_transfers));
        }
        state.transfers += 1;
        state.active = now;
        state.busy_since.get_or_insert(now);
        if let Some(record) = &mut state.record {
            record.join(direction, connection, now);
        }
        Ok(Transfer { session: Arc::clone(self), direction, _memory: memory })
    }

    fn check(&self, state: &SessionState, now: MonotonicTime) -> Result<(), String> {
        if let Some(reason) = &state.ended {
            return Err(reason.clone());
        }
        let running = state.busy_since.map_or(Duration::ZERO, |since| now.since(since));
        match self.max_duration {
            Some(most) if state.used + running >= most => Err(format!(
                "the session has moved data for {}, which is the server's limit (--server-max-duration)",
                linerate_units::display::duration(most)
            )),
            _ => Ok(()),
        }
    }

    /// Samples the connections, and ends the session when its time is over. Returns false when it has ended.
    pub(crate) fn tick(&self, now: MonotonicTime) -> bool {
        let reason = self.service.ended_because();
        let mut state = self.lock();
        if state.transfers > 0 {
            state.active = now;
            self.service.mark_active();
        }
        let is_idle = now.since(state.active) >= MAX_IDLE || now.since(self.started) >= MAX_LIFE;
        let over = is_idle.then(|| "the session is over: it was idle, or open for ten minutes".to_owned());
        if state.ended.is_none() {
            state.ended = reason.or(over);
        }
        let is_moving = state.transfers > 0;
        if let Some(record) = state.record.as_mut().filter(|_| is_moving) {
            record.sample(now);
        }
        state.ended.is_none()
    }

    /// Ends the session for this reason; running transfers end with it.
    pub(crate) fn end(&self, reason: &str) {
        self.lock().ended.get_or_insert_with(|| reason.to_owned());
    }

    /// Gives access to the record.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&SessionRecord) -> T) -> Option<T> {
        self.lock().record.as_ref().map(look)
    }

    /// Takes the record: the session measures no further.
    pub(crate) fn take_record(&self) -> Option<SessionRecord> {
        self.lock().record.take()
    }

    /// Reason why the session has ended.
    pub(crate) fn ended(&self) -> Option<String> {
        self.lock().ended.clone()
    }

    /// A poisoned lock only means that a task panicked; the record is still the best available.
    fn lock(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A transfer in progress. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Transfer {
    session: Arc<WebSession>,
    direction: Direction,
    _memory: ServiceLease,
}

impl Transfer {
    /// Checks the limits of the session.
    pub(crate) fn may_go_on(&self) -> Result<(), String> {
        self.session.check(&self.session.lock(), clock::monotonic_now())
    }

    /// Claims bytes to send, or returns the time to wait.
    pub(crate) fn claim(&self, most: ByteCount) -> Result<ByteCount, Duration> {
        let Some(share) = &self.session.share else { return Ok(most) };
        share.claim(most).inspect_err(|wait| self.record_wait(*wait))
    }

    /// Records a pause that the rate of the server asks for.
    fn record_wait(&self, wait: Duration) {
        if let Some(record) = &mut self.session.lock().record {
            record.add_pause(self.direction, wait);
        }
    }

    /// Counts received bytes; returns the time to wait.
    pub(crate) fn count_received(&self, bytes: u64) -> Option<Duration> {
        let wait = self.session.share.as_ref()?.count_received(ByteCount::new(bytes))?;
        self.record_wait(wait);
        Some(wait)
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        let now = clock::monotonic_now();
        let mut state = self.session.lock();
        state.transfers -= 1;
        state.active = now;
        if state.transfers == 0 {
            let since = state.busy_since.take();
            state.used += since.map_or(Duration::ZERO, |since| now.since(since));
        }
    }
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroUsize;

    use linerate_engine::server::ServerOptions;
    use linerate_units::BitRate;

    use super::*;
    use crate::test_support::{Loopback, access, client, wait_until};

    fn open(change: impl FnOnce(&mut ServerOptions)) -> Arc<WebSession> {
        WebSession::open(&access(change), client(1), Some("browser".to_owned()), 2, true).expect("a free session")
    }

    fn later(seconds: u64) -> MonotonicTime {
        clock::monotonic_now() + Duration::from_secs(seconds)
    }

    #[test]
    fn a_session_has_a_limit_of_transfers_at_once() {
        let (loopback, session) = (Loopback::new(), open(|_| ()));
        let (connection, _client) = loopback.connect(1);
        let begin = |direction| session.begin(direction, &connection);
        let (down, up) = (begin(Direction::Down).expect("the first"), begin(Direction::Up).expect("the second"));
        assert_eq!(begin(Direction::Up).err().as_deref(), Some("a session has at most 2 transfers at once"));
        drop(down);
        assert!(begin(Direction::Down).is_ok(), "one has ended");
        drop(up);
    }

    #[test]
    fn a_session_without_requests_ends_and_a_request_extends_it() {
        let session = open(|_| ());
        assert!(session.tick(session.started + Duration::from_secs(29)));
        session.touch();
        assert!(session.tick(clock::monotonic_now()));
        assert_eq!(session.ended(), None);
        assert!(!session.tick(later(30)));
        assert!(session.ended().is_some_and(|reason| reason.contains("idle")));
        session.touch();
        assert!(!session.tick(clock::monotonic_now()), "what has ended stays so");
    }

    #[test]
    fn a_transfer_keeps_a_session_up_to_its_longest_life() {
        let (loopback, session) = (Loopback::new(), open(|_| ()));
        let (connection, _client) = loopback.connect(1);
        let transfer = session.begin(Direction::Down, &connection).expect("a free transfer");
        for seconds in [30, 300, 599] {
            assert!(session.tick(session.started + Duration::from_secs(seconds)), "{seconds} s");
            assert_eq!(transfer.may_go_on(), Ok(()));
        }
        assert!(!session.tick(session.started + MAX_LIFE));
        assert!(transfer.may_go_on().is_err_and(|reason| reason.contains("ten minutes")));
    }

    #[test]
    fn an_ended_session_names_the_first_reason_to_all_its_transfers() {
        let (loopback, session) = (Loopback::new(), open(|_| ()));
        let (connection, _client) = loopback.connect(1);
        let transfer = session.begin(Direction::Up, &connection).expect("a free transfer");
        session.end("first");
        session.end("second");
        assert_eq!(transfer.may_go_on(), Err("first".to_owned()));
        assert_eq!(session.begin(Direction::Up, &connection).err().as_deref(), Some("first"));
        assert!(!session.tick(clock::monotonic_now()));
        assert_eq!(session.ended().as_deref(), Some("first"));
    }

    #[test]
    fn the_time_of_all_transfers_counts_towards_the_longest_duration() {
        let loopback = Loopback::new();
        let (connection, _client) = loopback.connect(1);
        let most = Duration::from_millis(1);
        let session = open(|options| options.limits.max_duration = Some(most));
        for _ in 0..4 {
            // A busy host may have used up the time before.
            let Ok(transfer) = session.begin(Direction::Down, &connection) else { break };
            let begun = clock::monotonic_now();
            wait_until(|| clock::monotonic_now().since(begun) >= most / 4);
            drop(transfer);
        }
        let refused = session.begin(Direction::Up, &connection).expect_err("its time is used");
        assert!(refused.contains("1.00 ms") && refused.contains("--server-max-duration"), "{refused}");
        assert!(session.tick(clock::monotonic_now()), "its result may still come");
    }

    #[test]
    fn a_transfer_ends_with_the_longest_duration() {
        let loopback = Loopback::new();
        let (connection, _client) = loopback.connect(1);
        let session = open(|options| options.limits.max_duration = Some(Duration::from_nanos(1)));
        let transfer = session.begin(Direction::Down, &connection).expect("no data has moved yet");
        wait_until(|| transfer.may_go_on().is_err());
    }

    #[test]
    fn a_session_that_gives_way_to_another_client_ends_with_that_reason() {
        let access = access(|options| options.max_sessions = NonZeroUsize::new(2).expect("not zero"));
        let open = |last| WebSession::open(&access, client(last), None, 2, false);
        let sessions = [1, 1].map(|last| open(last).expect("a free session"));
        assert!(open(1).is_err_and(|refusal| refusal == ServiceRefusal::Busy(2)));
        let other = open(2).expect("one of two gives way");
        let alive = sessions.iter().filter(|session| session.tick(clock::monotonic_now())).count();
        assert_eq!((alive, other.tick(clock::monotonic_now())), (1, true));
        let reasons: Vec<String> = sessions.iter().filter_map(|session| session.ended()).collect();
        assert!(reasons.len() == 1 && reasons[0].contains("gave way"), "{reasons:?}");
    }

    #[test]
    fn only_a_session_that_ends_in_a_result_has_a_record_and_gives_it_once() {
        let without = WebSession::open(&access(|_| ()), client(1), None, 2, false).expect("a free session");
        assert!(without.take_record().is_none() && without.look(|_| ()).is_none());
        let (loopback, session) = (Loopback::new(), open(|_| ()));
        let (connection, _client) = loopback.connect(1);
        let transfer = session.begin(Direction::Up, &connection).expect("a free transfer");
        session.tick(clock::monotonic_now());
        drop(transfer);
        session.tick(clock::monotonic_now());
        let samples = session.look(|record| (record.phases.len(), record.points.len()));
        assert_eq!(samples, Some((1, 1)), "sampled while data may move only");
        assert!(session.take_record().is_some_and(|record| record.phases[0].direction == Direction::Up));
        assert!(session.take_record().is_none());
    }

    #[test]
    fn pauses_for_the_rate_of_the_server_are_recorded() {
        let loopback = Loopback::new();
        let (connection, _client) = loopback.connect(1);
        let rate = BitRate::from_bits_per_second(8.0);
        let session = open(|options| options.limits.max_total_rate = Some(rate));
        let transfer = session.begin(Direction::Down, &connection).expect("a free transfer");
        let granted = transfer.claim(ByteCount::new(1 << 20)).expect("a first step");
        assert!((1..=1448).contains(&granted.get()), "{granted:?}");
        let wait = transfer.claim(ByteCount::new(1)).expect_err("a pause");
        assert!(!wait.is_zero());
        session.tick(session.started + Duration::from_millis(1));
        let share = session.look(|record| record.phases[0].paused_share().get());
        assert_eq!(share, Some(1.0), "the pause is longer than the phase");
    }

    #[test]
    fn without_a_limited_rate_everything_is_granted_at_once() {
        let (loopback, session) = (Loopback::new(), open(|_| ()));
        let (connection, _client) = loopback.connect(1);
        let transfer = session.begin(Direction::Down, &connection).expect("a free transfer");
        assert_eq!(transfer.claim(ByteCount::new(u64::MAX)), Ok(ByteCount::new(u64::MAX)));
        assert_eq!(transfer.count_received(u64::MAX), None);
    }
}
