//! The only way in which a host is changed: journal first, write, read back, and the way home.
//!
//! A [`Trial`] takes a plan of `linerate_model::change`, records what stands at each of its targets, starts a watchdog, and
//! then writes change by change, each recorded before it is written and read back afterwards. It ends by being kept
//! ([`Trial::keep`]) or taken back ([`Trial::roll_back`], or by being dropped); whatever ends it in between (a signal, a
//! crash, a lost connection, a power cut), the watchdog, the reboot or the next start ([`recover`]) leads home.
//!
//! A target is put back only while it still has what linerate wrote there: what somebody else has set meanwhile is
//! reported and left alone.

#![forbid(unsafe_code)]

mod agreement;
pub mod drop_in;
mod error;
mod id;
mod journal;
mod rollback;
#[cfg(test)]
mod scratch;
mod session;
mod set;
mod store;
mod trial;
mod watchdog;

pub use agreement::{agree, agrees, is_still, shown};
pub use error::{ChangeError, Result};
pub use id::ChangeId;
pub use journal::Written;
pub use rollback::{Back, FileReport, Mode, Report, TargetReport, latest_in_force, pending, recover, roll_back};
pub use set::{ChangeSet, Item, KeptFile, Phase, State};
pub use store::{Listed, Store, VARIABLE};
pub use trial::{Keep, Kept, Options, Outcome, Trial};
pub use watchdog::{Guard, watch};
