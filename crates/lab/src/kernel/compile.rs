//! Configures and compiles.

use core::num::NonZeroUsize;
use std::fs;
use std::path::{Path, PathBuf};

use linerate_sys::command_stream::OutputEvent;
use linerate_units::Ratio;

use super::BuildEvent;
use super::error::KernelError;
use super::fragment;
use super::workspace::{BuildTask, BuildWorkspace, TaskProgress, TaskResult};

/// Number of files that Linux 6.12 compiles with the lab's options, for the share of progress.
const EXPECTED_FILES: u32 = 753;

/// Build identification of the compiled kernel: constant, so that one version is one file.
const BUILD_IDENTITY: [(&str, &str); 4] = [
    ("KBUILD_BUILD_USER", "linerate"),
    ("KBUILD_BUILD_HOST", "lab"),
    ("KBUILD_BUILD_VERSION", "1"),
    ("KBUILD_BUILD_TIMESTAMP", "1970-01-01"),
];

/// Files in these directories begin with the compiled headers. Elsewhere some are confused by headers that they do not
/// include, and most are too small to gain; in Linux 7.0 and newer one of `kernel/sched` chooses what a header declares.
const HEADER_FLAGS: &str = "NOSTDINC_FLAGS=-nostdinc $(if $(filter net fs mm kernel drivers ipc crypto,\
                            $(firstword $(subst /, ,$(obj:kernel/sched=)))),-include $(srctree)/linerate/all.h)";

/// Header of the sources that replaces one of the compiler's. Linux before 5.16 has the compiler's own, and other variables
/// for the names of files.
const OWN_COMPILER_HEADER: &str = "include/linux/stdarg.h";

/// The compiled headers can be used only by commands that define the same macros. The kernel's build defines each
/// file's name by its command; these variables have it written to a header of the file's own, which comes after the
/// others. The build also expands them for targets that are no files of a directory: without `obj`, the header would lie in `/`.
const NAME_FLAGS: [&str; 4] = [
    "basename_flags=",
    "modfile_flags=",
    "names-text=\"$(call name-fix-token,$1)\"",
    "modname_flags=$(if $(obj),$(file >$(obj)/.$(basetarget).names.h,#define KBUILD_BASENAME $(call names-text,$(basetarget)))\
     $(file >>$(obj)/.$(basetarget).names.h,#define KBUILD_MODNAME $(call names-text,$(modname)))\
     $(file >>$(obj)/.$(basetarget).names.h,#define KBUILD_MODFILE \"$(modfile)\")\
     $(file >>$(obj)/.$(basetarget).names.h,#define __KBUILD_MODNAME kmod_$(call name-fix-token,$(modname)))\
     -include $(obj)/.$(basetarget).names.h)",
];

fn task<'a>(what: &'a str, tree: &'a Path, arguments: &'a [&'a str]) -> BuildTask<'a> {
    BuildTask { what: Some(what), program: "make", arguments, directory: tree, environment: &BUILD_IDENTITY }
}

/// Configures the sources, and checks that the result has the wanted options.
pub(super) fn configure(workshop: &mut BuildWorkspace<'_>, tree: &Path, version: &str) -> Result<(), KernelError> {
    let wanted = tree.join("linerate/fragment.config");
    let mut options = fragment::for_kconfig();
    if !mounts_without_block_devices(tree) {
        options.push_str("CONFIG_BLOCK=y\n");
    }
    fs::write(&wanted, options).map_err(|cause| KernelError::file("writing", &wanted, cause))?;
    let arguments = ["ARCH=um", "KCONFIG_ALLCONFIG=linerate/fragment.config", "allnoconfig"];
    workshop.run(task("configuring the kernel", tree, &arguments), &mut |_| None)?;
    let result = tree.join(".config");
    let text = fs::read_to_string(&result).map_err(|cause| KernelError::file("reading", &result, cause))?;
    let lacking = fragment::lacking(&text);
    if !lacking.required.is_empty() {
        return Err(KernelError::Options { version: version.to_owned(), options: lacking.required });
    }
    if !lacking.optional.is_empty() {
        let text = format!("Linux {version} does not support {}, which is optional", lacking.optional.join(", "));
        workshop.tell(&BuildEvent::Note(text));
    }
    Ok(())
}

/// False for sources that mount no root without block devices, which was added in Linux 5.14 (`mount_nodev_root`).
fn mounts_without_block_devices(tree: &Path) -> bool {
    fs::read_to_string(tree.join("init/do_mounts.c")).map_or(true, |text| text.contains("mount_nodev_root"))
}

/// Compiles; returns the kernel's file.
pub(super) fn make(workshop: &mut BuildWorkspace<'_>, tree: &Path, jobs: NonZeroUsize) -> Result<PathBuf, KernelError> {
    let jobs = format!("-j{jobs}");
    let mut arguments = vec!["ARCH=um", jobs.as_str(), "KCFLAGS=-pipe -w"];
    if tree.join(OWN_COMPILER_HEADER).is_file() {
        arguments.push(HEADER_FLAGS);
        arguments.extend(NAME_FLAGS);
    } else {
        let text = "these sources are older than Linux 5.16: compiling without precompiled headers, which takes longer";
        workshop.tell(&BuildEvent::Note(text.to_owned()));
    }
    let task = task("compiling the kernel", tree, &arguments);
    let compiled_headers = tree.join("linerate/all.h.gch");
    let mut files = FileCounter::default();
    let mut finished = compile(workshop, task, &mut files)?;
    if finished.success && tree.join(OWN_COMPILER_HEADER).is_file() && !compiled_headers.is_file() {
        let text = "the headers of these sources could not be compiled once for all files, so the build took longer";
        workshop.tell(&BuildEvent::Note(text.to_owned()));
    }
    // The compiled headers are known to suit the compilers and versions that were tried. With others, files that failed
    // with them are compiled again without them, and the others are kept.
    if !finished.success && !finished.disk_is_full() && fs::remove_file(&compiled_headers).is_ok() {
        let reason = finished.reasons().join(" / ");
        workshop
            .tell(&BuildEvent::Note(format!("continuing without precompiled headers, which takes longer: {reason}")));
        finished = compile(workshop, task, &mut files)?;
    }
    if !finished.success {
        return Err(workshop.failure(task, &finished));
    }
    Ok(tree.join("linux"))
}

fn compile(
    workshop: &mut BuildWorkspace<'_>,
    task: BuildTask<'_>,
    files: &mut FileCounter,
) -> Result<TaskResult, KernelError> {
    workshop.try_run(task, &mut |said| match said {
        OutputEvent::Line(line) => files.count_line(line),
        OutputEvent::Nothing => None,
    })
}

/// Counts the compiled files.
#[derive(Debug, Default)]
struct FileCounter {
    compiled: u32,
}

impl FileCounter {
    /// Progress after this line of `make`, when it is about a file: `  CC      net/ipv4/tcp.o`.
    fn count_line(&mut self, line: &str) -> Option<TaskProgress> {
        let mut words = line.split_ascii_whitespace();
        let is_file = line.starts_with("  ") && words.next() == Some("CC") && words.next().is_some();
        is_file.then(|| {
            self.compiled += 1;
            // Another version may have more; only the program's end completes the whole.
            let share = f64::from(self.compiled) / f64::from(EXPECTED_FILES.max(self.compiled + 1));
            (Ratio::new(share), format!("{} of about {EXPECTED_FILES} files", self.compiled))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::workspace::tests::TestCache;
    use super::*;

    #[test]
    fn compiled_files_are_counted_and_nothing_else() {
        let mut files = FileCounter::default();
        for line in ["  AR      net/built-in.a", "  HOSTCC  scripts/x.o", "net/x.c:3: CC warning", "  LD      vmlinux"]
        {
            assert_eq!(files.count_line(line), None, "{line}");
        }
        let (share, text) = files.count_line("  CC      net/ipv4/tcp.o").expect("a file");
        assert_eq!(text, "1 of about 753 files");
        assert_eq!(share, Ratio::of(1.0, 753.0));
        for _ in 0..2000 {
            let (share, _) = files.count_line("  CC [M]  net/x.o").expect("a file");
            assert!(share.is_some_and(|share| share.get() < 1.0));
        }
    }

    /// A tree whose `make` runs these rules instead of compiling.
    fn tree_with(cache: &TestCache, rules: &str) -> PathBuf {
        let tree = cache.0.join("tree");
        fs::create_dir_all(tree.join("linerate")).expect("writable");
        fs::create_dir_all(tree.join("include/linux")).expect("writable");
        fs::write(tree.join(OWN_COMPILER_HEADER), "").expect("writable");
        fs::write(tree.join("Makefile"), rules).expect("writable");
        tree
    }

    #[test]
    fn older_sources_keep_their_own_flags() {
        let cache = TestCache::new("older");
        let tree = tree_with(&cache, "all:\n\t@echo '$(origin NOSTDINC_FLAGS)' >linux\n");
        for expected in ["command line", "undefined"] {
            let mut listener = |_: &BuildEvent| {};
            let mut workshop = cache.open(&mut listener).expect("free");
            let binary = make(&mut workshop, &tree, NonZeroUsize::MIN).expect("made");
            assert_eq!(fs::read_to_string(binary).expect("there").trim(), expected);
            let _ = fs::remove_file(tree.join(OWN_COMPILER_HEADER));
        }
    }

    #[test]
    fn only_files_of_a_directory_have_a_header_of_their_names() {
        let cache = TestCache::new("names");
        let rules = "name-fix-token = $1\nall: none x\nx: obj := net\nx: basetarget := x\n\
                     none:\n\t@echo '[$(modname_flags)]' >linux\nx:\n\t@echo '$(modname_flags)' >>linux\n";
        let tree = tree_with(&cache, rules);
        fs::create_dir(tree.join("net")).expect("writable");
        let mut listener = |_: &BuildEvent| {};
        let mut workshop = cache.open(&mut listener).expect("free");
        let binary = make(&mut workshop, &tree, NonZeroUsize::MIN).expect("made");
        assert_eq!(fs::read_to_string(binary).expect("there"), "[]\n-include net/.x.names.h\n");
        let names = fs::read_to_string(tree.join("net/.x.names.h")).expect("written");
        assert!(names.starts_with("#define KBUILD_BASENAME \"x\"\n#define KBUILD_MODNAME "), "{names}");
    }

    #[test]
    fn older_sources_mount_the_root_with_block_devices() {
        let cache = TestCache::new("root");
        let configured = "allnoconfig:\n\tcp linerate/fragment.config .config\n";
        let tree = tree_with(&cache, configured);
        fs::create_dir(tree.join("init")).expect("writable");
        for (mounts, expected) in [("static int __init mount_nodev_root(void)", false), ("void mount_root(void)", true)]
        {
            fs::write(tree.join("init/do_mounts.c"), mounts).expect("writable");
            let mut listener = |_: &BuildEvent| {};
            let mut workshop = cache.open(&mut listener).expect("free");
            configure(&mut workshop, &tree, "5.10.1").expect("all options");
            let options = fs::read_to_string(tree.join(".config")).expect("there");
            assert_eq!(options.contains("CONFIG_BLOCK=y\n"), expected, "{mounts}");
        }
    }

    /// Notes of a build in this tree that succeeds.
    fn notes_of(cache: &TestCache, tree: &Path) -> Vec<String> {
        let mut notes = Vec::new();
        let mut listener = |event: &BuildEvent| {
            if let BuildEvent::Note(text) = event {
                notes.push(text.clone());
            }
        };
        let mut workshop = cache.open(&mut listener).expect("free");
        let binary = make(&mut workshop, tree, NonZeroUsize::MIN).expect("at last");
        assert!(binary.exists());
        drop(workshop);
        notes
    }

    #[test]
    fn headers_that_cannot_be_compiled_are_reported() {
        let cache = TestCache::new("headers");
        let tree = tree_with(&cache, "all:\n\t@touch linux\n");
        let notes = notes_of(&cache, &tree);
        assert!(notes.len() == 1 && notes[0].contains("took longer"), "{notes:?}");
        fs::write(tree.join("linerate/all.h.gch"), "").expect("writable");
        assert_eq!(notes_of(&cache, &tree), Vec::<String>::new());
    }

    #[test]
    fn unsuitable_headers_are_given_up() {
        let cache = TestCache::new("fallback");
        let rules = "all:\n\t@echo '  CC      a.o'\n\t@test ! -e linerate/all.h.gch || \
                     { echo 'a.c:1: error: swap'; false; }\n\t@touch linux\n";
        let tree = tree_with(&cache, rules);
        fs::write(tree.join("linerate/all.h.gch"), "").expect("writable");
        let notes = notes_of(&cache, &tree);
        assert_eq!(notes.len(), 1);
        assert!(notes[0].contains("a.c:1: error: swap"), "{notes:?}");
    }

    #[test]
    fn a_failed_build_has_a_reason() {
        let cache = TestCache::new("build-fails");
        let tree = tree_with(&cache, "all:\n\t@echo 'a.c:1: error: no'\n\t@false\n");
        let mut listener = |_: &BuildEvent| {};
        let mut workshop = cache.open(&mut listener).expect("free");
        let error = make(&mut workshop, &tree, NonZeroUsize::MIN).expect_err("fails").to_string();
        assert!(error.starts_with("compiling the kernel failed: a.c:1: error: no"), "{error}");
    }

    #[test]
    fn options_that_the_kernel_refuses_are_named() {
        let cache = TestCache::new("options");
        let tree = tree_with(&cache, "allnoconfig:\n\t@grep -v NETEM $(KCONFIG_ALLCONFIG) > .config\n");
        let mut listener = |_: &BuildEvent| {};
        let mut workshop = cache.open(&mut listener).expect("free");
        let error = configure(&mut workshop, &tree, "9.8").expect_err("no netem").to_string();
        assert_eq!(error, "Linux 9.8 does not support these options of the lab: CONFIG_NET_SCH_NETEM=y");
    }
}
