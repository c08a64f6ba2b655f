//! Volume of the tests of a day.

use std::collections::HashMap;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use linerate_documents::fleet_result::FleetResult;
use linerate_units::{ByteCount, WallTime, display};

use super::TEST_TASK;

/// Volume of today's tests, and of the last test of each host.
pub(super) struct DataBudget {
    limit: Option<ByteCount>,
    zone: TimeZone,
    day: Option<Date>,
    used: u64,
    last: HashMap<String, u64>,
}

impl DataBudget {
    /// Budget after the results of a log, which has those of today from before a restart.
    pub(super) fn new<'a>(
        limit: Option<ByteCount>,
        results: impl Iterator<Item = &'a FleetResult>,
        zone: TimeZone,
    ) -> Self {
        let mut budget = Self { limit, zone, day: None, used: 0, last: HashMap::new() };
        for result in results.filter(|result| result.task == TEST_TASK) {
            if let Some(run) = &result.run {
                budget.add(&result.destination, result.at(), run.transferred_bytes());
            }
        }
        budget
    }

    /// Adds the volume of a test.
    pub(super) fn add(&mut self, host: &str, at: WallTime, bytes: u64) {
        self.begin_day(at);
        self.used = self.used.saturating_add(bytes);
        self.last.insert(host.to_owned(), bytes);
    }

    /// Reason why a test like the last one of the host does not fit; `None` when it does. The first one of a host does as long
    /// as anything is left.
    pub(super) fn refusal(&mut self, host: &str, now: WallTime) -> Option<String> {
        let limit = self.limit?;
        self.begin_day(now);
        let next = self.last.get(host).copied().unwrap_or(1);
        let fits = self.used.saturating_add(next) <= limit.get();
        let size = |bytes: u64| display::size(ByteCount::new(bytes));
        (!fits).then(|| {
            format!(
                "the data of the day: {} of {} are used, and a test takes {}",
                size(self.used),
                display::size(limit),
                size(next)
            )
        })
    }

    fn begin_day(&mut self, at: WallTime) {
        let seconds = i64::try_from(at.since_unix_epoch().as_secs()).unwrap_or_default();
        let day = Timestamp::from_second(seconds).unwrap_or_default().to_zoned(self.zone.clone()).date();
        if self.day != Some(day) {
            self.day = Some(day);
            self.used = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(hours: u64) -> WallTime {
        WallTime::from_unix(Duration::from_secs(hours * 3600))
    }

    #[test]
    fn a_day_has_its_own_budget() {
        let mut budget = DataBudget::new(Some(ByteCount::new(100)), std::iter::empty(), TimeZone::UTC);
        assert_eq!(budget.refusal("a", at(1)), None);
        budget.add("a", at(1), 60);
        let refusal = budget.refusal("a", at(2)).expect("120 bytes are too many");
        assert!(refusal.starts_with("the data of the day: 60 B of 100 B are used, and a test takes 60 B"), "{refusal}");
        // Another host's test is as large as its own last one, which is unknown.
        assert_eq!(budget.refusal("b", at(2)), None);
        assert_eq!(budget.refusal("a", at(24)), None);
        budget.add("b", at(24), 100);
        assert!(budget.refusal("b", at(25)).is_some());
    }

    #[test]
    fn without_a_limit_everything_fits() {
        let mut budget = DataBudget::new(None, std::iter::empty(), TimeZone::UTC);
        budget.add("a", at(1), u64::MAX);
        budget.add("a", at(1), u64::MAX);
        assert_eq!(budget.refusal("a", at(1)), None);
    }
}
