//! Documents of `linerate shape`.

mod verification;

pub use verification::{
    AddedDelay, CountedTraffic, DelayAttribution, FoundRate, MeasuredPhase, MedianDifference, PhaseDelays, PhaseRates,
    RateSearch, ReadBackDifference, SearchStep, ShapeVerification, VerificationFigure, VerificationFinding,
    VerificationOutcome,
};
