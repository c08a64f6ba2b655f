use std::process::{Command, Stdio};

use super::*;

fn elf(machine: u16, class: u8) -> Vec<u8> {
    let mut header = vec![0; 64];
    header[..4].copy_from_slice(b"\x7fELF");
    (header[4], header[5]) = (class, 1);
    header[18..20].copy_from_slice(&machine.to_le_bytes());
    header
}

fn program(content: Vec<u8>) -> PushedProgram {
    PushedProgram { content, digest: "ab".repeat(32), source: "/x/linerate".into() }
}

#[test]
fn a_program_runs_on_hosts_of_its_processor_only() {
    let check = |machine, class, system: &str| program(elf(machine, class)).check_host(system).err();
    for (machine, class, system) in [
        (62, 2, "Linux x86_64"),
        (183, 2, "Linux aarch64"),
        (3, 1, "Linux i686"),
        (3, 1, "Linux x86_64"),
        (40, 1, "Linux armv7l"),
    ] {
        assert_eq!(check(machine, class, system), None, "{system}");
    }
    for (machine, class, system, part) in [
        (62, 2, "Linux aarch64", "processor is aarch64, and /x/linerate is a program for x86_64: give a static"),
        (183, 2, "Linux armv7l", "a program for aarch64"),
        (62, 2, "Linux i686", "processor is i686"),
        (62, 2, "FreeBSD amd64", "runs FreeBSD"),
        (62, 2, "Darwin x86_64", "runs Darwin"),
        (62, 2, "", "runs unknown"),
        (2, 1, "Linux sparc", "unknown processor (ELF machine 2)"),
    ] {
        let error = check(machine, class, system).expect(system);
        assert!(error.contains(part), "{system}: {error}");
    }
    for wrong in [&b""[..], b"#!/bin/sh\n", b"\x7fELF"] {
        assert!(program(wrong.to_vec()).check_host("Linux x86_64").is_err());
    }
}

#[test]
fn lines_of_the_script_are_told_from_others() {
    for (line, parsed) in [
        ("linerate-push: host Linux x86_64", PushLine::Host("Linux x86_64".to_owned())),
        ("Welcome> linerate-push: ready", PushLine::Ready),
        ("linerate-push: refused noexec /tmp", PushLine::Refused("/tmp is mounted noexec".to_owned())),
        ("linerate-push: refused full /a b", PushLine::Refused("/a b is full".to_owned())),
        ("linerate-push: nowhere", PushLine::Nowhere),
        ("linerate-push: unusable a\x1b[2J", PushLine::Unusable("a\\x1b[2J".to_owned())),
        ("linerate-push: host ", PushLine::Host(String::new())),
    ] {
        assert_eq!(PushLine::parse(line), Some(parsed), "{line}");
    }
    for other in ["", "ready", "linerate-push", "linerate-push: dance", "linerate: ready"] {
        assert_eq!(PushLine::parse(other), None, "{other}");
    }
}

#[test]
fn a_damaged_or_unusable_program_is_named() {
    let program = program(elf(62, 2));
    for (line, part) in [
        (PushLine::Digest("cd".to_owned()), "digest is cd, not abab"),
        (PushLine::NoDigest, "neither sha256sum nor shasum"),
        (PushLine::Unusable("not found".to_owned()), "/x/linerate does not run there (not found): give a static"),
    ] {
        let text = program.refusal(&line).expect("an error");
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(program.refusal(&PushLine::Ready), None);
}

/// The script passes through any shell as one single-quoted word.
#[test]
fn the_script_is_one_word() {
    assert!(!SCRIPT.contains(['\'', '\n', '!', '\\']), "{SCRIPT}");
}

/// Directory that is removed on drop.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("linerate-push-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs the script in `shell` with `content` in place of a program; returns its lines, and what is left in `TMPDIR`.
fn received(shell: &str, program: &PushedProgram, sent: &[u8], path: Option<&str>) -> (Vec<PushLine>, String, usize) {
    let directory = Directory::new(&format!("{}-{}", shell.replace([' ', '/'], "-"), sent.len()));
    let command = program.remote_command().replace("/bin/sh", shell);
    let mut start = Command::new("/bin/sh");
    start.args(["-c", &command]).env("TMPDIR", &directory.0).stdin(Stdio::piped()).stdout(Stdio::piped());
    if let Some(path) = path {
        start.env("PATH", path);
    }
    let mut child = start.stderr(Stdio::null()).spawn().expect("a shell");
    // A script that has ended reads no more.
    let _ = std::io::Write::write_all(child.stdin.as_mut().expect("a pipe"), sent);
    drop(child.stdin.take());
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let left = std::fs::read_dir(&directory.0).expect("still there").count();
    (text.lines().filter_map(PushLine::parse).collect(), text, left)
}

/// Shells that are installed here, POSIX's own first.
fn shells() -> Vec<&'static str> {
    let candidates = ["/bin/sh", "/bin/dash", "/bin/bash", "/bin/busybox sh"];
    candidates.into_iter().filter(|shell| Path::new(shell.split(' ').next().unwrap_or_default()).exists()).collect()
}

#[test]
fn the_program_runs_after_its_digest_and_leaves_no_file() {
    let directory = Directory::new("source");
    let source = directory.0.join("program");
    std::fs::write(&source, "#!/bin/sh\ncase $1 in --version) echo linerate 9;; *) echo \"runs $*\";; esac\n")
        .expect("space");
    let content = std::fs::read(&source).expect("just written");
    let digest = command::run_checked("sha256sum", &[], Some(&content), DIGEST_TIMEOUT).expect("it runs").stdout_text();
    let digest = digest.split_whitespace().next().unwrap_or_default().to_owned();
    let program = PushedProgram { content: content.clone(), digest, source };
    for shell in shells() {
        let (lines, text, left) = received(shell, &program, &content, None);
        assert!(matches!(lines[..], [PushLine::Host(_), PushLine::Ready]), "{shell}: {text}");
        assert!(text.ends_with("runs serve --session\n") && left == 0, "{shell}: {text}");
        // The connection is cut after half of it, or before the first byte.
        for length in [content.len() / 2, 0] {
            let (lines, text, left) = received(shell, &program, &content[..length], None);
            assert!(matches!(lines.last(), Some(PushLine::Digest(_))), "{shell}: {text}");
            assert!(!text.contains("runs") && left == 0, "{shell}: {text}");
        }
    }
}

#[test]
fn a_program_that_does_not_run_is_not_started() {
    let content = b"\x7fELF, but damaged".to_vec();
    let digest = command::run_checked("sha256sum", &[], Some(&content), DIGEST_TIMEOUT).expect("it runs").stdout_text();
    let digest = digest.split_whitespace().next().unwrap_or_default().to_owned();
    let program = PushedProgram { content: content.clone(), digest, source: "/x".into() };
    let (lines, text, left) = received("/bin/sh", &program, &content, None);
    assert!(matches!(lines.last(), Some(PushLine::Unusable(_))), "{text}");
    assert_eq!(left, 0);
}

#[test]
fn sizes_and_digests_come_from_the_file() {
    let directory = Directory::new("read");
    let file = directory.0.join("f");
    let read = |content: &[u8]| {
        std::fs::write(&file, content).expect("space");
        PushedProgram::read(&file)
    };
    let program = read(&elf(62, 2)).expect("a program");
    assert_eq!((program.content.len(), program.digest.len()), (64, 64));
    assert!(program.remote_command().ends_with(&format!("linerate-push 64 {}", program.digest)));
    assert!(read(b"#!/bin/sh\n").expect_err("a script").contains("no ELF file"));
    let error = PushedProgram::read(Path::new("/no/such/file")).expect_err("not there");
    assert!(error.starts_with("reading /no/such/file (--push): No such file"), "{error}");
}
