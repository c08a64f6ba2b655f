//! The document of `linerate shape DEV persist --json` and `unpersist --json`: which files and commands set a shaper up
//! at each boot, and what was done about them.

use serde::{Deserialize, Serialize};

/// Version of the shape.
pub const SCHEMA: u32 = 1;

/// How the shaper of one interface outlasts a boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShaperPersistenceDocument {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The linerate that did it.
    pub linerate_version: String,
    /// The interface.
    pub device: String,
    /// The words behind `linerate shape` that ask for the shaper; empty where it is taken away.
    pub words: Vec<String>,
    /// Whether it was done, or only would be (`--dry-run`).
    pub is_done: bool,
    /// Which managers of this host set it up, and why these; empty where it is taken away.
    pub managers: Vec<PersistenceManager>,
    /// Every file.
    pub files: Vec<PersistenceFile>,
    /// The commands, in order, as a person would type them.
    pub commands: Vec<String>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// A program of the host that sets the shaper up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PersistenceManager {
    /// As `--manager` takes it: `systemd`, `networkd`, `network-manager`, `ifupdown`, `ppp`.
    pub manager: String,
    /// Why this one.
    pub reason: String,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PersistenceFile {
    /// Where it is.
    pub path: String,
    /// What becomes of it.
    pub becomes: PersistenceStep,
    /// Its permissions as chmod(1) takes them; `null` where it is removed.
    pub mode: Option<String>,
    /// What it has; `null` where it is removed.
    pub contents: Option<String>,
}

/// What becomes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PersistenceStep {
    /// There was none.
    Created,
    /// One that linerate made before is replaced.
    Replaced,
    /// It is there already.
    Unchanged,
    /// It is taken away.
    Removed,
}
