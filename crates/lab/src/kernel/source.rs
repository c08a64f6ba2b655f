//! Sources of a kernel.

use std::fs;
use std::path::{Path, PathBuf};

use super::apt;
use super::dnf;
use super::error::KernelError;
use super::version::SeriesVersion;
use super::workspace::{BuildTask, BuildWorkspace};

/// A kernel's sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KernelSource {
    pub(super) path: PathBuf,
    pub(super) form: SourceForm,
    /// Description for people: the package and its version, or the file.
    pub(super) description: String,
}

/// Form of the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SourceForm {
    /// An archive that `tar` can read.
    Archive,
    /// Unpacked.
    Directory,
}

/// Sources given by the user.
pub(super) fn user_source(path: &Path) -> Result<KernelSource, KernelError> {
    let metadata = fs::metadata(path).map_err(|cause| KernelError::file("opening", path, cause))?;
    let form = if metadata.is_dir() { SourceForm::Directory } else { SourceForm::Archive };
    let path = fs::canonicalize(path).map_err(|cause| KernelError::file("opening", path, cause))?;
    Ok(KernelSource { description: path.display().to_string(), path, form })
}

/// Package manager that has the kernel's sources as a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PackageManager {
    /// Debian's and that of the distributions made from it.
    Apt,
    /// Fedora's and that of RHEL and its rebuilds.
    Dnf,
}

impl PackageManager {
    /// Detects the host's own: the other one may be installed, too, but has no sources configured.
    pub(super) fn of_this_host() -> Result<Self, KernelError> {
        Self::configured_in(Path::new("/etc"))
    }

    fn configured_in(directory: &Path) -> Result<Self, KernelError> {
        let managers = [("apt", Self::Apt), ("dnf", Self::Dnf)];
        let found = managers.into_iter().find(|(name, _)| directory.join(name).is_dir());
        found.map(|(_, manager)| manager).ok_or(KernelError::NoPackageManager)
    }
}

/// The sources from the distribution.
pub(super) fn packaged(
    workshop: &mut BuildWorkspace<'_>,
    version: Option<SeriesVersion>,
) -> Result<KernelSource, KernelError> {
    match PackageManager::of_this_host()? {
        PackageManager::Apt => from_apt(workshop, version),
        PackageManager::Dnf => dnf::download(workshop, version),
    }
}

fn from_apt(workshop: &mut BuildWorkspace<'_>, version: Option<SeriesVersion>) -> Result<KernelSource, KernelError> {
    let package = apt::download(workshop, version)?;
    let contents = workshop.subdirectory("package")?;
    let (file, to) = (package.file.to_string_lossy(), contents.to_string_lossy());
    let arguments = ["--extract", &*file, &*to];
    let task =
        BuildTask { what: None, program: "dpkg-deb", arguments: &arguments, directory: &contents, environment: &[] };
    workshop.run(task, &mut |_| None)?;
    // Only the archive in it is needed.
    let _ = fs::remove_file(&package.file);
    archive_in(&contents.join("usr/src"), package.description)
}

/// Archive `linux-….tar.…` in the directory of an unpacked package.
pub(super) fn archive_in(directory: &Path, description: String) -> Result<KernelSource, KernelError> {
    let is_archive = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        name.starts_with("linux-") && name.contains(".tar.")
    };
    let entries = fs::read_dir(directory).into_iter().flatten();
    match entries.filter_map(|entry| Some(entry.ok()?.path())).find(is_archive) {
        Some(path) => Ok(KernelSource { path, form: SourceForm::Archive, description }),
        None => Err(KernelError::NotAKernel {
            source_name: description,
            reason: "the package has no archive of the kernel's sources".to_owned(),
        }),
    }
}

/// Version of the kernel whose sources are in `tree`; an error when it cannot be a User-Mode Linux.
pub(super) fn version(tree: &Path, source_name: &str) -> Result<String, KernelError> {
    let refuse = |reason: &str| KernelError::NotAKernel { source_name: source_name.into(), reason: reason.into() };
    let text = fs::read_to_string(tree.join("Makefile")).unwrap_or_default();
    let version = version_in(&text).ok_or_else(|| refuse("it is not a kernel (no Makefile with a VERSION)"))?;
    if !tree.join("arch/um/Kconfig").is_file() {
        return Err(refuse("it has no User-Mode Linux (arch/um)"));
    }
    Ok(version)
}

fn version_in(makefile: &str) -> Option<String> {
    let value = |name: &str| {
        makefile.lines().take(20).find_map(|line| line.strip_prefix(name)?.trim().strip_prefix('=').map(str::trim))
    };
    let number = |name: &str| value(name).and_then(|text| text.parse::<u32>().ok());
    let (version, level) = (number("VERSION")?, number("PATCHLEVEL")?);
    let below = number("SUBLEVEL").map(|number| format!(".{number}")).unwrap_or_default();
    // It becomes part of a file name.
    let plain = |text: &&str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
    let extra = value("EXTRAVERSION").filter(plain).unwrap_or_default();
    Some(format!("{version}.{level}{below}{extra}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_makefiles() {
        let text = "# SPDX-License-Identifier: GPL-2.0\nVERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\nEXTRAVERSION =\n";
        assert_eq!(version_in(text).as_deref(), Some("6.12.117"));
        let candidate = text.replace("EXTRAVERSION =", "EXTRAVERSION = -rc3");
        assert_eq!(version_in(&candidate).as_deref(), Some("6.12.117-rc3"));
        assert_eq!(version_in(&text.replace("EXTRAVERSION =", "EXTRAVERSION = /../x")).as_deref(), Some("6.12.117"));
        assert_eq!(version_in("all:\n\techo VERSION = 6\n"), None);
        assert_eq!(version_in(""), None);
    }

    #[test]
    fn the_package_manager_is_the_configured_one() {
        let etc = std::env::temp_dir().join(format!("linerate-etc-{}", std::process::id()));
        fs::create_dir_all(&etc).expect("temporary directory");
        let error = PackageManager::configured_in(&etc).expect_err("neither").to_string();
        assert_eq!(error, "this system has neither apt-get nor dnf to download the kernel's sources");
        for (name, manager) in [("dnf", PackageManager::Dnf), ("apt", PackageManager::Apt)] {
            fs::create_dir_all(etc.join(name)).expect("writable");
            assert_eq!(PackageManager::configured_in(&etc).ok(), Some(manager));
        }
        fs::remove_dir_all(etc).expect("there");
    }

    #[test]
    fn a_tree_that_is_no_kernel() {
        let tree = std::env::temp_dir().join(format!("linerate-no-kernel-{}", std::process::id()));
        fs::create_dir_all(&tree).expect("temporary directory");
        let error = version(&tree, "x.tar.gz").expect_err("empty").to_string();
        assert_eq!(error, "x.tar.gz: it is not a kernel (no Makefile with a VERSION)");
        fs::write(tree.join("Makefile"), "VERSION = 6\nPATCHLEVEL = 12\n").expect("writable");
        let error = version(&tree, "x.tar.gz").expect_err("without arch/um").to_string();
        assert_eq!(error, "x.tar.gz: it has no User-Mode Linux (arch/um)");
        fs::remove_dir_all(tree).expect("there");
        assert!(user_source(Path::new("/no/such.tar.xz")).is_err());
    }
}
