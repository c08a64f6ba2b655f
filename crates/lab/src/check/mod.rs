//! Checks which back ends work on this host, and what the others lack. Everything that can be tried is tried: no
//! version or system name shows what a container, a filter or an administrator allows.

mod namespaces;
mod user_mode;

use linerate_model::lab_check::BackEndReport;

/// Result of checking this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostCheck {
    /// A kernel of the lab's own as an ordinary process, in virtual time.
    pub user_mode_linux: BackEndReport,
    /// Namespaces of this host's kernel, in real time.
    pub namespaces: BackEndReport,
}

/// Runs all checks. Takes about a tenth of a second; temporary objects (a network namespace, a pair of devices) are
/// gone afterwards.
#[must_use]
pub fn check() -> HostCheck {
    HostCheck { user_mode_linux: user_mode::report(), namespaces: namespaces::report() }
}

#[cfg(test)]
mod tests {
    use linerate_model::lab_check::CheckOutcome;

    use super::*;

    #[test]
    fn every_missing_item_has_a_remedy() {
        let report = check();
        for item in report.user_mode_linux.items.iter().chain(&report.namespaces.items) {
            if let CheckOutcome::Missing { what, way_out } = &item.outcome {
                assert!(!what.is_empty() && !way_out.is_empty(), "{item:?}");
            }
        }
    }
}
