//! Embeds the library of paths in the program: a table of the files in the workspace's folder `paths/`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let manifest = variable("CARGO_MANIFEST_DIR")?;
    let folder = Path::new(&manifest).join("../../paths");
    // The folder itself: files that come and go change its time. Each file is watched by `include_str!`.
    println!("cargo::rerun-if-changed={}", folder.display());
    let folder = folder.canonicalize().map_err(|error| describe("find the library of paths", &folder, &error))?;
    let table = table(&files(&folder)?)?;
    let target = Path::new(&variable("OUT_DIR")?).join("library.rs");
    fs::write(&target, table).map_err(|error| describe("write the table of paths", &target, &error))
}

/// Descriptions with the names of their paths, sorted by name.
fn files(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let read = |error| describe("list the library of paths", folder, &error);
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(read)? {
        let file = entry.map_err(read)?.path();
        let is_description = file.extension().is_some_and(|extension| extension == "toml");
        if let (true, Some(stem)) = (is_description, file.file_stem().and_then(|stem| stem.to_str())) {
            files.push((stem.to_owned(), file.clone()));
        }
    }
    files.sort();
    Ok(files)
}

/// Table as an expression in Rust.
fn table(files: &[(String, PathBuf)]) -> io::Result<String> {
    let mut table = String::from("&[\n");
    for (name, file) in files {
        let line = writeln!(
            table,
            "    LibraryEntry {{ name: {name:?}, text: include_str!({:?}) }},",
            file.display().to_string()
        );
        line.map_err(io::Error::other)?;
    }
    table.push_str("]\n");
    Ok(table)
}

fn variable(name: &str) -> io::Result<String> {
    env::var(name).map_err(|error| io::Error::other(format!("cargo did not set {name}: {error}")))
}

fn describe(what: &str, file: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot {what} ({}): {error}", file.display()))
}
