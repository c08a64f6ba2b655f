//! Metrics of the IP Performance Metrics working group (IPPM), for one stream of numbered packets.
//!
//! | type | metric | source |
//! | --- | --- | --- |
//! | [`PacketLoss`] | loss within a timeout, its runs, a Gilbert model | RFC 7680, RFC 3357, RFC 6534 |
//! | [`PacketDuplication`] | packets that arrived more than once | RFC 5560 |
//! | [`StreamReordering`] | order of arrival | RFC 4737, draft-ietf-ippm-reporting |
//! | [`DelayVariation`] | delay relative to the smallest, and between neighbours | RFC 5481, RFC 3393 |
//! | [`ClockRelation`], [`OneWayDelay`] | one-way delay, with its error bound | RFC 7679, RFC 2330 §10 |
//! | [`ReflectedStream`] | losses of both directions, by what a reflector returned | RFC 8762 §4.3 |
//! | [`ArrivalMarks`] | hop limits and traffic classes on arrival | RFC 2474, RFC 3168 |
//!
//! A metric depends on the type of its packets (RFC 2330 §13): reports show these figures with the size, the DSCP, the
//! spacing and the count of the stream's packets.

mod clock;
mod duplication;
mod loss;
mod marks;
mod one_way_delay;
mod reflection;
mod reordering;
mod stream;
mod variation;

pub use clock::{ClockDrift, ClockRelation, RoundTrip};
pub use duplication::PacketDuplication;
pub use loss::{GilbertModel, LossRun, PacketLoss};
pub use marks::ArrivalMarks;
pub use one_way_delay::OneWayDelay;
pub use reflection::{DirectionCount, ReflectedPacket, ReflectedStream};
pub use reordering::{FreeRuns, StreamReordering};
pub use stream::{PacketArrival, PacketStream};
pub use variation::DelayVariation;
