//! Software bill of materials: every crate of the binary, from Cargo.lock, as `CycloneDX`.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::release::Release;
use super::{archive, tools};
use crate::workspace;

/// Writes the bill to `to`. The tool writes next to every manifest, so that it works on a copy of them in `work`.
pub(super) fn write(release: &Release, work: &Path, to: &Path) -> Result<()> {
    let program = tools::cyclonedx()?;
    archive::clear(work)?;
    let work = fs::canonicalize(work).with_context(|| format!("cannot find {}", work.display()))?;
    copy_manifests(&work)?;
    let mut cyclonedx = Command::new(program);
    cyclonedx
        .args([
            "cyclonedx",
            "--quiet",
            "--format=json",
            "--spec-version=1.5",
            "--target=x86_64-unknown-linux-musl",
            "--override-filename=bill",
        ])
        .arg("--manifest-path")
        .arg(work.join("crates/cli/Cargo.toml"))
        .current_dir(&work)
        .env("SOURCE_DATE_EPOCH", release.epoch.to_string());
    tools::run(&mut cyclonedx)?;
    let text = fs::read_to_string(work.join("crates/cli/bill.json")).context("cargo-cyclonedx wrote no bill")?;
    fs::write(to, canonical(&text, &work)?).with_context(|| format!("cannot write {}", to.display()))
}

/// Copies what cargo reads of the workspace: manifests, the lock file, and empty roots of the crates.
fn copy_manifests(to: &Path) -> Result<()> {
    let root = workspace::root();
    let list = "git -c safe.directory='*' ls-files Cargo.lock Cargo.toml 'crates/*.toml' 'crates/*.rs' 'xtask/*.toml' \
                'xtask/*.rs' | tar --create --files-from=- | tar --extract --directory=\"$1\"";
    tools::run(Command::new("bash").args(["-c", list, "copy"]).arg(to).current_dir(root))
}

/// Bill without the serial number, which is random, and without the directory in which it was written.
fn canonical(text: &str, work: &Path) -> Result<String> {
    let text = text.replace(&format!("file://{}", work.display()), "file:///linerate");
    let mut bill: Value = serde_json::from_str(&text).context("cargo-cyclonedx wrote no JSON")?;
    if let Some(fields) = bill.as_object_mut() {
        fields.remove("serialNumber");
    }
    let text = serde_json::to_string_pretty(&bill).context("cannot write JSON")?;
    Ok(text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bill_has_neither_a_random_number_nor_a_directory() {
        let text = r#"{"bomFormat":"CycloneDX","serialNumber":"urn:uuid:1","a":"path+file:///x/y/crates/cli#1"}"#;
        let bill = canonical(text, Path::new("/x/y")).expect("JSON");
        assert_eq!(bill, "{\n  \"bomFormat\": \"CycloneDX\",\n  \"a\": \"path+file:///linerate/crates/cli#1\"\n}\n");
    }
}
