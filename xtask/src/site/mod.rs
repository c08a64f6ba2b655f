//! `cargo xtask site`: the documents as a site, by mdBook, below target/site.
//!
//! Pages are those of docs/SUMMARY.md. What they link outside of docs comes along below `repository/`, so that each link
//! works in the repository, in the site, and without a network.

mod built;
mod source;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::repository::Repository;
use crate::workspace;

/// Version of mdBook that is installed where target/tools has none.
const MDBOOK_VERSION: &str = "0.5.4";

/// Builds the site and checks its links; returns true if all lead somewhere.
pub(crate) fn run() -> Result<bool> {
    let root = workspace::root();
    let mdbook = mdbook(&root)?;
    let repository = Repository::read_files(&root)?;
    let source = root.join("target/site-source");
    write_source(&root, &source, &source::files(&repository)?)?;
    let site = root.join("target/site");
    workspace::output_of(Command::new(mdbook).arg("build").arg(&source).arg("--dest-dir").arg(&site))?;
    let problems = built::check(&site)?;
    for problem in &problems {
        println!("{problem}");
    }
    println!("site: {}, {} dead links", site.join("index.html").display(), problems.len());
    Ok(problems.is_empty())
}

/// Returns the program below target/tools, installed at first.
fn mdbook(root: &Path) -> Result<PathBuf> {
    let tools = root.join("target/tools");
    let program = tools.join("bin/mdbook");
    let installed = Command::new(&program).arg("--version").output().map(|output| output.stdout).unwrap_or_default();
    if String::from_utf8_lossy(&installed).trim() != format!("mdbook v{MDBOOK_VERSION}") {
        println!("installing mdbook {MDBOOK_VERSION} below target/tools, which takes some minutes");
        let install = ["install", "--locked", "--quiet", "--force", "mdbook", "--version", MDBOOK_VERSION];
        let features = ["--no-default-features", "--features", "search"];
        let status = Command::new(workspace::cargo()).args(install).args(features).arg("--root").arg(&tools).status();
        let status = status.context("cannot start cargo")?;
        ensure!(status.success(), "cargo could not install mdbook {MDBOOK_VERSION}, which builds the site: {status}");
    }
    Ok(program)
}

/// Writes mdBook's input: the generated files, and the others as they are.
fn write_source(root: &Path, source: &Path, files: &[source::SourceFile]) -> Result<()> {
    if source.exists() {
        fs::remove_dir_all(source).with_context(|| format!("cannot remove {}", source.display()))?;
    }
    for file in files {
        let path = source.join(&file.path);
        let folder = path.parent().unwrap_or(source);
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let written = match &file.content {
            source::FileContent::Text(text) => fs::write(&path, text),
            source::FileContent::CopyOf(original) => fs::copy(root.join(original), &path).map(|_| ()),
        };
        written.with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
