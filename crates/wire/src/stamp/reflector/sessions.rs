//! State of each session of a reflector.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::HashMap;

use linerate_units::MonotonicTime;

use super::IntervalTimer;
use crate::stamp::{SessionIdentifier, StampTimestamp};

/// Identity of a session (RFC 8972 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SessionKey {
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
    pub(super) identifier: SessionIdentifier,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ReflectorSession {
    /// Packets received, and answers sent: each is answered.
    pub(super) packets: u32,
    last: MonotonicTime,
    /// Number and timestamp of the latest answer.
    pub(super) previous: Option<(u32, StampTimestamp)>,
}

#[derive(Debug)]
pub(super) struct SessionTable {
    known: HashMap<SessionKey, ReflectorSession>,
    idle: Duration,
    most: usize,
    swept: IntervalTimer,
}

/// Idle time after which a session of a single packet may be replaced: its source may be spoofed.
const SINGLE_PACKET_TIMEOUT: Duration = Duration::from_secs(2);
/// The same for any session, when that is not enough: a forged source can send two packets as well.
const CROWDED_TIMEOUT: Duration = Duration::from_secs(10);
/// Minimum interval between sweeps of all sessions, which are too expensive for each packet of a flood.
const MIN_SWEEP_INTERVAL: Duration = Duration::from_secs(1);

impl SessionTable {
    pub(super) fn new(idle: Duration, most: usize) -> Self {
        Self { known: HashMap::new(), idle, most, swept: IntervalTimer::default() }
    }

    /// Finds or creates the session; `None` when the maximum number is reached.
    pub(super) fn find_or_create(&mut self, key: SessionKey, now: MonotonicTime) -> Option<&mut ReflectorSession> {
        let fresh = ReflectorSession { packets: 0, last: now, previous: None };
        if !self.known.contains_key(&key) {
            self.evict_idle(now);
            if self.known.len() >= self.most {
                return None;
            }
        }
        let session = self.known.entry(key).or_insert(fresh);
        if now.since(session.last) > self.idle {
            *session = fresh;
        }
        session.last = session.last.max(now);
        Some(session)
    }

    /// Returns an existing session.
    pub(super) fn get_mut(&mut self, key: &SessionKey) -> Option<&mut ReflectorSession> {
        self.known.get_mut(key)
    }

    fn evict_idle(&mut self, now: MonotonicTime) {
        let full = self.known.len() >= self.most;
        // Below the maximum, idle sessions are removed occasionally, to free their memory.
        let interval = if full { MIN_SWEEP_INTERVAL } else { self.idle.max(MIN_SWEEP_INTERVAL) };
        if !self.swept.is_due(now, interval) {
            return;
        }
        let idle = self.idle;
        self.known.retain(|_, session| {
            let silent = now.since(session.last);
            silent <= idle && !(full && session.packets <= 1 && silent >= SINGLE_PACKET_TIMEOUT)
        });
        if self.known.len() >= self.most {
            self.known.retain(|_, session| now.since(session.last) < CROWDED_TIMEOUT);
        }
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.known.len()
    }
}
