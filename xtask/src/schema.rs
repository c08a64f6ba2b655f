//! `cargo xtask schema`: writes the JSON Schemas of linerate's documents to docs/schema.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use crate::workspace;

const FOLDER: &str = "docs/schema";
const TEST: &str = "json_schema::hand_over";

/// Runs the test that generates the schemas, and writes its output.
pub(crate) fn run() -> Result<bool> {
    let folder = workspace::root().join(FOLDER);
    let output = Command::new(workspace::cargo())
        .args(["test", "--package", "linerate-documents", "--lib", "--", "--ignored", "--exact", TEST])
        .current_dir(workspace::root())
        .output()
        .context("cannot start cargo test")?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let between = |text: &str| Some(text.split_once("=== schemas\n")?.1.split_once("\n=== end")?.0.to_owned());
    let schemas = between(&stdout)
        .with_context(|| format!("{TEST} printed no schemas:\n{stdout}{}", String::from_utf8_lossy(&output.stderr)))?;
    let schemas: Map<String, Value> = serde_json::from_str(&schemas).context("the printed schemas are not JSON")?;
    for (file, schema) in &schemas {
        let path = folder.join(file);
        fs::write(&path, format!("{schema:#}\n")).with_context(|| format!("cannot write {}", path.display()))?;
        println!("written: {}", path.display());
    }
    Ok(!schemas.is_empty())
}
