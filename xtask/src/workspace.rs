//! Where the workspace is and what cargo knows about it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// The platform whose dependency tree is checked and counted, whatever machine the check runs on.
pub(crate) const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// The root folder of this workspace.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

/// What `cargo metadata` says about the workspace and its dependencies.
pub(crate) fn cargo_metadata(root: &Path) -> Result<Value> {
    let text = output_of(
        Command::new(cargo())
            .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", PLATFORM])
            .current_dir(root),
    )?;
    serde_json::from_str(&text).context("cannot read the answer of cargo metadata")
}

/// The cargo that runs this chore, so that both are of one toolchain.
pub(crate) fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// Runs `command` to its end and returns what it wrote to stdout; an error carries what it wrote to stderr.
pub(crate) fn output_of(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    ensure!(
        output.status.success(),
        "{command:?} ended with {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    );
    String::from_utf8(output.stdout).with_context(|| format!("{command:?} wrote something that is not UTF-8"))
}
