//! Points in civil time as text, in UTC.

use core::time::Duration;

use linerate_units::WallTime;

const DAY: u64 = 86_400;

/// Days from 1 March of the year 0 to 1 January 1970, in the Gregorian calendar carried back.
const FROM_YEAR_ZERO: u64 = 719_468;

/// `2026-11-21T23:51:07Z` (RFC 3339).
#[must_use]
pub fn rfc3339(time: WallTime) -> String {
    let (date, of_day) = parts(time);
    format!("{date}T{:02}:{:02}:{:02}Z", of_day / 3600, of_day / 60 % 60, of_day % 60)
}

/// `2026-11-21 23:51`, for a column.
#[must_use]
pub fn to_the_minute(time: WallTime) -> String {
    let (date, of_day) = parts(time);
    format!("{date} {:02}:{:02}", of_day / 3600, of_day / 60 % 60)
}

/// Reads `2026-11-21`, `2026-11-21 23:51`, `2026-11-21T23:51:07` and the same with a `Z`; `None` for anything else, and
/// for times before 1970.
#[must_use]
pub fn parse(text: &str) -> Option<WallTime> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, clock) = match text.split_once(['T', ' ']) {
        Some((date, clock)) => (date, Some(clock)),
        None => (text, None),
    };
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let days = days_since_1970(year, month, day)?;
    let [hour, minute, second] = match clock {
        None => [0; 3],
        Some(clock) if clock.len() == 5 => {
            let [hour, minute] = numbers(clock, ':', [2, 2])?;
            [hour, minute, 0]
        }
        Some(clock) => numbers(clock, ':', [2, 2, 2])?,
    };
    let in_range = hour < 24 && minute < 60 && second < 60;
    in_range.then(|| WallTime::from_unix(Duration::from_secs(days * DAY + hour * 3600 + minute * 60 + second)))
}

/// Numbers of exactly these many digits.
fn numbers<const COUNT: usize>(text: &str, separator: char, digits: [usize; COUNT]) -> Option<[u64; COUNT]> {
    let mut parts = text.split(separator);
    let mut numbers = [0; COUNT];
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part =
            parts.next().filter(|part| part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit()))?;
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

/// The date, and the seconds since its midnight.
fn parts(time: WallTime) -> (String, u64) {
    let seconds = time.since_unix_epoch().as_secs();
    // Years are counted from March, so that the leap day is a year's last.
    let days = seconds / DAY + FROM_YEAR_ZERO;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (format!("{year:04}-{month:02}-{day:02}"), seconds % DAY)
}

fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let longest = match month {
        2 => 28 + u64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if year < 1970 || !(1..=longest).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let from_march = (month + 9) % 12;
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    let (era, of_era) = (year / 400, year % 400);
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    days.checked_sub(FROM_YEAR_ZERO)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: u64) -> WallTime {
        WallTime::from_unix(Duration::from_secs(seconds))
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
        assert_eq!(to_the_minute(at(1_795_161_279)), "2026-11-20 07:54");
        assert_eq!(parse("2026-11-20"), parse("2026-11-20 00:00"));
    }

    #[test]
    fn what_is_no_time_is_refused() {
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
        fn times_are_read_as_they_are_written(seconds in 0..253_402_300_800_u64) {
            prop_assert_eq!(parse(&rfc3339(at(seconds))), Some(at(seconds)));
        }
    }
}
