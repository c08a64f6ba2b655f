//! Document of `linerate lab kernel status --json`: kernels of the lab's guests.

use serde::{Deserialize, Serialize};

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// Kernels of this user and of packages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LabKernelsDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Directory of this user's kernels, which need not exist.
    pub directory: String,
    /// Hash of the recipe of this version of linerate.
    pub recipe: String,
    /// Kernels: those of this recipe first, newer versions first.
    pub kernels: Vec<LabKernel>,
}

/// One kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LabKernel {
    /// Absolute path of its file.
    pub path: String,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// True when it was built by the recipe of this version: only then it is used.
    pub current: bool,
    /// Version of Linux, for example `6.12.117`.
    pub version: String,
    /// Package or file of the sources from which it was built.
    pub source: String,
}
