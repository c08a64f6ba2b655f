//! Changes to a host: recorded in a journal, written, read back, and rolled back unless they are kept.
//!
//! A [`ChangeTrial`] takes a plan of `linerate_model::change`, records the present value of each target, starts a watchdog,
//! and then writes change by change, each recorded before it is written and read back afterwards. It ends by being kept
//! ([`ChangeTrial::keep`]) or rolled back ([`ChangeTrial::roll_back`], or by being dropped); after anything else (a signal, a
//! crash, a lost connection, a power cut), the watchdog, the reboot or the next start ([`recover`]) rolls it back.
//!
//! A target is restored only while it still has the value that linerate wrote: a value that another program has set
//! meanwhile is reported and left alone. No other crate changes a host.

#![forbid(unsafe_code)]

mod comparison;
pub mod drop_in;
mod error;
#[cfg(test)]
mod fault_matrix;
mod id;
mod interfaces;
mod journal;
mod rollback;
#[cfg(test)]
mod scratch;
mod session;
mod set;
mod state_disk;
mod store;
mod trial;
mod watchdog;

pub use comparison::{is_unchanged, optional_value_matches, shown, value_matches};
pub use error::{ChangeError, Result};
pub use id::ChangeId;
pub use journal::WriteOutcome;
pub use linerate_model::change::ChangeSetState;
pub use rollback::{
    FileRollbackReport, RestoreOutcome, RollbackMode, RollbackReport, TargetReport, latest_in_effect, pending, recover,
    roll_back, unfinished,
};
pub use set::{ChangePhase, ChangeSet, KeptFile, PlannedChange};
pub use store::{ChangeStore, ListedChangeSet, STATE_VARIABLE};
pub use trial::{ApplyOutcome, ChangeTrial, KeepOptions, KeptChanges, TrialOptions};
pub use watchdog::{RollbackGuard, WatchdogKind, watch};
