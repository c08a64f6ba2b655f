//! The kernel of the lab's guests: built once from the distribution's sources, kept in the user's cache.
//!
//! ```text
//!   source  (package or tarball) ──► archive (unpacked in part) ──► edits ──► compile (configure, make)  ──► cache
//! ```
//!
//! docs/lab-kernel.md says what is configured and edited, and why.

mod apt;
mod archive;
mod cache;
mod compile;
mod edits;
mod error;
mod fragment;
mod programs;
mod recipe;
mod source;
mod workshop;

use core::num::NonZeroUsize;
use core::time::Duration;
use std::path::PathBuf;

use linerate_sys::clock::monotonic_now;
use linerate_sys::signals::Interrupts;
use linerate_units::{ByteCount, Ratio};

pub use cache::{CachedKernel, Metadata, Status, find, status};
pub use error::KernelError;
pub use programs::{MissingProgram, missing_programs};
pub use recipe::hash as recipe;

use workshop::Workshop;

/// What to build from, and how.
#[derive(Clone, Debug, Default)]
pub struct BuildRequest {
    /// A tarball of a kernel's sources or a directory with them; `None` for the distribution's package.
    pub source: Option<PathBuf>,
    /// How many compilers run at once; `None` for one for each processor.
    pub jobs: Option<NonZeroUsize>,
    /// Signals that end the build, with everything that it has started; `None` for none.
    pub interrupts: Option<Interrupts>,
}

/// What happens during a build.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A step begins.
    Step(Step),
    /// How far it is.
    Progress {
        /// The share of the step that is done; `None` when its size is not known.
        done: Option<Ratio>,
        /// The step's figures in words, for example `212 of 753 files`.
        text: String,
        /// Since the build began.
        elapsed: Duration,
    },
    /// Something that the user may want to know; the build goes on.
    Note(String),
}

/// A step of a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Asking the package manager where the sources are.
    Searching,
    /// Getting them.
    Downloading {
        /// Package and version.
        package: String,
        /// Of the package; `None` when the package manager does not tell.
        size: Option<ByteCount>,
    },
    /// Unpacking what is needed.
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
        /// Compilers at once.
        jobs: NonZeroUsize,
    },
    /// Putting the kernel into the cache.
    Storing,
}

/// Free space that a build needs where the cache is: the package, the archive in it, what is unpacked and compiled, with
/// room for other versions (6.12 takes 0.7 GB).
pub const SPACE: ByteCount = ByteCount::from_mebibytes(1200);

/// Builds the kernel and puts it into the cache. A kernel of the same version and recipe is replaced.
pub fn build(request: &BuildRequest, listener: &mut dyn FnMut(&Event)) -> Result<CachedKernel, KernelError> {
    let start = monotonic_now();
    programs::require(request.source.is_none())?;
    let mut workshop = Workshop::open(start, request.interrupts, listener)?;
    let outcome = build_in(&mut workshop, request);
    workshop.close(outcome)
}

fn build_in(workshop: &mut Workshop<'_>, request: &BuildRequest) -> Result<CachedKernel, KernelError> {
    let found = match &request.source {
        Some(path) => source::given(path)?,
        None => source::packaged(workshop)?,
    };
    workshop.step(Step::Unpacking { source: found.description.clone() });
    let tree = archive::unpack(workshop, &found)?;
    let version = source::version(&tree, &found.description)?;
    workshop.step(Step::Configuring { version: version.clone() });
    let edits = edits::apply(&tree, workshop)?;
    compile::configure(workshop, &tree, &version)?;
    let jobs = request.jobs.unwrap_or_else(linerate_sys::host::cpu_count);
    workshop.step(Step::Compiling { jobs });
    let binary = compile::make(workshop, &tree, jobs)?;
    workshop.step(Step::Storing);
    let metadata = Metadata::new(version, found.description, edits, workshop.elapsed());
    cache::store(workshop, &binary, &metadata)
}
