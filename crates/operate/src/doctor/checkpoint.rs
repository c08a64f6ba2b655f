//! Checkpoint of an interrupted run, from which the next one resumes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_model::json;
use linerate_model::load::LoadDocument;
use linerate_model::path::PathDocument;
use linerate_rules::judge::MeasurementPair;
use linerate_rules::tuning::TuningGoal;
use linerate_units::WallTime;
use linerate_units::serde::nanoseconds;
use serde::{Deserialize, Serialize};

use crate::tuning::document::ChangeIdentity;

/// Schema version of the file.
const SCHEMA: u32 = 1;

/// Age beyond which measurements of the path are stale.
const MAX_AGE: Duration = Duration::from_secs(6 * 3600);

/// Parameters of the run: only a run with the same parameters is resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunParameters {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) role: TuningGoal,
    pub(super) transfer: Vec<String>,
}

/// Pairs of measurements of one group of changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct GroupPairs {
    pub(super) changes: Vec<ChangeIdentity>,
    pub(super) pairs: Vec<MeasurementPair>,
}

/// Content of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CheckpointContent {
    schema: u32,
    started_at_unix_ns: u64,
    asked: RunParameters,
    pub(super) path: Option<Box<PathDocument>>,
    pub(super) load: Option<Box<LoadDocument>>,
    pub(super) pairs: Vec<GroupPairs>,
}

/// Checkpoint file of a run in progress. A file that cannot be written does not stop the run: it cannot be resumed
/// then.
#[derive(Debug)]
pub(super) struct DoctorCheckpoint {
    file: Option<PathBuf>,
    pub(super) content: CheckpointContent,
    /// True when an earlier run is resumed.
    pub(super) is_resumed: bool,
}

impl DoctorCheckpoint {
    /// Opens the checkpoint of this run in `directory`: that of an earlier run, unless it is stale, has other
    /// parameters, or is not wanted (`fresh`).
    pub(super) fn open(directory: Option<&Path>, asked: RunParameters, now: WallTime, fresh: bool) -> Self {
        let file = directory.map(|directory| directory.join(format!("{}.json", file_name(&asked))));
        let left = file.as_deref().filter(|_| !fresh).and_then(|file| read(file, &asked, now));
        let is_resumed = left.is_some();
        let new = || CheckpointContent {
            schema: SCHEMA,
            started_at_unix_ns: nanoseconds(now.since_unix_epoch()),
            asked,
            path: None,
            load: None,
            pairs: Vec::new(),
        };
        Self { file, content: left.unwrap_or_else(new), is_resumed }
    }

    /// Writes the file atomically.
    pub(super) fn save(&self) {
        let Some(file) = &self.file else { return };
        let Ok(text) = serde_json::to_vec(&self.content) else { return };
        let new = file.with_extension("new");
        let made = file.parent().map_or(Ok(()), fs::create_dir_all);
        // Measurements that cannot be written are repeated.
        let _ = made.and_then(|()| fs::write(&new, text)).and_then(|()| fs::rename(&new, file));
    }

    /// Adds the pairs measured for these changes.
    pub(super) fn add_pairs(&mut self, changes: &[ChangeIdentity], pairs: Vec<MeasurementPair>) {
        self.content.pairs.retain(|other| other.changes != changes);
        self.content.pairs.push(GroupPairs { changes: changes.to_vec(), pairs });
        self.save();
    }

    /// Removes the file at the end of the run.
    pub(super) fn remove(&self) {
        if let Some(file) = &self.file {
            let _ = fs::remove_file(file);
        }
    }
}

fn read(file: &Path, asked: &RunParameters, now: WallTime) -> Option<CheckpointContent> {
    let content: CheckpointContent = json::from_slice(&fs::read(file).ok()?).ok()?;
    let age = now.since_unix_epoch().checked_sub(Duration::from_nanos(content.started_at_unix_ns))?;
    (content.schema == SCHEMA && content.asked == *asked && age < MAX_AGE).then_some(content)
}

/// Name from the host (letters, digits, dots and hyphens) and the port.
fn file_name(asked: &RunParameters) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || ".-".contains(letter) { letter } else { '_' };
    format!("{}-{}", asked.host.chars().map(plain).collect::<String>(), asked.port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> RunParameters {
        RunParameters { host: "a/b".into(), port: 5201, role: TuningGoal::WanBulk, transfer: vec!["-R".into()] }
    }

    fn at(seconds: u64) -> WallTime {
        WallTime::from_unix(Duration::from_secs(seconds))
    }

    #[test]
    fn a_checkpoint_is_resumed_unless_it_is_stale_or_has_other_parameters() {
        let directory = std::env::temp_dir().join(format!("linerate-checkpoint-{}", std::process::id()));
        let open = |asked: RunParameters, now, fresh| DoctorCheckpoint::open(Some(&directory), asked, at(now), fresh);
        let mut first = open(asked(), 1000, false);
        assert!(!first.is_resumed);
        first.add_pairs(&[], Vec::new());
        first.add_pairs(&[], Vec::new());
        let second = open(asked(), 2000, false);
        assert!(second.is_resumed && second.content.pairs.len() == 1);
        assert!(!open(asked(), 2000, true).is_resumed, "not wanted");
        assert!(!open(asked(), 1000 + 7 * 3600, false).is_resumed, "too old");
        assert!(!open(asked(), 500, false).is_resumed, "the clock was set back");
        assert!(!open(RunParameters { role: TuningGoal::Lan, ..asked() }, 2000, false).is_resumed, "other parameters");
        second.remove();
        assert!(!open(asked(), 2000, false).is_resumed, "the run ended");
        let _ = fs::remove_dir_all(&directory);
    }

    #[test]
    fn an_unwritable_directory_is_no_error() {
        let mut nowhere = DoctorCheckpoint::open(None, asked(), at(1), false);
        nowhere.add_pairs(&[], Vec::new());
        nowhere.remove();
        DoctorCheckpoint::open(Some(Path::new("/proc/no")), asked(), at(1), false).save();
    }
}
