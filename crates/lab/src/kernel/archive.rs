//! Unpacks the part of a kernel's sources that the build needs: a sixth of them.

use std::fs;
use std::path::{Path, PathBuf};

use linerate_sys::command_stream::OutputEvent;

use super::error::KernelError;
use super::source::{KernelSource, SourceForm};
use super::workspace::{BuildTask, BuildWorkspace, TaskResult};

/// Files that are needed from every directory: all options must be known to configure any.
const COMMON_FILES: [&str; 3] = ["Kconfig", "Makefile", "Kbuild"];

/// Directories that are needed whole.
const DIRECTORIES: [&str; 27] = [
    "arch/um",
    "arch/x86/entry",
    "arch/x86/include",
    "arch/x86/lib",
    "arch/x86/um",
    "block",
    "certs",
    "crypto",
    "drivers/base",
    "drivers/char",
    "drivers/tty",
    "fs",
    "include",
    "init",
    "io_uring",
    "ipc",
    "kernel",
    "lib",
    "linerate",
    "mm",
    "net",
    "scripts",
    "security",
    "tools/include",
    "tools/build",
    "usr",
    "virt",
];

/// Single files, by directory and end of the name.
const FILES: [(&str, &str); 3] = [("drivers/net", ".c"), ("drivers/net", ".h"), ("arch/x86/kernel/cpu", ".sh")];

/// Unpacks the sources; returns their directory.
pub(super) fn unpack(workshop: &mut BuildWorkspace<'_>, source: &KernelSource) -> Result<PathBuf, KernelError> {
    let tree = workshop.subdirectory("tree")?;
    match source.form {
        SourceForm::Archive => extract(workshop, source, &tree)?,
        SourceForm::Directory => copy(&source.path, &source.path, &tree)?,
    }
    // The archive of a package takes as much space again, which the compiler may need.
    if source.path.starts_with(workshop.directory()) {
        let _ = fs::remove_file(&source.path);
    }
    Ok(tree)
}

fn extract(workshop: &mut BuildWorkspace<'_>, source: &KernelSource, tree: &Path) -> Result<(), KernelError> {
    let path = source.path.to_string_lossy();
    let mut arguments = vec!["--extract", "--strip-components=1", "--no-same-owner", "--file", &path];
    // tar detects the compression; only this one can be read by several threads.
    if path.ends_with(".xz") {
        arguments.push("--use-compress-program=xz -T0");
    }
    let patterns = patterns();
    arguments.extend(patterns.iter().map(String::as_str));
    let task =
        BuildTask { what: Some("unpacking"), program: "tar", arguments: &arguments, directory: tree, environment: &[] };
    let finished = workshop.try_run(task, &mut |_: OutputEvent<'_>| None)?;
    if finished.disk_is_full() {
        return Err(workshop.failure(task, &finished));
    }
    match unpack_problem(&finished) {
        Some(reason) => Err(KernelError::NotAKernel { source_name: source.description.clone(), reason }),
        None => Ok(()),
    }
}

/// Selection patterns of `tar`. The top directory's name differs from archive to archive, so it is a star.
fn patterns() -> Vec<String> {
    let mut patterns: Vec<String> = ["--anchored", "--wildcards", "--wildcards-match-slash"].map(str::to_owned).into();
    patterns.extend(COMMON_FILES.iter().map(|name| format!("*/{name}*")));
    patterns.push("--no-wildcards-match-slash".into());
    patterns.extend(DIRECTORIES.iter().map(|directory| format!("*/{directory}")));
    patterns.extend(FILES.iter().map(|(directory, end)| format!("*/{directory}/*{end}")));
    patterns
}

/// Reason why unpacking failed; `None` when only directories were missing that this version does not have.
fn unpack_problem(finished: &TaskResult) -> Option<String> {
    let harmless = |line: &&String| {
        line.contains("Not found in archive") || line.contains("Exiting with failure status due to previous errors")
    };
    let lines: Vec<_> = finished.lines.iter().filter(|line| !harmless(line)).map(String::as_str).take(3).collect();
    (!finished.success && !lines.is_empty()).then(|| format!("it cannot be unpacked: {}", lines.join(" / ")))
}

/// Copies the same files from an unpacked tree, which is not changed.
fn copy(root: &Path, directory: &Path, tree: &Path) -> Result<(), KernelError> {
    let entries = fs::read_dir(directory).map_err(|cause| KernelError::file("reading", directory, cause))?;
    for entry in entries {
        let entry = entry.map_err(|cause| KernelError::file("reading", directory, cause))?;
        let path = entry.path();
        let kind = entry.file_type().map_err(|cause| KernelError::file("reading", &path, cause))?;
        if kind.is_dir() {
            copy(root, &path, tree)?;
        } else if let Ok(relative) = path.strip_prefix(root)
            && is_needed(relative)
        {
            copy_file(&path, &tree.join(relative), kind.is_symlink())?;
        }
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path, is_link: bool) -> Result<(), KernelError> {
    let directory = to.parent().unwrap_or(to);
    let link = || fs::read_link(from).and_then(|target| std::os::unix::fs::symlink(target, to));
    fs::create_dir_all(directory)
        .and_then(|()| if is_link { link() } else { fs::copy(from, to).map(drop) })
        .map_err(|cause| KernelError::file("copying to", to, cause))
}

/// True for the files of [`patterns`], by their path in the tree; the output of an earlier build is not needed.
fn is_needed(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let directory = path.parent().unwrap_or(path);
    if name.starts_with('.') || [".o", ".a", ".gch"].iter().any(|end| name.ends_with(end)) {
        return false;
    }
    COMMON_FILES.iter().any(|start| name.starts_with(start))
        || DIRECTORIES.iter().any(|needed| path.starts_with(needed))
        || FILES.iter().any(|(needed, end)| directory == Path::new(needed) && name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::super::BuildEvent;
    use super::super::workspace::tests::TestCache;
    use super::*;

    const PRESENT: [&str; 8] = [
        "Makefile",
        "Kconfig",
        "sound/Kconfig",
        "sound/usb/Makefile",
        "drivers/net/veth.c",
        "drivers/base/core.c",
        "net/ipv4/tcp.c",
        "arch/x86/kernel/cpu/mkcapflags.sh",
    ];
    const ABSENT: [&str; 5] =
        ["README", "sound/usb/card.c", "drivers/net/ethernet/e1000/main.c", "tools/net/x.c", "arch/arm/net/x.c"];

    fn make_tree(cache: &TestCache) -> PathBuf {
        let top = cache.0.join("linux-9.8");
        for file in PRESENT.iter().chain(&ABSENT) {
            let path = top.join(file);
            fs::create_dir_all(path.parent().expect("has one")).expect("writable");
            fs::write(path, file).expect("writable");
        }
        top
    }

    fn check(tree: &Path) {
        for file in PRESENT {
            assert_eq!(fs::read_to_string(tree.join(file)).ok().as_deref(), Some(file));
        }
        for file in ABSENT {
            assert!(!tree.join(file).exists(), "{file}");
        }
    }

    #[test]
    fn a_sixth_of_the_tree_from_an_archive_and_from_a_directory() {
        let cache = TestCache::new("unpack");
        let top = make_tree(&cache);
        let mut listener = |_: &BuildEvent| {};
        let mut workshop = cache.open(&mut listener).expect("free");
        for (suffix, option) in [("xz", "--xz"), ("gz", "--gzip"), ("zst", "--zstd")] {
            let archive = cache.0.join(format!("linux-9.8.tar.{suffix}")).to_string_lossy().into_owned();
            let arguments = ["--create", option, "--file", &archive, "linux-9.8"];
            let task =
                BuildTask { what: None, program: "tar", arguments: &arguments, directory: &cache.0, environment: &[] };
            // Not every system has every compressor; the default one has to be there.
            if !workshop.try_run(task, &mut |_| None).expect("tar runs").success {
                assert_ne!(suffix, "xz");
                continue;
            }
            let source = KernelSource { path: archive.into(), form: SourceForm::Archive, description: "a test".into() };
            let tree = unpack(&mut workshop, &source).expect("unpacks");
            check(&tree);
            fs::remove_dir_all(tree).expect("there");
        }
        fs::write(top.join("net/ipv4/tcp.o"), "old").expect("writable");
        let source = KernelSource { path: top.clone(), form: SourceForm::Directory, description: "a test".into() };
        let tree = unpack(&mut workshop, &source).expect("copies");
        check(&tree);
        assert!(!tree.join("net/ipv4/tcp.o").exists());
        assert!(top.join("README").exists(), "the given tree is not changed");
    }

    #[test]
    fn a_file_that_is_no_archive_is_refused() {
        let cache = TestCache::new("no-archive");
        let path = cache.0.join("notes.tar.xz");
        fs::write(&path, "no archive at all").expect("writable");
        let mut listener = |_: &BuildEvent| {};
        let mut workshop = cache.open(&mut listener).expect("free");
        let source = KernelSource { path, form: SourceForm::Archive, description: "notes.tar.xz".into() };
        let error = unpack(&mut workshop, &source).expect_err("is none").to_string();
        assert!(error.starts_with("notes.tar.xz: it cannot be unpacked: "), "{error}");
    }
}
