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

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use linerate_engine::server::ServiceRefusal;
    use linerate_sys::clock;
    use proptest::prelude::*;

    use super::*;
    use crate::test_support::{access, client};

    fn session(client: IpAddr) -> Arc<WebSession> {
        WebSession::open(&access(|_| ()), client, None, 4, false).expect("a free session")
    }

    fn token() -> SessionToken {
        SessionToken::random().expect("entropy")
    }

    #[test]
    fn tokens_differ_and_are_read_again() {
        let (one, other) = (token(), token());
        assert_ne!(one, other);
        assert_eq!(SessionToken::parse(one.as_str()), Some(one));
    }

    proptest! {
        #[test]
        fn a_token_is_32_hexadecimal_digits(text in "[0-9a-fF]{30,34}|[0-9a-g:é]{30,33}") {
            let is_token = text.chars().count() == 32 && text.chars().all(|letter| letter.is_ascii_hexdigit());
            prop_assert_eq!(SessionToken::parse(&text).is_some(), is_token);
        }
    }

    #[test]
    fn a_token_is_of_use_to_the_network_that_opened_its_session_only() {
        for (opened_by, used_by, is_of_use) in [
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("2001:db8::1", "2001:db8::ffff:1", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
        ] {
            let address = |text: &str| text.parse::<IpAddr>().expect(text);
            let (table, token) = (SessionTable::default(), token());
            table.add(token.clone(), session(address(opened_by)));
            assert_eq!(table.get(&token, address(used_by)).is_some(), is_of_use, "{opened_by} {used_by}");
        }
    }

    #[test]
    fn a_removed_session_is_gone_and_others_stay() {
        let (table, tokens) = (SessionTable::default(), [token(), token()]);
        for token in &tokens {
            table.add(token.clone(), session(client(1)));
        }
        table.remove(&tokens[0]);
        assert!(table.get(&tokens[0], client(1)).is_none());
        assert!(table.get(&tokens[1], client(1)).is_some());
    }

    #[test]
    fn an_address_without_tokens_has_one_session_until_it_ends() {
        let table = SessionTable::default();
        let of_address = |text: &str, may_open: bool| {
            let address = text.parse().expect(text);
            let open = || if may_open { Ok(session(address)) } else { Err(ServiceRefusal::Busy(1)) };
            table.of_address(address, open)
        };
        assert_eq!(of_address("192.0.2.1", false).err(), Some(ServiceRefusal::Busy(1)));
        let first = of_address("192.0.2.1", true).expect("the refusal has left nothing behind");
        let again = of_address("::ffff:192.0.2.1", false).expect("it is known");
        assert!(Arc::ptr_eq(&first, &again));
        let other = of_address("192.0.2.2", true).expect("a free session");
        assert!(!Arc::ptr_eq(&first, &other));
        first.end("over");
        table.tick(clock::monotonic_now());
        assert!(of_address("192.0.2.1", false).is_err(), "it has ended");
        assert!(of_address("192.0.2.2", false).is_ok());
    }

    #[test]
    fn sessions_without_requests_leave_the_table() {
        let (table, token) = (SessionTable::default(), token());
        let begun = clock::monotonic_now();
        table.add(token.clone(), session(client(1)));
        table.tick(begun + Duration::from_secs(29));
        assert!(table.get(&token, client(1)).is_some());
        table.tick(clock::monotonic_now() + Duration::from_secs(31));
        assert!(table.get(&token, client(1)).is_none());
    }
}
