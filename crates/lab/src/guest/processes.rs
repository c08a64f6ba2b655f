//! Running processes, for the report about a silent guest.

use std::fs;
use std::path::Path;

/// Maximum number of reported processes: the message has to stay short.
const MAX_PROCESSES: usize = 50;
/// Maximum length of a reported command line, in characters.
const MAX_COMMAND_LINE: usize = 300;

/// Processes that run or could (state R in `proc_pid_stat(5)`), except this one: number and command line.
pub(super) fn running() -> Vec<(u32, String)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let mut processes: Vec<(u32, String)> = entries
        .filter_map(|entry| {
            let directory = entry.ok()?.path();
            let process = directory.file_name()?.to_str()?.parse().ok()?;
            is_running(&fs::read_to_string(directory.join("stat")).ok()?).then_some(())?;
            let line = command_line(&directory)?;
            (process != std::process::id()).then_some((process, line))
        })
        .collect();
    processes.sort_unstable();
    processes.truncate(MAX_PROCESSES);
    processes
}

/// True when the state in a `stat` line is R. It follows the name in brackets, which may contain anything.
fn is_running(stat: &str) -> bool {
    stat.rsplit_once(')').is_some_and(|(_, after)| after.trim_start().starts_with('R'))
}

/// Command line as typed; `None` for the kernel's own threads.
fn command_line(directory: &Path) -> Option<String> {
    let bytes = fs::read(directory.join("cmdline")).unwrap_or_default();
    let words: Vec<_> =
        bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty()).map(String::from_utf8_lossy).collect();
    (!words.is_empty()).then(|| words.join(" ").chars().take(MAX_COMMAND_LINE).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_and_odd_names() {
        assert!(is_running("7 (a) S (b) R 1 1"));
        for other in ["7 (sh) S 1 1 R", "7 (a) R (b) S 1", "7 (sh R", ""] {
            assert!(!is_running(other), "{other:?}");
        }
    }

    #[test]
    fn a_command_line_is_words() {
        let own = command_line(Path::new("/proc/self")).expect("this is no thread of the kernel's");
        assert!(own.contains("linerate") && own.chars().count() <= MAX_COMMAND_LINE, "{own}");
        assert_eq!(command_line(Path::new("/no/such/process")), None);
    }

    #[test]
    fn this_process_is_not_among_them() {
        assert!(running().iter().all(|(process, _)| *process != std::process::id()));
    }
}
