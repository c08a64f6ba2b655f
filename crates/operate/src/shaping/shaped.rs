//! Interface of a shaper for verification and automatic rates.

use std::time::Duration;

use linerate_shape::link::AccessLink;
use linerate_shape::plan::ShaperPlan;
use linerate_shape::read_back::QueueingDifference;
use linerate_shape::verify::PerDirection;
use linerate_units::BitRate;

use super::error::ShapeError;

/// A shaper that can be set up, read back, changed in place and removed.
pub trait ShaperControl {
    /// Access link, with the current or planned rates.
    fn line(&self) -> &AccessLink;

    /// Plan of the shaper.
    fn plan(&self) -> &ShaperPlan;

    /// True when the shaper is active.
    fn is_up(&self) -> bool;

    /// Sets the shaper up and records its rollback; no effect when active.
    fn set_up(&mut self) -> Result<(), ShapeError>;

    /// Restores the previous configuration; no effect when not active.
    fn remove(&mut self) -> Result<(), ShapeError>;

    /// Changes the rates, in place while active, so that no packets are lost. `None` leaves a direction unchanged.
    fn set_rates(&mut self, rates: PerDirection<Option<BitRate>>) -> Result<(), ShapeError>;

    /// Differences between the kernel's state and the plan.
    fn differences(&self) -> Result<Vec<QueueingDifference>, ShapeError>;

    /// Renews the watchdog, which rolls a shaper that is not kept back after this time.
    fn renew(&mut self, limit: Duration) -> Result<(), ShapeError>;
}
