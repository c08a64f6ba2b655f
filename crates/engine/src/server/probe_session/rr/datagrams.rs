//! Requests in UDP datagrams: only verified sources are answered.

use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};

use linerate_sys::{host, options};
use linerate_wire::cookie::{SessionToken, TOKEN_LENGTH};
use linerate_wire::probe::{RrOpening, number_response};

use super::{MAX_DATAGRAM, RrState, STOP_POLL_INTERVAL};

/// Sources with a challenge, as a multiple of the flows: one whose answer is lost behind an address translator may come
/// from a new port.
const SOURCES_PER_FLOW: usize = 4;

/// A source of opening datagrams.
struct FlowSource {
    /// Random bytes that only a receiver at that address knows.
    challenge: SessionToken,
    is_verified: bool,
}

/// Sources of the session's datagrams.
struct FlowSources {
    token: SessionToken,
    /// Verified source of the last request: with one flow it is that of the next one, too.
    last: Option<SocketAddr>,
    limit: usize,
    sources: HashMap<SocketAddr, FlowSource>,
}

impl FlowSources {
    fn new(token: SessionToken, flows: u32) -> Self {
        let limit = usize::try_from(flows).unwrap_or(1) * SOURCES_PER_FLOW;
        Self { token, last: None, limit, sources: HashMap::new() }
    }

    /// Answer to an opening datagram; `None` for none. It has the length of what it answers.
    fn open(
        &mut self,
        from: SocketAddr,
        shown: SessionToken,
        random: impl FnOnce() -> Option<SessionToken>,
    ) -> Option<RrOpening> {
        if let Some(source) = self.sources.get_mut(&from) {
            source.is_verified |= shown == source.challenge;
            return (shown == source.challenge || shown == self.token).then_some(RrOpening(source.challenge));
        }
        if shown != self.token || self.sources.len() >= self.limit {
            return None;
        }
        let challenge = random()?;
        self.sources.insert(from, FlowSource { challenge, is_verified: false });
        Some(RrOpening(challenge))
    }

    fn is_verified(&mut self, from: SocketAddr) -> bool {
        if self.last == Some(from) {
            return true;
        }
        let is_verified = self.sources.get(&from).is_some_and(|source| source.is_verified);
        self.last = is_verified.then_some(from).or(self.last);
        is_verified
    }
}

fn random_token() -> Option<SessionToken> {
    let mut entropy = [0; TOKEN_LENGTH];
    host::random_bytes(&mut entropy).ok()?;
    Some(SessionToken::random(entropy))
}

/// Serves the socket until the test is over.
pub(super) fn serve(state: &RrState, socket: &UdpSocket, token: SessionToken) {
    if socket.set_nonblocking(false).is_err() || options::set_receive_timeout(socket, Some(STOP_POLL_INTERVAL)).is_err()
    {
        return;
    }
    let mut sources = FlowSources::new(token, state.order.flows);
    let (mut buffer, mut response) = (vec![0; MAX_DATAGRAM], state.payload.clone());
    while !state.is_stopping() {
        // An error belongs to an earlier response, or is the timeout.
        let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
        let request = &buffer[..length];
        if let Some(RrOpening(shown)) = RrOpening::decode(request) {
            state.pay(length);
            if let Some(answer) = sources.open(from, shown, random_token) {
                let _ = socket.send_to(&answer.encode(), from);
            }
        } else if length == state.order.request.to_usize() && sources.is_verified(from) {
            number_response(&mut response, request);
            state.pay(length + response.len());
            if socket.send_to(&response, from).is_ok() {
                state.count_transaction();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    fn token(byte: u8) -> SessionToken {
        SessionToken::random([byte; TOKEN_LENGTH])
    }

    #[test]
    fn a_source_is_verified_by_its_own_challenge_only() {
        let mut sources = FlowSources::new(token(1), 1);
        assert_eq!(sources.open(address(1), token(9), || Some(token(2))), None, "no token");
        assert_eq!(sources.open(address(1), token(1), || Some(token(2))), Some(RrOpening(token(2))));
        assert_eq!(sources.open(address(2), token(1), || Some(token(3))), Some(RrOpening(token(3))));
        assert_eq!(sources.open(address(2), token(2), || None), None, "the challenge of another source");
        assert!(!sources.is_verified(address(1)) && !sources.is_verified(address(2)));
        assert_eq!(sources.open(address(1), token(2), || None), Some(RrOpening(token(2))));
        assert!(sources.is_verified(address(1)) && !sources.is_verified(address(2)));
        assert!(sources.is_verified(address(1)) && !sources.is_verified(address(3)), "the last one is no other");
    }

    #[test]
    fn forged_sources_do_not_fill_the_memory() {
        let mut sources = FlowSources::new(token(1), 1);
        let opened =
            (1..100).filter(|port| sources.open(address(*port), token(1), || Some(token(2))).is_some()).count();
        assert_eq!((opened, sources.sources.len()), (SOURCES_PER_FLOW, SOURCES_PER_FLOW));
    }
}
