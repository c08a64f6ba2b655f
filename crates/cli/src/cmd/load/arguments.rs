//! The command line of `linerate load`.

use std::time::Duration;

use clap::{Args, ValueHint};
use linerate_model::latency_under_load::Grade;
use linerate_model::schema::load::PhaseKind;

use crate::app;
use crate::cmd::measurement::MeasurementArguments;

/// `linerate load`.
#[derive(Debug, Args)]
pub(crate) struct LoadArguments {
    /// The far end: a linerate (`linerate serve`) tells all, an iperf3 server or any host what it can; or an emulated
    /// path, as `lab:NAME`
    #[arg(value_hint = ValueHint::Hostname)]
    pub(crate) host: String,
    /// Congestion control of the load at both ends; `default` for what each end has
    #[arg(short = 'C', long, default_value = "cubic", value_name = "NAME")]
    pub(crate) congestion: String,
    /// TCP connections of the load in each direction
    #[arg(short = 'P', long, default_value = "4", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=64))]
    pub(crate) connections: u64,
    /// How long each loaded phase counts, once its load stands still
    #[arg(short, long, default_value = "10s", value_parser = counted, value_name = "TIME")]
    pub(crate) time: Duration,
    /// How long the idle path is probed
    #[arg(long, default_value = "6s", value_parser = counted, value_name = "TIME")]
    pub(crate) idle: Duration,
    /// How long a load may take until it stands still; then it counts as it is
    #[arg(long, default_value = "20s", value_parser = ramp, value_name = "TIME")]
    pub(crate) ramp: Duration,
    /// What is loaded, in this order; the idle path is probed before
    #[arg(long, value_delimiter = ',', default_value = "down,up,both", value_name = "LIST")]
    pub(crate) phases: Vec<LoadedPhase>,
    /// Time between two probes of one class; without it 50ms, and more where they would be a tenth of the packets
    #[arg(short, long, value_parser = interval, value_name = "TIME")]
    pub(crate) interval: Option<Duration>,
    /// Exit with 1 when the load adds more than this to the delay (95th percentile), for example 30ms
    #[arg(long, value_parser = app::duration, value_name = "TIME")]
    pub(crate) max_added: Option<Duration>,
    /// Exit with 1 when the grade is worse than this: A+, A, B, C, D
    #[arg(long, value_parser = grade, value_name = "LETTER")]
    pub(crate) min_grade: Option<Grade>,
    /// What all measurements have.
    #[command(flatten)]
    pub(crate) common: MeasurementArguments,
}

/// What can be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LoadedPhase {
    /// From the far end to here.
    Down,
    /// From here to the far end.
    Up,
    /// Both ways at once.
    Both,
}

impl From<LoadedPhase> for PhaseKind {
    fn from(phase: LoadedPhase) -> Self {
        match phase {
            LoadedPhase::Down => Self::Down,
            LoadedPhase::Up => Self::Up,
            LoadedPhase::Both => Self::Both,
        }
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_millis(2), Duration::from_secs(1), "an interval is 2ms to 1s")
}

fn counted(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_secs(1), Duration::from_secs(600), "a phase counts for 1s to 10min")
}

fn ramp(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_secs(1), Duration::from_secs(120), "a load has 1s to 2min to become stable")
}

fn within(text: &str, least: Duration, most: Duration, rule: &str) -> Result<Duration, String> {
    let time = app::duration(text)?;
    if (least..=most).contains(&time) { Ok(time) } else { Err(rule.to_owned()) }
}

fn grade(text: &str) -> Result<Grade, String> {
    let known = Grade::TABLE.iter().map(|(grade, _)| *grade);
    let found = known.clone().find(|grade| grade.letter().eq_ignore_ascii_case(text));
    found.ok_or_else(|| format!("a grade is one of {}", known.map(Grade::letter).collect::<Vec<_>>().join(", ")))
}
