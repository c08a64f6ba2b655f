//! File of results, one JSON object per line, each once.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::error::NatsError;

/// File of results.
#[derive(Debug)]
pub struct ResultFile {
    path: PathBuf,
    file: File,
    ids: HashSet<String>,
    /// Length up to the last whole line.
    length: u64,
    removed: u64,
}

/// Outcome of [`ResultFile::append`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppendedResults {
    /// Results that were new.
    pub appended: usize,
    /// Results that the file had already.
    pub known: usize,
    /// Results that are none.
    pub refused: Vec<RefusedResult>,
    /// Results that a member published in the name of another host: they are marked in the file.
    pub foreign: Vec<RefusedResult>,
}

/// Message as a reader received it: its identity, its publisher and its bytes.
pub type PublishedResult<'a> = (&'a str, &'a str, &'a [u8]);

/// Message that is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedResult {
    /// Identity of its subject.
    pub id: String,
    /// Reason.
    pub reason: String,
}

impl ResultFile {
    /// Opens a file, or makes it, and reads the ids of its results. A part of a line at the end, which a killed reader left, is
    /// removed: its result was not acknowledged, and comes once more.
    pub fn open(path: &Path) -> Result<Self, NatsError> {
        let failed = |cause: std::io::Error| unusable(path, cause.to_string());
        let file = OpenOptions::new().create(true).read(true).append(true).open(path).map_err(failed)?;
        let (mut ids, mut length, mut removed) = (HashSet::new(), 0, 0);
        let mut reader = BufReader::new(&file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let bytes = reader.read_until(b'\n', &mut line).map_err(failed)? as u64;
            if bytes == 0 {
                break;
            }
            let id = serde_json::from_slice::<Map<String, Value>>(&line).ok().and_then(|object| id_of(&object));
            match id {
                Some(id) if line.ends_with(b"\n") => {
                    ids.insert(id);
                    length += bytes;
                }
                None if line.ends_with(b"\n") || line[0] != b'{' => {
                    let place = ids.len() + 1;
                    let reason = format!("its line {place} is no result (an object with an \"id\"): name another file");
                    return Err(unusable(path, reason));
                }
                _ => removed = bytes,
            }
        }
        let mut opened = Self { path: path.to_owned(), file, ids, length, removed };
        if removed > 0 {
            opened.cut()?;
        }
        Ok(opened)
    }

    /// Results in the file.
    #[must_use]
    pub fn count(&self) -> usize {
        self.ids.len()
    }

    /// Bytes of a partial line that were removed.
    #[must_use]
    pub fn removed(&self) -> u64 {
        self.removed
    }

    /// Appends the results that the file has not, and waits until the disk has them.
    pub fn append<'a>(
        &mut self,
        results: impl IntoIterator<Item = PublishedResult<'a>>,
    ) -> Result<AppendedResults, NatsError> {
        let mut outcome = AppendedResults::default();
        let (mut text, mut new) = (Vec::new(), HashSet::new());
        for (id, publisher, bytes) in results {
            let line = match result_line(id, publisher, bytes) {
                Ok(line) => line,
                Err(reason) => {
                    outcome.refused.push(RefusedResult { id: id.to_owned(), reason });
                    continue;
                }
            };
            if self.ids.contains(&line.id) || new.contains(&line.id) {
                outcome.known += 1;
                continue;
            }
            if let Some(source) = line.named_source {
                let reason = format!("it names {source:?} as its source, and {publisher:?} published it");
                outcome.foreign.push(RefusedResult { id: id.to_owned(), reason });
            }
            text.extend(line.bytes);
            new.insert(line.id);
        }
        outcome.appended = new.len();
        if text.is_empty() {
            return Ok(outcome);
        }
        let written = self.file.write_all(&text).and_then(|()| self.file.sync_data());
        if let Err(cause) = written {
            self.cut()?;
            return Err(unusable(&self.path, format!("writing results: {cause}: none of them is acknowledged")));
        }
        self.length += text.len() as u64;
        self.ids.extend(new);
        Ok(outcome)
    }

    /// Removes what follows the last whole line.
    fn cut(&mut self) -> Result<(), NatsError> {
        let cut = self.file.set_len(self.length).and_then(|()| self.file.seek(SeekFrom::End(0)));
        cut.map(drop).map_err(|cause| unusable(&self.path, format!("removing a partial line: {cause}")))
    }
}

fn unusable(path: &Path, reason: String) -> NatsError {
    NatsError::File { file: path.display().to_string(), reason }
}

fn id_of(object: &Map<String, Value>) -> Option<String> {
    object.get("id").and_then(Value::as_str).map(str::to_owned)
}

/// Line of a result.
struct ResultLine {
    id: String,
    bytes: Vec<u8>,
    /// Source that it names, where another member published it.
    named_source: Option<String>,
}

/// Line of a result whose object has the id of its subject. One that another member than its source published gets that member as
/// its `publisher`, and an id of its own, so that it takes no place of a result.
fn result_line(id: &str, publisher: &str, bytes: &[u8]) -> Result<ResultLine, String> {
    let mut object: Map<String, Value> =
        serde_json::from_slice(bytes).map_err(|error| format!("it is no JSON object: {error}"))?;
    match id_of(&object) {
        Some(found) if found == id => {}
        found => return Err(format!("its \"id\" is {found:?}, not that of its subject")),
    }
    let source = object.get("source").and_then(Value::as_str).map(str::to_owned);
    let named_source = source.filter(|source| source != publisher);
    let was_marked = object.remove("publisher").is_some();
    let is_changed = named_source.is_some() || was_marked || bytes.contains(&b'\n');
    let mut line_id = id.to_owned();
    if named_source.is_some() {
        line_id = format!("{id} published by {publisher}");
        object.insert("id".to_owned(), Value::String(line_id.clone()));
        object.insert("publisher".to_owned(), Value::String(publisher.to_owned()));
    }
    let mut line =
        if is_changed { serde_json::to_vec(&object).map_err(|error| error.to_string())? } else { bytes.to_vec() };
    line.push(b'\n');
    Ok(ResultLine { id: line_id, bytes: line, named_source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temporary(contents: &str) -> PathBuf {
        use std::sync::atomic::{AtomicU32, Ordering};
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("linerate-results-{}-{number}", std::process::id()));
        std::fs::write(&path, contents).expect("a temporary file");
        path
    }

    #[test]
    fn each_result_is_appended_once_also_after_the_file_was_opened_anew() {
        let path = temporary("");
        let mut file = ResultFile::open(&path).expect("it opens");
        let all: [PublishedResult<'_>; 4] = [
            ("a", "lisbon", br#"{"id":"a"}"#),
            ("b", "lisbon", b"{\"id\":\n\"b\"}"),
            ("a", "lisbon", br#"{"id":"a"}"#),
            ("c", "lisbon", br#"{"id":"x"}"#),
        ];
        let outcome = file.append(all).expect("written");
        assert_eq!((outcome.appended, outcome.known, outcome.refused.len()), (2, 1, 1));
        assert!(outcome.refused[0].reason.contains("not that of its subject"));
        drop(file);
        let mut file = ResultFile::open(&path).expect("it opens");
        assert_eq!((file.count(), file.removed()), (2, 0));
        assert_eq!(file.append(all).expect("written").appended, 0);
        assert_eq!(std::fs::read_to_string(&path).expect("text"), "{\"id\":\"a\"}\n{\"id\":\"b\"}\n");
        std::fs::remove_file(path).expect("removed");
    }

    #[test]
    fn a_result_in_another_name_is_marked_and_replaces_none() {
        let path = temporary("");
        let mut file = ResultFile::open(&path).expect("it opens");
        let forged: PublishedResult<'_> = ("a", "oslo", br#"{"id":"a","source":"lisbon"}"#);
        let own: PublishedResult<'_> = ("a", "lisbon", br#"{"id":"a","source":"lisbon","publisher":"oslo"}"#);
        let outcome = file.append([forged, own, forged]).expect("written");
        assert_eq!((outcome.appended, outcome.known, outcome.foreign.len()), (2, 1, 1));
        assert_eq!(outcome.foreign[0].reason, "it names \"lisbon\" as its source, and \"oslo\" published it");
        drop(file);
        let mut file = ResultFile::open(&path).expect("it opens");
        assert_eq!(file.append([own, forged]).expect("written").known, 2);
        let text = std::fs::read_to_string(&path).expect("text");
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
        assert_eq!(
            (lines[0]["id"].as_str(), lines[0]["publisher"].as_str()),
            (Some("a published by oslo"), Some("oslo"))
        );
        assert_eq!((lines[1]["id"].as_str(), lines[1].get("publisher")), (Some("a"), None));
        std::fs::remove_file(path).expect("removed");
    }

    #[test]
    fn a_partial_line_is_removed_at_every_length() {
        let line = "{\"id\":\"b\",\"figure\":[1,2]}\n";
        for length in 1..line.len() {
            let path = temporary(&format!("{{\"id\":\"a\"}}\n{}", &line[..length]));
            let mut file = ResultFile::open(&path).expect("it opens");
            assert_eq!((file.count(), file.removed()), (1, length as u64));
            file.append([("b", "lisbon", line.trim_end().as_bytes())]).expect("written");
            assert_eq!(std::fs::read_to_string(&path).expect("text"), format!("{{\"id\":\"a\"}}\n{line}"));
            std::fs::remove_file(path).expect("removed");
        }
    }

    #[test]
    fn a_file_of_something_else_is_refused_and_left_as_it_is() {
        for text in ["notes\n", "{\"id\":\"a\"}\nnotes", "{\"id\":1}\n", "[]\n", "\n"] {
            let path = temporary(text);
            let error = ResultFile::open(&path).expect_err("refused").to_string();
            assert!(error.contains("is no result"), "{error}");
            assert_eq!(std::fs::read_to_string(&path).expect("text"), text);
            std::fs::remove_file(path).expect("removed");
        }
    }
}
