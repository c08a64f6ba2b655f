//! `cargo xtask effect`: tunes both hosts of every path of the library in the lab, and writes docs/tune.md.
//!
//! A run of `linerate tune` takes minutes, and there are many paths: with `--documents DIRECTORY` each document is
//! kept, and a path with a kept document is not tuned again.

mod arguments;
mod page;
mod tuned;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use self::arguments::EffectArguments;
use self::tuned::{LabelledPath, TunedPath};
use crate::{bench, truth, workspace};

/// Tunes the requested paths and writes the table; returns true if each result matches its label.
pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    let arguments = EffectArguments::parse(arguments)?;
    let linerate = match &arguments.linerate {
        Some(path) => path.clone(),
        None => bench::build()?,
    };
    let library = library(&linerate)?;
    let wanted = arguments.select(&library)?;
    if let Some(directory) = &arguments.documents {
        fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    }
    let done = tune_all(&wanted, &arguments, &linerate);
    let out = workspace::root().join(&arguments.out);
    fs::write(&out, page::page(&done, library.len())).with_context(|| format!("cannot write {}", out.display()))?;
    println!("written: {}", out.display());
    let wrong: Vec<&TunedPath> = done.iter().filter(|one| !one.is_as_expected()).collect();
    for one in &wrong {
        println!("{}: {}", one.path.name, one.complaint());
    }
    Ok(wrong.is_empty())
}

/// Reads the library with its labels and the locations of their causes.
fn library(linerate: &Path) -> Result<Vec<LabelledPath>> {
    let text = workspace::output_of(Command::new(linerate).args(["lab", "list", "--json"]))?;
    let document: Value = serde_json::from_str(&text).context("cannot parse the output of linerate lab list")?;
    let entries = document["paths"].as_array().context("the output of linerate lab list has no paths")?;
    // No host setting compensates a variable rate: those paths are for shapers.
    entries.iter().filter(|entry| entry["label"] != "variable-rate").map(LabelledPath::read).collect()
}

/// Tunes the paths with the requested parallelism; returns the results sorted by name.
fn tune_all(wanted: &[LabelledPath], arguments: &EffectArguments, linerate: &Path) -> Vec<TunedPath> {
    let (next, done) = (Mutex::new(wanted.iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs {
            scope.spawn(|| {
                loop {
                    let Some(path) = next.lock().expect("no panic").next() else { break };
                    let tuned = match tune_one(path, arguments.documents.as_deref(), linerate) {
                        Ok(document) => with_reach(path, &document, arguments, linerate),
                        Err(error) => TunedPath::failed(path, &format!("{error:#}")),
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

/// Reads the document, and measures the goodput without the causes in the hosts, where there are any.
fn with_reach(path: &LabelledPath, document: &Value, arguments: &EffectArguments, linerate: &Path) -> TunedPath {
    let tuned = TunedPath::read(path, document);
    if !path.is_limited_by_a_host() {
        return tuned;
    }
    let folder = arguments.documents.clone().unwrap_or_else(|| workspace::root().join("target/effect"));
    let labelled = (path.name.as_str(), path.label.as_str());
    match truth::without_host_causes(linerate, &folder, labelled, tuned::omitted_seconds(document)) {
        Ok(rate) => tuned.with_measured_reach(rate),
        Err(error) => TunedPath::failed(path, &format!("the reachable rate could not be measured: {error:#}")),
    }
}

/// Returns the document of one path: the kept one, or a new one.
fn tune_one(path: &LabelledPath, documents: Option<&Path>, linerate: &Path) -> Result<Value> {
    let file = documents.map(|directory| directory.join(format!("{}.json", path.name)));
    if let Some(file) = file.as_deref().filter(|file| file.exists()) {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        return serde_json::from_str(&text).with_context(|| format!("{} is not JSON", file.display()));
    }
    let output = Command::new(linerate)
        .args(["--no-history", "tune", &format!("lab:{}", path.name), "--yes", "--json", "--quiet"])
        .output()
        .with_context(|| format!("cannot start {}", linerate.display()))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    let mut run: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("linerate tune wrote no JSON ({}): {}", output.status, stderr.trim()))?;
    ensure!(run["schema"] == 1, "linerate tune wrote a document of schema {} (expected 1)", run["schema"]);
    let document = run["result"]["tune"].take();
    if let Some(file) = file {
        fs::write(&file, document.to_string()).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(document)
}
