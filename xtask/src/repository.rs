//! Input of the checks and figures: every file of the repository, and cargo's metadata of the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::rust_file::RustFile;
use crate::workspace::{PLATFORM, cargo, cargo_metadata, output_of};

/// Files and packages of the repository, read once.
#[derive(Default)]
pub(crate) struct Repository {
    files: BTreeMap<String, String>,
    other_files: BTreeSet<String>,
    rust_files: BTreeMap<String, RustFile>,
    packages: Vec<WorkspacePackage>,
    external_crates: usize,
}

/// Member of the workspace.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkspacePackage {
    /// Version in its manifest.
    pub(crate) version: String,
    /// Folder relative to the root of the repository, such as `crates/units`.
    pub(crate) folder: String,
    /// Direct dependencies of every kind.
    pub(crate) dependencies: Vec<PackageDependency>,
    /// Root file of every target (library, binaries, tests, benches, examples).
    pub(crate) roots: Vec<String>,
}

/// Direct dependency of a `SourcePackage`.
#[derive(Clone, Debug)]
pub(crate) struct PackageDependency {
    /// Name of the dependency.
    pub(crate) name: String,
    /// True for a member of this workspace.
    pub(crate) internal: bool,
    /// True when only tests, benches and examples use it.
    pub(crate) development: bool,
}

impl WorkspacePackage {
    /// Returns the folder's own name: `units` for `crates/units`.
    pub(crate) fn short_name(&self) -> &str {
        self.folder.rsplit('/').next().unwrap_or(&self.folder)
    }

    /// Returns the path of its manifest.
    pub(crate) fn manifest(&self) -> String {
        format!("{}/Cargo.toml", self.folder)
    }
}

impl Repository {
    /// Reads the files that git tracks, or would track, below `root`, and cargo's metadata.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let metadata = cargo_metadata(root)?;
        let packages = packages(&metadata).context("cargo metadata lacks an expected key")?;
        let external_crates = external_crates(&dependency_tree(root)?);
        Ok(Self { packages, external_crates, ..Self::read_files(root)? })
    }

    /// Reads the same files without cargo's metadata, also of a tree that is no workspace of this version.
    pub(crate) fn read_files(root: &Path) -> Result<Self> {
        let (files, other_files) = files(root)?;
        let rust_files = rust_files(&files)?;
        Ok(Self { files, other_files, rust_files, ..Self::default() })
    }

    /// Returns the paths of all files, also of those that are not text.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().chain(&self.other_files).map(String::as_str)
    }

    /// True for a folder that has files.
    pub(crate) fn is_folder(&self, path: &str) -> bool {
        let start = format!("{path}/");
        path.is_empty() || self.paths().any(|found| found.starts_with(&start))
    }

    /// True for a file or a folder of the repository.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.files.contains_key(path) || self.other_files.contains(path) || self.is_folder(path)
    }

    /// Returns the text of the file at `path`.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Returns all files with their text.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Returns the number of files read.
    pub(crate) fn file_count(&self) -> usize {
        self.files.len()
    }

    /// Returns all Rust files as tokens.
    pub(crate) fn rust_files(&self) -> impl Iterator<Item = (&str, &RustFile)> {
        self.rust_files.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// Returns the members of the workspace.
    pub(crate) fn packages(&self) -> &[WorkspacePackage] {
        &self.packages
    }

    /// Returns the number of external crates in the `linerate` binary, direct and transitive.
    pub(crate) fn external_crates(&self) -> usize {
        self.external_crates
    }
}

/// True when the file name at `path` ends with `.extension`.
pub(crate) fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == extension)
}

/// Reads the texts, and the paths of the other files.
fn files(root: &Path) -> Result<(BTreeMap<String, String>, BTreeSet<String>)> {
    // A fresh container often runs as another user than the owner of the clone: this list is safe nevertheless.
    let list = output_of(
        Command::new("git")
            .args(["-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard"])
            .current_dir(root),
    )?;
    let mut files = BTreeMap::new();
    let mut others = BTreeSet::new();
    for path in list.lines() {
        // Files removed but still in the index are not there.
        let Ok(bytes) = std::fs::read(root.join(path)) else { continue };
        match String::from_utf8(bytes) {
            Ok(text) => drop(files.insert(path.to_owned(), text)),
            Err(_) => drop(others.insert(path.to_owned())),
        }
    }
    Ok((files, others))
}

/// Splits all Rust files into tokens, and marks the modules of tests that are in files of their own.
fn rust_files(files: &BTreeMap<String, String>) -> Result<BTreeMap<String, RustFile>> {
    let sources = files.iter().filter(|(path, _)| has_extension(path, "rs"));
    let mut parsed = BTreeMap::new();
    for (path, text) in sources {
        parsed.insert(path.clone(), RustFile::parse(path, text)?);
    }
    let test_modules: Vec<String> = parsed
        .iter()
        .flat_map(|(path, file)| file.test_modules().map(|module| module_path(path, module)).collect::<Vec<_>>())
        .collect();
    for (path, file) in &mut parsed {
        let module = path.trim_end_matches(".rs");
        if test_modules.iter().any(|tests| module == tests || module.starts_with(&format!("{tests}/"))) {
            file.mark_as_tests();
        }
    }
    Ok(parsed)
}

/// Returns the path, without `.rs` or `/mod.rs`, of the module that the file at `path` declares.
fn module_path(path: &str, module: &str) -> String {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    match file {
        "lib.rs" | "main.rs" | "mod.rs" => format!("{folder}/{module}"),
        _ => format!("{}/{module}", path.trim_end_matches(".rs")),
    }
}

fn packages(metadata: &Value) -> Option<Vec<WorkspacePackage>> {
    let root = metadata["workspace_root"].as_str()?;
    let relative = |path: &str| path.strip_prefix(root).unwrap_or(path).trim_start_matches('/').to_owned();
    let members: BTreeSet<&str> = metadata["workspace_members"].as_array()?.iter().filter_map(Value::as_str).collect();
    let mut packages = Vec::new();
    for package in metadata["packages"].as_array()? {
        if !members.contains(package["id"].as_str()?) {
            continue;
        }
        let manifest = relative(package["manifest_path"].as_str()?);
        packages.push(WorkspacePackage {
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

fn dependency(value: &Value) -> Option<PackageDependency> {
    Some(PackageDependency {
        name: value["name"].as_str()?.to_owned(),
        internal: value["path"].is_string(),
        development: value["kind"] == "dev",
    })
}

/// Returns the dependency tree of the binary, one crate per line. Cargo's metadata would count too many: it does not
/// evaluate conditions that a crate sets for itself.
fn dependency_tree(root: &Path) -> Result<String> {
    output_of(
        Command::new(cargo())
            .args(["tree", "--locked", "--package", "linerate-cli", "--edges", "normal,build"])
            .args(["--prefix", "none", "--format", "{p}", "--target", PLATFORM])
            .current_dir(root),
    )
}

/// Counts the external crates in a tree such as `libc v0.2.186 (*)`.
fn external_crates(tree: &str) -> usize {
    let name_and_version = |line: &str| line.split_whitespace().take(2).map(str::to_owned).collect::<Vec<_>>();
    let crates: BTreeSet<_> = tree.lines().map(name_and_version).collect();
    crates.iter().filter(|fields| fields.first().is_some_and(|name| !name.starts_with("linerate-"))).count()
}

#[cfg(test)]
impl Repository {
    /// Returns a repository of these files, without packages.
    pub(crate) fn from_files(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        let rust_files = rust_files(&files).expect("the files are Rust");
        Self { files, rust_files, ..Self::default() }
    }

    /// Adds a member in `folder` that depends on `dependencies`: on a member when the name begins with `linerate-`, for
    /// development when it ends with `?`.
    pub(crate) fn with_package(mut self, folder: &str, dependencies: &[&str]) -> Self {
        let dependencies = dependencies
            .iter()
            .map(|written| PackageDependency {
                name: written.trim_end_matches('?').to_owned(),
                internal: written.starts_with("linerate-"),
                development: written.ends_with('?'),
            })
            .collect();
        let roots = vec![format!("{folder}/src/lib.rs")];
        self.packages.push(WorkspacePackage {
            version: "0.1.0".to_owned(),
            folder: folder.to_owned(),
            dependencies,
            roots,
        });
        self
    }

    /// Sets the number of external crates of the binary.
    pub(crate) fn with_external_crates(mut self, count: usize) -> Self {
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
    fn modules_of_tests_in_other_files_are_marked() {
        let repository = Repository::from_files(&[
            ("crates/a/src/lib.rs", "#[cfg(test)]\nmod b;\nmod c;\n"),
            ("crates/a/src/b/mod.rs", "fn x() {}"),
            ("crates/a/src/c.rs", "#[cfg(test)]\nmod d;\nfn x() {}"),
            ("crates/a/src/c/d.rs", "fn x() {}"),
            ("crates/a/tests/e.rs", "fn x() {}"),
        ]);
        let in_tests: Vec<_> = repository
            .rust_files()
            .map(|(path, file)| (path, file.tokens().iter().all(|token| token.in_tests)))
            .collect();
        let expected = [("crates/a/src/b/mod.rs", true), ("crates/a/src/c.rs", false), ("crates/a/src/c/d.rs", true)];
        assert_eq!(in_tests[..3], expected);
        assert_eq!(in_tests[3..], [("crates/a/src/lib.rs", false), ("crates/a/tests/e.rs", true)]);
    }

    #[test]
    fn the_count_leaves_out_members_and_repetitions() {
        let tree = "linerate-cli v0.1.0 (/somewhere/crates/cli)\nlibc v0.2.186\nserde_derive v1.0.229 (proc-macro)\n\
                    libc v0.2.186 (*)\nsyn v2.0.0\nsyn v3.0.0\n\n";
        assert_eq!(external_crates(tree), 4);
    }
}
