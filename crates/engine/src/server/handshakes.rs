//! Gate before the expensive part of TLS handshakes: strangers get as many per second as leave the server to others.

use core::time::Duration;
use std::collections::HashMap;

use linerate_units::MonotonicTime;

use crate::resources::ClientNetwork;

/// Time over which handshakes are counted.
const PERIOD: Duration = Duration::from_secs(1);

/// Most handshakes of a site per period: a test has 128 streams at most.
const MAX_OF_SITE: u32 = 256;

/// Most handshakes of all sites per period: at 0.3 ms each, half of a processor.
const MAX_OF_ALL: u32 = 1600;

/// Counts of the current period.
#[derive(Debug, Default)]
pub(super) struct HandshakeGate {
    since: MonotonicTime,
    total: u32,
    sites: HashMap<ClientNetwork, u32>,
}

impl HandshakeGate {
    /// Counts a handshake of `site`; the time to which it must wait, if it may not begin now.
    pub(super) fn postpones(&mut self, site: ClientNetwork, now: MonotonicTime) -> Option<MonotonicTime> {
        if now.since(self.since) >= PERIOD {
            *self = Self { since: now, ..Self::default() };
        }
        let count = self.sites.entry(site).or_default();
        if *count >= MAX_OF_SITE || self.total >= MAX_OF_ALL {
            return Some(self.since + PERIOD);
        }
        *count += 1;
        self.total += 1;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(last: u8) -> ClientNetwork {
        ClientNetwork::of([192, 0, 2, last].into()).site()
    }

    fn at(millis: u64) -> MonotonicTime {
        MonotonicTime::from_nanos(10_000_000_000 + millis * 1_000_000)
    }

    #[test]
    fn handshakes_of_a_site_wait_for_the_next_second_and_others_do_not() {
        let mut gate = HandshakeGate::default();
        let begun = (0..300).filter(|_| gate.postpones(site(1), at(0)).is_none()).count();
        assert_eq!(begun, 256);
        assert_eq!(gate.postpones(site(1), at(900)), Some(at(1000)));
        assert_eq!(gate.postpones(site(2), at(900)), None);
        assert_eq!(gate.postpones(site(1), at(1000)), None);
    }

    #[test]
    fn many_sites_share_the_handshakes_of_the_server() {
        let mut gate = HandshakeGate::default();
        let begun = (0..4000_u32).filter(|client| gate.postpones(site((client % 250) as u8), at(0)).is_none()).count();
        assert_eq!((begun, gate.sites.len()), (1600, 250));
    }
}
