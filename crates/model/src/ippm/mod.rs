//! Metrics of the IP Performance Metrics working group (IPPM), of one stream of numbered packets.
//!
//! | type | metric | source |
//! | --- | --- | --- |
//! | [`Loss`] | loss within a time, its runs, a Gilbert model | RFC 7680, RFC 3357, RFC 6534 |
//! | [`Duplication`] | packets that came more than once | RFC 5560 |
//! | [`Reordering`] | order of arrival | RFC 4737, draft-ietf-ippm-reporting |
//! | [`DelayVariation`] | delay beside the smallest, and between neighbours | RFC 5481, RFC 3393 |
//! | [`ClockRelation`], [`OneWayDelay`] | delay of one direction, with the bound of its error | RFC 7679, RFC 2330 §10 |
//! | [`Marks`] | hop limits and traffic classes on arrival | RFC 2474, RFC 3168 |
//!
//! RFC 2330 §13 has a metric say of which packets it is: whoever shows one of these figures shows the size, the DSCP, the
//! spacing and the count of the stream's packets beside it.

mod clock;
mod duplication;
mod loss;
mod marks;
mod one_way_delay;
mod reordering;
mod stream;
mod variation;

pub use clock::{ClockRelation, Drift, RoundTrip};
pub use duplication::Duplication;
pub use loss::{Gilbert, Loss, LossRun};
pub use marks::Marks;
pub use one_way_delay::OneWayDelay;
pub use reordering::{FreeRuns, Reordering};
pub use stream::{Arrival, Stream};
pub use variation::DelayVariation;
