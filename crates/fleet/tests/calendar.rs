//! Schedules of a monitor: the next time of each expression, what is refused, and the properties of all.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use linerate_fleet::{CalendarExpression, MonitorSchedule, QuietHours, hour_of_week};
use linerate_units::WallTime;
use proptest::prelude::*;

fn at(text: &str) -> WallTime {
    let seconds = text.parse::<Timestamp>().expect("a time").as_second();
    WallTime::from_unix(Duration::from_secs(u64::try_from(seconds).expect("after 1970")))
}

fn berlin() -> TimeZone {
    // CET and CEST (POSIX TZ): no database of time zones is needed.
    TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("a zone")
}

#[test]
fn the_next_time_is_the_first_that_matches() {
    for (expression, zone, after, next) in [
        ("*/15 * * * *", TimeZone::UTC, "2026-11-26T08:15:00Z", "2026-11-26T08:30:00Z"),
        ("0 6,18 * * *", TimeZone::UTC, "2026-11-26T18:00:00Z", "2026-11-27T06:00:00Z"),
        ("30 9 * * mon-fri", TimeZone::UTC, "2026-11-27T09:30:00Z", "2026-11-30T09:30:00Z"),
        ("0 0 29 2 *", TimeZone::UTC, "2026-11-26T00:00:00Z", "2028-02-29T00:00:00Z"),
        ("0 12 * * 7", TimeZone::UTC, "2026-11-26T00:00:00Z", "2026-11-29T12:00:00Z"),
        // Either day field is enough when both are given (crontab(5)).
        ("0 0 13 * fri", TimeZone::UTC, "2026-11-26T00:00:00Z", "2026-11-27T00:00:00Z"),
        ("59 23 31 dec *", TimeZone::UTC, "2026-11-26T00:00:00Z", "2026-12-31T23:59:00Z"),
        ("5/20 8 * * *", TimeZone::UTC, "2026-11-26T08:06:00Z", "2026-11-26T08:25:00Z"),
        ("0 8 * * *", berlin(), "2026-11-26T00:00:00Z", "2026-11-26T07:00:00Z"),
        ("0 8 * * *", berlin(), "2026-07-01T00:00:00Z", "2026-07-01T06:00:00Z"),
        // 2:30 is left out on 29 March 2026.
        ("30 2 * * *", berlin(), "2026-03-29T00:00:00Z", "2026-03-29T01:30:00Z"),
    ] {
        let parsed: CalendarExpression = expression.parse().expect(expression);
        assert_eq!(parsed.next(at(after), &zone), Some(at(next)), "{expression} after {after}");
    }
}

#[test]
fn what_is_no_expression_is_named() {
    for (text, part) in [
        ("", "has 0"),
        ("* * * *", "has 4"),
        ("60 * * * *", "\"60\" is no minute: expected 0 to 59"),
        ("* 24 * * *", "\"24\" is no hour"),
        ("* * 0 * *", "\"0\" is no day of the month"),
        ("* * * 13 *", "\"13\" is no month"),
        ("* * * * 8", "\"8\" is no day of the week"),
        ("*/0 * * * *", "\"*/0\" is no minute"),
        ("9-3 * * * *", "\"9-3\" is no minute"),
        ("1,,2 * * * *", "\"\" is no minute"),
        ("0 0 30 feb *", "no day is ever"),
    ] {
        let error = text.parse::<CalendarExpression>().expect_err(text);
        assert!(error.contains(part), "{text}: {error}");
    }
    for text in ["22:00", "22-06", "22:00-22:00", "24:00-06:00", "aa:bb-cc:dd"] {
        assert!(text.parse::<QuietHours>().is_err(), "{text}");
    }
}

#[test]
fn quiet_hours_may_pass_midnight() {
    for (hours, time, is_quiet) in [
        ("22:00-06:00", "2026-11-26T23:00:00Z", true),
        ("22:00-06:00", "2026-11-26T05:59:59Z", true),
        ("22:00-06:00", "2026-11-26T06:00:00Z", false),
        ("09:00-17:00", "2026-11-26T12:00:00Z", true),
        ("09:00-17:00", "2026-11-26T17:00:00Z", false),
    ] {
        let parsed: QuietHours = hours.parse().expect(hours);
        assert_eq!(parsed.contains(at(time), &TimeZone::UTC), is_quiet, "{hours} {time}");
    }
}

#[test]
fn hours_of_the_week_begin_on_monday() {
    assert_eq!(hour_of_week(at("2026-11-23T00:00:00Z"), &TimeZone::UTC), 0);
    assert_eq!(hour_of_week(at("2026-11-29T23:59:59Z"), &TimeZone::UTC), 167);
    assert_eq!(hour_of_week(at("2026-11-22T23:00:00Z"), &berlin()), 0);
}

proptest! {
    /// Each time comes once, the next one is later than the one before, and by no more than period and jitter.
    #[test]
    fn periodic_tests_come_once_a_period(host in "[a-z]{1,8}", period in 1_u64..100_000, jitter in 0_u64..100_000, begin in 0_u64..2_000_000_000) {
        let schedule = MonitorSchedule::Every(Duration::from_secs(period));
        let jitter = Duration::from_secs(jitter.min(period / 2));
        let mut after = WallTime::from_unix(Duration::from_secs(begin));
        let mut times = Vec::new();
        for _ in 0..5 {
            after = schedule.next(&host, after, jitter, &TimeZone::UTC).expect("a time");
            times.push(after.since_unix_epoch());
        }
        for pair in times.windows(2) {
            prop_assert!(pair[1] > pair[0]);
            prop_assert!(pair[1].saturating_sub(pair[0]) <= Duration::from_secs(period) + jitter, "{times:?}");
        }
        let all = times[4].saturating_sub(times[0]);
        prop_assert!(all + jitter >= Duration::from_secs(period) * 4, "{times:?}");
    }

    #[test]
    fn expressions_are_parsed_without_a_panic(text in "[-*/,0-9a-z ]{0,40}") {
        if let Ok(expression) = text.parse::<CalendarExpression>() {
            let first = expression.next(WallTime::default(), &TimeZone::UTC).expect("it was checked");
            let second = expression.next(first, &TimeZone::UTC).expect("a further one");
            prop_assert!(second > first);
        }
    }
}
