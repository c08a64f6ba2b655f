//! Errors of building a kernel, and their remedies.

use std::io;
use std::path::{Path, PathBuf};

use linerate_sys::signals::Signal;
use linerate_sys::{describe_os_error, distribution};
use linerate_units::ByteCount;

use super::programs::MissingProgram;

/// Reason why there is no kernel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// The system refused something.
    #[error(transparent)]
    System(#[from] linerate_sys::Error),
    /// A file could not be read or written.
    #[error("{operation}: {}", describe_os_error(cause))]
    File {
        /// Operation, and its file.
        operation: String,
        /// Error of the system.
        cause: io::Error,
    },
    /// There is no cache directory: neither `XDG_CACHE_HOME` nor `HOME` is an absolute path.
    #[error("no cache directory for the kernel: neither XDG_CACHE_HOME nor HOME is set to an absolute path")]
    NoCache,
    /// The cache cannot be written to.
    #[error("the cache directory {}: {}", directory.display(), describe_os_error(cause))]
    CacheNotWritable {
        /// The directory, whether it exists or not.
        directory: PathBuf,
        /// Error of the system.
        cause: io::Error,
    },
    /// Another process builds a kernel in the same cache.
    #[error("another build is running in {}", directory.display())]
    Busy {
        /// The cache.
        directory: PathBuf,
    },
    /// Too little space to begin.
    #[error("{} has {} MB left, and a build needs {} MB", directory.display(), megabytes(*free), megabytes(*needed))]
    NoSpace {
        /// Directory of the build.
        directory: PathBuf,
        /// Free space.
        free: ByteCount,
        /// Needed space.
        needed: ByteCount,
    },
    /// The disk became full during the build.
    #[error("the disk of {} is full", directory.display())]
    DiskFull {
        /// Directory of the build.
        directory: PathBuf,
    },
    /// Programs that a build needs are not installed.
    #[error("the build needs programs that are not installed: {}", list(programs.iter().map(|program| program.what)))]
    MissingPrograms {
        /// The programs and their packages.
        programs: Vec<MissingProgram>,
    },
    /// No supported package manager.
    #[error("this system has neither apt-get nor dnf to download the kernel's sources")]
    NoPackageManager,
    /// No package with the sources is available.
    #[error("no package with the kernel's sources is available ({}): {said}", packages.join(", "))]
    NoPackage {
        /// Packages that were looked for.
        packages: Vec<String>,
        /// Last message of the package manager.
        said: String,
    },
    /// The archive or directory is not suitable.
    #[error("{source_name}: {reason}")]
    NotAKernel {
        /// Name as given.
        source_name: String,
        /// Reason.
        reason: String,
    },
    /// The kernel lacks options that the lab needs.
    #[error("Linux {version} does not support these options of the lab: {}", options.join(", "))]
    Options {
        /// Version.
        version: String,
        /// The options.
        options: Vec<String>,
    },
    /// A program of the build failed.
    #[error("{what} failed: {}", last.join(" / "))]
    Failed {
        /// The program, or its purpose.
        what: String,
        /// Last lines of its output, or those with the errors.
        last: Vec<String>,
        /// Log of the whole build.
        log: PathBuf,
    },
    /// Interrupted by a signal.
    #[error("the build was interrupted by {}", signal.describe())]
    Interrupted {
        /// The signal.
        signal: Signal,
    },
    /// The kernel in the cache has an invalid description.
    #[error("{}: {reason}", file.display())]
    Description {
        /// The description.
        file: PathBuf,
        /// Reason.
        reason: String,
    },
    /// User-Mode Linux runs on one kind of machine only.
    #[error("this machine is {architecture}; the kernel can be built for x86_64 only")]
    Architecture {
        /// Architecture of this machine.
        architecture: &'static str,
    },
}

impl KernelError {
    pub(super) fn file(action: &str, path: &Path, cause: io::Error) -> Self {
        if cause.kind() == io::ErrorKind::StorageFull {
            return Self::DiskFull { directory: path.parent().unwrap_or(path).to_owned() };
        }
        Self::File { operation: format!("{action} {}", path.display()), cause }
    }

    /// Remedy, where there is one.
    #[must_use]
    pub fn advice(&self) -> Option<String> {
        Some(match self {
            Self::NoCache => "set XDG_CACHE_HOME to a writable directory".into(),
            Self::CacheNotWritable { .. } => {
                "set XDG_CACHE_HOME to a writable directory, or make this one writable".into()
            }
            Self::Busy { .. } => "wait for it to end; `linerate lab kernel status` then shows the kernel".into(),
            Self::NoSpace { directory, .. } | Self::DiskFull { directory } => {
                format!("free space in {}, or set XDG_CACHE_HOME to a directory with more", directory.display())
            }
            Self::MissingPrograms { programs } => install_advice(programs),
            Self::NoPackageManager | Self::NoPackage { .. } => {
                "check the network and the package manager's sources, or get linux-6.12.tar.xz from kernel.org and give \
                 it: `linerate lab kernel build --source linux-6.12.tar.xz`"
                    .into()
            }
            Self::NotAKernel { .. } => "give an archive or a directory with the whole sources of Linux 5.10 or newer".into(),
            Self::Options { .. } => "build from another version: 7.2 and 6.12 are known to work".into(),
            Self::Failed { log, .. } => format!("the full log is {}", log.display()),
            Self::Architecture { .. } => "use `--back-end namespaces` as root, which needs no such kernel".into(),
            Self::System(_) | Self::File { .. } | Self::Interrupted { .. } | Self::Description { .. } => return None,
        })
    }
}

fn install_advice(programs: &[MissingProgram]) -> String {
    let items: Vec<_> = programs.iter().map(|program| program.what).collect();
    distribution::install_advice(&items).unwrap_or_else(|| format!("install {}", items.join(", ")))
}

fn list<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.collect::<Vec<_>>().join(", ")
}

fn megabytes(size: ByteCount) -> u64 {
    size.get() / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_has_a_message_and_a_remedy() {
        let missing = |what| MissingProgram { what };
        let error = KernelError::MissingPrograms { programs: vec![missing("flex"), missing("gcc"), missing("bc")] };
        assert_eq!(error.to_string(), "the build needs programs that are not installed: flex, gcc, bc");
        assert_eq!(error.advice(), distribution::install_advice(&["bc", "flex", "gcc"]));
        assert!(error.advice().is_some_and(|advice| advice.contains("bc flex gcc")));
        let (free, needed) = (ByteCount::new(5_000_000), ByteCount::new(1_200_000_000));
        let error = KernelError::NoSpace { directory: "/x".into(), free, needed };
        assert_eq!(error.to_string(), "/x has 5 MB left, and a build needs 1200 MB");
        assert!(error.advice().is_some_and(|advice| advice.contains("XDG_CACHE_HOME")));
    }

    #[test]
    fn a_full_disk_differs_from_other_failures() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert!(matches!(KernelError::file("writing", Path::new("/x/y"), full), KernelError::DiskFull { .. }));
        let denied = io::Error::from_raw_os_error(13);
        let error = KernelError::file("writing", Path::new("/x/y"), denied);
        assert_eq!(error.to_string(), "writing /x/y: Permission denied");
    }
}
