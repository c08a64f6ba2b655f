//! `cargo xtask schema`: writes the JSON Schemas of linerate's documents to docs/schema.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use crate::workspace;

const FOLDER: &str = "docs/schema";
const TEST: &str = "schema::json_schema::hand_over";

/// Has the test that generates them hand them over, and writes them.
pub(crate) fn run() -> Result<bool> {
    let folder = workspace::root().join(FOLDER);
    let output = Command::new(workspace::cargo())
        .args(["test", "--package", "linerate-model", "--lib", "--", "--ignored", "--exact", TEST])
        .current_dir(workspace::root())
        .output()
        .context("cannot start cargo test")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let between = |text: &str| Some(text.split_once("=== schemas\n")?.1.split_once("\n=== end")?.0.to_owned());
    let schemas = between(&said)
        .with_context(|| format!("{TEST} handed nothing over:\n{said}{}", String::from_utf8_lossy(&output.stderr)))?;
    let schemas: Map<String, Value> = serde_json::from_str(&schemas).context("what it handed over is no JSON")?;
    for (file, schema) in &schemas {
        let path = folder.join(file);
        fs::write(&path, format!("{schema:#}\n")).with_context(|| format!("cannot write {}", path.display()))?;
        println!("written: {}", path.display());
    }
    Ok(!schemas.is_empty())
}
