//! Documents of `linerate shape`.

mod verification;

pub use verification::{
    AddedDelay, CountedTraffic, FoundRate, MeasuredPhase, MedianDifference, PhaseDelays, PhaseRates, RateSearch,
    SearchStep, ShapeVerification, VerificationFigure, VerificationFinding, VerificationOutcome,
};
