//! The journal of one change set: an append-only file. Each step is on the disk before it is carried out, so that after
//! any interruption the journal shows which steps may have happened.

mod line;
mod record;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

#[cfg(test)]
pub(crate) use line::in_newer_schema;
pub(crate) use record::JournalRecord;
pub use record::WriteOutcome;

use linerate_sys::process;

use crate::error::{ChangeError, Result};
use crate::state_disk;

/// A journal open for appending.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    path: PathBuf,
    sequence: u64,
    length: u64,
}

impl Journal {
    /// Creates an empty journal.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let failed = |cause| ChangeError::Journal { path: path.to_owned(), cause };
        state_disk::check().map_err(failed)?;
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
        let directory = path.parent().unwrap_or(Path::new("/"));
        File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed)?;
        Ok(Self { file, path: path.to_owned(), sequence: 0, length: 0 })
    }

    /// Opens an existing journal for appending; an unfinished last line, left by a power cut, is truncated.
    pub(crate) fn open(path: &Path) -> Result<(Self, Vec<JournalRecord>)> {
        let failed = |cause| ChangeError::Journal { path: path.to_owned(), cause };
        check_owner(path)?;
        let bytes = fs::read(path).map_err(failed)?;
        let (records, whole) = parse(path, &bytes)?;
        state_disk::check().map_err(failed)?;
        let file = OpenOptions::new().append(true).open(path).map_err(failed)?;
        let mut journal = Self { file, path: path.to_owned(), sequence: 0, length: 0 };
        journal.sequence = records.len().try_into().unwrap_or(u64::MAX);
        journal.length = whole.try_into().unwrap_or(u64::MAX);
        // A disk that cannot be written must not prevent a rollback.
        let _ = journal.file.set_len(journal.length);
        if whole > 0 && bytes.get(whole - 1) != Some(&b'\n') && journal.file.write_all(b"\n").is_ok() {
            journal.length += 1;
        }
        Ok((journal, records))
    }

    /// Appends a record, and returns when it is on the disk. Fails when the journal is no longer in its directory: no one
    /// would find the record.
    pub(crate) fn append(&mut self, record: &JournalRecord) -> Result<()> {
        let failed = |path: &Path, cause| ChangeError::Journal { path: path.to_owned(), cause };
        let line = line::encode(self.sequence, record).map_err(|cause| failed(&self.path, cause.into()))?;
        let mut write = || {
            state_disk::check()?;
            check_present(&self.file, &self.path)?;
            self.file.write_all(line.as_bytes())?;
            self.file.sync_data()
        };
        if let Err(cause) = write() {
            // A partial line would make the next one unreadable.
            let _ = self.file.set_len(self.length);
            return Err(failed(&self.path, cause));
        }
        self.sequence += 1;
        self.length += u64::try_from(line.len()).unwrap_or_default();
        Ok(())
    }
}

/// Fails when the name of an open journal is gone, or leads to another file.
fn check_present(file: &File, path: &Path) -> io::Result<()> {
    let [open, named] = [file.metadata()?, fs::metadata(path)?].map(|found| (found.dev(), found.ino()));
    if open == named { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
}

/// Reads all records of a journal.
pub(crate) fn read(path: &Path) -> Result<Vec<JournalRecord>> {
    check_owner(path)?;
    let bytes = fs::read(path).map_err(|cause| match cause.kind() {
        io::ErrorKind::NotFound => {
            ChangeError::Damaged { path: path.to_owned(), detail: "the file does not exist".into() }
        }
        _ => ChangeError::Place { operation: "reading", path: path.to_owned(), cause },
    })?;
    parse(path, &bytes).map(|(records, _)| records)
}

/// Reads all records of a journal that is open, wherever its name leads now.
pub(crate) fn read_open(file: &mut File, path: &Path) -> Result<Vec<JournalRecord>> {
    let mut bytes = Vec::new();
    let read = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    read.map_err(|cause| ChangeError::Place { operation: "reading", path: path.to_owned(), cause })?;
    parse(path, &bytes).map(|(records, _)| records)
}

/// Fails when the journal or its directory belongs to another user than this one or root. What cannot be looked at is
/// left to the reader.
fn check_owner(path: &Path) -> Result<()> {
    for path in [path.parent(), Some(path)].into_iter().flatten() {
        let owner = state_disk::owner(path);
        if let Some(owner) = owner.filter(|owner| ![0, process::effective_user()].contains(owner)) {
            return Err(ChangeError::Foreign { path: path.to_owned(), owner });
        }
    }
    Ok(())
}

/// Parses the records and returns them with their length in bytes. An incomplete last line was being written at a power
/// cut: the step that it announces has not been carried out.
fn parse(path: &Path, bytes: &[u8]) -> Result<(Vec<JournalRecord>, usize)> {
    let (mut records, mut place) = (Vec::new(), 0);
    while place < bytes.len() {
        let rest = &bytes[place..];
        let end = rest.iter().position(|byte| *byte == b'\n');
        let line = &rest[..end.unwrap_or(rest.len())];
        let sequence = records.len().try_into().unwrap_or(u64::MAX);
        match line::decode(line, sequence) {
            Ok(record) => records.push(record),
            Err(line::LineError::Newer(found)) => {
                return Err(ChangeError::NewerSchema { path: path.to_owned(), found });
            }
            Err(line::LineError::Damaged(_)) if is_torn(rest, end, sequence) => break,
            Err(line::LineError::Damaged(detail)) => {
                let detail = format!("line {}: {detail}", records.len() + 1);
                return Err(ChangeError::Damaged { path: path.to_owned(), detail });
            }
        }
        place += end.map_or(rest.len(), |end| end + 1);
    }
    Ok((records, place))
}

/// True when no complete line follows: no line feed, or zeros of an unwritten block. A whole record with another byte in
/// place of its line feed, or a single zero in a line, are damage: a power cut leaves neither.
fn is_torn(rest: &[u8], end: Option<usize>, sequence: u64) -> bool {
    let has_zeros = |line: &[u8]| line.windows(2).any(|pair| pair == [0, 0]);
    let Some(end) = end else {
        let is_whole = rest.split_last().is_some_and(|(_, line)| line::decode(line, sequence).is_ok());
        return !is_whole && (!rest.contains(&0) || has_zeros(rest));
    };
    rest[end + 1..].is_empty() && has_zeros(&rest[..end]) || rest.iter().all(|byte| *byte == 0 || *byte == b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_truncated_journal_keeps_its_complete_records() {
        let scratch = Scratch::new();
        let path = scratch.path().join("journal");
        let mut journal = Journal::create(&path).expect("room");
        for index in 0..5 {
            journal.append(&JournalRecord::Intent { index }).expect("room");
        }
        assert!(Journal::create(&path).is_err(), "never overwritten");
        let bytes = fs::read(&path).expect("there");
        let lengths: Vec<usize> = bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::len).collect();
        for cut in 0..=bytes.len() {
            fs::write(&path, &bytes[..cut]).expect("room");
            // A line is complete without its line feed, too.
            let expected = (0..=5)
                .rev()
                .find(|count| lengths[..*count].iter().sum::<usize>() <= cut + usize::from(*count > 0))
                .expect("0 fits");
            let (mut journal, records) = Journal::open(&path).expect("readable");
            assert_eq!(records.len(), expected, "cut at {cut}");
            journal.append(&JournalRecord::TakingBack { index: 9 }).expect("room");
            let again = read(&path).expect("whole again");
            assert_eq!(
                (again.len(), again.last()),
                (expected + 1, Some(&JournalRecord::TakingBack { index: 9 })),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn no_altered_bit_hides_a_record() {
        let now = Some("4096 131072 6291456".to_owned());
        let records = [
            JournalRecord::Intent { index: 0 },
            JournalRecord::Loaded { modules: vec!["tcp_bbr".to_owned()] },
            JournalRecord::Outcome { index: 0, result: WriteOutcome::Adjusted, now, message: None },
        ];
        let lines = records.iter().enumerate().map(|(number, record)| line::encode(number as u64, record));
        let bytes = lines.collect::<core::result::Result<String, _>>().expect("JSON").into_bytes();
        let path = Path::new("journal");
        for (place, bit) in (0..bytes.len()).flat_map(|place| (0..8).map(move |bit| (place, bit))) {
            let mut altered = bytes.clone();
            altered[place] ^= 1 << bit;
            let read = parse(path, &altered);
            assert!(read.is_err(), "bit {bit} of byte {place}: {:?}", String::from_utf8_lossy(&altered));
        }
    }

    #[test]
    fn damage_in_the_middle_is_not_a_torn_end() {
        let scratch = Scratch::new();
        let path = scratch.path().join("journal");
        let mut journal = Journal::create(&path).expect("room");
        for index in 0..3 {
            journal.append(&JournalRecord::Intent { index }).expect("room");
        }
        let mut bytes = fs::read(&path).expect("there");
        bytes[20] ^= 1;
        fs::write(&path, &bytes).expect("room");
        let error = read(&path).expect_err("damaged").to_string();
        assert!(error.contains("line 1") && error.contains("by hand"), "{error}");
        fs::write(&path, b"{\"schema\":2}\n").expect("room");
        assert!(matches!(read(&path), Err(ChangeError::Damaged { .. })));
    }
}
