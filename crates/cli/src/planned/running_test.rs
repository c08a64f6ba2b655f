//! Marks of the tests that run: the next process records those that a killed one left, so that no test is without a result.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use linerate_documents::fleet_result::FleetResult;
use linerate_model::json;
use linerate_sys::file_lock::{self, FileLock};

use super::PlannedTest;

const PREFIX: &str = "running-";

/// Reason of the result of a test whose process was killed.
const KILLED: &str = "linerate was killed during the test";

/// Test that runs; the mark ends with this value. The lock ends with the process, however that ends.
#[derive(Debug)]
pub(crate) struct RunningTest {
    file: PathBuf,
    _lock: FileLock,
}

impl RunningTest {
    /// Marks a test as running in the directory of its results. Without a mark, for example on a full disk, it runs all the same.
    pub(super) fn begin(directory: &Path, test: &PlannedTest) -> Option<Self> {
        let result = test.skipped(KILLED.to_owned());
        let mut hasher = DefaultHasher::new();
        result.id.hash(&mut hasher);
        let file = directory.join(format!("{PREFIX}{:016x}", hasher.finish()));
        let lock = file_lock::try_lock(&file).ok().flatten()?;
        let mark = Self { file, _lock: lock };
        std::fs::write(&mark.file, serde_json::to_vec(&result).ok()?).ok()?;
        Some(mark)
    }

    /// Results of the tests whose processes were killed, with their marks.
    pub(super) fn left_behind(directory: &Path) -> Vec<(Self, Option<FleetResult>)> {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let marks = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
        let left = marks.filter_map(|entry| {
            let file = entry.path();
            let lock = file_lock::try_lock(&file).ok().flatten()?;
            // One that was killed before it had written it measured nothing.
            let result = std::fs::read(&file).ok().and_then(|text| json::from_slice(&text).ok());
            Some((Self { file, _lock: lock }, result))
        });
        left.collect()
    }
}

impl Drop for RunningTest {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.file));
    }
}
