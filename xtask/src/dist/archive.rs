//! Archives and digests that depend on the contents only.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::tools;
use crate::workspace::output_of;

/// Writes `names` in `directory` to a tar archive: sorted, owned by root, with one time, without further attributes.
pub(super) fn tar(directory: &Path, names: &[&str], epoch: u64, to: &Path) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.args(["--create", "--format=ustar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
        .args(["--mode=u+rw,go=rX", &format!("--mtime=@{epoch}")])
        .arg(format!("--file={}", to.display()))
        .arg(format!("--directory={}", directory.display()))
        .args(names);
    tools::run(&mut tar)
}

/// Compresses the file at a level from 1 to 9 and removes it; returns the new one.
pub(super) fn gzip(file: &Path, level: u32) -> Result<PathBuf> {
    tools::run(Command::new("gzip").args(["--force", "--no-name", &format!("-{level}")]).arg(file))?;
    let mut name = file.as_os_str().to_owned();
    name.push(".gz");
    Ok(name.into())
}

/// SHA-256 of a file in hexadecimal digits.
pub(super) fn sha256(file: &Path) -> Result<String> {
    let text = output_of(Command::new("sha256sum").arg("--binary").arg(file))?;
    // A backslash in front marks a name with a line feed.
    let digest = text.trim_start_matches('\\').split_whitespace().next();
    digest.map(str::to_owned).with_context(|| format!("sha256sum printed '{text}'"))
}

/// Names of the files in a directory, sorted.
pub(super) fn file_names(directory: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot list {}", directory.display()))?;
        if entry.path().is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Text of a file of digests as `sha256sum --check` reads it.
pub(super) fn digests(directory: &Path, names: &[String]) -> Result<String> {
    let line = |name: &String| Ok(format!("{}  {name}\n", sha256(&directory.join(name))?));
    names.iter().map(line).collect()
}

/// Makes `directory` empty.
pub(super) fn clear(directory: &Path) -> Result<()> {
    if directory.exists() {
        fs::remove_dir_all(directory).with_context(|| format!("cannot remove {}", directory.display()))?;
    }
    fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_of_equal_contents_are_equal() {
        let top = std::env::temp_dir().join(format!("linerate-archive-{}", std::process::id()));
        let digest = |name: &str, files: [&str; 2]| {
            let directory = top.join(name);
            clear(&directory.join("tree")).expect("writable");
            for file in files {
                fs::write(directory.join("tree").join(file), file).expect("writable");
            }
            let archive = directory.join("tree.tar");
            tar(&directory, &["tree"], 1_700_000_000, &archive).expect("tar runs");
            sha256(&gzip(&archive, 9).expect("gzip runs")).expect("sha256sum runs")
        };
        let first = digest("first", ["a", "b"]);
        assert_eq!(first.len(), 64);
        assert_eq!(first, digest("second", ["b", "a"]));
        assert_ne!(first, digest("third", ["a", "c"]));
        fs::remove_dir_all(&top).expect("there");
    }
}
