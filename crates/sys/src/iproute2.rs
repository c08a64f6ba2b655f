//! iproute2's programs (`ip`, `tc`, `ss`), told from the smaller ones of the same names that `BusyBox` and others have.
//!
//! Those leave out attributes that they do not know (`initcwnd` of a route, limits of a queueing discipline): values that
//! were read with them cannot be restored, so nothing is changed with them.

use core::time::Duration;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use crate::command::{self, Output};
use crate::distribution;
use crate::error::{Error, Result};

/// Time limit of `ip` and `tc`. They take milliseconds, seconds with hundreds of classes or to load a module, and longer where
/// others hold the kernel's lock on the configuration of networks.
pub const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Files that were asked, with their version or the refusal.
static KNOWN: Mutex<BTreeMap<PathBuf, core::result::Result<String, String>>> = Mutex::new(BTreeMap::new());

/// Version of this program of iproute2, such as `iproute2-6.1.0`. An error when it is missing or another program, with
/// the package that has it. Each file is asked once.
pub fn version(program: &str) -> Result<String> {
    let operation = || format!("using `{program}`");
    let path = command::find(program, std::env::var_os("PATH")).map_err(|cause| {
        Error::system(command::running(program, &["-Version"]), cause)
            .hint_on(libc::ENOENT, command::not_found_hint(program))
    })?;
    let known = |path: &PathBuf| KNOWN.lock().ok()?.get(path).cloned();
    let answer = if let Some(answer) = known(&path) {
        answer
    } else {
        let answer = judge(program, &command::run(program, &["-Version"], None, TIME_LIMIT)?);
        if let Ok(mut all) = KNOWN.lock() {
            all.insert(path, answer.clone());
        }
        answer
    };
    answer.map_err(|reason| Error::refused(operation(), reason))
}

/// [`version`] for callers that only need the program.
pub(crate) fn require(program: &str) -> Result<()> {
    version(program).map(drop)
}

/// Version in the answer to `-Version`, such as `tc utility, iproute2-6.1.0, libbpf 1.1.0`; else the reason not to use the
/// program.
fn judge(program: &str, output: &Output) -> core::result::Result<String, String> {
    let answer = output.stdout_text();
    let version = answer.split([',', ' ', '\n']).find(|word| word.starts_with("iproute2"));
    if let Some(version) = version.filter(|_| output.status.success()) {
        return Ok(version.to_owned());
    }
    let said = output.stderr_text();
    let kind = said.lines().next().unwrap_or("an unknown program").trim_end_matches(" multi-call binary.").to_owned();
    let package = distribution::install_advice(&[program]).unwrap_or_else(|| "install iproute2".to_owned());
    Err(format!("it is not iproute2's ({kind}), and would lose attributes that it does not know; {package}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    fn output(code: i32, stdout: &str, stderr: &str) -> Output {
        Output { status: ExitStatus::from_raw(code << 8), stdout: stdout.into(), stderr: stderr.into() }
    }

    #[test]
    fn versions_of_iproute2_and_other_programs() {
        for (answer, expected) in [
            ("tc utility, iproute2-6.1.0, libbpf 1.1.0\n", "iproute2-6.1.0"),
            ("ip utility, iproute2-ss180813\n", "iproute2-ss180813"),
        ] {
            assert_eq!(judge("tc", &output(0, answer, "")).as_deref(), Ok(expected));
        }
        let busybox = "BusyBox v1.35.0 (Debian 1:1.35.0) multi-call binary.\n\nUsage: ip [OPTIONS] address\n";
        let reason = judge("ip", &output(1, "", busybox)).expect_err("not iproute2's");
        assert!(reason.contains("(BusyBox v1.35.0 (Debian 1:1.35.0))") && reason.contains("iproute"), "{reason}");
        assert!(judge("ip", &output(0, "toybox 0.8\n", "")).is_err());
    }

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let error = version("no-such-program-here").expect_err("not there").to_string();
        assert!(error.ends_with("(the program is not installed, or not in $PATH)"), "{error}");
    }
}
