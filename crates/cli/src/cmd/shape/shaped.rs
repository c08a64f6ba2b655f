//! The shaper of one interface, as what measures it and what changes its rates see it.

use std::time::Duration;

use linerate_shape::link::Line;
use linerate_shape::plan::Plan;
use linerate_shape::read_back::Difference;
use linerate_shape::verify::Both;
use linerate_units::BitRate;

use super::error::ShapeError;

/// A shaper that can be set up, read back, changed in place and taken down.
pub(crate) trait Shaped {
    /// The line, with the rates that are set or will be.
    fn line(&self) -> &Line;

    /// What stands there, or is to.
    fn plan(&self) -> &Plan;

    /// Whether it stands.
    fn is_up(&self) -> bool;

    /// Sets it up, with its way back recorded; nothing when it stands.
    fn set_up(&mut self) -> Result<(), ShapeError>;

    /// Puts back what was there before; nothing when it does not stand.
    fn take_down(&mut self) -> Result<(), ShapeError>;

    /// Other rates: in place while it stands, so that no queue loses its packets. A direction that is `None` stays as it is.
    fn set_rates(&mut self, rates: Both<Option<BitRate>>) -> Result<(), ShapeError>;

    /// How what stands differs from the plan, as the kernel tells it now.
    fn differences(&self) -> Result<Vec<Difference>, ShapeError>;

    /// Until it is kept, the watchdog takes it back when this time is over: to be called as long as all goes well.
    fn renew(&mut self, limit: Duration) -> Result<(), ShapeError>;
}
