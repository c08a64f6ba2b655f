//! Document of `linerate lab check --json`: back ends of the lab that work on this host, and reasons for the others.

use linerate_model::lab_check::BackEndReport;
use serde::{Deserialize, Serialize};

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// Requirements of the lab, each tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LabCheckDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// A kernel of the lab's own as an ordinary process, in virtual time.
    pub user_mode_linux: BackEndReport,
    /// Namespaces of this host's kernel, in real time.
    pub namespaces: BackEndReport,
}
