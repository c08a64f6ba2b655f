//! What the checks look at: every file of the repository as text, and cargo's view of the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::source::Source;
use crate::workspace::{PLATFORM, cargo, cargo_metadata, output_of};

/// The files and packages of the repository, read once.
#[derive(Default)]
pub(super) struct Repository {
    files: BTreeMap<String, String>,
    packages: Vec<Package>,
    external_crates: usize,
}

/// A member of the workspace.
#[derive(Clone, Debug, Default)]
pub(super) struct Package {
    /// Version in the manifest.
    pub(super) version: String,
    /// Folder from the root of the repository, such as `crates/units`.
    pub(super) folder: String,
    /// Direct dependencies of every kind.
    pub(super) dependencies: Vec<Dependency>,
    /// The first file of every target (library, binaries, tests, benches, examples).
    pub(super) roots: Vec<String>,
}

/// A direct dependency of a [`Package`].
#[derive(Clone, Debug)]
pub(super) struct Dependency {
    /// Name of the package depended on.
    pub(super) name: String,
    /// Whether it is a member of this workspace.
    pub(super) internal: bool,
    /// Whether only tests, benches and examples use it.
    pub(super) development: bool,
}

impl Package {
    /// The folder's own name: `units` for `crates/units`.
    pub(super) fn short_name(&self) -> &str {
        self.folder.rsplit('/').next().unwrap_or(&self.folder)
    }

    /// Path of its manifest.
    pub(super) fn manifest(&self) -> String {
        format!("{}/Cargo.toml", self.folder)
    }
}

impl Repository {
    /// Reads the files that git tracks, or would track, below `root`, and cargo's metadata.
    pub(super) fn read(root: &Path) -> Result<Self> {
        let metadata = cargo_metadata(root)?;
        let packages = packages(&metadata).context("cargo metadata lacks an expected key")?;
        Ok(Self { files: files(root)?, packages, external_crates: external_crates(&dependency_tree(root)?) })
    }

    /// The text of the file at `path`.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// All files with their text.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Number of files read.
    pub(super) fn file_count(&self) -> usize {
        self.files.len()
    }

    /// All Rust files, split into code and comments.
    pub(super) fn rust_sources(&self) -> impl Iterator<Item = (&str, Source)> {
        self.files().filter(|(path, _)| has_extension(path, "rs")).map(|(path, text)| (path, Source::new(path, text)))
    }

    /// The members of the workspace.
    pub(super) fn packages(&self) -> &[Package] {
        &self.packages
    }

    /// How many crates from outside go into the `linerate` binary, directly or not.
    pub(super) fn external_crates(&self) -> usize {
        self.external_crates
    }
}

/// Whether the file name at `path` ends with `.extension`.
pub(super) fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == extension)
}

fn files(root: &Path) -> Result<BTreeMap<String, String>> {
    // A fresh container often runs as another user than the owner of the clone: this list needs no trust in it.
    let list = output_of(
        Command::new("git")
            .args(["-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard"])
            .current_dir(root),
    )?;
    let mut files = BTreeMap::new();
    for path in list.lines() {
        // A file removed but still in the index, and a file that is not text, hold nothing to check.
        if let Ok(bytes) = std::fs::read(root.join(path))
            && let Ok(text) = String::from_utf8(bytes)
        {
            files.insert(path.to_owned(), text);
        }
    }
    Ok(files)
}

fn packages(metadata: &Value) -> Option<Vec<Package>> {
    let root = metadata["workspace_root"].as_str()?;
    let relative = |path: &str| path.strip_prefix(root).unwrap_or(path).trim_start_matches('/').to_owned();
    let members: BTreeSet<&str> = metadata["workspace_members"].as_array()?.iter().filter_map(Value::as_str).collect();
    let mut packages = Vec::new();
    for package in metadata["packages"].as_array()? {
        if !members.contains(package["id"].as_str()?) {
            continue;
        }
        let manifest = relative(package["manifest_path"].as_str()?);
        packages.push(Package {
            version: package["version"].as_str()?.to_owned(),
            folder: manifest.strip_suffix("/Cargo.toml").unwrap_or_default().to_owned(),
            dependencies: package["dependencies"].as_array()?.iter().filter_map(dependency).collect(),
            roots: package["targets"]
                .as_array()?
                .iter()
                .filter_map(|target| target["src_path"].as_str())
                .map(relative)
                .collect(),
        });
    }
    Some(packages)
}

fn dependency(value: &Value) -> Option<Dependency> {
    Some(Dependency {
        name: value["name"].as_str()?.to_owned(),
        internal: value["path"].is_string(),
        development: value["kind"] == "dev",
    })
}

/// The tree of what the binary needs, one crate per line. Cargo's metadata would count too many: it does not evaluate
/// conditions that a crate sets for itself.
fn dependency_tree(root: &Path) -> Result<String> {
    output_of(
        Command::new(cargo())
            .args(["tree", "--locked", "--package", "linerate-cli", "--edges", "normal,build"])
            .args(["--prefix", "none", "--format", "{p}", "--target", PLATFORM])
            .current_dir(root),
    )
}

/// Counts the crates from outside in a tree such as `libc v0.2.186 (*)`.
fn external_crates(tree: &str) -> usize {
    let name_and_version = |line: &str| line.split_whitespace().take(2).map(str::to_owned).collect::<Vec<_>>();
    let crates: BTreeSet<_> = tree.lines().map(name_and_version).collect();
    crates.iter().filter(|words| words.first().is_some_and(|name| !name.starts_with("linerate-"))).count()
}

#[cfg(test)]
impl Repository {
    /// A repository of these files, without packages.
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        Self { files, ..Self::default() }
    }

    /// Adds a member in `folder` that depends on `dependencies`: on a member when the name begins with `linerate-`, for
    /// development when it ends with `?`.
    pub(super) fn with_package(mut self, folder: &str, dependencies: &[&str]) -> Self {
        let dependencies = dependencies
            .iter()
            .map(|written| Dependency {
                name: written.trim_end_matches('?').to_owned(),
                internal: written.starts_with("linerate-"),
                development: written.ends_with('?'),
            })
            .collect();
        let roots = vec![format!("{folder}/src/lib.rs")];
        self.packages.push(Package { version: "0.1.0".to_owned(), folder: folder.to_owned(), dependencies, roots });
        self
    }

    /// Says how many crates from outside the binary needs.
    pub(super) fn with_external_crates(mut self, count: usize) -> Self {
        self.external_crates = count;
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metadata() -> Value {
        json!({
            "workspace_root": "/somewhere",
            "workspace_members": ["path+cli"],
            "packages": [
                {"id": "path+cli", "name": "linerate-cli", "version": "0.1.0",
                 "manifest_path": "/somewhere/crates/cli/Cargo.toml",
                 "dependencies": [
                    {"name": "linerate-units", "path": "/somewhere/crates/units", "kind": null},
                    {"name": "outside", "kind": null},
                    {"name": "helper", "kind": "dev"}],
                 "targets": [{"src_path": "/somewhere/crates/cli/src/main.rs"}]},
                {"id": "registry+outside", "name": "outside"}
            ]
        })
    }

    #[test]
    fn members_are_read_with_paths_from_the_root() {
        let packages = packages(&metadata()).expect("the metadata is complete");
        assert_eq!(packages.len(), 1);
        assert_eq!(packages[0].folder, "crates/cli");
        assert_eq!(packages[0].short_name(), "cli");
        assert_eq!(packages[0].manifest(), "crates/cli/Cargo.toml");
        assert_eq!(packages[0].roots, ["crates/cli/src/main.rs"]);
        let kinds: Vec<_> = packages[0].dependencies.iter().map(|found| (found.internal, found.development)).collect();
        assert_eq!(kinds, [(true, false), (false, false), (false, true)]);
    }

    #[test]
    fn the_count_leaves_out_members_and_repetitions() {
        let tree = "linerate-cli v0.1.0 (/somewhere/crates/cli)\nlibc v0.2.186\nserde_derive v1.0.229 (proc-macro)\n\
                    libc v0.2.186 (*)\nsyn v2.0.0\nsyn v3.0.0\n\n";
        assert_eq!(external_crates(tree), 4);
    }
}
