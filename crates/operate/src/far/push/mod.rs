//! Copy of linerate for the far host: checked there, and without a name in any directory before it runs.

use core::fmt;
use core::time::Duration;
use std::path::{Path, PathBuf};

use linerate_report::escape;
use linerate_sys::{command, describe_os_error};

/// Longest accepted program.
const MAX_PROGRAM_BYTES: usize = 512 << 20;

/// Time limit of `sha256sum`.
const DIGEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Beginning of the lines that the script writes; everything else is output of the remote shell.
const MARKER: &str = "linerate-push: ";

/// Script for the far host. `$1`: bytes of the program, `$2`: its SHA-256 digest.
///
/// A directory is used that takes so many bytes and whose programs may be executed. The file is opened for reading and
/// for writing, and has no name any more before its first byte arrives: whatever ends there, the kernel removes it. The
/// script has neither single quotes nor line feeds, as the user's shell there, which may be any, passes it to `sh`.
const SCRIPT: &str = "set -f; umask 077; n=$1; h=$2; f=; d=; m() { echo \"linerate-push: $*\"; }; \
    c() { test -z \"$d\" || { rm -f \"$d/f\" \"$d/t\"; rmdir \"$d\"; } 2>/dev/null; }; \
    trap c EXIT; trap \"exit 1\" HUP INT TERM PIPE; echo; m host $(uname -sm); \
    for b in \"${TMPDIR:-/tmp}\" \"$XDG_RUNTIME_DIR\" \"$HOME/.cache\" /var/tmp /dev/shm \"$HOME\"; do \
    test -d \"$b\" || continue; e=; \
    d=$(mktemp -d \"$b/linerate.XXXXXXXX\" 2>/dev/null) || { m refused unwritable \"$b\"; continue; }; \
    if (head -c \"$n\" /dev/zero >\"$d/f\") 2>/dev/null && chmod 700 \"$d/f\"; then \
    (echo exit 0 >\"$d/t\") 2>/dev/null && chmod 700 \"$d/t\" && \"$d/t\" 2>/dev/null || e=noexec; \
    else e=full; fi; \
    test -z \"$e\" && exec 4<\"$d/f\" 5<>\"$d/f\"; \
    c || { exec 4<&- 5>&-; e=${e:-busy}; c; }; d=; \
    test -z \"$e\" && { f=1; break; }; m refused $e \"$b\"; done; \
    test -n \"$f\" || { m nowhere; exit 1; }; m ready; head -c \"$n\" >&5; exec 5>&-; \
    if command -v sha256sum >/dev/null 2>&1; then s=$(sha256sum <&4); \
    elif command -v shasum >/dev/null 2>&1; then s=$(shasum -a 256 <&4); else m nodigest; exit 1; fi; \
    s=${s%% *}; test \"$s\" = \"$h\" || { m digest $s; exit 1; }; \
    v=$(/proc/self/fd/4 --version 2>&1); case \"$v\" in \"linerate \"*) ;; *) m unusable $v; exit 1;; esac; \
    exec /proc/self/fd/4 serve --session";

/// Program to copy to the far host.
#[derive(Clone, Debug)]
pub struct PushedProgram {
    /// Bytes of the file.
    pub(super) content: Vec<u8>,
    digest: String,
    source: PathBuf,
}

impl PushedProgram {
    /// Reads the program, and computes its digest.
    ///
    /// # Errors
    ///
    /// Text with the file and the reason.
    pub fn read(source: &Path) -> Result<Self, String> {
        let failed = |reason: &dyn fmt::Display| format!("reading {} (--push): {reason}", source.display());
        let content = std::fs::read(source).map_err(|cause| failed(&describe_os_error(&cause)))?;
        if content.len() > MAX_PROGRAM_BYTES {
            return Err(failed(&format!("it has more than {} MiB", MAX_PROGRAM_BYTES >> 20)));
        }
        processor(&content).map_err(|reason| failed(&reason))?;
        let output = command::run_checked("sha256sum", &[], Some(&content), DIGEST_TIMEOUT);
        let output = output.map_err(|error| failed(&error))?.stdout_text();
        let digest = output.split_whitespace().next().unwrap_or_default().to_owned();
        Ok(Self { content, digest, source: source.to_owned() })
    }

    /// Remote command that receives and starts it.
    pub(super) fn remote_command(&self) -> String {
        format!("exec /bin/sh -c '{SCRIPT}' linerate-push {} {}", self.content.len(), self.digest)
    }

    /// Checks the far host's `uname -sm`.
    pub(super) fn check_host(&self, system: &str) -> Result<(), String> {
        let mut words = system.split_whitespace();
        let (kernel, machine) = (words.next().unwrap_or("unknown"), words.next().unwrap_or("unknown"));
        if kernel != "Linux" {
            return Err(format!("the host runs {kernel}, and linerate needs Linux"));
        }
        let processor = processor(&self.content)?;
        if processor.runs_on(machine) {
            return Ok(());
        }
        Err(format!(
            "the host's processor is {machine}, and {} is a program for {}: give a static linerate for {machine} with \
             --push=FILE, or install one there",
            self.source.display(),
            processor.name
        ))
    }

    /// Error of a line that arrives after the program was sent.
    pub(super) fn refusal(&self, line: &PushLine) -> Option<String> {
        match line {
            PushLine::Digest(digest) => Some(format!(
                "the program arrived damaged and was not started: its SHA-256 digest is {digest}, not {}",
                self.digest
            )),
            PushLine::NoDigest => Some(
                "neither sha256sum nor shasum is there to check the program, which was not started: install coreutils \
                 there, or linerate, and omit --push"
                    .to_owned(),
            ),
            PushLine::Unusable(output) => Some(format!(
                "{} does not run there ({output}): give a static linerate with --push=FILE, or install one there",
                self.source.display()
            )),
            _ => None,
        }
    }
}

/// Line of the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PushLine {
    /// `uname -sm`.
    Host(String),
    /// A directory that cannot be used, with the reason.
    Refused(String),
    /// No directory can be used.
    Nowhere,
    /// The bytes of the program may come.
    Ready,
    /// The bytes that arrived have this digest.
    Digest(String),
    /// There is no program that computes a digest.
    NoDigest,
    /// The program does not run there, with its output.
    Unusable(String),
}

impl PushLine {
    /// Line of the script; `None` for other output. A banner without a line feed may precede it.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (_, line) = line.split_once(MARKER)?;
        let line = escape::line(line);
        let (name, value) = line.split_once(' ').unwrap_or((&line, ""));
        Some(match name {
            "host" => Self::Host(value.to_owned()),
            "refused" => Self::Refused(refusal(value)),
            "nowhere" => Self::Nowhere,
            "ready" => Self::Ready,
            "digest" => Self::Digest(value.to_owned()),
            "nodigest" => Self::NoDigest,
            "unusable" => Self::Unusable(value.to_owned()),
            _ => return None,
        })
    }
}

fn refusal(value: &str) -> String {
    let (reason, directory) = value.split_once(' ').unwrap_or((value, ""));
    let reason = match reason {
        "unwritable" => "cannot be written",
        "noexec" => "is mounted noexec",
        "full" => "is full",
        "busy" => "keeps deleted files, as NFS does",
        other => other,
    };
    format!("{directory} {reason}")
}

/// Processor of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProgramProcessor {
    name: &'static str,
    /// Beginnings of the names of `uname -m` on which it runs.
    machines: &'static [&'static str],
}

impl ProgramProcessor {
    fn runs_on(self, machine: &str) -> bool {
        self.machines.iter().any(|name| machine.starts_with(name))
    }
}

/// Processors by `e_machine` of the ELF header, its class (1: 32 bits, 2: 64 bits) and its byte order (1: little).
const PROCESSORS: &[(u16, u8, u8, ProgramProcessor)] = &[
    (62, 2, 1, ProgramProcessor { name: "x86_64", machines: &["x86_64", "amd64"] }),
    (183, 2, 1, ProgramProcessor { name: "aarch64", machines: &["aarch64", "arm64"] }),
    (3, 1, 1, ProgramProcessor { name: "i686", machines: &["i386", "i486", "i586", "i686", "x86_64"] }),
    (40, 1, 1, ProgramProcessor { name: "arm", machines: &["armv6", "armv7", "armv8"] }),
    (243, 2, 1, ProgramProcessor { name: "riscv64", machines: &["riscv64"] }),
    (21, 2, 1, ProgramProcessor { name: "ppc64le", machines: &["ppc64le"] }),
    (22, 2, 2, ProgramProcessor { name: "s390x", machines: &["s390x"] }),
    (258, 2, 1, ProgramProcessor { name: "loongarch64", machines: &["loongarch64"] }),
];

/// Processor from the ELF header.
fn processor(program: &[u8]) -> Result<ProgramProcessor, String> {
    let (Some(b"\x7fELF"), Some(header)) = (program.get(..4), program.first_chunk::<20>()) else {
        return Err("it is no Linux program (no ELF file)".to_owned());
    };
    let (class, order) = (header[4], header[5]);
    let machine = [header[18], header[19]];
    let machine = if order == 2 { u16::from_be_bytes(machine) } else { u16::from_le_bytes(machine) };
    let found = PROCESSORS.iter().find(|known| (known.0, known.1, known.2) == (machine, class, order));
    found
        .map(|known| known.3)
        .ok_or_else(|| format!("it is a program for an unknown processor (ELF machine {machine})"))
}

#[cfg(test)]
mod tests;
