//! Statistics of samples: order statistics, distribution functions, confidence intervals, comparisons.
//!
//! | type or function | result | source |
//! | --- | --- | --- |
//! | [`SampleSummary`] | order statistics, mean, standard deviation | RFC 2330 §11.3 |
//! | [`fn@distribution_function`] | empirical distribution function, thinned for a chart | RFC 2330 §11.3 |
//! | [`BlockSample`], [`BootstrapSettings`] | block-resampled confidence intervals | Efron 1979; Carlstein 1986; Hesterberg 2015 |
//! | [`compare`] | equal, different, or not enough data | Schuirmann 1987 |
//! | [`StudentEstimate`] | means of paired differences and of two samples, their errors, correction for selection | Tukey and `McLaughlin` 1963; Welch 1947; Zhong and Prentice 2008 |
//! | [`holm()`] | correction for many tests | Holm 1979 |
//! | [`wilson`], [`clopper_pearson`] | intervals of a share, such as loss | Wilson 1927; Clopper and Pearson 1934 |
//! | [`jain`] | fairness of flows | Jain, Chiu and Hawe 1984 |
//!
//! Results depend on the arguments alone: resampling takes a seed, so that a result can be reproduced. Undefined
//! results are `None`. Samples that are not numbers are left out.

mod binomial;
mod bootstrap;
mod comparison;
mod distribution_function;
mod estimate;
mod fairness;
mod holm;
mod quantity;
mod random;
mod resampling;
mod sample;
mod special;
mod summary;

pub use binomial::{clopper_pearson, wilson};
pub use bootstrap::{BootstrapSettings, ConfidenceInterval, IntervalEstimate};
pub use comparison::{ComparisonVerdict, EquivalenceMargin, SampleComparison, compare};
pub use distribution_function::{DistributionStep, distribution_function};
pub use estimate::StudentEstimate;
pub use fairness::jain;
pub use holm::holm;
pub use quantity::{SignedDifference, StatisticalQuantity};
pub use random::SeededRandom;
pub use sample::{BlockSample, DEFAULT_BLOCK, SampleStatistic};
pub use summary::{SampleSummary, ordered_percentile, percentile};
