//! `--open-firewall`: opens the port while the server runs.

use linerate_sys::Result;
use linerate_sys::firewall::GuardedOpening;
use linerate_sys::process;
use linerate_units::Port;

/// Port that a process of its own keeps open, if requested, and closes however the server ends.
pub(crate) struct FirewallGuard(Option<GuardedOpening>);

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
        let arguments = ["serve".to_owned(), "--firewall-guard".to_owned(), port.to_string()];
        let opening = GuardedOpening::start(&process::own_program()?, &arguments)?;
        tell(opening.summary());
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
