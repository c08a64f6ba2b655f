use core::ops::{Add, Sub};
use core::time::Duration;

/// A point on a monotonic clock: nanoseconds since an arbitrary epoch of one host.
///
/// Differences within one host are exact; differences between hosts mean nothing but their change over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct MonotonicTime(u64);

impl MonotonicTime {
    /// `nanoseconds` after the epoch.
    #[must_use]
    pub const fn from_nanos(nanoseconds: u64) -> Self {
        Self(nanoseconds)
    }

    /// Nanoseconds since the epoch.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time since the epoch.
    #[must_use]
    pub const fn since_epoch(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// Time from `earlier` to here; zero when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for MonotonicTime {
    type Output = Self;
    /// Saturates at the end of the clock's range, 584 years after its epoch.
    fn add(self, time: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub for MonotonicTime {
    type Output = Duration;
    /// [`MonotonicTime::since`].
    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

/// A point in civil time: time since 1970-01-01 00:00 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(Duration);

impl WallTime {
    /// `since_epoch` after 1970-01-01 00:00 UTC.
    #[must_use]
    pub const fn from_unix(since_epoch: Duration) -> Self {
        Self(since_epoch)
    }

    /// Time since 1970-01-01 00:00 UTC.
    #[must_use]
    pub const fn since_unix_epoch(self) -> Duration {
        self.0
    }
}
