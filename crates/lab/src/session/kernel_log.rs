//! The end of the guest's kernel log, and its interpretation.

/// Bytes of the log that are kept.
const MAX_LOG_SIZE: usize = 64 << 10;

/// Problem in the kernel's log that explains why the guest ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelProblem {
    /// Description of the problem.
    pub problem: String,
    /// Remedy.
    pub advice: String,
}

/// The last 64 KiB of the log, and the incomplete line.
#[derive(Debug, Default)]
pub(super) struct KernelLog {
    kept: String,
    line: Vec<u8>,
}

impl KernelLog {
    /// Adds what was read, and calls `each` with every line that it completes.
    pub(super) fn add(&mut self, bytes: &[u8], mut each: impl FnMut(&str)) {
        for byte in bytes {
            if *byte != b'\n' {
                // A line without an end is cut rather than kept whole.
                if self.line.len() < MAX_LOG_SIZE {
                    self.line.push(*byte);
                }
                continue;
            }
            let line = String::from_utf8_lossy(&core::mem::take(&mut self.line)).trim_end_matches('\r').to_owned();
            each(&line);
            self.keep(&line);
        }
    }

    /// The end of the log, in whole lines, with the incomplete last one.
    pub(super) fn text(&self) -> String {
        let last = String::from_utf8_lossy(&self.line);
        format!("{}{}", self.kept, last.trim_end())
    }

    fn keep(&mut self, line: &str) {
        self.kept.push_str(line);
        self.kept.push('\n');
        // Cutting moves what is left, so it is done seldom.
        if self.kept.len() > 2 * MAX_LOG_SIZE {
            let from = self.kept.len() - MAX_LOG_SIZE;
            let cut = self.kept.as_bytes()[from..].iter().position(|byte| *byte == b'\n');
            let cut = cut.map_or(self.kept.len(), |end| from + end + 1);
            self.kept.drain(..cut);
        }
    }
}

/// Explains the end of a guest, if possible: by its log, else by the exit code of its kernel. `yama` is the value of
/// `kernel.yama.ptrace_scope`, where the host has it.
pub(super) fn diagnose(log: &str, code: Option<i32>, yama: Option<u8>) -> Option<KernelProblem> {
    from_log(log, yama).or_else(|| from_code(code?))
}

/// Explains an exit code by the signal with which this host's kernel ended the process.
fn from_code(code: i32) -> Option<KernelProblem> {
    match code {
        // SIGBUS
        135 => Some(kernel_problem(
            "the file system of its memory is full".into(),
            "free space in /dev/shm (`df /dev/shm`), or set TMPDIR to a directory with more",
        )),
        // SIGKILL
        137 => Some(kernel_problem(
            "it was killed from outside".into(),
            "if no user did, this host was out of memory (`dmesg`): end other programs, or choose a path with a smaller \
             bandwidth-delay product",
        )),
        // SIGXFSZ
        153 => Some(kernel_problem(
            "its memory is a file larger than this host allows".into(),
            "raise the limit of file sizes (`ulimit -f unlimited`)",
        )),
        _ => None,
    }
}

fn from_log(log: &str, yama: Option<u8>) -> Option<KernelProblem> {
    let found = |words: &[&str]| log.lines().find(|line| words.iter().any(|word| line.contains(word)));
    // The first trouble is the cause, what follows are its effects: the order is that of the boot.
    if let Some(line) =
        found(&["start_ptraced_child", "check_ptrace", "check_sysemu", "ptrace: Operation not permitted"])
    {
        return Some(kernel_problem(format!("it may not trace its processes ({})", line.trim()), ptrace_advice(yama)));
    }
    if let Some(line) = found(&["must be not mounted noexec", "PROT_EXEC mmap"]).filter(|line| !line.ends_with("OK")) {
        let advice = "set TMPDIR to a directory from which programs may be run (not mounted noexec)";
        return Some(kernel_problem(format!("its memory cannot be executed ({})", line.trim()), advice));
    }
    if let Some(line) =
        found(&["Failed to allocate", "Cannot allocate memory", "mmap failed", "No space left on device"])
    {
        let advice = "free memory on this host, raise its limit (ulimit -v, control group), or choose a path with a \
                      smaller bandwidth-delay product";
        return Some(kernel_problem(format!("it got no memory from this host ({})", line.trim()), advice));
    }
    if let Some(line) = found(&["Out of memory", "out_of_memory", "System is deadlocked on memory"]) {
        let advice = "the path or the command needs more memory than the guest was given: `linerate lab show` shows how \
                      much and why";
        return Some(kernel_problem(format!("its memory was used up ({})", plain(line)), advice));
    }
    found(&["Kernel panic"])
        .map(|line| kernel_problem(format!("its kernel panicked ({})", plain(line)), panic_advice(line)))
}

fn kernel_problem(problem: String, advice: impl Into<String>) -> KernelProblem {
    KernelProblem { problem, advice: advice.into() }
}

/// The line without its time stamp.
fn plain(line: &str) -> &str {
    line.split_once("] ").map_or(line, |(_, text)| text).trim()
}

fn panic_advice(line: &str) -> &'static str {
    if line.contains("mount root") || line.contains("init") {
        "check that the linerate binary and the directories above it can be read by this user, and rebuild the kernel \
         with `linerate lab kernel build`"
    } else {
        "rebuild the kernel with `linerate lab kernel build`; if it happens again, report it with the kernel's log"
    }
}

fn ptrace_advice(yama: Option<u8>) -> String {
    let container = "in a container allow ptrace (docker run --cap-add=SYS_PTRACE, or --security-opt \
                     seccomp=unconfined), and do not run it under a debugger or strace";
    match yama {
        Some(scope @ 2..) => format!("kernel.yama.ptrace_scope is {scope}: set it to 1 or 0 (`sysctl -w`), or be root"),
        _ => container.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_however_they_are_cut() {
        let mut log = KernelLog::default();
        let mut lines = Vec::new();
        for piece in ["[0.0] one\r\n[0", ".1] two\n", "three"] {
            log.add(piece.as_bytes(), |line| lines.push(line.to_owned()));
        }
        assert_eq!(lines, ["[0.0] one", "[0.1] two"]);
        assert_eq!(log.text(), "[0.0] one\n[0.1] two\nthree");
    }

    #[test]
    fn the_end_is_kept_in_whole_lines() {
        let mut log = KernelLog::default();
        for number in 0..100_000 {
            log.add(format!("line {number}\n").as_bytes(), |_| {});
        }
        let text = log.text();
        assert!(text.len() >= MAX_LOG_SIZE - 100 && text.len() <= 2 * MAX_LOG_SIZE, "{}", text.len());
        assert!(text.starts_with("line ") && text.ends_with("line 99999\n"));
        log.add(&vec![b'x'; 10 * MAX_LOG_SIZE], |_| {});
        assert!(log.text().len() <= 3 * MAX_LOG_SIZE, "a line without an end does not grow without limit");
    }

    #[test]
    fn each_problem_is_distinguished() {
        let problem = |log: &str| diagnose(log, Some(1), None).map(|trouble| trouble.problem);
        assert_eq!(problem("Checking PROT_EXEC mmap in /dev/shm...OK\n[0.1] Linux version 6.12"), None);
        let text = "Checking that ptrace can change system call numbers...ptrace: Operation not permitted";
        assert!(problem(text).is_some_and(|text| text.starts_with("it may not trace")));
        let text = "Checking PROT_EXEC mmap in /tmp...Operation not permitted\n/tmp must be not mounted noexec";
        assert!(problem(text).is_some_and(|text| text.starts_with("its memory cannot be executed")));
        let text = "[    1.5] Kernel panic - not syncing: VFS: Unable to mount root fs on \"/dev/root\"";
        assert_eq!(
            problem(text).as_deref(),
            Some("its kernel panicked (Kernel panic - not syncing: VFS: Unable to mount root fs on \"/dev/root\")")
        );
        assert!(
            problem("[3.0] Out of memory: Killed process 71").is_some_and(|text| text.starts_with("its memory was"))
        );
    }

    #[test]
    fn signals_of_the_host_explain_an_end_without_a_log() {
        let problem = |code| diagnose("Linux version 6.12", code, None).map(|trouble| trouble.problem);
        assert_eq!(problem(Some(128 + 7)).as_deref(), Some("the file system of its memory is full"));
        assert_eq!(problem(Some(128 + 9)).as_deref(), Some("it was killed from outside"));
        assert!(problem(Some(128 + 25)).is_some());
        assert_eq!((problem(Some(1)), problem(None)), (None, None));
    }

    #[test]
    fn the_remedy_for_a_forbidden_ptrace_depends_on_the_host() {
        let advice = |yama| diagnose("ptrace: Operation not permitted", None, yama).map(|trouble| trouble.advice);
        assert!(advice(Some(3)).is_some_and(|text| text.contains("kernel.yama.ptrace_scope is 3")));
        assert!(advice(Some(1)).is_some_and(|text| text.contains("container")));
    }
}
