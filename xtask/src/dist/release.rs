//! Version and date of what is packaged.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use toml::Table;

use super::options::DistOptions;
use crate::workspace::output_of;

/// Levels of compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Compression {
    pub(super) xz: u32,
    pub(super) gzip: u32,
}

impl Compression {
    pub(super) const RELEASE: Self = Self { xz: 6, gzip: 9 };
    /// Levels of packages that are only tried: compressing them takes longer than all checks.
    pub(super) const TRIAL: Self = Self { xz: 0, gzip: 1 };
}

/// Version and date of the packages; every other file that needs them gets them from here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Release {
    /// Version of the workspace.
    pub(super) version: String,
    /// Revision of the packages of this version.
    pub(super) revision: u32,
    pub(super) compression: Compression,
    /// Time of the last commit in seconds since 1970, or `SOURCE_DATE_EPOCH`.
    pub(super) epoch: u64,
}

impl Release {
    /// Reads the manifest and the last commit below `root`.
    pub(super) fn of(root: &Path, options: &DistOptions) -> Result<Self> {
        let manifest = std::fs::read_to_string(root.join("Cargo.toml")).context("cannot read Cargo.toml")?;
        let epoch = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(text) => text,
            // A container often runs as another user than the owner of the clone.
            Err(_) => output_of(
                Command::new("git").args(["-c", "safe.directory=*", "log", "-1", "--format=%ct"]).current_dir(root),
            )
            .context("no SOURCE_DATE_EPOCH and no commit: set SOURCE_DATE_EPOCH to the release's time")?,
        };
        let epoch = epoch.trim().parse().with_context(|| format!("'{}' is no SOURCE_DATE_EPOCH", epoch.trim()))?;
        let compression = if options.program.is_some() { Compression::TRIAL } else { Compression::RELEASE };
        Ok(Self { version: version_in(&manifest)?, revision: options.revision, compression, epoch })
    }

    /// Date in one of `date`'s formats, in UTC.
    pub(super) fn date(&self, format: &str) -> Result<String> {
        let mut date = Command::new("date");
        date.args(["--utc", &format!("--date=@{}", self.epoch), format]).env("LC_ALL", "C");
        output_of(&mut date).map(|text| text.trim().to_owned())
    }

    /// Version with revision, of .deb and .rpm.
    pub(super) fn package_version(&self) -> String {
        format!("{}-{}", self.version, self.revision)
    }
}

fn version_in(manifest: &str) -> Result<String> {
    let table: Table = manifest.parse().context("cannot parse Cargo.toml")?;
    let version = table.get("workspace").and_then(|value| value.get("package")?.get("version")?.as_str());
    version.map(str::to_owned).context("Cargo.toml has no workspace.package.version")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_workspace_s() {
        let manifest = "[workspace]\n[workspace.package]\nversion = \"1.2.3\"\n[workspace.dependencies]\na = \"9\"\n";
        assert_eq!(version_in(manifest).ok().as_deref(), Some("1.2.3"));
        assert!(version_in("[package]\nversion = \"1.2.3\"\n").is_err());
    }

    #[test]
    fn dates_are_those_of_changelogs() {
        let release = Release {
            version: "1.2.3".to_owned(),
            revision: 4,
            compression: Compression::RELEASE,
            epoch: 1_700_000_000,
        };
        assert_eq!(release.date("--rfc-email").ok().as_deref(), Some("Tue, 14 Nov 2023 22:13:20 +0000"));
        assert_eq!(release.date("+%a %b %d %Y").ok().as_deref(), Some("Tue Nov 14 2023"));
        assert_eq!(release.package_version(), "1.2.3-4");
    }
}
