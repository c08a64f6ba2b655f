//! Location of the workspace, and cargo's metadata.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Platform whose dependency tree is checked and counted, on any machine.
pub(crate) const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Returns the root folder of this workspace.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

/// Returns the output of `cargo metadata` for the workspace and its dependencies.
pub(crate) fn cargo_metadata(root: &Path) -> Result<Value> {
    let text = output_of(
        Command::new(cargo())
            .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", PLATFORM])
            .current_dir(root),
    )?;
    serde_json::from_str(&text).context("cannot parse the output of cargo metadata")
}

/// Returns the cargo that runs this task, so that both are of one toolchain.
pub(crate) fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// Runs `command` to its end and returns its stdout; an error includes its stderr.
pub(crate) fn output_of(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    ensure!(
        output.status.success(),
        "{command:?} ended with {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    );
    String::from_utf8(output.stdout).with_context(|| format!("the output of {command:?} is not UTF-8"))
}
