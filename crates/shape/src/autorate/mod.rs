//! The controller of lines whose capacity changes: LTE, satellites, cable.
//!
//! A shaper holds the queue only while its rate is below what the path carries. Where that changes, the rate must follow,
//! and the only sign is how late small packets become. [`Controller`] is told samples of probes, what was carried, and the
//! time; it says which rate to set. It reads no clock and sends nothing.
//!
//! Two laws can be chosen ([`Law`]). The baseline is cake-autorate's, which multiplies: a little up while all is clean, a
//! quarter down at most when samples are late. linerate's own estimates the capacity instead. Of a queue that stands in
//! the path's buffer, the rate at which data comes out of it *is* the capacity (down), and what went in divided by one plus
//! the growth of the delay is (up: the buffer holds the delay times the capacity). From it follows the rate that drains the
//! buffer within a chosen time, in one step instead of many; and up again in steps that grow as long as nothing is met.
//!
//! One-way delays say which direction to change. Clocks of two hosts do not agree, and jump; but no direction's queue can be
//! longer than what the round trip shows, and that is measured with one clock. What a one-way delay has above it is the
//! clock's, and goes into the reflector's baseline at once.

mod baseline;
mod constants;
mod controller;
mod log;
mod reflectors;
mod seeker;
mod settings;
mod side;
mod window;

pub use controller::{Controller, Discovered};
pub use log::{LogLine, Reason};
pub use settings::{Bounds, Delay, Input, Law, Load, Output, ReflectorId, Sample, Settings, State, probe_interval};
