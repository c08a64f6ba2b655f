//! Verification of a shaper: measurements without it, with it, and without it again.

use linerate_analysis::latency_under_load::{LatencyClass, LatencyGrade};
use linerate_analysis::statistics::ComparisonVerdict;
use linerate_model::address_family::AddressFamily;
use linerate_model::diagnosis::Confidence;
use linerate_model::direction::Direction;
use linerate_shape::verify::{DelayAttribution, FigureName, FindingKind, ReadBackDifference};
use serde::{Deserialize, Serialize};

use crate::run::FigureUnit;
use linerate_model::load::PhaseKind;

/// Result of the measurements of a shaper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShapeVerification {
    /// Remote host as given by the user.
    pub host: String,
    /// Port of the host.
    pub port: u16,
    /// Measured address families; goodput and counters are those of the load over the first one.
    pub families: Vec<AddressFamily>,
    /// Duration in nanoseconds.
    pub duration_ns: u64,
    /// Counted time of each loaded phase.
    pub load_time_ns: u64,
    /// Congestion control of the load, confirmed by both hosts.
    pub congestion_control: Option<String>,
    /// Outcome of the verification.
    pub outcome: VerificationOutcome,
    /// Outcome in one sentence.
    pub sentence: String,
    /// True when the shaper is active now. If not, the previous configuration is restored.
    pub is_active: bool,
    /// Confidence of the verdict; `null` where there is none.
    pub confidence: Option<Confidence>,
    /// Grade without the shaper, by the worse direction and the worse of UDP best effort and TCP in-band; `null` where
    /// neither was measured, or in case of cross traffic.
    pub grade_without: Option<LatencyGrade>,
    /// Grade with the shaper.
    pub grade_with: Option<LatencyGrade>,
    /// Delay added by load, for each phase, class of probes and family.
    pub delays: Vec<PhaseDelays>,
    /// Throughput, for each phase and direction.
    pub rates: Vec<PhaseRates>,
    /// Findings, failures first.
    pub findings: Vec<VerificationFinding>,
    /// Origin of the remaining delay; `null` where nothing was evaluated, or load bypasses linerate's qdiscs.
    pub attribution: Option<DelayAttribution>,
    /// Differences between the qdiscs in the kernel and the plan.
    pub differences: Vec<ReadBackDifference>,
    /// True when a second measurement without the shaper was made.
    pub measured_again: bool,
    /// True when the two measurements without the shaper differ; `null` without a second one.
    pub drift: Option<bool>,
    /// Reason why the measurement with the shaper was aborted; `null` where it completed.
    pub abort_reason: Option<String>,
    /// Phases with the shaper: counters of the interface and the qdisc trees.
    pub phases: Vec<MeasuredPhase>,
    /// Search for the highest rates; `null` unless requested.
    pub search: Option<RateSearch>,
    /// Notes shown below the table.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Outcome of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum VerificationOutcome {
    /// The shaper works as intended.
    Passed,
    /// The shaper works, but load still adds more delay than allowed.
    DelayAboveLimit,
    /// The shaper does not work as intended.
    Failed,
    /// The measurement does not suffice for a judgement.
    Inconclusive,
    /// None of the tried rates was good enough.
    NoRate,
    /// Interrupted by a signal.
    Interrupted,
}

impl VerificationOutcome {
    /// All variants.
    pub const ALL: [Self; 6] =
        [Self::Passed, Self::DelayAboveLimit, Self::Failed, Self::Inconclusive, Self::NoRate, Self::Interrupted];

    /// True when the shaper stays active.
    #[must_use]
    pub const fn is_kept(self) -> bool {
        matches!(self, Self::Passed | Self::DelayAboveLimit)
    }

    /// Display name.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::DelayAboveLimit => "delay above the limit",
            Self::Failed => "failed",
            Self::Inconclusive => "inconclusive",
            Self::NoRate => "no rate found",
            Self::Interrupted => "interrupted",
        }
    }
}

/// Delay added by load to one class of probes in one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PhaseDelays {
    /// Loaded direction.
    pub phase: PhaseKind,
    /// Probe class.
    pub class: LatencyClass,
    /// Address family.
    pub family: AddressFamily,
    /// Added delay without the shaper.
    pub without: Option<AddedDelay>,
    /// Added delay with the shaper.
    pub with: Option<AddedDelay>,
    /// Grade of this class in this phase without the shaper; `null` for prioritised classes.
    pub grade_without: Option<LatencyGrade>,
    /// Same grade with the shaper.
    pub grade_with: Option<LatencyGrade>,
    /// Comparison of the median round trips; `null` where there are too few samples.
    pub median: Option<MedianDifference>,
}

/// Delay under load minus the idle median.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AddedDelay {
    /// Median.
    pub median_ns: i64,
    /// Mean under load minus idle mean.
    pub mean_ns: i64,
    /// 90th percentile.
    pub p90_ns: i64,
    /// 95th percentile, which determines grades.
    pub p95_ns: i64,
}

/// Comparison of two median round trips under load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MedianDifference {
    /// Median without the shaper.
    pub without_ns: u64,
    /// Median with the shaper.
    pub with_ns: u64,
    /// Difference, positive when the shaper increases it.
    pub difference_ns: i64,
    /// Lower bound of the interval of the difference; `null` with too few samples.
    pub low_ns: Option<i64>,
    /// Upper bound of that interval.
    pub high_ns: Option<i64>,
    /// Confidence level of the interval, from 0 to 1.
    pub confidence: f64,
    /// Verdict.
    pub verdict: ComparisonVerdict,
}

/// Throughput in one direction in one phase, as payload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PhaseRates {
    /// Loaded direction.
    pub phase: PhaseKind,
    /// Direction of this figure.
    pub direction: Direction,
    /// Throughput without the shaper.
    pub without_bits_per_second: Option<f64>,
    /// Throughput with the shaper.
    pub with_bits_per_second: Option<f64>,
    /// Configured rate as the shaper counts it: with headers and link-layer overhead.
    pub set_bits_per_second: Option<f64>,
    /// Ratio of throughput to the configured rate, from 0 to 1.
    pub realised: Option<f64>,
}

/// Finding of the verification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VerificationFinding {
    /// Kind.
    pub kind: FindingKind,
    /// True when a shaper with this finding cannot pass.
    pub fails: bool,
    /// Affected direction; `null` for both.
    pub direction: Option<Direction>,
    /// Explanation.
    pub text: String,
    /// Supporting figures.
    pub figures: Vec<VerificationFigure>,
}

/// Figure that supports a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VerificationFigure {
    /// Name.
    pub name: FigureName,
    /// Value.
    pub value: f64,
    /// Unit.
    pub unit: FigureUnit,
}

/// Phase with the shaper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MeasuredPhase {
    /// Loaded direction.
    pub phase: PhaseKind,
    /// Traffic towards the path.
    pub up: CountedTraffic,
    /// Traffic from the path.
    pub down: CountedTraffic,
    /// Utilisation of the busiest processor while the phase counted, from 0 to 1.
    pub busiest_processor: Option<f64>,
}

/// Counters of one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CountedTraffic {
    /// Bytes on the interface of the route to the remote host, over the whole phase.
    pub interface_bytes: Option<u64>,
    /// Bytes through linerate's qdisc tree, over the whole phase.
    pub tree_bytes: Option<u64>,
    /// Packets through linerate's qdisc tree, over the whole phase.
    pub tree_packets: Option<u64>,
    /// Packets dropped by its leaves while the phase counted.
    pub dropped: Option<u64>,
    /// Packets ECN-marked by its leaves while the phase counted.
    pub marked: Option<u64>,
    /// Largest backlog observed in its leaves while the phase counted.
    pub largest_backlog_bytes: Option<u64>,
}

/// Search for the highest rates that are good enough.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RateSearch {
    /// Uplink capacity as the shaper counts it: given, or from a measurement without the shaper; `null` where that
    /// direction was not searched.
    pub capacity_up_bits_per_second: Option<f64>,
    /// Downlink capacity.
    pub capacity_down_bits_per_second: Option<f64>,
    /// True when the capacity was measured; else it was given.
    pub capacity_measured: bool,
    /// Maximum added delay (95th percentile, best effort) that is good enough.
    pub largest_added_ns: u64,
    /// Steps in order.
    pub steps: Vec<SearchStep>,
    /// Result of the uplink; `null` where that direction was not searched, or the search did not complete.
    pub up: Option<FoundRate>,
    /// Result of the downlink.
    pub down: Option<FoundRate>,
}

/// Trial of one pair of rates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SearchStep {
    /// Uplink rate; `null` where that direction was not searched.
    pub up_bits_per_second: Option<f64>,
    /// Downlink rate.
    pub down_bits_per_second: Option<f64>,
    /// True when the delays below are one-way; else both are that of the round trip.
    pub one_way: bool,
    /// Delay added by load on the uplink (95th percentile, best effort).
    pub added_up_ns: u64,
    /// Delay added by load on the downlink.
    pub added_down_ns: u64,
    /// Goodput of the uplink.
    pub goodput_up_bits_per_second: Option<f64>,
    /// Goodput of the downlink.
    pub goodput_down_bits_per_second: Option<f64>,
    /// True when the uplink rate was good enough; `null` where that direction was not searched.
    pub good_up: Option<bool>,
    /// True when the downlink rate was good enough.
    pub good_down: Option<bool>,
}

/// Result of a search in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FoundRate {
    /// True when it was good enough; if not, it is the lowest rate tried.
    pub good: bool,
    /// Rate.
    pub bits_per_second: f64,
    /// Share of the capacity, from 0 to 1; `null` where nothing was good enough.
    pub share: Option<f64>,
}
