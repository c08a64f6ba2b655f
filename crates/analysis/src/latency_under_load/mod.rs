//! Latency under load: delay added by a full link, and its evaluation.
//!
//! | type or function | purpose |
//! | --- | --- |
//! | [`LatencyUplift`] | growth of the delay from idle to load |
//! | [`LatencyGrade`] | letter grade with its threshold |
//! | [`worst_class`] | probe class that decides the verdict |
//! | [`Responsiveness`] | round trips per minute (RPM) |
//! | [`StabilityDetector`] | stability of a series |
//! | [`TrafficContamination`] | effect of cross traffic on the measurement |
//! | [`QueueLocation`] | location of the queue |
//! | [`DualQueue`] | queue of its own for L4S |

mod classes;
mod contamination;
mod dual_queue;
mod grade;
mod queue_location;
mod responsiveness;
mod stability;
mod uplift;

pub use classes::{ClassComparison, ClassTreatment, ClassUplift, LatencyClass, worst_class};
pub use contamination::{InterfaceTraffic, TrafficContamination};
pub use dual_queue::{CodepointDelays, DualQueue, MedianDelay};
pub use grade::{LatencyGrade, LossGrade};
pub use queue_location::{HopUplift, QueueLocation};
pub use responsiveness::{ForeignProbe, Responsiveness, ResponsivenessMethod, ResponsivenessRating, trimmed_mean};
pub use stability::StabilityDetector;
pub use uplift::{LatencyUplift, time_above};
