//! Light probes of one host: delay, loss and route, by STAMP or ICMP.

use std::time::{Duration, UNIX_EPOCH};

use jiff::Timestamp;
use linerate_documents::fleet_result::{FleetResult, FleetTestKind, SessionOutcome};
use linerate_fleet::{HopChange, hop_changes};
use linerate_sys::clock::realtime_now;
use linerate_units::{WallTime, display};

use super::{Monitor, PROBE_TASK, guard};
use crate::console;
use crate::planned::{PlannedTest, PlannedWait, WaitEnding};

/// Mean time between two packets.
const INTERVAL: Duration = Duration::from_millis(500);

/// Smallest number of packets of `linerate path`.
const MIN_PACKETS: u32 = 10;

/// Time that a probe takes besides its packets: path MTU and hops.
const OVERHEAD: Duration = Duration::from_secs(8);

/// Time after which the path MTU is searched again: the search takes some seconds of a probe.
const MTU_PERIOD: Duration = Duration::from_secs(24 * 3600);

/// Last search for the path MTU of a host.
#[derive(Debug, Default)]
struct MtuSearch {
    /// Time of the probe that found it.
    found: Option<WallTime>,
    route: Vec<String>,
}

impl MtuSearch {
    fn is_due(&self, at: WallTime) -> bool {
        self.found.is_none_or(|found| at.since_unix_epoch().abs_diff(found.since_unix_epoch()) >= MTU_PERIOD)
    }

    /// Takes a probe in: the path MTU of another route is searched by the next probe. Returns the changes of the route.
    fn note(&mut self, probe: &FleetResult) -> Vec<HopChange> {
        let mut changes = Vec::new();
        if !probe.route.is_empty() && probe.route != self.route {
            if !self.route.is_empty() {
                changes = hop_changes(&self.route, &probe.route);
            }
            self.found = self.found.filter(|_| changes.is_empty() && !self.route.is_empty());
            self.route.clone_from(&probe.route);
        }
        if probe.figure("mtu_up").is_some() {
            self.found = Some(probe.at());
        }
        changes
    }
}

impl Monitor<'_> {
    /// Probes a host until the end.
    pub(super) fn probe(&self, host: &str) {
        let period = self.arguments.probe_every.max(OVERHEAD + INTERVAL * MIN_PACKETS);
        let packets = period.saturating_sub(OVERHEAD).as_millis() / INTERVAL.as_millis();
        let words =
            ["path", host, "--no-server", "--no-capacity", "--count", &packets.to_string(), "--interval", "500ms"]
                .map(str::to_owned);
        let mut search = MtuSearch::default();
        let wait = PlannedWait { interrupts: &self.interrupts, guard: guard(period) };
        let mut after = realtime_now();
        loop {
            let at = next_multiple(after, period);
            match wait.until(at, || self.is_over()) {
                WaitEnding::Due => self.start_probe((host, at), &words, period, &mut search),
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

    fn start_probe(&self, (host, at): (&str, WallTime), words: &[String], period: Duration, search: &mut MtuSearch) {
        let mut words = words.to_vec();
        words.extend((!search.is_due(at)).then(|| "--no-mtu".to_owned()));
        let mut ending = self.program.run(&words, period + OVERHEAD, self.interrupts);
        // The end of this monitor is no failure of the path.
        if self.interrupts.pending().is_some() {
            return;
        }
        if ending.outcome == SessionOutcome::Done && self.was_testing(at) {
            ending.reason = Some("a test of this monitor ran at the same time".to_owned());
        }
        let result = planned(&self.source, host, at).ended(ending);
        for change in search.note(&result) {
            let time = Timestamp::try_from(UNIX_EPOCH + at.since_unix_epoch()).unwrap_or_default();
            let time = time.to_zoned(self.zone.clone()).strftime("%F %T%:z");
            let HopChange { hop, before, after } = change;
            console::note(&format!("{host}: hop {hop} changed from {before} to {after} at {time}"));
        }
        self.keeper.keep(&result);
        if result.reason.is_none() || result.outcome == SessionOutcome::Failed {
            self.alarm.judge(&result);
        }
    }
}

fn planned(source: &str, host: &str, at: WallTime) -> PlannedTest {
    PlannedTest {
        task: PROBE_TASK.to_owned(),
        test: FleetTestKind::Rtt,
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

#[cfg(test)]
mod tests {
    use linerate_documents::run::{FigureUnit, ImprovementDirection, RunFigure};

    use super::*;

    #[test]
    fn the_path_mtu_is_searched_once_a_day_and_on_another_route() {
        let at = |hours: u64| WallTime::from_unix(Duration::from_secs(hours * 3600));
        let probe = |hours, route: &str, mtu: Option<f64>| {
            let mut figure = RunFigure::new("mtu_up", "MTU", FigureUnit::Bytes, ImprovementDirection::Higher);
            figure.value = mtu;
            let route = route.split_whitespace().map(str::to_owned).collect();
            FleetResult { route, figures: vec![figure], ..planned("here", "there", at(hours)).skipped(String::new()) }
        };
        let mut search = MtuSearch::default();
        assert!(search.is_due(at(1)));
        // No echo was answered: it is searched again.
        search.note(&probe(1, "a b", None));
        assert!(search.is_due(at(2)));
        search.note(&probe(2, "a b", Some(1500.0)));
        assert!(!search.is_due(at(3)) && !search.is_due(at(25)) && search.is_due(at(26)));
        // A probe that did not look for the route says nothing of it.
        search.note(&probe(3, "", None));
        assert!(!search.is_due(at(4)));
        let changes = search.note(&probe(4, "a c", None));
        assert_eq!(
            changes.iter().map(|one| (one.hop, one.before.as_str(), one.after.as_str())).collect::<Vec<_>>(),
            [(2, "b", "c")]
        );
        assert!(search.is_due(at(5)));
        search.note(&probe(5, "a c", Some(1400.0)));
        assert!(!search.is_due(at(6)));
    }
}
