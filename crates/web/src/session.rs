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
