//! What a reflector remembers of each session.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::HashMap;

use linerate_units::MonotonicTime;

use super::Occasion;
use crate::stamp::{SessionIdentifier, Timestamp};

/// What tells sessions apart (RFC 8972 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SessionKey {
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
    pub(super) identifier: SessionIdentifier,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Session {
    /// Packets received, and answers made: each is answered.
    pub(super) packets: u32,
    last: MonotonicTime,
    /// Number and time of the answer that left last.
    pub(super) previous: Option<(u32, Timestamp)>,
}

#[derive(Debug)]
pub(super) struct Sessions {
    known: HashMap<SessionKey, Session>,
    idle: Duration,
    most: usize,
    swept: Occasion,
}

/// A source that has sent a single packet may not exist; its session makes room for others after this time.
const SINGLE: Duration = Duration::from_secs(2);
/// Looking through all sessions takes time, so it is not done for each packet of a flood.
const SWEEP: Duration = Duration::from_secs(1);

impl Sessions {
    pub(super) fn new(idle: Duration, most: usize) -> Self {
        Self { known: HashMap::new(), idle, most, swept: Occasion::default() }
    }

    /// The session, which may be new; `None` when there is no room for a new one.
    pub(super) fn find(&mut self, key: SessionKey, now: MonotonicTime) -> Option<&mut Session> {
        let fresh = Session { packets: 0, last: now, previous: None };
        if !self.known.contains_key(&key) {
            self.make_room(now);
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

    /// A session that is already known.
    pub(super) fn get_mut(&mut self, key: &SessionKey) -> Option<&mut Session> {
        self.known.get_mut(key)
    }

    fn make_room(&mut self, now: MonotonicTime) {
        let full = self.known.len() >= self.most;
        // Idle ones are forgotten now and then also when there is room: memory of a crowd is given back.
        let interval = if full { SWEEP } else { self.idle.max(SWEEP) };
        if !self.swept.is_due(now, interval) {
            return;
        }
        let idle = self.idle;
        self.known.retain(|_, session| {
            let silent = now.since(session.last);
            silent <= idle && !(full && session.packets <= 1 && silent >= SINGLE)
        });
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.known.len()
    }
}
