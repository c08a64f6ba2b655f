//! Comparisons of equal runs of the lab: the same path, other seeds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use linerate_analysis::statistics::SeededRandom;
use linerate_documents::run::{FigureJudgement, RunComparison, RunDocument};

use super::run_simulation::MAX_FALSE_DIFFERENCE;
use super::table::{RateCell, RateTable};
use crate::{bench, workspace};

/// Paths with random loss: their runs differ by their seeds.
const PATHS: [&str; 2] = ["300m-20ms-loss-cubic", "cesga-1g-53ms-lossy"];

/// Seeds of the runs of a path.
const SEEDS: std::ops::RangeInclusive<u64> = 101..=130;

const SIDES: [usize; 4] = [1, 3, 5, 10];

/// Comparisons of several runs a side, drawn at random.
const DRAWS: u32 = 1000;

/// Measures the runs, or reads those that are kept in target/simulate, and compares them.
pub(super) fn equal_runs(linerate: Option<&Path>) -> Result<RateTable> {
    let folder = workspace::root().join("target/simulate");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut built = linerate.map(Path::to_path_buf);
    let mut rows = Vec::new();
    for path in PATHS {
        let runs: Vec<RunDocument> =
            SEEDS.map(|seed| document(path, seed, &folder, &mut built)).collect::<Result<_>>()?;
        let rates = SIDES.iter().map(|side| Ok(RateCell::AtMost(different(&runs, *side)?, MAX_FALSE_DIFFERENCE)));
        rows.push((format!("`lab:{path}`"), rates.collect::<Result<_>>()?));
    }
    Ok(RateTable {
        title: "`history compare`: equal runs of the lab",
        text: "The same for 30 real runs (`lab run PATH --seed 101` to `130`, `-- linerate test far --up -t 10s -P 1`) of paths \
               with random loss: all ordered pairs of single runs, and 1000 random choices of several a side. At most 5 %.",
        row_title: "path",
        columns: SIDES.map(|side| format!("{side} a side")).into(),
        rows,
    })
}

/// Document of one run: the kept one, or a new one.
fn document(path: &str, seed: u64, folder: &Path, linerate: &mut Option<PathBuf>) -> Result<RunDocument> {
    let file = folder.join(format!("{path}-{seed}.json"));
    if !file.exists() {
        let program = match linerate {
            Some(program) => program.clone(),
            None => linerate.insert(bench::build()?).clone(),
        };
        let arguments =
            ["--no-history", "lab", "run", path, "--seed", &seed.to_string(), "--", "linerate", "test", "far"];
        let mut command = Command::new(program);
        command.args(arguments).args(["--up", "-t", "10s", "-P", "1", "--json", "--quiet"]);
        let text = workspace::output_of(&mut command)?;
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is no document of a run", file.display()))
}

/// Share of the comparisons that call any figure different.
fn different(runs: &[RunDocument], side: usize) -> Result<f64> {
    let mut random = SeededRandom::new(1);
    let drawn: Vec<Vec<&RunDocument>> = if side == 1 {
        let others = |first: usize| runs.iter().enumerate().filter(move |(second, _)| first != *second);
        runs.iter().enumerate().flat_map(|(first, run)| others(first).map(move |(_, other)| vec![run, other])).collect()
    } else {
        (0..DRAWS).map(|_| draw(runs, 2 * side, &mut random)).collect()
    };
    let mut found = 0_u32;
    for runs in &drawn {
        let comparison = RunComparison::of(&runs[..side], &runs[side..]);
        found += u32::from(is_different(&comparison.context("runs of one path are comparable")?));
    }
    Ok(f64::from(found) / f64::from(u32::try_from(drawn.len()).unwrap_or(u32::MAX).max(1)))
}

/// Different runs, in random order.
fn draw<'a>(runs: &'a [RunDocument], count: usize, random: &mut SeededRandom) -> Vec<&'a RunDocument> {
    let mut all: Vec<&RunDocument> = runs.iter().collect();
    (0..count.min(all.len())).map(|_| all.swap_remove(random.below(all.len()))).collect()
}

fn is_different(comparison: &RunComparison) -> bool {
    let is = |judgement| !matches!(judgement, FigureJudgement::Equal | FigureJudgement::CannotTell);
    comparison.figures.iter().any(|figure| is(figure.judgement))
}
