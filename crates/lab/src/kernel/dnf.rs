//! Downloads the source package of the kernel with dnf, as any user and without changing the system.
//!
//! The package has the sources as one archive. Of its patches none is applied: they are for the drivers and
//! configurations of the distribution's own kernel.

use std::fs;
use std::path::{Path, PathBuf};

use linerate_sys::command_stream::OutputEvent;

use super::BuildStep;
use super::error::KernelError;
use super::source::{self, KernelSource};
use super::version::SeriesVersion;
use super::workspace::{BuildTask, BuildWorkspace};

/// Option for a source package: of dnf 4, and of dnf 5.
const SOURCE_OPTIONS: [&str; 2] = ["--source", "--srpm"];

/// Programs of the package managers; tests have others.
#[derive(Clone, Copy)]
struct PackagePrograms<'a> {
    dnf: &'a str,
    rpm: &'a str,
}

/// Downloads the newest source package of the kernel, or that of the version, and unpacks it.
pub(super) fn download(
    workshop: &mut BuildWorkspace<'_>,
    version: Option<SeriesVersion>,
) -> Result<KernelSource, KernelError> {
    download_by(workshop, PackagePrograms { dnf: "dnf", rpm: "rpm" }, version)
}

fn download_by(
    workshop: &mut BuildWorkspace<'_>,
    programs: PackagePrograms<'_>,
    version: Option<SeriesVersion>,
) -> Result<KernelSource, KernelError> {
    workshop.step(BuildStep::Searching);
    let wanted = version.map_or_else(|| "kernel".to_owned(), |version| format!("kernel-{version}.*"));
    let downloads = workshop.subdirectory("downloads")?;
    workshop.step(BuildStep::Downloading { package: wanted.clone(), size: None });
    let package = fetch(workshop, programs.dnf, &wanted, &downloads)?;
    let description = package.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or(wanted);
    let contents = workshop.subdirectory("package")?;
    // Installing a source package unpacks it below this directory, and does nothing else.
    let (file, top) = (package.to_string_lossy(), format!("_topdir {}", contents.display()));
    let arguments = ["--install", "--define", &*top, &*file];
    let task =
        BuildTask { what: None, program: programs.rpm, arguments: &arguments, directory: &contents, environment: &[] };
    workshop.run(task, &mut |_: OutputEvent<'_>| None)?;
    // Only the archive in it is needed.
    let _ = fs::remove_file(&package);
    source::archive_in(&contents.join("SOURCES"), description)
}

/// Downloads the package with the option that this dnf has.
fn fetch(workshop: &mut BuildWorkspace<'_>, dnf: &str, wanted: &str, downloads: &Path) -> Result<PathBuf, KernelError> {
    let directory = downloads.to_string_lossy();
    let mut said = String::new();
    for option in SOURCE_OPTIONS {
        let arguments = ["download", option, "--destdir", &*directory, wanted];
        let task =
            BuildTask { what: None, program: dnf, arguments: &arguments, directory: downloads, environment: &[] };
        let finished = workshop.try_run(task, &mut |_: OutputEvent<'_>| None)?;
        if finished.disk_is_full() {
            return Err(workshop.failure(task, &finished));
        }
        if let Some(package) = newest_package(downloads) {
            return Ok(package);
        }
        // The refusal of an option that this dnf does not have is no reason.
        let reasons = finished.reasons().join(" / ");
        if said.is_empty() || !reasons.contains(option) {
            said = reasons;
        }
    }
    Err(KernelError::NoPackage { packages: vec![format!("source package of {wanted}")], said })
}

/// The last of the source packages in a directory, by name.
fn newest_package(directory: &Path) -> Option<PathBuf> {
    let is_source = |path: &PathBuf| path.to_string_lossy().ends_with(".src.rpm");
    fs::read_dir(directory).ok()?.filter_map(|entry| Some(entry.ok()?.path())).filter(is_source).max()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::BuildEvent;
    use super::super::workspace::tests::TestCache;
    use super::*;

    /// Writes a shell script that takes the place of a program.
    fn write_program(cache: &TestCache, name: &str, script: &str) -> String {
        let path = cache.0.join(name);
        fs::create_dir_all(&cache.0).expect("writable");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("writable");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("writable");
        path.to_string_lossy().into_owned()
    }

    /// An rpm that unpacks the archive of a kernel to the directory that it is given.
    const RPM: &str = "top=${3#_topdir }; mkdir -p \"$top/SOURCES\"; cp \"$4\" \"$top/SOURCES/linux-6.12.5.tar.xz\"";

    fn downloaded(
        name: &str,
        dnf: &str,
        rpm: &str,
        version: Option<&str>,
    ) -> Result<(KernelSource, String), KernelError> {
        let cache = TestCache::new(name);
        let programs = (write_program(&cache, "dnf", dnf), write_program(&cache, "rpm", rpm));
        let mut listener = |_: &BuildEvent| {};
        let mut workshop = cache.open(&mut listener).expect("free");
        let programs = PackagePrograms { dnf: &programs.0, rpm: &programs.1 };
        let version = version.map(|text| text.parse().expect("a version"));
        let source = download_by(&mut workshop, programs, version)?;
        let text = fs::read_to_string(&source.path).expect("unpacked");
        Ok((source, text))
    }

    #[test]
    fn both_generations_of_dnf_and_a_version() {
        // Arguments: download OPTION --destdir DIRECTORY PACKAGE.
        let old = "[ $2 = --source ] && echo \"$5\" > \"$4/kernel-6.12.5-100.fc40.src.rpm\"";
        let (source, text) = downloaded("dnf4", old, RPM, None).expect("has it");
        assert_eq!((source.description.as_str(), text.as_str()), ("kernel-6.12.5-100.fc40.src", "kernel\n"));
        assert!(source.path.ends_with("SOURCES/linux-6.12.5.tar.xz"), "{source:?}");
        let new = "[ $2 = --srpm ] || { echo 'Unknown argument \"--source\"'; exit 2; }\n\
                   echo \"$5\" > \"$4/kernel-6.12.5-100.fc41.src.rpm\"";
        let (_, text) = downloaded("dnf5", new, RPM, Some("6.12")).expect("has it");
        assert_eq!(text, "kernel-6.12.*\n");
    }

    #[test]
    fn the_reason_why_there_is_none_is_the_package_managers() {
        let dnf = "[ $2 = --source ] || { echo 'error: unrecognized arguments: --srpm'; exit 2; }\n\
                   echo 'Error: No such command: download. It could be a DNF plugin command'; exit 1";
        let error = downloaded("no-dnf", dnf, RPM, None).expect_err("has none");
        let text = error.to_string();
        assert!(text.contains("source package of kernel") && text.contains("No such command: download"), "{text}");
        assert!(!text.contains("--srpm"), "{text}");
        assert!(error.advice().is_some_and(|advice| advice.contains("--source linux-6.12.tar.xz")));
    }

    #[test]
    fn a_package_without_sources_is_refused() {
        let dnf = "echo x > \"$4/kernel-1-1.src.rpm\"";
        let error = downloaded("no-sources", dnf, "exit 0", None).expect_err("is empty").to_string();
        assert_eq!(error, "kernel-1-1.src: the package has no archive of the kernel's sources");
        let error = downloaded("no-rpm", dnf, "echo 'error: not an rpm package'; exit 1", None).expect_err("fails");
        assert!(error.to_string().contains("not an rpm package"), "{error}");
    }
}
