//! Statistics of readings: order statistics, distribution functions, intervals of confidence, comparisons.
//!
//! | type or function | what it gives | source |
//! | --- | --- | --- |
//! | [`Summary`] | order statistics, mean, standard deviation | RFC 2330 §11.3 |
//! | [`distribution_function`] | the empirical distribution function, thinned for a picture | RFC 2330 §11.3 |
//! | [`Sample`], [`Bootstrap`] | intervals of confidence by resampling whole blocks of time | Efron 1979; Carlstein 1986; Hesterberg 2015 |
//! | [`compare`] | whether two samples are equal, different, or too few to say | Schuirmann 1987 |
//! | [`welch`] | the same for few repetitions | Welch 1947 |
//! | [`wilson`], [`clopper_pearson`] | intervals of a share, such as loss | Wilson 1927; Clopper and Pearson 1934 |
//! | [`jain`] | how evenly flows share | Jain, Chiu and Hawe 1984 |
//!
//! Everything is computed of its arguments alone: whoever resamples gives the seed, so that a result can be repeated.
//! What no readings can answer is `None`. Readings that are not numbers are left out.

mod binomial;
mod bootstrap;
mod comparison;
mod distribution_function;
mod fairness;
mod quantity;
mod random;
mod sample;
mod special;
mod summary;
mod welch;

pub use binomial::{clopper_pearson, wilson};
pub use bootstrap::{Bootstrap, Estimate, Interval};
pub use comparison::{Comparison, Margin, Verdict, compare};
pub use distribution_function::{Step, distribution_function};
pub use fairness::jain;
pub use quantity::{Quantity, Signed};
pub use random::Random;
pub use sample::{BLOCK, Sample, Statistic};
pub use summary::{Summary, percentile};
pub use welch::welch;
