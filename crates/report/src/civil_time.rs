//! Civil time: in the one form that iperf3 prints, and in the one that sorts.

use linerate_units::WallTime;

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]; // 1970-01-01 was a Thursday
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// `Fri, 20 Nov 2026 07:54:22 GMT` (RFC 9110 §5.6.7, which took it from RFC 1123).
pub(crate) fn rfc1123(time: WallTime) -> String {
    let seconds = time.since_unix_epoch().as_secs();
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let weekday = DAYS.iter().cycle().nth((days % 7) as usize).expect("a cycle never ends");
    let (year, month, day) = civil_date(days);
    let month = MONTHS.get(month).expect("twelve months");
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{weekday}, {day:02} {month} {year} {hour:02}:{minute:02}:{second:02} GMT")
}

/// `2026-11-20 07:54:22 UTC`: RFC 3339 with a space for the `T`, as its §5.6 allows where people read.
pub(crate) fn rfc3339(unix_ns: u64) -> String {
    let seconds = unix_ns / 1_000_000_000;
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil_date(days);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC", month + 1)
}

/// Year, month from 0 and day from 1 of the Gregorian calendar, `days` after 1970-01-01.
fn civil_date(days: u64) -> (u64, usize, u64) {
    let mut year = 1970;
    let mut rest = days;
    // Whole 400-year cycles first: a clock that is set to nonsense must not cost time.
    year += rest / DAYS_IN_400_YEARS * 400;
    rest %= DAYS_IN_400_YEARS;
    while rest >= days_in_year(year) {
        rest -= days_in_year(year);
        year += 1;
    }
    let february = if days_in_year(year) == 366 { 29 } else { 28 };
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while rest >= lengths[month] {
        rest -= lengths[month];
        month += 1;
    }
    (year, month, rest + 1)
}

const DAYS_IN_400_YEARS: u64 = 146_097;

const fn days_in_year(year: u64) -> u64 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    if leap { 366 } else { 365 }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

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
        assert_eq!(rfc3339(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(rfc3339(1_795_161_279_999_999_999), "2026-11-20 07:54:39 UTC");
    }

    #[test]
    fn the_end_of_time_is_reached() {
        assert!(at(u64::MAX).ends_with(" GMT"));
    }
}
