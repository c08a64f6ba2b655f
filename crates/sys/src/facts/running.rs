//! Programs that run in this process namespace, by name.

use std::fs;

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunningProcess {
    pub(super) number: u32,
    /// The kernel's name for it: at most 15 bytes, possibly changed by the program.
    pub(super) name: String,
}

/// All visible processes.
pub(super) fn processes() -> Vec<RunningProcess> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let process = |entry: fs::DirEntry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        let name = fs::read_to_string(entry.path().join("comm")).ok()?;
        Some(RunningProcess { number, name: name.trim_end().to_owned() })
    };
    entries.filter_map(process).collect()
}

/// Arguments of a process, the program's name first; none for kernel threads and when access is denied.
pub(super) fn arguments(process: u32) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let words = bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    let mut words: Vec<String> = words.collect();
    // Each argument ends with a zero, so the last one is empty.
    words.pop();
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_among_them() {
        let own = std::process::id();
        assert!(processes().iter().any(|process| process.number == own && !process.name.is_empty()));
        assert!(!arguments(own).is_empty());
        assert!(arguments(u32::MAX).is_empty());
    }
}
