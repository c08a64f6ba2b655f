//! Documents of `linerate shape`.

mod verification;

pub use verification::{
    AddedDelay, Attribution, CountedTraffic, Delays, FoundRate, MeasuredPhase, MedianDifference, RateSearch, Rates,
    ReadBackDifference, SearchStep, ShapeVerification, VerificationFigure, VerificationFinding, VerificationOutcome,
};
