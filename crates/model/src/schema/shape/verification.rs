//! The proof that a shaper does what it should: measurements without it, with it, and without it again.

use serde::{Deserialize, Serialize};

use crate::schema::load::PhaseKind;
use crate::schema::run::Unit;
use crate::schema::throughput::Direction;

/// A shaper as measurements judge it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShapeVerification {
    /// The far end as the user wrote it.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// `ipv4`, `ipv6`: over what was measured; the load of the first one is what goodput and counters are of.
    pub families: Vec<String>,
    /// How long it took.
    pub duration_ns: u64,
    /// How long each phase under load counted.
    pub load_time_ns: u64,
    /// Congestion control of the load, as both ends confirm it.
    pub congestion_control: Option<String>,
    /// How it ended.
    pub outcome: VerificationOutcome,
    /// The same in one sentence.
    pub sentence: String,
    /// Whether the shaper stands now. If not, what was there before is back.
    pub stands: bool,
    /// How much the judgement is worth: `low`, `medium`, `high`; `null` where there is none.
    pub confidence: Option<String>,
    /// The grade without the shaper, by the worse direction and the worse of UDP best effort and TCP in-band; `null` where
    /// neither was measured, or others were on the path.
    pub grade_without: Option<String>,
    /// The grade with it.
    pub grade_with: Option<String>,
    /// What load adds to the delay, for each phase, class of probes and family.
    pub delays: Vec<Delays>,
    /// What was carried, for each phase and direction.
    pub rates: Vec<Rates>,
    /// What was found, what fails first.
    pub findings: Vec<VerificationFinding>,
    /// Where what is left of the delay comes from; `null` where nothing was judged, or load does not pass our trees.
    pub attribution: Option<Attribution>,
    /// How what stood in the kernel differed from the plan.
    pub differences: Vec<ReadBackDifference>,
    /// Whether it was measured without the shaper a second time.
    pub measured_again: bool,
    /// Whether the two measurements without the shaper differ; `null` without a second one.
    pub drift: Option<bool>,
    /// Why the measurement with the shaper came to no end; `null` where it did.
    pub broke_off: Option<String>,
    /// The phases with the shaper: what the interface and the trees counted.
    pub phases: Vec<MeasuredPhase>,
    /// The search for the highest rates; `null` where nobody asked for it.
    pub search: Option<RateSearch>,
    /// What a reader should know.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// How a verification ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum VerificationOutcome {
    /// The shaper does what it should.
    Passed,
    /// It does not.
    Failed,
    /// Of the rates that were tried none was good enough.
    NoRate,
    /// A signal ended it.
    Interrupted,
}

impl VerificationOutcome {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Passed, Self::Failed, Self::NoRate, Self::Interrupted];

    /// For people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::NoRate => "no rate found",
            Self::Interrupted => "interrupted",
        }
    }
}

/// What load adds to one class of probes in one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Delays {
    /// What was loaded.
    pub phase: PhaseKind,
    /// `icmp`, `udp_best_effort`, `udp_expedited_forwarding`, `tcp_in_band`.
    pub class: String,
    /// `ipv4` or `ipv6`.
    pub family: String,
    /// Without the shaper.
    pub without: Option<AddedDelay>,
    /// With it.
    pub with: Option<AddedDelay>,
    /// The grade of this class in this phase without the shaper; `null` for classes that are put first.
    pub grade_without: Option<String>,
    /// … and with it.
    pub grade_with: Option<String>,
    /// The medians of the round trips compared; `null` where there are too few.
    pub median: Option<MedianDifference>,
}

/// A delay under load less the median at rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AddedDelay {
    /// The median.
    pub median_ns: i64,
    /// The mean, less the mean at rest.
    pub mean_ns: i64,
    /// The 90th percentile.
    pub p90_ns: i64,
    /// The 95th percentile: what grades go by.
    pub p95_ns: i64,
}

/// Two medians of round trips under load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MedianDifference {
    /// Without the shaper.
    pub without_ns: u64,
    /// With it.
    pub with_ns: u64,
    /// How much more it is with the shaper.
    pub difference_ns: i64,
    /// Lower end of the interval of the difference; `null` of too few readings.
    pub low_ns: Option<i64>,
    /// Its upper end.
    pub high_ns: Option<i64>,
    /// The confidence of the interval, from 0 to 1.
    pub confidence: f64,
    /// `equal`, `different` or `not_enough_data`.
    pub verdict: String,
}

/// What was carried in one direction in one phase, as payload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Rates {
    /// What was loaded.
    pub phase: PhaseKind,
    /// Which direction.
    pub direction: Direction,
    /// Without the shaper.
    pub without_bits_per_second: Option<f64>,
    /// With it.
    pub with_bits_per_second: Option<f64>,
    /// The rate that is set, as the shaper counts: with headers and what the link layer adds.
    pub set_bits_per_second: Option<f64>,
    /// What is carried of it, from 0 to 1.
    pub realised: Option<f64>,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VerificationFinding {
    /// What, for example `no_redirect`.
    pub kind: String,
    /// Whether a shaper of which this was found cannot pass.
    pub fails: bool,
    /// In which direction; `null` when it concerns both.
    pub direction: Option<Direction>,
    /// What it means.
    pub text: String,
    /// The numbers that it rests on.
    pub figures: Vec<VerificationFigure>,
}

/// A number that a finding rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VerificationFigure {
    /// Its name.
    pub name: String,
    /// The number.
    pub value: f64,
    /// What it counts.
    pub unit: Unit,
}

/// Where what is left of the delay comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Attribution {
    /// `own_leaf`, `upstream`, `processor`, `burst`, `none` when nothing is left, `unknown`.
    pub place: String,
    /// In which direction; `null` when there is nothing.
    pub direction: Option<Direction>,
    /// `low`, `medium`, `high`.
    pub confidence: String,
    /// What was seen.
    pub text: String,
}

/// How what stood in the kernel differed from the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReadBackDifference {
    /// `redirect_missing`, `redirect_target_down`, `missing`, `other_kind`, `other_rate`, `other`.
    pub kind: String,
    /// Which direction it concerns.
    pub direction: Direction,
    /// In words.
    pub text: String,
}

/// A phase with the shaper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MeasuredPhase {
    /// What was loaded.
    pub phase: PhaseKind,
    /// Towards the path.
    pub up: CountedTraffic,
    /// From it.
    pub down: CountedTraffic,
    /// The share of the busiest processor that was in use while the phase counted, from 0 to 1.
    pub busiest_processor: Option<f64>,
}

/// What was counted of one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CountedTraffic {
    /// Bytes through the interface that the route to the far end takes, over the whole phase.
    pub interface_bytes: Option<u64>,
    /// Bytes through our tree, over the whole phase.
    pub tree_bytes: Option<u64>,
    /// Packets through our tree, likewise.
    pub tree_packets: Option<u64>,
    /// Packets that its leaves dropped while the phase counted.
    pub dropped: Option<u64>,
    /// Packets that they marked instead, likewise.
    pub marked: Option<u64>,
    /// The most that was seen to wait in its leaves while the phase counted.
    pub largest_backlog_bytes: Option<u64>,
}

/// The search for the highest rates that are good enough.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RateSearch {
    /// What the line carries up, as the shaper counts: given, or from a measurement without the shaper; `null` where that
    /// direction was not searched.
    pub capacity_up_bits_per_second: Option<f64>,
    /// The same, down.
    pub capacity_down_bits_per_second: Option<f64>,
    /// Whether the capacity was measured; else it was given.
    pub capacity_measured: bool,
    /// The largest added delay (95th percentile, best effort) that was good enough.
    pub largest_added_ns: u64,
    /// What was tried, in order.
    pub steps: Vec<SearchStep>,
    /// The result up; `null` where that direction was not searched, or the search came to no end.
    pub up: Option<FoundRate>,
    /// The result down.
    pub down: Option<FoundRate>,
}

/// One pair of rates that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SearchStep {
    /// The rate up; `null` where that direction was not searched.
    pub up_bits_per_second: Option<f64>,
    /// The rate down.
    pub down_bits_per_second: Option<f64>,
    /// Whether the delays below are those of each way; else both are that of the round trip.
    pub one_way: bool,
    /// What load added up (95th percentile, best effort).
    pub added_up_ns: u64,
    /// … and down.
    pub added_down_ns: u64,
    /// What was carried up, as payload.
    pub goodput_up_bits_per_second: Option<f64>,
    /// … and down.
    pub goodput_down_bits_per_second: Option<f64>,
    /// Whether the rate up was good enough; `null` where that direction was not searched.
    pub good_up: Option<bool>,
    /// Whether the rate down was.
    pub good_down: Option<bool>,
}

/// The result of a search in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FoundRate {
    /// Whether it was good enough; if not, it is the lowest that was tried.
    pub good: bool,
    /// The rate.
    pub bits_per_second: f64,
    /// Of the capacity, from 0 to 1; `null` where nothing was good enough.
    pub share: Option<f64>,
}
