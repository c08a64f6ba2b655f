//! Requirements of User-Mode Linux.

use std::path::{Path, PathBuf};

use linerate_model::lab_check::{BackEndReport, CheckItem, CheckOutcome};
use linerate_sys::resources::{self, FileSystemSpace};
use linerate_sys::{distribution, iproute2, ptrace_probe};
use linerate_units::ByteCount;

use crate::kernel::{self, SeriesVersion};

/// Memory of the guests of small paths, with the overhead of their kernel.
const MIN_GUEST_MEMORY: ByteCount = ByteCount::from_mebibytes(256);

pub(super) fn report() -> BackEndReport {
    let version = kernel::find().ok().flatten().map(|kernel| kernel.metadata.version);
    BackEndReport::of(vec![
        CheckItem::required("machine", machine()),
        CheckItem::required("kernel", cached_kernel()),
        CheckItem::required("trapping of system calls", trapping(version.as_deref())),
        CheckItem::required("memory", memory()),
        CheckItem::required("directory for memory", memory_directory()),
        CheckItem::required("ip", tool("ip")),
        CheckItem::required("tc", tool("tc")),
        CheckItem::required("this program's file", own_executable()),
        CheckItem::useful("process namespace", process_namespace()),
        CheckItem::useful("L4S", l4s(version)),
    ])
}

fn machine() -> CheckOutcome {
    match std::env::consts::ARCH {
        "x86_64" => CheckOutcome::works("x86_64"),
        other => CheckOutcome::missing(
            format!("this machine is {other}, and User-Mode Linux is for x86_64"),
            "use `--back-end namespaces` as root",
        ),
    }
}

fn cached_kernel() -> CheckOutcome {
    let build = "run `linerate lab kernel build`, which takes about two minutes";
    match kernel::find() {
        Ok(Some(kernel)) => {
            CheckOutcome::works(format!("Linux {} in {}", kernel.metadata.version, kernel.path.display()))
        }
        Ok(None) => CheckOutcome::missing("no kernel of this version's recipe has been built", build),
        Err(error) => CheckOutcome::missing(error.to_string(), error.advice().unwrap_or_else(|| build.into())),
    }
}

/// First Linux with Accurate ECN (`net.ipv4.tcp_ecn` = 3); the discipline `dualpi2` came one before.
const FIRST_WITH_L4S: SeriesVersion = SeriesVersion::new(6, 18);

/// Kernel for paths with `dualpi2` and Accurate ECN.
fn l4s(version: Option<String>) -> CheckOutcome {
    let Some(version) = version else { return CheckOutcome::NotTried { because: "it needs a kernel".into() } };
    if SeriesVersion::of(&version).is_some_and(|series| series >= FIRST_WITH_L4S) {
        return CheckOutcome::works(format!("Linux {version} has dualpi2 and Accurate ECN"));
    }
    CheckOutcome::missing(
        format!(
            "Linux {version} is older than {FIRST_WITH_L4S}, so that paths with dualpi2 or net.ipv4.tcp_ecn = 3 fail"
        ),
        "run `linerate lab kernel build` where Debian's backports are available, or with `--source FILE` of a newer kernel",
    )
}

/// First kernel of the lab whose guests need no ptrace where seccomp filters are permitted.
const FIRST_WITH_FILTERS: SeriesVersion = SeriesVersion::new(7, 2);

fn trapping(version: Option<&str>) -> CheckOutcome {
    let allow = "in a container allow ptrace (docker run --cap-add=SYS_PTRACE, or --security-opt seccomp=unconfined); \
                 else see the sysctl kernel.yama.ptrace_scope, which must not be 3";
    let series = version.and_then(SeriesVersion::of);
    if series.is_some_and(|series| series >= FIRST_WITH_FILTERS) && ptrace_probe::try_filtering().is_ok() {
        return CheckOutcome::works("seccomp filter tried with a child process");
    }
    match ptrace_probe::try_tracing() {
        Ok(()) => CheckOutcome::works("ptrace tried with a child process"),
        Err(error) => CheckOutcome::missing(error.to_string(), allow),
    }
}

fn memory() -> CheckOutcome {
    match resources::available_memory() {
        Ok(available) => {
            let text = format!("{} MiB ({})", available.size.get() >> 20, available.limited_by);
            if available.size >= MIN_GUEST_MEMORY {
                CheckOutcome::works(text)
            } else {
                let needed = MIN_GUEST_MEMORY.get() >> 20;
                CheckOutcome::missing(
                    format!("{text}; the smallest guest needs {needed} MiB"),
                    "end other programs or raise the limit",
                )
            }
        }
        Err(error) => CheckOutcome::missing(error.to_string(), "mount procfs at /proc"),
    }
}

/// Directory for the guest's memory: a writable and executable file system, preferably in memory.
fn memory_directory() -> CheckOutcome {
    let candidates = [Some(PathBuf::from("/dev/shm")), variable("TMPDIR"), Some("/tmp".into())];
    let places: Vec<_> =
        candidates.into_iter().flatten().map(|place| (resources::space_in(&place).ok(), place)).collect();
    judge(&places)
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

fn judge(places: &[(Option<FileSystemSpace>, PathBuf)]) -> CheckOutcome {
    let suits = |space: &FileSystemSpace| space.writable && space.executable && space.free >= MIN_GUEST_MEMORY;
    let good = |in_memory: bool| {
        let found = places.iter().filter_map(|(space, place)| Some((space.as_ref()?, place)));
        found.into_iter().find(|(space, _)| suits(space) && space.in_memory == in_memory)
    };
    let describe = |(space, place): (&FileSystemSpace, &PathBuf), kind: &str| {
        CheckOutcome::works(format!("{}, {kind}, {} MiB free", place.display(), space.free.get() >> 20))
    };
    if let Some(found) = good(true) {
        return describe(found, "in memory");
    }
    if let Some(found) = good(false) {
        return describe(found, "on a disk: slower than in memory");
    }
    let list: Vec<_> = places.iter().map(|(_, place)| place.display().to_string()).collect();
    CheckOutcome::missing(
        format!("none of {} is writable, executable and has {} MiB", list.join(", "), MIN_GUEST_MEMORY.get() >> 20),
        "set TMPDIR to such a directory; in a container enlarge /dev/shm (docker run --shm-size)",
    )
}

/// Programs that configure devices and queues; both are of one package.
pub(super) fn tool(name: &str) -> CheckOutcome {
    match iproute2::version(name) {
        Ok(version) => CheckOutcome::works(version),
        Err(error) => {
            let advice = distribution::install_advice(&[name]);
            CheckOutcome::missing(error.to_string(), advice.unwrap_or_else(|| "install iproute2".into()))
        }
    }
}

/// Executable of this program, which the guest runs through the host's file system.
fn own_executable() -> CheckOutcome {
    let again = "start it again from a file that is not moved or deleted";
    match std::env::current_exe() {
        Ok(path) if Path::new(&path).is_file() => CheckOutcome::works(path.display().to_string()),
        Ok(path) => CheckOutcome::missing(format!("{} no longer exists", path.display()), again),
        Err(error) => CheckOutcome::missing(format!("reading /proc/self/exe: {error}"), "mount procfs at /proc"),
    }
}

fn process_namespace() -> CheckOutcome {
    match ptrace_probe::try_process_namespace() {
        Ok(()) => CheckOutcome::works("the kernel itself ends a guest with all its processes"),
        Err(error) => CheckOutcome::missing(
            format!("{error}; guests are then ended by a process that watches them"),
            "allow user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, \
             kernel.apparmor_restrict_unprivileged_userns), or do without",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(mebibytes: u64, in_memory: bool) -> FileSystemSpace {
        FileSystemSpace { free: ByteCount::from_mebibytes(mebibytes), writable: true, executable: true, in_memory }
    }

    #[test]
    fn memory_is_preferred_to_a_disk_and_small_places_do_not_count() {
        let disk = (Some(space(9000, false)), PathBuf::from("/disk"));
        let memory = (Some(space(9000, true)), PathBuf::from("/memory"));
        let small = (Some(space(64, true)), PathBuf::from("/small"));
        let text = |places: &[_]| match judge(places) {
            CheckOutcome::Works { with } => with,
            other => panic!("{other:?}"),
        };
        assert_eq!(text(&[disk.clone(), memory]), "/memory, in memory, 9000 MiB free");
        assert_eq!(text(&[small.clone(), disk]), "/disk, on a disk: slower than in memory, 9000 MiB free");
        let noexec = (Some(FileSystemSpace { executable: false, ..space(9000, true) }), PathBuf::from("/noexec"));
        let outcome = judge(&[small, noexec, (None, PathBuf::from("/absent"))]);
        let CheckOutcome::Missing { what, .. } = outcome else { panic!("{outcome:?}") };
        assert_eq!(what, "none of /small, /noexec, /absent is writable, executable and has 256 MiB");
    }

    #[test]
    fn a_tool_that_is_not_there() {
        let outcome = tool("no-such-program-here");
        let CheckOutcome::Missing { what, way_out } = outcome else { panic!("{outcome:?}") };
        assert!(what.contains("not installed") && way_out.contains("iproute2"), "{what} {way_out}");
    }

    #[test]
    fn older_kernels_have_no_l4s() {
        for version in ["6.18", "6.18.3", "7.2.13", "10.0-rc1"] {
            assert!(l4s(Some(version.to_owned())).is_working(), "{version}");
        }
        for version in ["6.17.9", "6.12.117", "5.19", "unknown"] {
            let outcome = l4s(Some(version.to_owned()));
            let CheckOutcome::Missing { what, way_out } = outcome else { panic!("{version}: {outcome:?}") };
            assert!(what.contains(version) && way_out.contains("kernel build"), "{what} {way_out}");
        }
        assert!(matches!(l4s(None), CheckOutcome::NotTried { .. }));
    }

    #[test]
    fn this_test_is_a_file() {
        assert!(own_executable().is_working());
    }
}
