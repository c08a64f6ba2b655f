//! What an interrupted run has measured, so that the next one need not measure it again.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_model::schema::load::LoadDocument;
use linerate_model::schema::nanoseconds;
use linerate_model::schema::path::PathDocument;
use linerate_model::schema::tune;
use linerate_units::WallTime;
use serde::{Deserialize, Serialize};

/// Version of the file.
const SCHEMA: u32 = 1;

/// What is older than this says nothing of the path any more.
const OLDEST: Duration = Duration::from_secs(6 * 3600);

/// What is asked for: only the same is gone on with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Asked {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) role: String,
    pub(super) transfer: Vec<String>,
}

/// Pairs of measurements of one group of changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Pairs {
    pub(super) changes: String,
    pub(super) pairs: Vec<tune::Pair>,
}

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Content {
    schema: u32,
    started_at_unix_ns: u64,
    asked: Asked,
    pub(super) path: Option<Box<PathDocument>>,
    pub(super) load: Option<Box<LoadDocument>>,
    pub(super) pairs: Vec<Pairs>,
}

/// The file of a run that is under way. A file that cannot be written is no reason not to measure: then there is nothing
/// to go on with.
#[derive(Debug)]
pub(super) struct Checkpoint {
    file: Option<PathBuf>,
    pub(super) content: Content,
    /// Whether an earlier run has left something.
    pub(super) is_resumed: bool,
}

impl Checkpoint {
    /// The one for this run in `directory`: what an earlier one has left, unless it is too old, is about something else, or
    /// is not wanted (`fresh`).
    pub(super) fn open(directory: Option<&Path>, asked: Asked, now: WallTime, fresh: bool) -> Self {
        let file = directory.map(|directory| directory.join(format!("{}.json", file_name(&asked))));
        let left = file.as_deref().filter(|_| !fresh).and_then(|file| read(file, &asked, now));
        let is_resumed = left.is_some();
        let new = || Content {
            schema: SCHEMA,
            started_at_unix_ns: nanoseconds(now.since_unix_epoch()),
            asked,
            path: None,
            load: None,
            pairs: Vec::new(),
        };
        Self { file, content: left.unwrap_or_else(new), is_resumed }
    }

    /// Writes it, as a whole or not at all.
    pub(super) fn save(&self) {
        let Some(file) = &self.file else { return };
        let Ok(text) = serde_json::to_vec(&self.content) else { return };
        let new = file.with_extension("new");
        let made = file.parent().map_or(Ok(()), fs::create_dir_all);
        // What cannot be written is measured again.
        let _ = made.and_then(|()| fs::write(&new, text)).and_then(|()| fs::rename(&new, file));
    }

    /// Pairs that were measured for these changes.
    pub(super) fn add_pairs(&mut self, changes: &str, pairs: Vec<tune::Pair>) {
        self.content.pairs.retain(|other| other.changes != changes);
        self.content.pairs.push(Pairs { changes: changes.to_owned(), pairs });
        self.save();
    }

    /// The run has come to its end.
    pub(super) fn remove(&self) {
        if let Some(file) = &self.file {
            let _ = fs::remove_file(file);
        }
    }
}

fn read(file: &Path, asked: &Asked, now: WallTime) -> Option<Content> {
    let content: Content = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    let age = now.since_unix_epoch().checked_sub(Duration::from_nanos(content.started_at_unix_ns))?;
    (content.schema == SCHEMA && content.asked == *asked && age < OLDEST).then_some(content)
}

/// Letters, digits, dots and hyphens of the host, and the port.
fn file_name(asked: &Asked) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || ".-".contains(letter) { letter } else { '_' };
    format!("{}-{}", asked.host.chars().map(plain).collect::<String>(), asked.port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Asked {
        Asked { host: "a/b".into(), port: 5201, role: "wan-bulk".into(), transfer: vec!["-R".into()] }
    }

    fn at(seconds: u64) -> WallTime {
        WallTime::from_unix(Duration::from_secs(seconds))
    }

    #[test]
    fn what_is_left_is_found_again_unless_it_is_old_or_about_something_else() {
        let directory = std::env::temp_dir().join(format!("linerate-checkpoint-{}", std::process::id()));
        let open = |asked: Asked, now, fresh| Checkpoint::open(Some(&directory), asked, at(now), fresh);
        let mut first = open(asked(), 1000, false);
        assert!(!first.is_resumed);
        first.add_pairs("x = 1", Vec::new());
        first.add_pairs("x = 1", Vec::new());
        let second = open(asked(), 2000, false);
        assert!(second.is_resumed && second.content.pairs.len() == 1);
        assert!(!open(asked(), 2000, true).is_resumed, "not wanted");
        assert!(!open(asked(), 1000 + 7 * 3600, false).is_resumed, "too old");
        assert!(!open(asked(), 500, false).is_resumed, "the clock was set back");
        assert!(!open(Asked { role: "lan".into(), ..asked() }, 2000, false).is_resumed, "something else");
        second.remove();
        assert!(!open(asked(), 2000, false).is_resumed, "it came to its end");
        let _ = fs::remove_dir_all(&directory);
    }

    #[test]
    fn nothing_is_written_where_nothing_can_be() {
        let mut nowhere = Checkpoint::open(None, asked(), at(1), false);
        nowhere.add_pairs("x = 1", Vec::new());
        nowhere.remove();
        Checkpoint::open(Some(Path::new("/proc/no")), asked(), at(1), false).save();
    }
}
