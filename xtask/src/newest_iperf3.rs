//! Newest iperf3, which distributions have years later: built from the sources in the crate `iperf3-rs`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::workspace;

/// Project that has nothing but the crate as a dependency, so that cargo fetches its sources.
const MANIFEST: &str = "[package]\nname = \"newest-iperf3\"\nedition = \"2021\"\n\n[lib]\npath = \"lib.rs\"\n\n\
                        [dependencies]\niperf3-rs = \"1\"\n\n[workspace]\n";

/// Returns the program below target/peers, built at first.
///
/// # Errors
///
/// The registry cannot be reached, or the sources do not compile.
pub(crate) fn find() -> Result<PathBuf> {
    let folder = workspace::root().join("target/peers");
    let program = folder.join("bin/iperf3-newest");
    if !program.exists() {
        println!("building the newest iperf3 below target/peers");
        let build = folder.join("iperf3-newest");
        copy_sources(&build)?;
        run(Command::new("./configure").args(["--quiet", "--disable-shared"]), &build)?;
        run(Command::new("make").args(["--quiet", "-C", "src", "iperf3"]), &build)?;
        fs::create_dir_all(folder.join("bin")).context("cannot create target/peers/bin")?;
        fs::copy(build.join("src/iperf3"), &program).context("cannot copy the program")?;
    }
    Ok(program)
}

/// Fetches the crate, and copies the sources of iperf3 in it to `build`.
fn copy_sources(build: &Path) -> Result<()> {
    // What an earlier, interrupted build left.
    if build.exists() {
        fs::remove_dir_all(build).with_context(|| format!("cannot remove {}", build.display()))?;
    }
    let project = build.join("project");
    fs::create_dir_all(&project).with_context(|| format!("cannot create {}", project.display()))?;
    fs::write(project.join("Cargo.toml"), MANIFEST).context("cannot write a manifest")?;
    fs::write(project.join("lib.rs"), "").context("cannot write a library")?;
    let metadata = workspace::output_of(
        Command::new(workspace::cargo()).args(["metadata", "--format-version", "1"]).current_dir(&project),
    )?;
    let sources = sources(&serde_json::from_str(&metadata).context("cannot parse the metadata")?)?;
    run(Command::new("cp").arg("--recursive").arg(sources.join(".")).arg(build), build)
}

/// Folder of iperf3's sources, from the metadata of the project.
fn sources(metadata: &Value) -> Result<PathBuf> {
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let package = packages.find(|package| package["name"] == "iperf3-rs").context("cargo knows no iperf3-rs")?;
    let manifest = package["manifest_path"].as_str().context("the crate has no manifest")?;
    Ok(Path::new(manifest).with_file_name("iperf3"))
}

fn run(command: &mut Command, folder: &Path) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.current_dir(folder).status().with_context(|| format!("cannot start {name}"))?;
    ensure!(status.success(), "{name} ended with {status}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_beside_the_manifest_of_the_crate() {
        let package =
            |name: &str| serde_json::json!({ "name": name, "manifest_path": format!("/r/{name}/Cargo.toml") });
        let metadata = serde_json::json!({ "packages": [package("serde"), package("iperf3-rs")] });
        assert_eq!(sources(&metadata).ok(), Some(PathBuf::from("/r/iperf3-rs/iperf3")));
        assert!(sources(&serde_json::json!({})).is_err());
    }
}
