use core::time::Duration;

use linerate_model::statistics::Signed;
use linerate_model::throughput::Flow;
use linerate_units::{BitRate, ByteCount, PacketCount, Ratio, display};

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Incoming packets are not sent to the tree that should shape them.
    NoRedirect,
    /// They are sent to a device that is down, and dropped.
    RedirectTargetDown,
    /// What stands in the kernel is not the plan.
    TreeDiffers,
    /// The path carried load, and the tree counted none of it: it stands on another interface.
    WrongInterface,
    /// The interface carried far more than the tree counted: flows pass by it, as with flow offloading.
    Bypassed,
    /// The rate is above what the path carries: our leaves were empty, and the delay rose behind them.
    AboveTheLine,
    /// IPv4 became better and IPv6 did not.
    Ipv6Unshaped,
    /// Each direction has the rate of the other.
    RatesSwapped,
    /// Only what is put first became better: ICMP or expedited forwarding.
    OnlyPrioritisedBetter,
    /// Traffic of others was on the interface.
    Contaminated,
    /// The two measurements without the shaper differ: the path has changed meanwhile.
    Drift,
    /// The delay under load is not lower than before.
    NotBetter,
    /// It is lower, and still above what the profile asks.
    StillLate,
    /// There was nothing to gain: the delay under load was low before.
    NothingToGain,
    /// Less is carried than the profile allows.
    GoodputBelowFloor,
    /// What is carried has nothing to do with the rate that is set.
    NotInControl,
    /// A processor was full.
    ProcessorFull,
    /// The plan predicted a clearly lower delay.
    PredictionMissed,
    /// There is too little to judge by.
    TooFewReadings,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 19] = [
        Self::NoRedirect,
        Self::RedirectTargetDown,
        Self::TreeDiffers,
        Self::WrongInterface,
        Self::Bypassed,
        Self::AboveTheLine,
        Self::Ipv6Unshaped,
        Self::RatesSwapped,
        Self::OnlyPrioritisedBetter,
        Self::Contaminated,
        Self::Drift,
        Self::NotBetter,
        Self::StillLate,
        Self::NothingToGain,
        Self::GoodputBelowFloor,
        Self::NotInControl,
        Self::ProcessorFull,
        Self::PredictionMissed,
        Self::TooFewReadings,
    ];

    /// Whether a shaper of which this was found cannot pass.
    #[must_use]
    pub const fn fails(self) -> bool {
        !matches!(self, Self::StillLate | Self::NothingToGain | Self::ProcessorFull | Self::PredictionMissed)
    }

    /// Its name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoRedirect => "no_redirect",
            Self::RedirectTargetDown => "redirect_target_down",
            Self::TreeDiffers => "tree_differs",
            Self::WrongInterface => "wrong_interface",
            Self::Bypassed => "bypassed",
            Self::AboveTheLine => "above_the_line",
            Self::Ipv6Unshaped => "ipv6_unshaped",
            Self::RatesSwapped => "rates_swapped",
            Self::OnlyPrioritisedBetter => "only_prioritised_better",
            Self::Contaminated => "contaminated",
            Self::Drift => "drift",
            Self::NotBetter => "not_better",
            Self::StillLate => "still_late",
            Self::NothingToGain => "nothing_to_gain",
            Self::GoodputBelowFloor => "goodput_below_floor",
            Self::NotInControl => "not_in_control",
            Self::ProcessorFull => "processor_full",
            Self::PredictionMissed => "prediction_missed",
            Self::TooFewReadings => "too_few_readings",
        }
    }
}

/// A number that a finding rests on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// A time, which may be negative.
    Time(Signed<Duration>),
    /// A rate.
    Rate(BitRate),
    /// A share.
    Share(Ratio),
    /// A size.
    Size(ByteCount),
    /// Packets.
    Packets(PacketCount),
}

impl Figure {
    /// As a person reads it.
    #[must_use]
    pub fn words(&self) -> String {
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

/// One thing that was found, with what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What.
    pub kind: Kind,
    /// In which direction; `None` when it concerns both.
    pub direction: Option<Flow>,
    /// Name of the number → the number.
    pub figures: Vec<(&'static str, Figure)>,
    /// What it means, in one or two sentences.
    pub words: String,
}

impl Finding {
    pub(super) fn new(kind: Kind, direction: Option<Flow>, words: impl Into<String>) -> Self {
        Self { kind, direction, figures: Vec::new(), words: words.into() }
    }

    pub(super) fn with(mut self, name: &'static str, figure: Figure) -> Self {
        self.figures.push((name, figure));
        self
    }

    pub(super) fn with_rate(self, name: &'static str, rate: BitRate) -> Self {
        self.with(name, Figure::Rate(rate))
    }

    pub(super) fn with_time(self, name: &'static str, time: Duration) -> Self {
        self.with(name, Figure::Time(Signed { negative: false, magnitude: time }))
    }

    pub(super) fn with_share(self, name: &'static str, share: Option<Ratio>) -> Self {
        match share {
            Some(share) => self.with(name, Figure::Share(share)),
            None => self,
        }
    }
}

/// A direction in a sentence.
pub(super) const fn word(direction: Flow) -> &'static str {
    match direction {
        Flow::Up => "up",
        Flow::Down => "down",
    }
}
