//! `linerate monitor HOST…`: light probes all the time, tests on a schedule, and alerts.

mod alarm;
mod arguments;
mod budget;
mod probes;
mod tests_of_hosts;

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use jiff::tz::TimeZone;
use linerate_documents::fleet_result::FleetResult;
use linerate_fleet::MonitorSchedule;
use linerate_history::result_log::ResultLog;
use linerate_sys::clock::{monotonic_now, realtime_now};
use linerate_sys::host::host_name;
use linerate_sys::signals::InterruptSignals;
use linerate_units::{MonotonicTime, WallTime};

pub(crate) use arguments::MonitorArguments;

use alarm::Alarm;
use budget::DataBudget;

use crate::cmd::measurement::interrupts;
use crate::console;
use crate::exit::ExitStatus;
use crate::export::{Exporter, ProbeHost};
use crate::planned::{ResultKeeper, TestProgram};

/// Name of the task of tests, and of light probes.
const TEST_TASK: &str = "test";
const PROBE_TASK: &str = "probe";

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Running monitor.
struct Monitor<'a> {
    arguments: &'a MonitorArguments,
    schedule: MonitorSchedule,
    /// Time zone of this host.
    zone: TimeZone,
    /// Name of this host.
    source: String,
    program: TestProgram,
    interrupts: InterruptSignals,
    keeper: ResultKeeper,
    alarm: Alarm,
    budget: Mutex<DataBudget>,
    /// Time of the last test's beginning and end, for probes that ran beside it.
    last_test: Mutex<Option<(WallTime, Option<WallTime>)>>,
    /// Time of the end, with `--for`.
    end: Option<MonotonicTime>,
}

pub(crate) fn run(arguments: &MonitorArguments) -> ExitStatus {
    let interrupts = match interrupts() {
        Ok(interrupts) => interrupts,
        Err(exit) => return exit,
    };
    let monitor = match prepare(arguments, interrupts) {
        Ok(monitor) => monitor,
        Err(reason) => {
            console::error(&format!("monitor: {reason}"), None);
            return ExitStatus::Unable;
        }
    };
    let host = |host: &String| ProbeHost { name: host.clone(), address: host.clone() };
    let hosts = arguments.hosts.iter().map(host).collect();
    let exporter = match Exporter::start(&arguments.export, monitor.keeper.log(), hosts) {
        Ok(exporter) => exporter,
        Err(reason) => {
            console::error(&format!("monitor: {reason}"), None);
            return ExitStatus::Unable;
        }
    };
    let exit = monitor.run();
    monitor.keeper.finish();
    drop(exporter);
    exit
}

/// Reads the log, and prepares everything.
fn prepare(arguments: &MonitorArguments, interrupts: InterruptSignals) -> Result<Monitor<'_>, String> {
    let log = arguments.results.open_log()?;
    let now = realtime_now();
    let first_kept = WallTime::from_unix(now.since_unix_epoch().saturating_sub(DAY * arguments.keep_days));
    log.delete_before(first_kept, now).map_err(|error| error.to_string())?;
    let zone = TimeZone::system();
    let read = ResultLog::read(&[log.directory().to_owned()]).map_err(|error| error.to_string())?;
    let source = host_name();
    let alarm = Alarm::new(&source, &read.results, zone.clone(), arguments.on_alert.clone());
    let is_own = |result: &&FleetResult| arguments.hosts.contains(&result.destination);
    let budget = DataBudget::new(arguments.daily_data, read.results.iter().filter(is_own), zone.clone());
    let schedule = match &arguments.calendar {
        Some(expression) => MonitorSchedule::Calendar(expression.clone()),
        None => MonitorSchedule::Every(arguments.every),
    };
    Ok(Monitor {
        arguments,
        schedule,
        zone,
        source,
        program: TestProgram::new(&arguments.tls)?,
        interrupts,
        keeper: ResultKeeper::new(log, arguments.results.json),
        alarm,
        budget: Mutex::new(budget),
        last_test: Mutex::default(),
        end: arguments.duration.map(|duration| monotonic_now() + duration),
    })
}

impl Monitor<'_> {
    fn is_over(&self) -> bool {
        self.interrupts.pending().is_some()
            || self.keeper.is_unheard()
            || self.end.is_some_and(|end| monotonic_now() >= end)
    }

    fn run(&self) -> ExitStatus {
        if self.arguments.once {
            return self.once();
        }
        thread::scope(|scope| {
            if !self.arguments.no_probes {
                for host in &self.arguments.hosts {
                    scope.spawn(|| self.probe(host));
                }
            }
            self.test();
        });
        ExitStatus::Success
    }

    /// One test of each host, now.
    fn once(&self) -> ExitStatus {
        let mut exit = ExitStatus::Success;
        for host in &self.arguments.hosts {
            if self.is_over() {
                return ExitStatus::Partial;
            }
            if self.start_test(host, realtime_now()) {
                exit = ExitStatus::Missed;
            }
        }
        exit
    }
}

/// Largest lateness of a start: a sleep of this host or a step of its clock is longer.
fn guard(period: Duration) -> Duration {
    (period / 2).clamp(Duration::from_secs(5), Duration::from_secs(300))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_may_be_late_by_half_a_period_within_bounds() {
        let seconds = Duration::from_secs;
        assert_eq!(guard(seconds(2)), seconds(5));
        assert_eq!(guard(seconds(60)), seconds(30));
        assert_eq!(guard(seconds(86400)), seconds(300));
    }
}
