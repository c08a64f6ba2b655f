//! Capacity of a path at the IP layer, measured with UDP at rates that follow the receiver's feedback.
//!
//! In the spirit of RFC 9097 (metric and method for maximum IP-layer capacity) and of RFC 9946 (its test protocol):
//! feedback every 50 ms, a load that is adjusted to it, the highest rate that arrives as the result, at the IP layer,
//! with loss and delay. The search itself differs: the RFC's walks through a table of rates and reports the best second
//! of ten. This one ends within a few seconds and sends only as much as the answer needs:
//!
//! 1. **Ramp**: the rate doubles each round trip until clearly less arrives per second than is sent.
//! 2. **Overload**: 1.5 times the received rate, until that rate is stable: a policer's bucket is empty then, and TCP
//!    flows that share the path have yielded.
//! 3. **Hold**: 1.05 times the received rate, for a second: the bottleneck is never idle, and few packets are dropped.
//!    The rate received in that second is the capacity.
//!
//! If less arrives in the hold than in the overload, the path is shared with traffic that does not yield: in a FIFO
//! queue, a sender's share grows with its rate. Both rates then measure what others leave over. The queue is emptied,
//! the highest rate without loss is found by bisection, and held. Other traffic below about a tenth of the link is not
//! detected in this way, and is partly pushed out. Nor is traffic that a fair queue serves in turn: what arrives does not
//! depend on the sent rate there. Probes that waited at rest show it ([`share_of_others`]), and widen the interval.
//!
//! **Loss alone ends nothing.** A path that loses 2 % of its packets loses 2 % at any rate. The criterion is the share
//! of the sent rate that arrives, compared with that share at lower rates. Rates are measured between the receiver's
//! time stamps of packets and between the sender's, each by its own clock: neither the delay of the feedback, nor a
//! queue of seconds, nor the clocks' offset matters.
//!
//! [`CapacitySearch`] is a state machine without clock or socket: [`CapacitySearch::handle_feedback`] consumes the receiver's reports and
//! returns the next rate, [`CapacitySearch::outcome`] the result.

mod feedback;
mod limits;
mod outcome;
mod search;
#[cfg(test)]
pub(crate) mod simulation;
#[cfg(test)]
mod tests;
mod window;

pub use feedback::ReceiverFeedback;
pub use limits::{FEEDBACK_INTERVAL, PacketLayout, SearchLimits};
pub use outcome::{CapacityBound, CapacityEstimate, ProbeDelays, RateSample, SearchLimiter, share_of_others};
pub use search::{CapacitySearch, SearchAction};
