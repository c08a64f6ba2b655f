//! Cache of built kernels, their descriptions, and kernels of packages.

use core::time::Duration;
use std::cmp::Reverse;
use std::fs;
use std::path::{Path, PathBuf};

use linerate_model::json;
use linerate_units::{ByteCount, CompactSort};
use serde::{Deserialize, Serialize};

use super::error::KernelError;
use super::recipe;
use super::version::SeriesVersion;
use super::workspace::{BuildTask, BuildWorkspace};

/// The kernel's file in its directory.
const KERNEL_FILE: &str = "linux";
/// Description, next to it.
const METADATA_FILE: &str = "kernel.json";

/// Kernels of packages, in directories as those of the cache; they are only read.
const SYSTEM_DIRECTORY: &str = "/usr/lib/linerate/kernels";

/// Description of a kernel, stored next to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelMetadata {
    /// Version of this description.
    pub schema: u32,
    /// Linux's version, for example `6.12.117`.
    pub version: String,
    /// The package or file that it was built from.
    pub source: String,
    /// Hash of the recipe with which it was built.
    pub recipe: String,
    /// Names of the applied changes of the sources.
    pub edits: Vec<String>,
    /// Duration of the build in seconds, the download included.
    pub build_seconds: u64,
}

impl KernelMetadata {
    pub(super) fn new(version: String, source: String, edits: Vec<String>, elapsed: Duration) -> Self {
        let build_seconds = elapsed.as_secs();
        Self { schema: 1, version, source, recipe: recipe::hash(), edits, build_seconds }
    }

    /// Directory in the cache.
    fn directory_name(&self) -> String {
        format!("{}-{}", self.version, self.recipe)
    }

    fn order(&self) -> Vec<u32> {
        self.version.split(|found: char| !found.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
    }
}

/// A kernel in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedKernel {
    /// File.
    pub path: PathBuf,
    /// The file's size.
    pub size: ByteCount,
    /// True when it was built by this program's recipe: only then it is used.
    pub current: bool,
    /// Description.
    pub metadata: KernelMetadata,
}

/// Contents of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheStatus {
    /// The cache, which need not exist.
    pub directory: PathBuf,
    /// This program's recipe.
    pub recipe: String,
    /// The kernels, those of this recipe first, newer versions first.
    pub kernels: Vec<CachedKernel>,
    /// Directories that look like kernels and are not, with the reason.
    pub unreadable: Vec<(PathBuf, String)>,
}

/// Directory of the cache: `linerate/kernels` in `$XDG_CACHE_HOME`, else in `~/.cache`.
pub(super) fn directory() -> Result<PathBuf, KernelError> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")));
    cache.map(|cache| cache.join("linerate/kernels")).ok_or(KernelError::NoCache)
}

/// Contents of the cache and of the system's packages.
pub fn status() -> Result<CacheStatus, KernelError> {
    status_of(directory()?, Path::new(SYSTEM_DIRECTORY))
}

/// The kernel to use: of this program's recipe, the newest version. `None` when there is none.
pub fn find() -> Result<Option<CachedKernel>, KernelError> {
    Ok(status()?.kernels.into_iter().next().filter(|kernel| kernel.current))
}

/// The newest kernel of this series that this program's recipe built. `None` when there is none.
pub fn find_version(series: SeriesVersion) -> Result<Option<CachedKernel>, KernelError> {
    let is_of_it = |kernel: &CachedKernel| kernel.current && series.includes(&kernel.metadata.version);
    Ok(status()?.kernels.into_iter().find(is_of_it))
}

fn status_of(directory: PathBuf, system: &Path) -> Result<CacheStatus, KernelError> {
    let mut status = CacheStatus { recipe: recipe::hash(), kernels: Vec::new(), unreadable: Vec::new(), directory };
    for directory in [status.directory.clone(), system.to_owned()] {
        add_kernels(&mut status, &directory)?;
    }
    let is_of_system = |kernel: &CachedKernel| kernel.path.starts_with(system);
    status
        .kernels
        .sort_compactly_by_key(|kernel| (Reverse((kernel.current, kernel.metadata.order())), is_of_system(kernel)));
    status.unreadable.sort();
    Ok(status)
}

/// Adds the kernels of one directory, which need not exist.
fn add_kernels(status: &mut CacheStatus, directory: &Path) -> Result<(), KernelError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(cause) => return Err(KernelError::file("reading", directory, cause)),
    };
    for entry in entries.filter_map(Result::ok) {
        let is_kernel = !entry.file_name().to_string_lossy().starts_with('.') && entry.path().is_dir();
        if !is_kernel {
            continue;
        }
        match load(&entry.path(), &status.recipe) {
            Ok(kernel) => status.kernels.push(kernel),
            Err(error) => status.unreadable.push((entry.path(), error.to_string())),
        }
    }
    Ok(())
}

fn load(directory: &Path, recipe: &str) -> Result<CachedKernel, KernelError> {
    let file = directory.join(METADATA_FILE);
    let text = fs::read_to_string(&file).map_err(|cause| KernelError::file("reading", &file, cause))?;
    let metadata: KernelMetadata =
        json::from_str(&text).map_err(|error| KernelError::Description { file, reason: error.to_string() })?;
    let path = directory.join(KERNEL_FILE);
    let size = path.metadata().map_err(|cause| KernelError::file("reading", &path, cause))?.len();
    Ok(CachedKernel { size: ByteCount::new(size), current: metadata.recipe == recipe, path, metadata })
}

/// Stores a kernel in the cache without its symbols, completely or not at all.
pub(super) fn store(
    workshop: &mut BuildWorkspace<'_>,
    binary: &Path,
    metadata: &KernelMetadata,
) -> Result<CachedKernel, KernelError> {
    let new = workshop.subdirectory("new")?;
    let target = new.join(KERNEL_FILE);
    let arguments = ["-o".into(), target.to_string_lossy(), binary.to_string_lossy()];
    let arguments = arguments.each_ref().map(AsRef::as_ref);
    let directory = workshop.directory().to_owned();
    let task =
        BuildTask { what: None, program: "strip", arguments: &arguments, directory: &directory, environment: &[] };
    workshop.run(task, &mut |_| None)?;
    let text = json::to_string_pretty(metadata)
        .map_err(|error| KernelError::Description { file: new.join(METADATA_FILE), reason: error.to_string() })?;
    let description = new.join(METADATA_FILE);
    fs::write(&description, text + "\n").map_err(|cause| KernelError::file("writing", &description, cause))?;
    let place = workshop.cache().join(metadata.directory_name());
    exchange(&new, &place, &directory.join("old")).map_err(|cause| KernelError::file("storing", &place, cause))?;
    load(&place, &recipe::hash())
}

/// Moves `new` to `place`; an existing directory there goes to `old`.
fn exchange(new: &Path, place: &Path, old: &Path) -> std::io::Result<()> {
    if place.exists() {
        fs::rename(place, old)?;
    }
    fs::rename(new, place)
}

#[cfg(test)]
mod tests {
    use super::super::BuildEvent;
    use super::super::workspace::tests::TestCache;
    use super::*;

    fn metadata(version: &str) -> KernelMetadata {
        let edits = vec!["seeded-randomness".to_owned()];
        KernelMetadata::new(version.into(), "linux-source-6.12 6.12.117-1".into(), edits, Duration::from_millis(99_900))
    }

    const NO_DIRECTORY: &str = "/no/such/directory";

    fn write_kernel(place: &Path, metadata: &KernelMetadata) {
        let directory = place.join(metadata.directory_name());
        fs::create_dir_all(&directory).expect("writable");
        fs::write(directory.join(METADATA_FILE), serde_json::to_string(metadata).expect("plain data"))
            .expect("writable");
        fs::write(directory.join(KERNEL_FILE), "x").expect("writable");
    }

    #[test]
    fn a_stored_kernel_is_found_again() {
        let cache = TestCache::new("store");
        let mut listener = |_: &BuildEvent| {};
        let mut workshop = cache.open(&mut listener).expect("free");
        let program = std::env::current_exe().expect("this test");
        let stored = store(&mut workshop, &program, &metadata("6.12.117")).expect("writable");
        assert!(stored.current && stored.path.starts_with(&cache.0), "{stored:?}");
        assert!(stored.size > ByteCount::ZERO && stored.size.get() < program.metadata().expect("there").len());
        // The same once more replaces it.
        store(&mut workshop, &program, &metadata("6.12.117")).expect("writable");
        store(&mut workshop, &program, &metadata("6.12.9")).expect("writable");
        drop(workshop);
        let status = status_of(cache.0.clone(), Path::new(NO_DIRECTORY)).expect("readable");
        let versions: Vec<_> = status.kernels.iter().map(|kernel| kernel.metadata.version.as_str()).collect();
        assert_eq!(versions, ["6.12.117", "6.12.9"], "by number, not by letters");
        assert_eq!(status.kernels[0], stored);
    }

    #[test]
    fn another_recipe_comes_last_and_is_not_current() {
        let cache = TestCache::new("recipe");
        for (version, recipe) in [("6.18.1", "0123456789abcdef".to_owned()), ("6.1.190", recipe::hash())] {
            let metadata = KernelMetadata { recipe, ..metadata(version) };
            write_kernel(&cache.0, &metadata);
        }
        fs::create_dir_all(cache.0.join("6.2-broken")).expect("writable");
        let status = status_of(cache.0.clone(), Path::new(NO_DIRECTORY)).expect("readable");
        let found: Vec<_> =
            status.kernels.iter().map(|kernel| (kernel.metadata.version.as_str(), kernel.current)).collect();
        assert_eq!(found, [("6.1.190", true), ("6.18.1", false)]);
        assert_eq!(status.unreadable.len(), 1);
        assert!(status.unreadable[0].1.contains("kernel.json"), "{:?}", status.unreadable);
    }

    #[test]
    fn no_cache_is_an_empty_one() {
        let status = status_of(NO_DIRECTORY.into(), Path::new(NO_DIRECTORY)).expect("no error");
        assert!(status.kernels.is_empty());
    }

    #[test]
    fn kernels_of_packages_come_after_built_ones_of_the_same_version() {
        let (cache, system) = (TestCache::new("user"), TestCache::new("system"));
        let kernels = [(&cache, "6.12.117"), (&system, "6.12.117"), (&system, "6.12.200"), (&system, "6.1.190")];
        for (place, version) in kernels {
            write_kernel(&place.0, &metadata(version));
        }
        let status = status_of(cache.0.clone(), &system.0).expect("readable");
        let found: Vec<_> = status
            .kernels
            .iter()
            .map(|kernel| (&*kernel.metadata.version, kernel.path.starts_with(&system.0)))
            .collect();
        assert_eq!(found, [("6.12.200", true), ("6.12.117", false), ("6.12.117", true), ("6.1.190", true)]);
        assert_eq!(status.directory, cache.0, "new ones go there");
    }
}
