//! `cargo xtask truth --random N --seed S`: `linerate diagnose` on paths whose limit is measured, not declared; writes
//! docs/truth-random.md. `--library` measures the labels of the library's paths in the same way.
//!
//! What was measured is kept under `target/truth`: an interrupted run goes on, `--again` repeats the diagnoses alone, and
//! `--replay` derives the verdicts of the kept observations from the present rules, without the lab and the other paths.

mod arguments;
mod case;
mod cause;
mod draw;
mod generator;
mod judge;
mod judged;
mod labels;
mod measured;
mod page;
mod reach;
mod text;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context, Result};

use self::arguments::{TruthArguments, TruthPaths};
use self::case::TruthCase;
use self::generator::{RandomPath, random_path};
use self::measured::PathLab;
pub(crate) use self::reach::without_host_causes;
use crate::{bench, workspace};

/// Runs the requested cases; returns true if each verdict is right.
pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    let arguments = TruthArguments::parse(arguments)?;
    if let Some(index) = arguments.show {
        show(&random_path(arguments.seeds[0], index, arguments.budget()));
        return Ok(true);
    }
    let linerate = match &arguments.linerate {
        Some(path) => path.clone(),
        None if arguments.replay => PathBuf::new(),
        None => bench::build()?,
    };
    match &arguments.paths {
        TruthPaths::Library(names) => labels::verify(names, &arguments, &linerate),
        TruthPaths::Random(count) => run_random(*count, &arguments, &linerate),
    }
}

/// Folder of what was measured.
fn kept(name: &str) -> PathBuf {
    workspace::root().join("target/truth").join(name)
}

fn show(path: &RandomPath) {
    let names: Vec<&str> = path.injected.iter().map(|cause| cause.name()).collect();
    println!(
        "# Built in: {}.\n{}",
        if names.is_empty() { "nothing".to_owned() } else { names.join(", ") },
        text::text(&path.description)
    );
}

fn run_random(count: u64, arguments: &TruthArguments, linerate: &Path) -> Result<bool> {
    let folder_of = |seed: u64| kept(&format!("seed-{seed}{}", if arguments.quick { "-quick" } else { "" }));
    let of_seed = |seed: u64| {
        let is_kept = |index: &u64| folder_of(seed).join(format!("{index}.json")).exists();
        // A path without anything kept, among those that were measured, has no result.
        let measured = if arguments.replay { (0..count).rfind(is_kept).map_or(0, |last| last + 1) } else { count };
        arguments.only.map_or(0..measured, |index| index..index + 1).map(move |index| (seed, index))
    };
    let places: Vec<(u64, u64)> = arguments.seeds.iter().copied().flat_map(of_seed).collect();
    let results: Vec<Result<TruthCase>> = in_parallel(&places, arguments.jobs, |(seed, index)| {
        let folder = folder_of(*seed);
        let path = random_path(*seed, *index, arguments.budget());
        let lab = PathLab::new(linerate, &folder, &format!("path-{index}"))?;
        let file = folder.join(format!("{index}.json"));
        let case = TruthCase::obtain((*seed, *index), &path, &lab, &file, arguments.reuse())?;
        println!("{}", case.line());
        Ok(case)
    });
    let (mut cases, mut failed) = (Vec::new(), Vec::new());
    for (place, result) in places.iter().zip(results) {
        match result {
            Ok(case) => cases.push(case),
            Err(error) => failed.push((*place, format!("{error:#}"))),
        }
    }
    for ((seed, index), reason) in &failed {
        println!("? case {index} of seed {seed}: {reason}");
    }
    if arguments.only.is_none() {
        let out = workspace::root().join(&arguments.out);
        fs::write(&out, page::page(&cases, &failed, arguments))
            .with_context(|| format!("cannot write {}", out.display()))?;
        println!("written: {}", out.display());
    }
    Ok(failed.is_empty() && cases.iter().all(|case| !case.counts() || case.is_right()))
}

/// Measures all items, this many at a time; the results are in the items' order.
fn in_parallel<T: Sync, R: Send>(items: &[T], jobs: usize, measure: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, done) = (Mutex::new(items.iter().enumerate()), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let Some((place, item)) = next.lock().expect("no panic").next() else { break };
            let result = measure(item);
            done.lock().expect("no panic").push((place, result));
        }
    };
    std::thread::scope(|scope| (0..jobs).for_each(|_| drop(scope.spawn(work))));
    let mut done = done.into_inner().expect("no panic");
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}
