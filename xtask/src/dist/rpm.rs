//! Packages of Fedora, RHEL and their relatives, by rpmbuild from packaging/rpm.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::platform::Platform;
use super::release::Release;
use super::{archive, tools};
use crate::workspace;

/// Packages `tree`, which is installed at `/usr`, for `platform`; `work` is a directory for the build. Returns the
/// file's name in `out`.
pub(super) fn package(
    (platform, tree): (Platform, &Path),
    release: &Release,
    homepage: &str,
    work: &Path,
    out: &Path,
) -> Result<String> {
    archive::clear(work)?;
    let work = fs::canonicalize(work).with_context(|| format!("cannot find {}", work.display()))?;
    let tree = fs::canonicalize(tree).with_context(|| format!("cannot find {}", tree.display()))?;
    let specification = work.join("linerate.spec");
    let template = workspace::root().join("packaging/rpm/linerate.spec");
    fs::copy(&template, &specification).with_context(|| format!("cannot copy {}", template.display()))?;
    let (date, notice) = (release.date("+%a %b %d %Y")?, super::remove_notice()?);
    super::fill_in(
        &specification,
        &[
            ("VERSION", &release.version),
            ("REVISION", &release.revision.to_string()),
            ("LEVEL", &release.compression.xz.to_string()),
            ("HOMEPAGE", homepage),
            ("MAINTAINER", super::MAINTAINER),
            ("DATE", &date),
            ("STAGE", &tree.display().to_string()),
            ("REMOVE_NOTICE", &notice),
        ],
    )?;
    let mut rpmbuild = Command::new("rpmbuild");
    rpmbuild.args(["-bb", "--quiet", "--target", platform.processor()]).arg(&specification);
    for (name, value) in [
        ("_topdir", work.display().to_string()),
        ("_rpmdir", work.display().to_string()),
        ("_rpmfilename", "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm".to_owned()),
        ("_buildhost", "localhost".to_owned()),
        ("_tmppath", work.display().to_string()),
        ("use_source_date_epoch_as_buildtime", "1".to_owned()),
        ("clamp_mtime_to_source_date_epoch", "1".to_owned()),
    ] {
        rpmbuild.arg("--define").arg(format!("{name} {value}"));
    }
    tools::run(rpmbuild.env("SOURCE_DATE_EPOCH", release.epoch.to_string()))?;
    let name = format!("linerate-{}.{}.rpm", release.package_version(), platform.processor());
    fs::rename(work.join(&name), out.join(&name)).with_context(|| format!("rpmbuild wrote no {name}"))?;
    Ok(name)
}
