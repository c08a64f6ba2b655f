//! Other processes, identified by more than their number, which may be reused.

use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use crate::error::{Error, Result};

/// A process: its number, and its start, as numbers are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// Process identifier.
    pub number: u32,
    /// Start, in ticks since the boot (`proc_pid_stat(5)`, field 22).
    pub began: u64,
}

impl ProcessIdentity {
    /// This process; `None` where `/proc` does not show it.
    #[must_use]
    pub fn of_this() -> Option<Self> {
        Self::of(std::process::id())
    }

    /// The process of this number; `None` when there is none.
    #[must_use]
    pub fn of(number: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        // The name may have blanks and parentheses; the third field follows it.
        let (_, rest) = stat.rsplit_once(')')?;
        let began = rest.split_ascii_whitespace().nth(19)?.parse().ok()?;
        Some(Self { number, began })
    }

    /// True while it still runs.
    #[must_use]
    pub fn runs(&self) -> bool {
        Self::of(self.number) == Some(*self)
    }

    /// Asks it to end (`SIGTERM`). One that is gone already is no error.
    pub fn terminate(&self) -> Result<()> {
        self.signal(Signal::TERM)
    }

    /// Ends it (`SIGKILL`). One that is gone already is no error.
    pub fn kill(&self) -> Result<()> {
        self.signal(Signal::KILL)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let Ok(number @ 2..) = i32::try_from(self.number) else { return Ok(()) };
        if !self.runs() {
            return Ok(());
        }
        // It was the right one just now.
        match Pid::from_raw(number).map_or(Ok(()), |process| kill_process(process, signal)) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(cause) => Err(Error::system(format!("sending signal {} to process {number}", signal.as_raw()), cause)),
        }
    }
}

/// The file of the program that this process runs.
pub fn own_program() -> Result<std::path::PathBuf> {
    let failed = |cause: io::Error| Error::system("finding the own program (/proc/self/exe)", cause);
    let program = std::env::current_exe().map_err(failed)?;
    // A file that was removed or replaced can still be started as the program of this process.
    Ok(if program.exists() { program } else { format!("/proc/{}/exe", std::process::id()).into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_alone_is_not_a_process() {
        let own = ProcessIdentity::of_this().expect("procfs");
        assert!(own.runs() && own.began > 0);
        let earlier = ProcessIdentity { began: own.began - 1, ..own };
        assert!(!earlier.runs());
        // If it were taken for this one, the test would end here.
        earlier.kill().expect("there is no process to end");
        assert_eq!(ProcessIdentity::of(0), None);
        assert!(own_program().expect("procfs").is_absolute());
    }
}
