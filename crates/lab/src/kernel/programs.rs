//! Programs that a build runs.

use core::time::Duration;

use linerate_sys::command;
use linerate_sys::distribution::C_HEADERS;

use super::error::KernelError;
use super::source::PackageManager;

/// A requirement of a build that is not installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingProgram {
    /// The program, or the files: an item of `linerate_sys::distribution`.
    pub what: &'static str,
}

/// Programs, which all print their version when they are asked for it.
const PROGRAMS: [&str; 9] = ["gcc", "ld", "strip", "make", "flex", "bison", "bc", "tar", "xz"];

const TIMEOUT: Duration = Duration::from_secs(20);

/// Requirements of a build that are not installed.
#[must_use]
pub fn missing_programs() -> Vec<MissingProgram> {
    let absent = |program: &&&str| {
        command::run(program, &["--version"], None, TIMEOUT)
            .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    };
    let mut missing: Vec<_> = PROGRAMS.iter().filter(absent).map(|what| MissingProgram { what }).collect();
    if !missing.iter().any(|program| program.what == "gcc") && !has_headers() {
        missing.push(MissingProgram { what: C_HEADERS });
    }
    missing
}

/// True when the compiler finds the headers of the C library.
fn has_headers() -> bool {
    let source = b"#include <stdlib.h>\n#include <sys/ptrace.h>\n#include <linux/limits.h>\n";
    let output = command::run("gcc", &["-fsyntax-only", "-x", "c", "-"], Some(source), TIMEOUT);
    output.is_ok_and(|output| output.status.success())
}

/// Fails when requirements are missing; `packaged` when the sources come as a package.
pub(super) fn require(packaged: bool) -> Result<(), KernelError> {
    let architecture = std::env::consts::ARCH;
    if architecture != "x86_64" {
        return Err(KernelError::Architecture { architecture });
    }
    let programs = missing_programs();
    if !programs.is_empty() {
        return Err(KernelError::MissingPrograms { programs });
    }
    if packaged { PackageManager::of_this_host().map(drop) } else { Ok(()) }
}
