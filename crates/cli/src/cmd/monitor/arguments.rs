//! Command line of `linerate monitor`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use linerate_documents::fleet_result::FleetTestKind;
use linerate_fleet::{CalendarExpression, QuietHours};
use linerate_units::{ByteCount, Port};

use crate::cmd::tls::TlsArguments;
use crate::export::ExportArguments;
use crate::planned::ResultArguments;
use crate::values;

const EXAMPLES: &str = "Examples:\n  \
    linerate monitor server.example --every 30m --quiet-hours 09:00-17:00\n  \
    linerate monitor a.example b.example --at '0 */4 * * *' --daily-data 5GB\n  \
    linerate monitor server.example --once || mail -s slow admin    for a timer\n\n\
    Times are those of this host's time zone.";

/// `linerate monitor`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MonitorArguments {
    /// The hosts; tests need a `linerate serve` or an iperf3 server there, the light probes at best a STAMP reflector
    #[arg(required = true, value_name = "HOST")]
    pub(super) hosts: Vec<String>,
    /// Time between the tests of a host
    #[arg(long, value_name = "TIME", value_parser = values::duration, default_value = "15m", conflicts_with = "calendar")]
    pub(super) every: Duration,
    /// Times of the tests instead, as in crontab(5): minute, hour, day, month, day of the week
    #[arg(long = "at", value_name = "EXPRESSION")]
    pub(super) calendar: Option<CalendarExpression>,
    /// Longest delay of a test, which differs from time to time: not all hosts of a site test at once
    #[arg(long, value_name = "TIME", value_parser = values::delay, default_value = "0s")]
    pub(super) jitter: Duration,
    /// Hours without tests, for example 22:00-06:00; can be given several times
    #[arg(long, value_name = "HOURS")]
    pub(super) quiet_hours: Vec<QuietHours>,
    /// Largest volume of all tests of a day, from midnight on
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pub(super) daily_data: Option<ByteCount>,
    /// Test that is run
    #[arg(long, value_enum, default_value_t = MonitorTest::Test)]
    pub(super) test: MonitorTest,
    /// Time of each transfer
    #[arg(short, long, value_name = "TIME", value_parser = values::duration, default_value = "5s")]
    pub(super) time: Duration,
    /// Port of the servers
    #[arg(short, long, value_parser = values::port, default_value_t = Port::IPERF3)]
    pub(super) port: Port,
    /// Time between light probes: two packets a second for most of it
    #[arg(long, value_name = "TIME", value_parser = values::duration, default_value = "1m")]
    pub(super) probe_every: Duration,
    /// No light probes
    #[arg(long)]
    pub(super) no_probes: bool,
    /// Shell command that is run at each alert, with `LINERATE_ALERT_KIND`, `LINERATE_ALERT_HOST` and `LINERATE_ALERT_TEXT`
    #[arg(long, value_name = "COMMAND")]
    pub(super) on_alert: Option<String>,
    /// Delete results that are older; the runs in the history stay
    #[arg(long, value_name = "DAYS", default_value_t = 400)]
    pub(super) keep_days: u32,
    /// Test each host now, and exit with 1 at an alert
    #[arg(long, conflicts_with_all = ["every", "calendar", "duration"])]
    pub(super) once: bool,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", value_parser = values::duration)]
    pub(super) duration: Option<Duration>,
    /// TLS of the tests.
    #[command(flatten)]
    pub(super) tls: TlsArguments,
    /// Results.
    #[command(flatten)]
    pub(super) results: ResultArguments,
    /// Export.
    #[command(flatten)]
    pub(super) export: ExportArguments,
}

/// Test of a monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum MonitorTest {
    /// Throughput in both directions over one connection, and what limits it
    Test,
    /// Limit of a transfer, and the path
    Diagnose,
    /// Latency under load
    Load,
}

impl MonitorArguments {
    /// Command line of a test, and its type.
    pub(super) fn test_words(&self, host: &str) -> (Vec<String>, FleetTestKind) {
        let (time, port) = (format!("{}s", self.time.as_secs().max(1)), self.port.get().to_string());
        let (words, kind): (Vec<&str>, _) = match self.test {
            MonitorTest::Test => (vec!["test", host, "-p", &port, "-P", "1", "-t", &time], FleetTestKind::Throughput),
            MonitorTest::Diagnose => {
                (vec!["diagnose", host, "-p", &port, "--", "-t", time.trim_end_matches('s')], FleetTestKind::Diagnose)
            }
            MonitorTest::Load => (vec!["load", host, "-p", &port, "-t", &time], FleetTestKind::Load),
        };
        (words.into_iter().map(str::to_owned).collect(), kind)
    }

    /// Longest time of a test.
    pub(super) fn test_limit(&self) -> Duration {
        // Path and transfers of `diagnose`, and phases of `load`, are the longest.
        Duration::from_secs(60) + self.time * 6
    }
}
