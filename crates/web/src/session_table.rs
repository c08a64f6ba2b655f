//! Sessions by their token, and those of librespeed's clients, which have none, by address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linerate_units::MonotonicTime;

use crate::connection_table::customer;
use crate::session::WebSession;

/// Bytes of a token: too many to guess.
const TOKEN_LENGTH: usize = 16;

/// Name of a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SessionToken(String);

impl SessionToken {
    /// A new token; `None` without entropy.
    pub(crate) fn random() -> Option<Self> {
        let mut bytes = [0; TOKEN_LENGTH];
        linerate_sys::host::random_bytes(&mut bytes).ok()?;
        Some(Self(format!("{:032x}", u128::from_ne_bytes(bytes))))
    }

    /// Parses a token.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_token = text.len() == 2 * TOKEN_LENGTH && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_token.then(|| Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// All sessions of the service.
#[derive(Debug, Default)]
pub(crate) struct SessionTable {
    state: Mutex<TableState>,
}

#[derive(Debug, Default)]
struct TableState {
    by_token: HashMap<SessionToken, Arc<WebSession>>,
    by_address: HashMap<IpAddr, Arc<WebSession>>,
}

impl SessionTable {
    pub(crate) fn add(&self, token: SessionToken, session: Arc<WebSession>) {
        self.lock().by_token.insert(token, session);
    }

    /// Session of this token, for a client of the network that opened it: a token seen by others is of no use to them.
    pub(crate) fn get(&self, token: &SessionToken, client: IpAddr) -> Option<Arc<WebSession>> {
        let session = self.lock().by_token.get(token).cloned();
        session.filter(|session| customer(session.client) == customer(client))
    }

    pub(crate) fn remove(&self, token: &SessionToken) {
        self.lock().by_token.remove(token);
    }

    /// Session of an address without tokens; `open` makes a new one.
    pub(crate) fn of_address<E>(
        &self,
        client: IpAddr,
        open: impl FnOnce() -> Result<Arc<WebSession>, E>,
    ) -> Result<Arc<WebSession>, E> {
        let client = client.to_canonical();
        if let Some(session) = self.lock().by_address.get(&client) {
            return Ok(Arc::clone(session));
        }
        let session = open()?;
        self.lock().by_address.insert(client, Arc::clone(&session));
        Ok(session)
    }

    /// Samples all sessions, and removes those that have ended.
    pub(crate) fn tick(&self, now: MonotonicTime) {
        let mut state = self.lock();
        state.by_token.retain(|_, session| session.tick(now));
        state.by_address.retain(|_, session| session.tick(now));
    }

    /// A poisoned lock only means that a task panicked; each change is one statement.
    fn lock(&self) -> MutexGuard<'_, TableState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
