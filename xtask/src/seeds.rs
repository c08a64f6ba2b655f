//! `cargo xtask seeds`: reproduces the seeds' experiments in the lab, and writes docs/seeds.md.

use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace;

const OUT: &str = "docs/seeds.md";

/// Runs all tables, writes them, and checks them; whether every figure lies within its bounds.
pub(crate) fn run() -> Result<bool> {
    let out = workspace::root().join(OUT);
    let status = Command::new(workspace::cargo())
        .args(["test", "--package", "linerate-cli", "--test", "seeds", "--", "--ignored", "--exact", "publish"])
        .env("LINERATE_SEEDS", &out)
        .current_dir(workspace::root())
        .status()
        .context("cannot start cargo test")?;
    println!("written: {}", out.display());
    Ok(status.success())
}
