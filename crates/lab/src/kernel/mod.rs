//! The kernel of the lab's guests: built once from the distribution's sources, kept in the user's cache.
//!
//! ```text
//!   source  (package or tarball) ──► archive (unpacked in part) ──► edits ──► compile (configure, make)  ──► cache
//! ```
//!
//! docs/lab-kernel.md documents what is configured and edited, and why.

mod apt;
mod archive;
mod cache;
mod compile;
mod dnf;
mod edits;
mod error;
mod fragment;
mod programs;
mod recipe;
mod shared_clock;
mod source;
mod version;
mod workspace;

use core::num::NonZeroUsize;
use core::time::Duration;
use std::path::PathBuf;

use linerate_sys::clock::monotonic_now;
use linerate_sys::signals::InterruptSignals;
use linerate_units::{ByteCount, Ratio};

pub use cache::{CacheStatus, CachedKernel, KernelMetadata, find, find_version, status};
pub use error::KernelError;
pub use programs::{MissingProgram, missing_programs};
pub use recipe::hash as recipe;
pub use version::SeriesVersion;

use workspace::BuildWorkspace;

/// Source and options of a build.
#[derive(Clone, Debug, Default)]
pub struct BuildRequest {
    /// A tarball of a kernel's sources or a directory with them; `None` for the distribution's package.
    pub source: Option<PathBuf>,
    /// Version of the package, such as 5.10, of Debian's present or an earlier release; `None` for the newest that is
    /// known to work.
    pub version: Option<SeriesVersion>,
    /// Number of compilers that run at once; `None` for one for each processor.
    pub jobs: Option<NonZeroUsize>,
    /// Signals that end the build, with everything that it has started; `None` for none.
    pub interrupts: Option<InterruptSignals>,
}

/// Event of a build.
#[derive(Clone, Debug, PartialEq)]
pub enum BuildEvent {
    /// A step begins.
    Step(BuildStep),
    /// Progress of a step.
    Progress {
        /// Share of the step that is done; `None` when its size is not known.
        done: Option<Ratio>,
        /// The step's figures as text, for example `212 of 753 files`.
        text: String,
        /// Time since the build began.
        elapsed: Duration,
    },
    /// Note for the user; the build goes on.
    Note(String),
}

/// A step of a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildStep {
    /// Locating the sources with the package manager.
    Searching,
    /// Downloading them.
    Downloading {
        /// Package and version.
        package: String,
        /// Size of the package; `None` when the package manager does not report it.
        size: Option<ByteCount>,
    },
    /// Unpacking the needed part.
    Unpacking {
        /// The archive or directory.
        source: String,
    },
    /// Editing and configuring the sources.
    Configuring {
        /// The kernel's version.
        version: String,
    },
    /// Compiling them.
    Compiling {
        /// Number of compilers at once.
        jobs: NonZeroUsize,
    },
    /// Storing the kernel in the cache.
    Storing,
}

/// Free space that a build needs in the cache: the package, the archive in it, the unpacked and compiled files, with a
/// margin for other versions (6.12 and 7.2 take 0.7 GB).
pub const MIN_FREE_SPACE: ByteCount = ByteCount::from_mebibytes(1200);

/// Builds the kernel and stores it in the cache. A kernel of the same version and recipe is replaced.
pub fn build(request: &BuildRequest, listener: &mut dyn FnMut(&BuildEvent)) -> Result<CachedKernel, KernelError> {
    let start = monotonic_now();
    programs::require(request.source.is_none())?;
    let mut workshop = BuildWorkspace::open(start, request.interrupts, listener)?;
    let outcome = build_in(&mut workshop, request);
    workshop.close(outcome)
}

fn build_in(workshop: &mut BuildWorkspace<'_>, request: &BuildRequest) -> Result<CachedKernel, KernelError> {
    let found = match &request.source {
        Some(path) => source::user_source(path)?,
        None => source::packaged(workshop, request.version)?,
    };
    workshop.step(BuildStep::Unpacking { source: found.description.clone() });
    let tree = archive::unpack(workshop, &found)?;
    let version = source::version(&tree, &found.description)?;
    workshop.step(BuildStep::Configuring { version: version.clone() });
    let edits = edits::apply(&tree, workshop)?;
    compile::configure(workshop, &tree, &version)?;
    let jobs = request.jobs.unwrap_or_else(linerate_sys::host::cpu_count);
    workshop.step(BuildStep::Compiling { jobs });
    let binary = compile::make(workshop, &tree, jobs)?;
    workshop.step(BuildStep::Storing);
    let metadata = KernelMetadata::new(version, found.description, edits, workshop.elapsed());
    cache::store(workshop, &binary, &metadata)
}
