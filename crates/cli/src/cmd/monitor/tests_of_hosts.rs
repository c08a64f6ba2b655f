//! Tests of a monitor at their times, one after the other.

use std::sync::PoisonError;

use linerate_documents::fleet_result::FleetTestKind;
use linerate_sys::clock::realtime_now;
use linerate_units::{WallTime, display};

use super::{Monitor, TEST_TASK, guard};
use crate::console;
use crate::planned::{PlannedTest, PlannedWait, WaitEnding};
use crate::recorder;

impl Monitor<'_> {
    /// Runs tests until the end.
    pub(super) fn test(&self) {
        let mut after = realtime_now();
        let mut busy_until = after;
        while let Some((at, host)) = self.next_test(after) {
            let wait = PlannedWait { interrupts: &self.interrupts, guard: guard(self.arguments.every) };
            match wait.until(at, || self.is_over()) {
                WaitEnding::Due => {
                    self.start_test(host, at);
                    busy_until = realtime_now();
                }
                // Behind the tests of other hosts, a test is only late.
                WaitEnding::Missed(_) if at < busy_until => {
                    self.start_test(host, at);
                    busy_until = realtime_now();
                }
                WaitEnding::Missed(late) => {
                    let reason =
                        format!("this host was asleep, or its clock was set: {} late", display::duration(late));
                    self.skip(host, at, reason);
                    // Of all that was missed, this one is recorded.
                    after = realtime_now();
                    continue;
                }
                WaitEnding::ClockSet => {
                    after = realtime_now();
                    continue;
                }
                WaitEnding::Over => return,
            }
            after = at;
        }
        console::note("no test is ever due");
    }

    /// Next test of all hosts; several at one time come in the order of their names.
    fn next_test(&self, after: WallTime) -> Option<(WallTime, &str)> {
        let hosts = self.arguments.hosts.iter();
        let next = hosts.filter_map(|host| {
            Some((self.schedule.next(host, after, self.arguments.jitter, &self.zone)?, host.as_str()))
        });
        next.min()
    }

    /// Starts a test, unless something forbids it; true at an alert.
    pub(super) fn start_test(&self, host: &str, at: WallTime) -> bool {
        if self.arguments.quiet_hours.iter().any(|hours| hours.contains(realtime_now(), &self.zone)) {
            self.skip(host, at, "quiet hours".to_owned());
            return false;
        }
        let refusal = self.budget.lock().unwrap_or_else(PoisonError::into_inner).refusal(host, realtime_now());
        if let Some(reason) = refusal {
            self.skip(host, at, reason);
            return false;
        }
        let (words, kind) = self.arguments.test_words(host);
        let test = self.planned(host, at, kind);
        let _mark = self.keeper.mark(&test);
        self.set_last_test(Some((realtime_now(), None)));
        let ending = self.program.run(&words, self.arguments.test_limit(), self.interrupts);
        let began = self.last_test.lock().unwrap_or_else(PoisonError::into_inner).map(|(began, _)| began);
        self.set_last_test(began.map(|began| (began, Some(realtime_now()))));
        if let Some(run) = &ending.run {
            recorder::keep_silently(run);
            self.budget.lock().unwrap_or_else(PoisonError::into_inner).add(host, at, run.transferred_bytes());
        }
        let result = test.ended(ending);
        self.keeper.keep(&result);
        self.alarm.judge(&result)
    }

    fn set_last_test(&self, times: Option<(WallTime, Option<WallTime>)>) {
        *self.last_test.lock().unwrap_or_else(PoisonError::into_inner) = times;
    }

    fn skip(&self, host: &str, at: WallTime, reason: String) {
        let (_, kind) = self.arguments.test_words(host);
        self.keeper.keep(&self.planned(host, at, kind).skipped(reason));
    }

    fn planned(&self, host: &str, at: WallTime, kind: FleetTestKind) -> PlannedTest {
        PlannedTest {
            task: TEST_TASK.to_owned(),
            test: kind,
            source: self.source.clone(),
            destination: host.to_owned(),
            at,
            is_light: false,
        }
    }

    /// True when a test ran at some time after `since`.
    pub(super) fn was_testing(&self, since: WallTime) -> bool {
        let last = self.last_test.lock().unwrap_or_else(PoisonError::into_inner);
        last.is_some_and(|(_, end)| end.is_none_or(|end| end > since))
    }
}
