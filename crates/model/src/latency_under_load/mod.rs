//! Latency under load: how much later packets are while a link is full, and what that means.
//!
//! | type or function | what it says |
//! | --- | --- |
//! | [`Uplift`] | how much the delay grows from rest to load |
//! | [`Grade`] | that as a letter, with its threshold |
//! | [`worst_class`] | which probe class the verdict must go by |
//! | [`Responsiveness`] | round trips per minute (RPM) |
//! | [`Stability`] | whether a series has settled |
//! | [`Contamination`] | whether other traffic spoilt the measurement |
//! | [`QueuePlace`] | where the queue stands |

mod classes;
mod contamination;
mod grade;
mod queue_place;
mod responsiveness;
mod stability;
mod uplift;

pub use classes::{Class, ClassUplift, Comparison, Treatment, worst_class};
pub use contamination::{Contamination, InterfaceTraffic};
pub use grade::{Grade, Quality};
pub use queue_place::{HopUplift, QueuePlace};
pub use responsiveness::{DRAFT, ForeignProbe, Rating, Responsiveness, trimmed_mean};
pub use stability::Stability;
pub use uplift::{Uplift, time_above};
