//! Light probes of one host: delay, loss and route, by STAMP or ICMP.

use std::time::Duration;

use linerate_documents::fleet_result::SessionOutcome;
use linerate_sys::clock::realtime_now;
use linerate_units::{WallTime, display};

use super::{Monitor, PROBE_TASK, guard};
use crate::planned::{PlannedTest, PlannedWait, WaitEnding};

/// Mean time between two packets.
const INTERVAL: Duration = Duration::from_millis(500);

/// Smallest number of packets of `linerate path`.
const MIN_PACKETS: u32 = 10;

/// Time that a probe takes besides its packets: path MTU and hops.
const OVERHEAD: Duration = Duration::from_secs(8);

impl Monitor<'_> {
    /// Probes a host until the end.
    pub(super) fn probe(&self, host: &str) {
        let period = self.arguments.probe_every.max(OVERHEAD + INTERVAL * MIN_PACKETS);
        let packets = period.saturating_sub(OVERHEAD).as_millis() / INTERVAL.as_millis();
        let words =
            ["path", host, "--no-server", "--no-capacity", "--count", &packets.to_string(), "--interval", "500ms"]
                .map(str::to_owned);
        let wait = PlannedWait { interrupts: &self.interrupts, guard: guard(period) };
        let mut after = realtime_now();
        loop {
            let at = next_multiple(after, period);
            match wait.until(at, || self.is_over()) {
                WaitEnding::Due => self.start_probe(host, at, &words, period),
                WaitEnding::Missed(late) => {
                    let reason =
                        format!("this host was asleep, or its clock was set: {} late", display::duration(late));
                    self.keeper.keep(&planned(&self.source, host, at).skipped(reason));
                }
                WaitEnding::ClockSet => {}
                WaitEnding::Over => return,
            }
            after = realtime_now().max(at);
        }
    }

    fn start_probe(&self, host: &str, at: WallTime, words: &[String], period: Duration) {
        let mut ending = self.program.run(words, period + OVERHEAD, self.interrupts);
        // The end of this monitor is no failure of the path.
        if self.interrupts.pending().is_some() {
            return;
        }
        if ending.outcome == SessionOutcome::Done && self.was_testing(at) {
            ending.reason = Some("a test of this monitor ran at the same time".to_owned());
        }
        let result = planned(&self.source, host, at).ended(ending);
        self.keeper.keep(&result);
        if result.reason.is_none() || result.outcome == SessionOutcome::Failed {
            self.alarm.judge(&result);
        }
    }
}

fn planned(source: &str, host: &str, at: WallTime) -> PlannedTest {
    PlannedTest {
        task: PROBE_TASK.to_owned(),
        test: "rtt".to_owned(),
        source: source.to_owned(),
        destination: host.to_owned(),
        at,
        is_light: true,
    }
}

fn next_multiple(after: WallTime, period: Duration) -> WallTime {
    let (after, period) = (after.since_unix_epoch().as_nanos(), period.as_nanos().max(1));
    WallTime::from_unix(Duration::from_nanos(u64::try_from((after / period + 1) * period).unwrap_or(u64::MAX)))
}
