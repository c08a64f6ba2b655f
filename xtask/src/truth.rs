//! `cargo xtask truth`: measures the reference table of causes and signatures anew, and writes docs/truth-table.md.

use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace;

const OUT: &str = "docs/truth-table.md";

/// Runs all rows, writes the table, and checks it; whether every row is as published or as explained.
pub(crate) fn run() -> Result<bool> {
    let out = workspace::root().join(OUT);
    let status = Command::new(workspace::cargo())
        .args(["test", "--package", "linerate-cli", "--test", "truth_table", "--", "--ignored", "--exact", "publish"])
        .env("LINERATE_TRUTH", &out)
        .current_dir(workspace::root())
        .status()
        .context("cannot start cargo test")?;
    println!("written: {}", out.display());
    Ok(status.success())
}
