//! Civil time in the format that iperf3 prints, and in a sortable one.

use core::time::Duration;

use jiff::Timestamp;
use linerate_units::WallTime;

/// The calendar's time; its last one for times after the year 9999.
fn timestamp(since_unix_epoch: Duration) -> Timestamp {
    i64::try_from(since_unix_epoch.as_secs())
        .ok()
        .and_then(|seconds| Timestamp::from_second(seconds).ok())
        .unwrap_or(Timestamp::MAX)
}

/// `Fri, 20 Nov 2026 07:54:22 GMT` (RFC 9110 §5.6.7, which took it from RFC 1123).
pub(crate) fn rfc1123(time: WallTime) -> String {
    timestamp(time.since_unix_epoch()).strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// Text of a time of a document, in nanoseconds since 1970: [`readable`].
pub(crate) fn of_unix_ns(nanoseconds: u64) -> String {
    readable(WallTime::from_unix(Duration::from_nanos(nanoseconds)))
}

/// `2026-11-20 07:54:22 UTC`, for people.
pub(crate) fn readable(time: WallTime) -> String {
    timestamp(time.since_unix_epoch()).strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> String {
        rfc1123(WallTime::from_unix(Duration::from_secs(seconds)))
    }

    #[test]
    fn known_times() {
        assert_eq!(at(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(at(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(at(1_795_161_279), "Fri, 20 Nov 2026 07:54:39 GMT");
        assert_eq!(at(4_107_542_399), "Sun, 28 Feb 2100 23:59:59 GMT");
        assert_eq!(at(4_107_542_400), "Mon, 01 Mar 2100 00:00:00 GMT");
    }

    #[test]
    fn times_that_sort() {
        let at = |nanoseconds| readable(WallTime::from_unix(Duration::from_nanos(nanoseconds)));
        assert_eq!(at(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(at(1_795_161_279_999_999_999), "2026-11-20 07:54:39 UTC");
    }

    #[test]
    fn the_end_of_time_is_reached() {
        assert!(at(u64::MAX).ends_with(" GMT"));
    }
}
