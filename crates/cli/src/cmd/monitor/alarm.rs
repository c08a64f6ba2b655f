//! Alerts: deciding on them with each result, saying them, and running the user's command.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::tz::TimeZone;
use linerate_documents::fleet_result::FleetResult;
use linerate_fleet::{AlertKind, MonitorAlert, MonitorSample, REMEMBERED, TestFacts, alerts};
use linerate_sys::clock::monotonic_now;
use linerate_sys::command_stream::{CommandEnding, StreamedCommand, stream};
use linerate_units::{BitRate, Ratio, display};

use crate::console;

/// Longest time of the user's command.
const COMMAND_LIMIT: Duration = Duration::from_secs(30);

/// Largest number of differences of the environment that are said.
const SHOWN_DIFFERENCES: usize = 5;

/// Earlier results of a host.
#[derive(Default)]
struct HostHistory {
    samples: Vec<MonitorSample>,
    /// Facts around the latest results.
    facts: TestFacts,
}

/// Alerts of a monitor.
pub(super) struct Alarm {
    hosts: Mutex<HashMap<String, HostHistory>>,
    zone: TimeZone,
    command: Option<String>,
}

impl Alarm {
    /// Alarm that knows the results of a log.
    pub(super) fn new(source: &str, results: &[FleetResult], zone: TimeZone, command: Option<String>) -> Self {
        let alarm = Self { hosts: Mutex::default(), zone, command };
        let mut hosts = alarm.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        for result in results.iter().filter(|result| result.source == source) {
            hosts.entry(result.destination.clone()).or_default().add(result);
        }
        drop(hosts);
        alarm
    }

    /// Takes a result in, and says and runs what it is an alert for; true when there is one.
    pub(super) fn judge(&self, result: &FleetResult) -> bool {
        let (found, changes) = {
            let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
            let host = hosts.entry(result.destination.clone()).or_default();
            let changes = host.changes(result);
            host.add(result);
            (alerts(&result.destination, &host.samples, &self.zone, show), changes)
        };
        for alert in &found {
            self.say(alert, &changes);
        }
        !found.is_empty()
    }

    fn say(&self, alert: &MonitorAlert, changes: &[String]) {
        let mut text = alert.text.clone();
        // What changed explains a host that answers.
        if alert.kind != AlertKind::Unreachable && !changes.is_empty() {
            text = format!("{text}; changed since the result before: {}", changes.join(", "));
        }
        console::note(&format!("alert: {}: {text}", alert.destination));
        let Some(command) = &self.command else { return };
        if let Err(reason) = run_command(command, alert, &text) {
            console::note(&format!("warning: the command of --on-alert: {reason}"));
        }
    }
}

impl HostHistory {
    fn add(&mut self, result: &FleetResult) {
        let oldest = result.at().since_unix_epoch().saturating_sub(REMEMBERED);
        let expired = self.samples.partition_point(|sample| sample.at().since_unix_epoch() < oldest);
        self.samples.drain(..expired);
        self.samples.push(MonitorSample::of(result));
        self.facts.update(TestFacts::of(result));
    }

    /// Differences of the environment, the route and the like from the results before.
    fn changes(&self, result: &FleetResult) -> Vec<String> {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
        let changes = self.facts.changes_to(&TestFacts::of(result));
        let shown = changes.iter().take(SHOWN_DIFFERENCES);
        shown.map(|one| format!("{} {} → {}", one.key, value(&one.before), value(&one.after))).collect()
    }
}

/// Value of a watched figure, in the unit of its document.
fn show(name: &str, value: f64) -> String {
    match name {
        "goodput_up" | "goodput_down" => display::rate(BitRate::from_bits_per_second(value)),
        "loss_up" | "loss_down" => Ratio::new(value).map(display::percent).unwrap_or_default(),
        _ => Duration::try_from_secs_f64(value / 1e9).map(display::duration).unwrap_or_default(),
    }
}

fn run_command(command: &str, alert: &MonitorAlert, text: &str) -> Result<(), String> {
    let environment = [
        ("LINERATE_ALERT_KIND", alert.kind.name()),
        ("LINERATE_ALERT_HOST", alert.destination.as_str()),
        ("LINERATE_ALERT_TEXT", text),
    ];
    let command = StreamedCommand {
        program: "sh",
        arguments: &["-c", command],
        directory: Path::new("/"),
        environment: &environment,
        interrupts: None,
        deadline: Some(monotonic_now() + COMMAND_LIMIT),
    };
    match stream(&command, &mut |_| {}) {
        Ok(CommandEnding::Status(status)) if status.success() => Ok(()),
        Ok(CommandEnding::Status(status)) => Err(format!("it ended with {status}")),
        Ok(_) => Err(format!("it took longer than {}, and was ended", display::duration(COMMAND_LIMIT))),
        Err(error) => Err(error.to_string()),
    }
}
