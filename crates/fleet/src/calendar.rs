//! Times at which a monitor tests: every so often, or by a calendar expression, but for quiet hours.

use core::time::Duration;
use std::str::FromStr;

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use linerate_units::WallTime;

use crate::identity::hash;

/// Days that are searched for the next time of an expression: 29 February comes within eight years.
const SEARCHED_DAYS: u32 = 366 * 8 + 2;

/// Times of a monitor's tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MonitorSchedule {
    /// At multiples of this time since 1970, each host of the monitor with its own offset.
    Every(Duration),
    /// At the times of a calendar.
    Calendar(CalendarExpression),
}

impl MonitorSchedule {
    /// Next time after `after` for a host, later by up to `jitter`: the same for the same host and time.
    #[must_use]
    pub fn next(&self, host: &str, after: WallTime, jitter: Duration, zone: &TimeZone) -> Option<WallTime> {
        // A time with its jitter may still come, although the time itself is over.
        let earliest = after.since_unix_epoch().saturating_sub(jitter);
        let mut base = earliest;
        for _ in 0..SEARCHED_DAYS {
            base = match self {
                Self::Every(period) => next_multiple(base, *period, host)?,
                Self::Calendar(expression) => expression.next(WallTime::from_unix(base), zone)?.since_unix_epoch(),
            };
            let at = base.checked_add(offset(host, base, jitter))?;
            if at > after.since_unix_epoch() {
                return Some(WallTime::from_unix(at));
            }
        }
        None
    }
}

/// Offset of a host's test below `limit`, which follows from the names alone.
fn offset(host: &str, base: Duration, limit: Duration) -> Duration {
    let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
    if limit == 0 {
        return Duration::ZERO;
    }
    Duration::from_nanos(hash(&[host, &base.as_secs().to_string()]) % limit)
}

/// Next multiple after a time, moved by the host's part of the period in whole seconds: tests of several hosts do not meet.
fn next_multiple(after: Duration, period: Duration, host: &str) -> Option<Duration> {
    let period = u64::try_from(period.as_nanos()).ok().filter(|period| *period > 0)?;
    let after = u64::try_from(after.as_nanos()).ok()?;
    let phase = hash(&[host]) % period / 1_000_000_000 * 1_000_000_000;
    let count = match after.checked_sub(phase) {
        None => 0,
        Some(since) => since / period + 1,
    };
    count.checked_mul(period)?.checked_add(phase).map(Duration::from_nanos)
}

/// Calendar expression of five fields, as in crontab(5): minute, hour, day of the month, month and day of the week. Each is
/// `*`, a number, a range, a list of them, with steps (`*/15`); months and days of the week also have their English names.
/// As there, a day matches when either of the two day fields does, unless one of them is `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalendarExpression {
    minutes: FieldSet,
    hours: FieldSet,
    days: FieldSet,
    months: FieldSet,
    weekdays: FieldSet,
}

/// Values of a field, as bits, and whether it is `*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FieldSet {
    bits: u64,
    is_any: bool,
}

impl FieldSet {
    const fn has(self, value: u8) -> bool {
        self.bits >> value & 1 == 1
    }
}

/// Name and limits of a field, and names of its values.
struct FieldKind {
    name: &'static str,
    first: u8,
    last: u8,
    names: &'static [&'static str],
}

const FIELDS: [FieldKind; 5] = [
    FieldKind { name: "minute", first: 0, last: 59, names: &[] },
    FieldKind { name: "hour", first: 0, last: 23, names: &[] },
    FieldKind { name: "day of the month", first: 1, last: 31, names: &[] },
    FieldKind {
        name: "month",
        first: 1,
        last: 12,
        names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    },
    // Both 0 and 7 are Sunday.
    FieldKind { name: "day of the week", first: 0, last: 7, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] },
];

impl FromStr for CalendarExpression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields.as_slice() else {
            return Err(format!(
                "a calendar expression has five fields: minute, hour, day, month, day of the week; {text:?} has {}",
                fields.len()
            ));
        };
        let [minute, hour, day, month, weekday] = &FIELDS;
        let mut weekdays = weekday.parse(weekdays)?;
        weekdays.bits |= weekdays.bits >> 7 & 1;
        let expression = Self {
            minutes: minute.parse(minutes)?,
            hours: hour.parse(hours)?,
            days: day.parse(days)?,
            months: month.parse(months)?,
            weekdays,
        };
        expression.next(WallTime::default(), &TimeZone::UTC).ok_or_else(|| format!("no day is ever {text:?}"))?;
        Ok(expression)
    }
}

impl FieldKind {
    fn parse(&self, text: &str) -> Result<FieldSet, String> {
        let mut bits = 0;
        for part in text.split(',') {
            bits |= self.part(part).ok_or_else(|| {
                format!(
                    "{part:?} is no {}: expected {} to {}, *, a range, a list or a step",
                    self.name, self.first, self.last
                )
            })?;
        }
        Ok(FieldSet { bits, is_any: text.starts_with('*') })
    }

    fn part(&self, text: &str) -> Option<u64> {
        let (range, step) = match text.split_once('/') {
            None => (text, None),
            Some((range, step)) => (range, Some(step.parse::<u8>().ok().filter(|step| *step > 0)?)),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (self.first, self.last),
            None => {
                let value = self.value(range)?;
                (value, if step.is_some() { self.last } else { value })
            }
            Some((first, last)) => (self.value(first)?, self.value(last)?),
        };
        (first <= last)
            .then(|| (first..=last).step_by(usize::from(step.unwrap_or(1))).fold(0, |bits, value| bits | 1 << value))
    }

    fn value(&self, text: &str) -> Option<u8> {
        let name = self.names.iter().zip(self.first..).find(|(name, _)| name.eq_ignore_ascii_case(text));
        let number = || text.parse().ok().filter(|value| (self.first..=self.last).contains(value));
        name.map(|(_, value)| value).or_else(number)
    }
}

impl CalendarExpression {
    /// First matching time after `after`, in the calendar of a time zone; `None` without one before the calendar ends. A time
    /// that a change to summer time leaves out comes an hour later.
    #[must_use]
    pub fn next(&self, after: WallTime, zone: &TimeZone) -> Option<WallTime> {
        let nanoseconds = i128::try_from(after.since_unix_epoch().as_nanos()).ok()?;
        let begin = Timestamp::from_nanosecond(nanoseconds).ok()?;
        let mut date = begin.to_zoned(zone.clone()).date();
        for _ in 0..SEARCHED_DAYS {
            if self.matches(date)
                && let Some(found) = self.first_on(date, begin, zone)
            {
                return Some(found);
            }
            date = date.checked_add(1.day()).ok()?;
        }
        None
    }

    fn matches(&self, date: Date) -> bool {
        let number = |value: i8| u8::try_from(value).unwrap_or_default();
        let is_day = self.days.has(number(date.day()));
        let is_weekday = self.weekdays.has(number(date.weekday().to_sunday_zero_offset()));
        let is_either =
            if self.days.is_any || self.weekdays.is_any { is_day && is_weekday } else { is_day || is_weekday };
        self.months.has(number(date.month())) && is_either
    }

    fn first_on(&self, date: Date, begin: Timestamp, zone: &TimeZone) -> Option<WallTime> {
        let times = (0..24_u8)
            .filter(|hour| self.hours.has(*hour))
            .flat_map(|hour| (0..60_u8).filter(|minute| self.minutes.has(*minute)).map(move |minute| (hour, minute)));
        for (hour, minute) in times {
            let time = Time::new(i8::try_from(hour).ok()?, i8::try_from(minute).ok()?, 0, 0).ok()?;
            let found = date.to_datetime(time).to_zoned(zone.clone()).ok()?.timestamp();
            if found > begin {
                let nanoseconds = u64::try_from(found.as_nanosecond()).ok()?;
                return Some(WallTime::from_unix(Duration::from_nanos(nanoseconds)));
            }
        }
        None
    }
}

/// Hours of each day in which no test starts, such as `22:00-06:00`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuietHours {
    from: Time,
    to: Time,
}

impl FromStr for QuietHours {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let time = |part: &str| (part.len() == 5).then(|| part.parse::<Time>().ok()).flatten();
        let parsed = text.split_once('-').and_then(|(from, to)| Some(Self { from: time(from)?, to: time(to)? }));
        parsed
            .filter(|hours| hours.from != hours.to)
            .ok_or_else(|| format!("expected hours such as 22:00-06:00, not {text:?}"))
    }
}

impl QuietHours {
    /// True at a time within the hours of a time zone.
    #[must_use]
    pub fn contains(&self, at: WallTime, zone: &TimeZone) -> bool {
        let Ok(seconds) = i64::try_from(at.since_unix_epoch().as_secs()) else { return false };
        let Ok(timestamp) = Timestamp::from_second(seconds) else { return false };
        let time = timestamp.to_zoned(zone.clone()).time();
        if self.from < self.to { (self.from..self.to).contains(&time) } else { time >= self.from || time < self.to }
    }
}

/// Hour of the week in a time zone, 0 to 167 from Monday 0:00.
#[must_use]
pub fn hour_of_week(at: WallTime, zone: &TimeZone) -> u8 {
    let seconds = i64::try_from(at.since_unix_epoch().as_secs()).unwrap_or_default();
    let zoned = Timestamp::from_second(seconds).unwrap_or_default().to_zoned(zone.clone());
    let day = zoned.weekday().since(Weekday::Monday);
    u8::try_from(day).unwrap_or_default() * 24 + u8::try_from(zoned.hour()).unwrap_or_default()
}
