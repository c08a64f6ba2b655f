//! Other processes, by a number that means them and nobody after them.

use std::fs;
use std::io;

use crate::error::{Error, Result, check};

/// A process: its number, and when it began, as numbers are given again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// Its number.
    pub number: u32,
    /// When it began, in ticks since the boot (`proc_pid_stat(5)`, field 22).
    pub began: u64,
}

impl ProcessIdentity {
    /// This process; `None` where `/proc` does not tell.
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

    /// Whether it still runs.
    #[must_use]
    pub fn runs(&self) -> bool {
        Self::of(self.number) == Some(*self)
    }

    /// Asks it to end (`SIGTERM`). One that is gone already is no error.
    pub fn terminate(&self) -> Result<()> {
        self.signal(libc::SIGTERM)
    }

    /// Ends it (`SIGKILL`). One that is gone already is no error.
    pub fn kill(&self) -> Result<()> {
        self.signal(libc::SIGKILL)
    }

    fn signal(&self, signal: libc::c_int) -> Result<()> {
        let Ok(number @ 2..) = libc::pid_t::try_from(self.number) else { return Ok(()) };
        if !self.runs() {
            return Ok(());
        }
        // SAFETY: takes numbers; the number is positive, so one process is meant, and it was the right one just now.
        match check(unsafe { libc::kill(number, signal) }) {
            Err(cause) if cause.raw_os_error() != Some(libc::ESRCH) => {
                Err(Error::system(format!("sending signal {signal} to process {number}"), cause))
            }
            Err(_) | Ok(_) => Ok(()),
        }
    }
}

/// The file of the program that this process runs.
pub fn own_program() -> Result<std::path::PathBuf> {
    let failed = |cause: io::Error| Error::system("finding the own program (/proc/self/exe)", cause);
    std::env::current_exe().map_err(failed)
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
        // Were it taken for this one, the test would end here.
        earlier.kill().expect("nobody is there to be ended");
        assert_eq!(ProcessIdentity::of(0), None);
        assert!(own_program().expect("procfs").is_absolute());
    }
}
