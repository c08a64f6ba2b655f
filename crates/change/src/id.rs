//! Numbers of change sets.

use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};

/// Number of a change set, assigned when it is begun; not reused while its record exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ChangeId(u64);

impl ChangeId {
    /// The change set with that number, which may or may not exist.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for ChangeId {
    /// The bare number.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl FromStr for ChangeId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let wrong = || format!("invalid change set {text:?} (expected its number)");
        is_number.then(|| text.parse().ok()).flatten().map(Self).ok_or_else(wrong)
    }
}
