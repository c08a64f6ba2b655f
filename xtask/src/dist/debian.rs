//! Packages of Debian, by debhelper from packaging/debian.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::platform::Platform;
use super::release::Release;
use super::{archive, stage, tools};
use crate::workspace;

/// Package of packaging/debian/control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BinaryPackage {
    Linerate,
    LabKernel,
}

impl BinaryPackage {
    fn name(self) -> &'static str {
        match self {
            Self::Linerate => "linerate",
            Self::LabKernel => "linerate-lab-kernel",
        }
    }
}

/// Packages `tree`, which is installed at `/usr`, for `platform`; `work` is a directory for the build. Returns the
/// file's name in `out`.
pub(super) fn package(
    package: BinaryPackage,
    (platform, tree): (Platform, &Path),
    release: &Release,
    work: &Path,
    out: &Path,
) -> Result<String> {
    let source = work.join("debian");
    archive::clear(work)?;
    copy_directory(&workspace::root().join("packaging/debian"), &source)?;
    copy_directory(tree, &work.join("stage"))?;
    for name in stage::UNITS {
        let unit = workspace::root().join("packaging").join(name);
        // debhelper wants the package's name in front of units that do not have it.
        let of_debhelper = if name == "linerate.service" { name.to_owned() } else { format!("linerate.{name}") };
        fs::copy(unit, source.join(of_debhelper)).context("cannot copy the unit")?;
    }
    let notice = super::remove_notice()?;
    super::fill_in(&source.join("linerate.prerm"), &[("REMOVE_NOTICE", &notice)])?;
    stage::write_text(&source.join("changelog"), &changelog(release)?)?;
    let out = fs::canonicalize(out).with_context(|| format!("cannot find {}", out.display()))?;
    let mut rules = Command::new("debian/rules");
    rules
        .arg("binary")
        .current_dir(work)
        .env("PACKAGE", package.name())
        .env("DESTINATION", out)
        .env("DEB_HOST_ARCH", platform.debian())
        .env("LEVEL", release.compression.xz.to_string())
        .env("SOURCE_DATE_EPOCH", release.epoch.to_string())
        .env("DH_QUIET", "1")
        .env("MAKEFLAGS", "--silent --no-print-directory")
        // Tests may run where these name a directory of the machine.
        .env_remove("DH_OPTIONS");
    tools::run(&mut rules).context("debian/rules failed: apt-get install debhelper dpkg-dev make, if it is missing")?;
    Ok(format!("{}_{}_{}.deb", package.name(), release.package_version(), platform.debian()))
}

/// Changelog of the packages; users' changes are in CHANGELOG.md, which is installed next to it.
fn changelog(release: &Release) -> Result<String> {
    Ok(format!(
        "linerate ({}) unstable; urgency=medium\n\n  * Release {}: changes are in changelog.gz.\n\n -- {}  {}\n",
        release.package_version(),
        release.version,
        super::MAINTAINER,
        release.date("--rfc-email")?
    ))
}

fn copy_directory(from: &Path, to: &Path) -> Result<()> {
    let (from, to): (PathBuf, &Path) = (from.join("."), to);
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    tools::run(Command::new("cp").args(["--recursive", "--preserve=mode"]).arg(from).arg(to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::release::Compression;

    #[test]
    fn the_changelog_has_the_form_of_debian() {
        let release = Release {
            version: "1.2.3".to_owned(),
            revision: 4,
            compression: Compression::RELEASE,
            epoch: 1_700_000_000,
        };
        let text = changelog(&release).expect("a date");
        assert!(text.starts_with("linerate (1.2.3-4) unstable; urgency=medium\n\n  * "), "{text}");
        let end = format!("\n\n -- {}  Tue, 14 Nov 2023 22:13:20 +0000\n", super::super::MAINTAINER);
        assert!(text.ends_with(&end), "{text}");
    }
}
