//! Controller for links of variable capacity: LTE, satellite, cable.
//!
//! A shaper controls the queue only while its rate is below the path's capacity. Where that varies, the rate must
//! follow, and the only signal is the delay of small packets. [`RateController`] receives probe samples, carried bytes and
//! the time, and outputs the rates to set. It reads no clock and performs no I/O.
//!
//! Two laws can be chosen ([`ControlLaw`]). The baseline is cake-autorate's, which multiplies: slightly up without a queue, at
//! most a quarter down on late samples. linerate's own estimates the capacity instead. With a queue in the path's
//! buffer, the output rate of the buffer *is* the capacity (down), and so is the input rate divided by one plus the
//! growth of the delay (up: the buffer holds the delay times the capacity). The estimate gives the rate that drains the
//! buffer within a chosen time, in one step; rates then grow in increasing steps until the next limit.
//!
//! One-way delays select the direction to change. Clocks of two hosts disagree and jump; but no direction's queue can
//! be longer than the round trip shows, which is measured with one clock. Any excess of a one-way delay is due to the
//! clock, and goes into the reflector's baseline at once.

mod cake_autorate_law;
mod capacity_law;
mod constants;
mod controller;
mod delay_window;
mod direction_state;
mod log;
mod reflector_set;
mod settings;

pub use controller::{DiscoveredCapacity, RateController};
pub use log::{AutorateLogLine, RateReason};
pub use settings::{
    AutorateBounds, ControlLaw, ControllerInput, ControllerOutput, ControllerSettings, ControllerState, LoadLevel,
    ProbeDelay, ReflectorId, ReflectorSample, probe_interval,
};
