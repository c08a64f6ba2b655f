//! Conversion of files and system calls to facts.

use std::fs;
use std::io;
use std::path::Path;

use linerate_model::fact::{Fact, ReadObstacle, UnreadFact};

use crate::error::{Error, Result, describe_os_error};

/// A fact from the result of a system operation: absent where the kernel lacks it, denied where it refuses.
pub(super) fn fact<T>(outcome: Result<T>) -> Fact<T> {
    match outcome {
        Ok(value) => Fact::Known(value),
        Err(error) => Fact::Unknown(unread(&error)),
    }
}

fn unread(error: &Error) -> UnreadFact {
    let obstacle = match error.errno() {
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP | libc::ENXIO | libc::EINVAL) => ReadObstacle::Absent,
        Some(libc::EACCES | libc::EPERM) => ReadObstacle::Denied,
        _ => ReadObstacle::Failed,
    };
    UnreadFact { obstacle, reason: error.to_string() }
}

/// Trimmed contents of a file.
pub(super) fn file(path: impl AsRef<Path>) -> Fact<String> {
    let path = path.as_ref();
    match fs::read(path) {
        Ok(bytes) => Fact::Known(String::from_utf8_lossy(&bytes).trim().to_owned()),
        Err(cause) => unreadable(path, &cause),
    }
}

/// Parsed contents of a file; failed when they are not understood.
pub(super) fn parsed<T>(path: impl AsRef<Path>, parse: impl FnOnce(&str) -> Option<T>) -> Fact<T> {
    let path = path.as_ref();
    match file(path) {
        Fact::Known(text) => match parse(&text) {
            Some(value) => Fact::Known(value),
            None => {
                Fact::failed(format!("{} contains {:?}", path.display(), text.chars().take(80).collect::<String>()))
            }
        },
        Fact::Unknown(unread) => Fact::Unknown(unread),
    }
}

fn unreadable<T>(path: &Path, cause: &io::Error) -> Fact<T> {
    let reason = format!("reading {}: {}", path.display(), describe_os_error(cause));
    match cause.raw_os_error() {
        // A file of /sys without a value from its driver fails with one of the others.
        Some(libc::ENOENT | libc::ENOTDIR | libc::EINVAL | libc::EOPNOTSUPP | libc::ENODEV) => Fact::absent(reason),
        Some(libc::EACCES | libc::EPERM) => Fact::denied(reason),
        _ => Fact::failed(reason),
    }
}

/// The names in a directory, in order.
pub(super) fn names(path: impl AsRef<Path>) -> Fact<Vec<String>> {
    let path = path.as_ref();
    match fs::read_dir(path) {
        Ok(entries) => {
            let mut names: Vec<String> =
                entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
            names.sort();
            Fact::Known(names)
        }
        Err(cause) => unreadable(path, &cause),
    }
}

/// The numbers of entries called `prefix` and a number: 0 and 12 of `rx-0`, `rx-12`, `tx-0`.
pub(super) fn entry_numbers(names: &[String], prefix: &str) -> Vec<u32> {
    let mut numbers: Vec<u32> = names.iter().filter_map(|name| name.strip_prefix(prefix)?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_files_are_absent_with_a_reason() {
        let missing = file("/proc/no/such/file");
        let unread = missing.unread().expect("not there");
        assert_eq!(unread.obstacle, ReadObstacle::Absent);
        assert!(unread.reason.contains("/proc/no/such/file"), "{unread}");
        assert_eq!(file("/proc").unread().map(|unread| unread.obstacle), Some(ReadObstacle::Failed));
        let wrong: Fact<u32> = parsed("/proc/sys/kernel/ostype", |text| text.parse().ok());
        assert!(wrong.unread().is_some_and(|unread| unread.reason.contains("Linux")), "{wrong:?}");
        assert!(names("/proc/self").known().is_some_and(|names| names.contains(&"comm".to_owned())));
    }

    #[test]
    fn numbered_entries_in_order_of_their_numbers() {
        let names = ["rx-10", "rx-2", "tx-0", "rx-x", "other"].map(str::to_owned);
        assert_eq!(entry_numbers(&names, "rx-"), [2, 10]);
    }
}
