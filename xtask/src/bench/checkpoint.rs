//! Runs kept in a file while the bench goes on, so that an interrupted one continues.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::figures::BenchRun;

/// Cell, contender and round of a run.
pub(super) type RunKey = (String, String, usize);

/// Result of a run: its figures, or the reason of its failure.
pub(super) type RunResult = std::result::Result<BenchRun, String>;

/// Kept runs.
pub(super) struct Checkpoint {
    path: PathBuf,
    file: File,
    runs: BTreeMap<RunKey, RunResult>,
}

impl Checkpoint {
    /// Opens the file; runs under another `heading` (programs, time of a run, seed) are forgotten, and all with `fresh`.
    pub(super) fn open(path: &Path, heading: &Value, fresh: bool) -> Result<Self> {
        let text = if fresh { String::new() } else { fs::read_to_string(path).unwrap_or_default() };
        let mut lines = text.lines();
        let is_ours = lines.next().and_then(|line| serde_json::from_str::<Value>(line).ok()).as_ref() == Some(heading);
        // The last line of an interrupted bench may be incomplete.
        let runs = lines.filter(|_| is_ours).filter_map(parse).collect();
        let failed = || format!("cannot write {}", path.display());
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(failed)?;
        }
        if !is_ours {
            fs::write(path, format!("{heading}\n")).with_context(failed)?;
        } else if !text.ends_with('\n') {
            fs::write(path, format!("{text}\n")).with_context(failed)?;
        }
        let file = OpenOptions::new().append(true).open(path).with_context(failed)?;
        Ok(Self { path: path.to_owned(), file, runs })
    }

    /// Returns a kept run.
    pub(super) fn get(&self, key: &RunKey) -> Option<&RunResult> {
        self.runs.get(key)
    }

    /// Number of kept runs.
    pub(super) fn len(&self) -> usize {
        self.runs.len()
    }

    /// Keeps a run.
    pub(super) fn add(&mut self, key: RunKey, result: RunResult) -> Result<()> {
        let (cell, contender, round) = &key;
        let mut line = json!({ "cell": cell, "contender": contender, "round": round });
        match &result {
            Ok(run) => line["run"] = run.to_json(),
            Err(reason) => line["failed"] = reason.clone().into(),
        }
        writeln!(self.file, "{line}").with_context(|| format!("cannot write {}", self.path.display()))?;
        self.runs.insert(key, result);
        Ok(())
    }
}

fn parse(line: &str) -> Option<(RunKey, RunResult)> {
    let value: Value = serde_json::from_str(line).ok()?;
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    let round = usize::try_from(value["round"].as_u64()?).ok()?;
    let result = text("failed").map_or_else(|| Ok(BenchRun::parse(&value["run"])), Err);
    Some(((text("cell")?, text("contender")?, round), result))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::figures::Figure;

    #[test]
    fn an_interrupted_bench_continues_and_another_one_begins_anew() {
        let folder = std::env::temp_dir().join(format!("bench-checkpoint-{}", std::process::id()));
        let path = folder.join("runs.jsonl");
        let heading = json!({ "seed": 1 });
        let key = |round| ("tcp".to_owned(), "linerate".to_owned(), round);
        let run = BenchRun::default().with(Figure::Goodput, Some(2e9));
        let mut first = Checkpoint::open(&path, &heading, false).expect("a file");
        first.add(key(0), Ok(run)).expect("written");
        first.add(key(1), Err("no answer".to_owned())).expect("written");
        drop(first);
        let cut = format!("{}{{\"cell\":\"tcp\",\"cont", fs::read_to_string(&path).expect("the file"));
        fs::write(&path, cut).expect("written");
        let mut again = Checkpoint::open(&path, &heading, false).expect("a file");
        assert_eq!((again.get(&key(0)), again.get(&key(1)).is_some_and(Result::is_err)), (Some(&Ok(run)), true));
        again.add(key(2), Ok(run)).expect("written");
        drop(again);
        assert_eq!(Checkpoint::open(&path, &heading, false).expect("a file").len(), 3);
        assert_eq!(Checkpoint::open(&path, &json!({ "seed": 2 }), false).expect("a file").len(), 0);
        fs::remove_dir_all(&folder).expect("ours");
    }
}
