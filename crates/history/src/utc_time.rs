//! Times of day as text, in UTC.

use core::time::Duration;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use linerate_units::WallTime;

/// Formats a time as `2026-11-21T23:51:07Z` (RFC 3339).
#[must_use]
pub fn rfc3339(time: WallTime) -> String {
    timestamp(time).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Formats a time as `2026-11-21 23:51`, for a column.
#[must_use]
pub fn format_minutes(time: WallTime) -> String {
    timestamp(time).strftime("%Y-%m-%d %H:%M").to_string()
}

/// The calendar's time; its last one for times after the year 9999.
fn timestamp(time: WallTime) -> Timestamp {
    let seconds = i64::try_from(time.since_unix_epoch().as_secs()).ok();
    seconds.and_then(|seconds| Timestamp::from_second(seconds).ok()).unwrap_or(Timestamp::MAX)
}

/// Parses `2026-11-21`, `2026-11-21 23:51`, `2026-11-21T23:51:07` and the same with a `Z`; `None` for anything else,
/// and for times before 1970.
#[must_use]
pub fn parse(text: &str) -> Option<WallTime> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    // The library also reads fractions, other separators and basic formats.
    let is_extended = text.len() == 10 || ["T", " "].contains(&text.get(10..11)?) && [16, 19].contains(&text.len());
    let time: DateTime = match text.len() {
        10 if is_extended => text.parse::<Date>().ok()?.to_datetime(jiff::civil::Time::midnight()),
        _ if is_extended => text.parse().ok()?,
        _ => return None,
    };
    let timestamp = time.to_zoned(TimeZone::UTC).ok()?.timestamp();
    Some(WallTime::from_unix(Duration::from_secs(timestamp.as_second().try_into().ok()?)))
}

/// Parses the date of a header of HTTP: `Sun, 06 Nov 1994 08:49:37 GMT`; `None` for anything else, and before 1970.
#[must_use]
pub fn parse_http_date(text: &str) -> Option<WallTime> {
    let timestamp = jiff::fmt::rfc2822::parse(text.trim()).ok()?.timestamp();
    Some(WallTime::from_unix(Duration::from_secs(timestamp.as_second().try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: u64) -> WallTime {
        WallTime::from_unix(Duration::from_secs(seconds))
    }

    #[test]
    fn dates_of_http() {
        assert_eq!(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(at(784_111_777)));
        for wrong in ["", "soon", "Sun, 06 Nov 1994", "Wed, 31 Dec 1969 23:59:59 GMT"] {
            assert_eq!(parse_http_date(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn known_times() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_795_161_279, "2026-11-20T07:54:39Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(at(seconds)), text);
            assert_eq!(parse(text), Some(at(seconds)));
        }
        assert_eq!(format_minutes(at(1_795_161_279)), "2026-11-20 07:54");
        assert_eq!(parse("2026-11-20"), parse("2026-11-20 00:00"));
    }

    #[test]
    fn invalid_times_are_refused() {
        for text in [
            "",
            "2026",
            "2026-1-1",
            "2026-13-01",
            "2026-02-29",
            "2026-11-20T24:00",
            "2026-11-20T07:60",
            "2026-11-20 7:00",
            "1969-12-31",
            "2026-11-20T",
            "2026-11-20T07:54:39+01:00",
            "20261120",
            "2026-11-20-01",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn times_round_trip(seconds in 0..253_402_300_800_u64) {
            prop_assert_eq!(parse(&rfc3339(at(seconds))), Some(at(seconds)));
        }
    }
}
