//! `--open-firewall`: opens the port while the server runs.

use std::time::Duration;

use linerate_sys::Result;
use linerate_sys::firewall::{self, FirewallOpening};
use linerate_units::Port;

/// Expiry time of the rule, where the firewall supports one, in case this process is killed.
const RULE_LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// Firewall opening, if requested.
pub(crate) struct FirewallGuard(Option<FirewallOpening>);

impl FirewallGuard {
    /// Opens the port if `wanted`; passes a summary to `tell`.
    ///
    /// # Errors
    ///
    /// The firewall refused; the text contains the command for the administrator.
    pub(crate) fn open_if(wanted: bool, port: Port, tell: impl FnOnce(&str)) -> Result<Self> {
        if !wanted {
            return Ok(Self(None));
        }
        let opening = firewall::open(port, RULE_LIFETIME)?;
        tell(&opening.summary());
        Ok(Self(Some(opening)))
    }

    /// Removes exactly the added rule.
    pub(crate) fn close(self, tell: impl FnOnce(&str)) {
        if let Some(opening) = self.0
            && let Err(cause) = opening.close()
        {
            tell(&format!("warning: {cause}"));
        }
    }
}
