//! The capacity of a path at the IP layer, found by sending UDP at rates that follow the receiver's feedback.
//!
//! In the spirit of RFC 9097 (metric and method for maximum IP-layer capacity) and of RFC 9946 (its test protocol): feedback
//! every 50 ms, a load that is adjusted to it, the highest rate that arrives as the result, at the IP layer, with loss and
//! delay beside it. The search itself is another one: the RFC's walks through a table of rates and reports the best second
//! of ten. This one is over in a few seconds, and sends what the answer needs:
//!
//! 1. **Ramp**: the rate doubles each round trip until clearly less arrives per second than is sent.
//! 2. **Overload**: half as much again as arrives, until what arrives no longer changes: a policer's bucket is empty then,
//!    and TCP flows that share the path have yielded.
//! 3. **Hold**: 5 % more than arrives, for a second: the bottleneck is never idle, and little is thrown away. What arrives
//!    in that second is the capacity.
//!
//! If less arrives in the hold than in the overload, the path is shared with traffic that does not yield: of a queue that
//! takes all packets alike, one gets the more the more one sends. Both rates tell about what is left over. The queue is
//! emptied, the rate at which everything just arrives is found by halving, and held. Others that take less than about a
//! tenth of the link do not show in this way, and are partly pushed out.
//!
//! **Loss alone ends nothing.** A path that loses 2 % of what it carries loses 2 % at any rate. What counts is the share of
//! the sent rate that arrives, beside what it was when less was sent. Rates are measured between the receiver's time
//! stamps of packets and between the sender's, each by its own clock: neither the feedback's travel time, nor a queue of
//! seconds, nor the clocks' offset matters.
//!
//! [`Search`] is a machine without clock or socket: [`Search::feedback`] takes what the receiver said and gives the next
//! rate, [`Search::outcome`] the result.

mod feedback;
mod limits;
mod outcome;
mod search;
#[cfg(test)]
pub(crate) mod simulation;
#[cfg(test)]
mod tests;
mod window;

pub use feedback::Feedback;
pub use limits::{FEEDBACK_INTERVAL, Limits, Packet};
pub use outcome::{Bound, Outcome, Reading, Reason};
pub use search::{Action, Search};
