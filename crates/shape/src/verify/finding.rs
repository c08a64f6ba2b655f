use core::time::Duration;
use linerate_model::direction::Direction;
use serde::{Deserialize, Serialize};

use linerate_analysis::statistics::SignedDifference;
use linerate_units::{BitRate, ByteCount, PacketCount, Ratio, display};

/// Kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// Received packets are not redirected to their tree.
    NoRedirect,
    /// Received packets are redirected to a device that is down, and dropped.
    RedirectTargetDown,
    /// The kernel's state differs from the plan.
    TreeDiffers,
    /// The path carried load, and the tree counted none of it: it is on another interface.
    WrongInterface,
    /// The interface carried far more than the tree counted: flows bypass it, as with flow offloading.
    Bypassed,
    /// The rate is above the path's capacity: our leaves were empty, and the delay rose behind them.
    RateAboveCapacity,
    /// IPv4 improved and IPv6 did not.
    Ipv6Unshaped,
    /// The rates of the two directions are swapped.
    RatesSwapped,
    /// Only prioritised traffic improved: ICMP or expedited forwarding.
    OnlyPrioritisedBetter,
    /// The interface carried other traffic.
    Contaminated,
    /// The two measurements without the shaper differ: the path has changed.
    Drift,
    /// The delay under load is not lower than before.
    NotBetter,
    /// The delay under load is lower, but still above the requirement.
    DelayAboveLimit,
    /// The delay under load was already low before.
    NothingToGain,
    /// The goodput is below the requirement.
    GoodputBelowFloor,
    /// The goodput is unrelated to the set rate.
    NotInControl,
    /// A processor was saturated.
    ProcessorFull,
    /// The delay is clearly above the plan's prediction.
    PredictionMissed,
    /// Too few samples for a judgement.
    TooFewSamples,
}

impl FindingKind {
    /// All kinds.
    pub const ALL: [Self; 19] = [
        Self::NoRedirect,
        Self::RedirectTargetDown,
        Self::TreeDiffers,
        Self::WrongInterface,
        Self::Bypassed,
        Self::RateAboveCapacity,
        Self::Ipv6Unshaped,
        Self::RatesSwapped,
        Self::OnlyPrioritisedBetter,
        Self::Contaminated,
        Self::Drift,
        Self::NotBetter,
        Self::DelayAboveLimit,
        Self::NothingToGain,
        Self::GoodputBelowFloor,
        Self::NotInControl,
        Self::ProcessorFull,
        Self::PredictionMissed,
        Self::TooFewSamples,
    ];

    /// True when this finding fails a shaper.
    #[must_use]
    pub const fn fails(self) -> bool {
        !matches!(self, Self::DelayAboveLimit | Self::NothingToGain | Self::ProcessorFull | Self::PredictionMissed)
    }

    /// Name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoRedirect => "no_redirect",
            Self::RedirectTargetDown => "redirect_target_down",
            Self::TreeDiffers => "tree_differs",
            Self::WrongInterface => "wrong_interface",
            Self::Bypassed => "bypassed",
            Self::RateAboveCapacity => "rate_above_capacity",
            Self::Ipv6Unshaped => "ipv6_unshaped",
            Self::RatesSwapped => "rates_swapped",
            Self::OnlyPrioritisedBetter => "only_prioritised_better",
            Self::Contaminated => "contaminated",
            Self::Drift => "drift",
            Self::NotBetter => "not_better",
            Self::DelayAboveLimit => "delay_above_limit",
            Self::NothingToGain => "nothing_to_gain",
            Self::GoodputBelowFloor => "goodput_below_floor",
            Self::NotInControl => "not_in_control",
            Self::ProcessorFull => "processor_full",
            Self::PredictionMissed => "prediction_missed",
            Self::TooFewSamples => "too_few_samples",
        }
    }
}

/// Declares the names of figures, each with its name in documents.
macro_rules! figure_names {
    ($($variant:ident $name:literal $doc:literal),* $(,)?) => {
        /// Names of the figures of findings.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum FigureName {
            $(#[doc = $doc] #[serde(rename = $name)] $variant,)*
        }

        impl FigureName {
            /// Name in documents.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        }
    };
}

figure_names! {
    Added "added" "Delay added under load.",
    After "after" "Value with the shaper.",
    Before "before" "Value without the shaper.",
    BusiestProcessor "busiest_processor" "Utilisation of the busiest processor.",
    Carried "carried" "Rate carried with the shaper.",
    CarriedBefore "carried_before" "Rate carried without the shaper.",
    CarriedByTheFaster "carried_by_the_faster" "Rate carried in the direction that was set faster.",
    CountedByTheTree "counted_by_the_tree" "Share of the interface's bytes that the tree counted.",
    CountedDown "counted_down" "Share of the downlink's bytes that the tree counted.",
    CountedUp "counted_up" "Share of the uplink's bytes that the tree counted.",
    Difference "difference" "Difference of the two measurements without the shaper.",
    First "first" "Value of the first of two.",
    Ipv4 "ipv4" "Value over IPv4.",
    Ipv6 "ipv6" "Value over IPv6.",
    Left "left" "Share of the rate without the shaper that is left.",
    Measured "measured" "Measured delay.",
    Others "others" "Value of the others.",
    Predicted "predicted" "Predicted delay.",
    Realised "realised" "Share of the set rate that was carried.",
    Second "second" "Value of the second of two.",
    Set "set" "Set rate.",
    SetDown "set_down" "Set rate of the downlink.",
    SetUp "set_up" "Set rate of the uplink.",
    Share "share" "Share of other traffic.",
}

/// Figure of a finding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FindingFigure {
    /// A time, which may be negative.
    Time(SignedDifference<Duration>),
    /// A rate.
    Rate(BitRate),
    /// A share.
    Share(Ratio),
    /// A size.
    Size(ByteCount),
    /// Packets.
    Packets(PacketCount),
}

impl FindingFigure {
    /// Formats the figure for display.
    #[must_use]
    pub fn display_text(&self) -> String {
        match self {
            Self::Time(time) => {
                let sign = if time.negative { "−" } else { "" };
                format!("{sign}{}", display::duration(time.magnitude))
            }
            Self::Rate(rate) => display::rate(*rate),
            Self::Share(share) => display::percent(*share),
            Self::Size(size) => display::size(*size),
            Self::Packets(count) => format!("{} packets", count.get()),
        }
    }
}

/// Finding with its figures.
#[derive(Clone, Debug, PartialEq)]
pub struct ShaperFinding {
    /// Kind.
    pub kind: FindingKind,
    /// Direction; `None` for both.
    pub direction: Option<Direction>,
    /// Names and values of the figures.
    pub figures: Vec<(FigureName, FindingFigure)>,
    /// Explanation in one or two sentences.
    pub words: String,
}

impl ShaperFinding {
    pub(super) fn new(kind: FindingKind, direction: Option<Direction>, words: impl Into<String>) -> Self {
        Self { kind, direction, figures: Vec::new(), words: words.into() }
    }

    pub(super) fn with(mut self, name: FigureName, figure: FindingFigure) -> Self {
        self.figures.push((name, figure));
        self
    }

    pub(super) fn with_rate(self, name: FigureName, rate: BitRate) -> Self {
        self.with(name, FindingFigure::Rate(rate))
    }

    pub(super) fn with_time(self, name: FigureName, time: Duration) -> Self {
        self.with(name, FindingFigure::Time(SignedDifference { negative: false, magnitude: time }))
    }

    pub(super) fn with_share(self, name: FigureName, share: Option<Ratio>) -> Self {
        match share {
            Some(share) => self.with(name, FindingFigure::Share(share)),
            None => self,
        }
    }
}

/// Name of a direction in a sentence.
pub(super) const fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "up",
        Direction::Down => "down",
    }
}
