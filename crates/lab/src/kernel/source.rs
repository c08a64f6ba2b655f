//! Sources of a kernel.

use std::fs;
use std::path::{Path, PathBuf};

use super::apt;
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

/// The sources from the distribution.
pub(super) fn packaged(
    workshop: &mut BuildWorkspace<'_>,
    version: Option<SeriesVersion>,
) -> Result<KernelSource, KernelError> {
    let package = apt::download(workshop, version)?;
    let contents = workshop.subdirectory("package")?;
    let (file, to) = (package.file.to_string_lossy(), contents.to_string_lossy());
    let arguments = ["--extract", &*file, &*to];
    let task =
        BuildTask { what: None, program: "dpkg-deb", arguments: &arguments, directory: &contents, environment: &[] };
    workshop.run(task, &mut |_| None)?;
    // Only the archive in it is needed.
    let _ = fs::remove_file(&package.file);
    let not_there =
        |reason: &str| KernelError::NotAKernel { source_name: package.description.clone(), reason: reason.to_owned() };
    let directory = contents.join("usr/src");
    let entries = fs::read_dir(&directory).map_err(|_| not_there("the package has no usr/src"))?;
    let path = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(".tar.")))
        .ok_or_else(|| not_there("the package has no archive of sources in usr/src"))?;
    Ok(KernelSource { path, form: SourceForm::Archive, description: package.description })
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
