//! Civil time in UTC as text: that of documents and lists, and that of iperf3.

use core::time::Duration;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use linerate_units::WallTime;
use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer, de};

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

/// Formats a time as iperf3 prints it: `Fri, 20 Nov 2026 07:54:22 GMT` (RFC 9110 §5.6.7, which took it from RFC 1123).
#[must_use]
pub fn rfc1123(time: WallTime) -> String {
    timestamp(time).strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// Formats a time of a document, in nanoseconds since 1970, as [`readable`] does.
#[must_use]
pub fn of_unix_ns(nanoseconds: u64) -> String {
    readable(WallTime::from_unix(Duration::from_nanos(nanoseconds)))
}

/// Formats a time as `2026-11-20 07:54:22 UTC`, for people.
#[must_use]
pub fn readable(time: WallTime) -> String {
    timestamp(time).strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
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

/// Times of documents in whole seconds, written by [`rfc3339`].
pub mod as_rfc3339 {
    use super::*;

    /// Writes a time.
    ///
    /// # Errors
    ///
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(time: &WallTime, serializer: S) -> Result<S::Ok, S::Error> {
        rfc3339(*time).serialize(serializer)
    }

    /// Reads a time.
    ///
    /// # Errors
    ///
    /// A text that is not a time, and those of the deserializer.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<WallTime, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse(&text).ok_or_else(|| de::Error::custom(format!("{text:?} is not a time (RFC 3339)")))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::{Deserialize, Serialize};

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
    fn known_times_of_iperf3() {
        for (seconds, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_795_161_279, "Fri, 20 Nov 2026 07:54:39 GMT"),
            (4_107_542_399, "Sun, 28 Feb 2100 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            assert_eq!(rfc1123(at(seconds)), text);
        }
        assert!(rfc1123(at(u64::MAX)).ends_with(" GMT"), "the end of time is reached");
    }

    #[test]
    fn times_of_people_sort() {
        assert_eq!(of_unix_ns(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(of_unix_ns(1_795_161_279_999_999_999), "2026-11-20 07:54:39 UTC");
    }

    #[test]
    fn times_of_documents_are_read_as_they_are_written() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Moment(#[serde(with = "as_rfc3339")] WallTime);
        let json = serde_json::to_string(&Moment(at(1_795_161_279))).expect("plain data");
        assert_eq!(json, "\"2026-11-20T07:54:39Z\"");
        assert_eq!(serde_json::from_str::<Moment>(&json).expect("own output"), Moment(at(1_795_161_279)));
        let error = serde_json::from_str::<Moment>("\"soon\"").expect_err("no time").to_string();
        assert!(error.contains("\"soon\" is not a time"), "{error}");
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
