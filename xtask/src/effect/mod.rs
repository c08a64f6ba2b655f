//! `cargo xtask effect`: tunes both hosts of every path of the library in the lab, and writes docs/tune.md.
//!
//! A run of `linerate tune` takes minutes, and there are many paths: with `--documents DIRECTORY` each document is kept,
//! and a path whose document is there already is not tuned again.

mod arguments;
mod page;
mod tuned;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use self::arguments::Arguments;
use self::tuned::{Labelled, Tuned};
use crate::{bench, workspace};

/// Tunes the paths asked for, writes the table; whether each came out as its label says.
pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    let arguments = Arguments::parse(arguments)?;
    let linerate = match &arguments.linerate {
        Some(path) => path.clone(),
        None => bench::build()?,
    };
    let library = library(&linerate)?;
    let wanted = arguments.select(&library)?;
    if let Some(directory) = &arguments.documents {
        fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    }
    let done = all(&wanted, &arguments, &linerate);
    let out = workspace::root().join(&arguments.out);
    fs::write(&out, page::page(&done, library.len())).with_context(|| format!("cannot write {}", out.display()))?;
    println!("written: {}", out.display());
    let wrong: Vec<&Tuned> = done.iter().filter(|one| !one.is_as_expected()).collect();
    for one in &wrong {
        println!("{}: {}", one.path.name, one.complaint());
    }
    Ok(wrong.is_empty())
}

/// The library with its labels and where their causes lie.
fn library(linerate: &Path) -> Result<Vec<Labelled>> {
    let text = workspace::output_of(Command::new(linerate).args(["lab", "list", "--json"]))?;
    let document: Value = serde_json::from_str(&text).context("cannot read the answer of linerate lab list")?;
    let entries = document["paths"].as_array().context("linerate lab list names no paths")?;
    // Nothing on a host answers a rate that changes: those paths are for shapers.
    entries.iter().filter(|entry| entry["label"] != "variable-rate").map(Labelled::read).collect()
}

/// As many at once as were asked for; in the order of their names.
fn all(wanted: &[Labelled], arguments: &Arguments, linerate: &Path) -> Vec<Tuned> {
    let (next, done) = (Mutex::new(wanted.iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs {
            scope.spawn(|| {
                loop {
                    let Some(path) = next.lock().expect("no panic").next() else { break };
                    let tuned = match one(path, arguments.documents.as_deref(), linerate) {
                        Ok(document) => Tuned::read(path, &document),
                        Err(error) => Tuned::failed(path, &format!("{error:#}")),
                    };
                    println!("{}", tuned.line());
                    done.lock().expect("no panic").push(tuned);
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no panic");
    done.sort_by(|one, other| one.path.name.cmp(&other.path.name));
    done
}

/// The document of one path: read where it was kept, else made.
fn one(path: &Labelled, documents: Option<&Path>, linerate: &Path) -> Result<Value> {
    let file = documents.map(|directory| directory.join(format!("{}.json", path.name)));
    if let Some(file) = file.as_deref().filter(|file| file.exists()) {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        return serde_json::from_str(&text).with_context(|| format!("{} is no JSON", file.display()));
    }
    let output = Command::new(linerate)
        .args(["--no-history", "tune", &format!("lab:{}", path.name), "--yes", "--json", "--quiet"])
        .output()
        .with_context(|| format!("cannot start {}", linerate.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let document: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("linerate tune wrote no JSON ({}): {}", output.status, said.trim()))?;
    ensure!(document["schema"] == 1, "linerate tune wrote a document of schema {}", document["schema"]);
    if let Some(file) = file {
        fs::write(&file, &output.stdout).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(document)
}
