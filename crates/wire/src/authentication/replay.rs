//! Tokens used within the permitted skew.

use core::time::Duration;
use std::collections::VecDeque;

use aws_lc_rs::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use linerate_units::WallTime;

/// Maximum number of remembered tokens: 128 KiB. Only a user with the right password can add one.
const MAX_USED_TOKENS: usize = 4096;

/// The used tokens, oldest first.
#[derive(Debug, Default)]
pub(super) struct UsedTokens(VecDeque<(WallTime, [u8; SHA256_OUTPUT_LEN])>);

impl UsedTokens {
    /// Remembers a token until `until`; returns true when it is new.
    pub(super) fn insert(&mut self, encrypted: &[u8], until: WallTime, now: WallTime) -> bool {
        self.0.retain(|(end, _)| *end >= now);
        let mut hash = [0; SHA256_OUTPUT_LEN];
        hash.copy_from_slice(digest(&SHA256, encrypted).as_ref());
        if self.0.iter().any(|(_, used)| *used == hash) {
            return false;
        }
        if self.0.len() == MAX_USED_TOKENS {
            self.0.pop_front();
        }
        self.0.push_back((until, hash));
        true
    }
}

/// Time from which a token is refused for its age; ages are in whole seconds.
pub(super) fn token_expiry(made_at: WallTime, skew: Duration) -> WallTime {
    WallTime::from_unix(made_at.since_unix_epoch().saturating_add(skew).saturating_add(Duration::from_secs(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> WallTime {
        WallTime::from_unix(Duration::from_secs(seconds))
    }

    #[test]
    fn each_token_is_new_once_until_it_ends() {
        let mut used = UsedTokens::default();
        assert!(used.insert(b"a", at(20), at(10)));
        assert!(!used.insert(b"a", at(20), at(20)));
        assert!(used.insert(b"b", at(30), at(20)));
        assert!(used.insert(b"a", at(20), at(21)), "its time is over: the skew check refuses it");
        assert_eq!(used.0.len(), 2);
    }

    #[test]
    fn memory_is_bounded() {
        let mut used = UsedTokens::default();
        for number in 0..MAX_USED_TOKENS + 10 {
            assert!(used.insert(&number.to_be_bytes(), at(20), at(10)));
        }
        assert_eq!(used.0.len(), MAX_USED_TOKENS);
    }
}
