//! `cargo xtask diagnosis`: diagnoses every path of the library in the lab, and writes docs/diagnosis.md.

use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace;

const OUT: &str = "docs/diagnosis.md";

/// Runs all paths, writes the table, and checks it; whether every first verdict names what was built in.
pub(crate) fn run() -> Result<bool> {
    let out = workspace::root().join(OUT);
    let test = ["--test", "diagnosis_lab", "--", "--ignored", "--exact", "every_limit_is_named"];
    let status = Command::new(workspace::cargo())
        .args(["test", "--package", "linerate-cli"])
        .args(test)
        .env("LINERATE_DIAGNOSIS_TABLE", &out)
        .current_dir(workspace::root())
        .status()
        .context("cannot start cargo test")?;
    println!("written: {}", out.display());
    Ok(status.success())
}
