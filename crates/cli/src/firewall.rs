//! `--open-firewall`: the port is open while the server runs, and closed again when it ends.

use std::time::Duration;

use linerate_sys::Result;
use linerate_sys::firewall::{self, FirewallOpening};
use linerate_units::Port;

/// A firewall that can let a rule expire by itself does so after this time, should this process be killed.
const LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// The opening, if there is one.
pub(crate) struct Firewall(Option<FirewallOpening>);

impl Firewall {
    /// Opens the port if `wanted`; `tell` gets a line about what was done.
    ///
    /// # Errors
    ///
    /// The firewall refused; the text has the command to run by hand.
    pub(crate) fn open_if(wanted: bool, port: Port, tell: impl FnOnce(&str)) -> Result<Self> {
        if !wanted {
            return Ok(Self(None));
        }
        let opening = firewall::open(port, LIFETIME)?;
        tell(&opening.summary());
        Ok(Self(Some(opening)))
    }

    /// Takes back exactly what was added.
    pub(crate) fn close(self, tell: impl FnOnce(&str)) {
        if let Some(opening) = self.0
            && let Err(cause) = opening.close()
        {
            tell(&format!("warning: {cause}"));
        }
    }
}
