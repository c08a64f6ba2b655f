//! Command line of `linerate load`.

use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use linerate_analysis::latency_under_load::LatencyGrade;
use linerate_analysis::traffic_profiles::TrafficProfile;
use linerate_engine::load::RequestTransport;
use linerate_model::load::PhaseKind;

use crate::cmd::listen::ListenArguments;
use crate::cmd::measurement::MeasurementArguments;
use crate::progress::LiveArguments;
use crate::{completion, values};

/// `linerate load`.
#[derive(Clone, Debug, Args)]
pub(crate) struct LoadArguments {
    /// Server: a linerate (`linerate serve`, or `ssh:USER@HOST` for a host over ssh) reports everything, an iperf3 server or
    /// another host less; an emulated path, as `lab:NAME`; or the URL of a responsiveness server, as `https://HOST[:PORT][/PATH]`
    #[arg(
        required_unless_present = "listen",
        conflicts_with = "listen",
        add = ArgValueCompleter::new(completion::hosts)
    )]
    pub(crate) host: Option<String>,
    /// Server that dials in.
    #[command(flatten)]
    pub(crate) listen: ListenArguments,
    /// Congestion control of the load on both hosts; `default` for each host's own
    #[arg(short = 'C', long, default_value = "cubic", value_name = "NAME")]
    pub(crate) congestion: String,
    /// TCP connections of the load in each direction [default: 4; with a URL up to 16, added one by one]
    #[arg(short = 'P', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=64))]
    pub(crate) connections: Option<u64>,
    /// Measured time of each loaded phase, after its load is stable
    #[arg(short, long, default_value = "10s", value_parser = phase_time, value_name = "TIME")]
    pub(crate) time: Duration,
    /// Time for which the idle path is probed
    #[arg(long, default_value = "6s", value_parser = phase_time, value_name = "TIME")]
    pub(crate) idle: Duration,
    /// Longest time until a load is stable; then it is measured as it is
    #[arg(long, default_value = "20s", value_parser = ramp, value_name = "TIME")]
    pub(crate) ramp: Duration,
    /// Loaded phases, in this order; the idle path is probed first
    #[arg(long, value_delimiter = ',', default_value = "down,up,both", value_name = "LIST")]
    pub(crate) phases: Vec<LoadedPhase>,
    /// Time between two probes of a class; without it 50ms, more where probes would exceed a tenth of the packets
    #[arg(short, long, value_parser = interval, value_name = "TIME")]
    pub(crate) interval: Option<Duration>,
    /// Exit with 1 when the load adds more than this to the delay (95th percentile), for example 30ms
    #[arg(long, value_parser = values::delay, value_name = "TIME")]
    pub(crate) max_added: Option<Duration>,
    /// Exit with 1 when the grade is worse than this: A+, A, B, C, D
    #[arg(long, value_parser = grade, value_name = "LETTER")]
    pub(crate) min_grade: Option<LatencyGrade>,
    /// Measure a host on which no server listens: its idle round trip by ICMP, without a load
    #[arg(long, conflicts_with = "listen")]
    pub(crate) no_server: bool,
    /// Probe with ECN codepoints, too, and report a dual queue for L4S: shorter delays of ECT(1) than of ECT(0)
    #[arg(long)]
    pub(crate) l4s: bool,
    /// Probe with requests on an open connection of their own, too: in TLS over TCP, or over QUIC
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub(crate) probe: Vec<SelectedProbe>,
    /// Other host to which the configuration of a responsiveness server may send the load
    #[cfg(feature = "responsiveness")]
    #[arg(long, value_name = "HOST")]
    pub(crate) also_host: Vec<String>,
    /// Traffic of applications next to each phase, graded by what their users perceive
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub(crate) profile: Vec<SelectedProfile>,
    /// Exit with 1 when a call of `--profile voice` has a lower score in a phase: 1 to 4.5
    #[arg(long, value_parser = score, value_name = "MOS", requires = "profile")]
    pub(crate) min_mos: Option<f64>,
    /// Live picture.
    #[command(flatten)]
    pub(crate) live: LiveArguments,
    /// Options common to all measurements.
    #[command(flatten)]
    pub(crate) common: MeasurementArguments,
}

impl LoadArguments {
    /// Host that is measured.
    pub(crate) fn host(&self) -> &str {
        self.host.as_deref().unwrap_or_default()
    }
}

/// Transport of requests on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SelectedProbe {
    /// Requests in TLS 1.3 over TCP.
    Tls,
    /// Requests over QUIC.
    Quic,
}

impl From<SelectedProbe> for RequestTransport {
    fn from(probe: SelectedProbe) -> Self {
        match probe {
            SelectedProbe::Tls => Self::Tls,
            SelectedProbe::Quic => Self::Quic,
        }
    }
}

/// Profile on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SelectedProfile {
    /// Telephone call: G.711 over UDP, rated by the E-model.
    Voice,
    /// Online game: 60 inputs and updates a second.
    Game,
    /// Video call: 2.5 Mbit/s in frames, in both directions.
    VideoCall,
    /// Video stream: segments over TCP, up to 5 Mbit/s.
    Streaming,
    /// Backup: bulk data to the server on one TCP connection.
    Backup,
    /// All of them.
    All,
}

impl SelectedProfile {
    /// Profiles that this selects.
    pub(crate) const fn profiles(self) -> &'static [TrafficProfile] {
        match self {
            Self::Voice => &[TrafficProfile::Voice],
            Self::Game => &[TrafficProfile::Game],
            Self::VideoCall => &[TrafficProfile::VideoCall],
            Self::Streaming => &[TrafficProfile::Streaming],
            Self::Backup => &[TrafficProfile::Backup],
            Self::All => &TrafficProfile::ALL,
        }
    }
}

/// Loaded direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LoadedPhase {
    /// From the server to this host.
    Down,
    /// From this host to the server.
    Up,
    /// Both directions at once.
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
    within(text, Duration::from_millis(2), Duration::from_secs(1), "the interval is 2ms to 1s")
}

fn phase_time(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_secs(1), Duration::from_secs(600), "the time of a phase is 1s to 10min")
}

fn ramp(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_secs(1), Duration::from_secs(120), "the ramp limit is 1s to 2min")
}

fn within(text: &str, least: Duration, most: Duration, rule: &str) -> Result<Duration, String> {
    let time = values::duration(text)?;
    if (least..=most).contains(&time) { Ok(time) } else { Err(rule.to_owned()) }
}

fn grade(text: &str) -> Result<LatencyGrade, String> {
    let known = LatencyGrade::TABLE.iter().map(|(grade, _)| *grade);
    let found = known.clone().find(|grade| grade.letter().eq_ignore_ascii_case(text));
    found.ok_or_else(|| format!("a grade is one of {}", known.map(LatencyGrade::letter).collect::<Vec<_>>().join(", ")))
}

fn score(text: &str) -> Result<f64, String> {
    let score = text.parse().ok().filter(|score| (1.0..=4.5).contains(score));
    score.ok_or_else(|| "a mean opinion score is 1 to 4.5".to_owned())
}
