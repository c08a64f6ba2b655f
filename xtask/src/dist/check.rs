//! Checks of finished packages: linters, and the scripts of packaging/check, which install and use them in systems that
//! they make and remove.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::debian::BinaryPackage;
use super::options::DistOptions;
use super::platform::Platform;
use super::release::Release;
use super::{BuildDirectories, archive, debian, stage, tools};
use crate::workspace;

/// Check of a set of packages.
struct PackageCheck {
    name: &'static str,
    run: fn(&CheckedPackages) -> Result<()>,
}

/// Checks in the order of their duration.
const CHECKS: [PackageCheck; 9] = [
    PackageCheck { name: "digests", run: digests },
    PackageCheck { name: "flake and formula", run: recipes },
    PackageCheck { name: "systemd-analyze", run: unit },
    PackageCheck { name: "rpmlint", run: rpmlint },
    PackageCheck { name: "lintian", run: lintian },
    PackageCheck { name: "no directory of this machine", run: no_local_directory },
    PackageCheck { name: "the lab", run: lab },
    PackageCheck { name: "Debian: install, upgrade, purge", run: debian_system },
    PackageCheck { name: "other systems", run: systems },
];

/// Packages to check.
struct CheckedPackages<'a> {
    out: &'a Path,
    /// Directory with the trees of their files.
    work: &'a Path,
    options: &'a DistOptions,
}

impl CheckedPackages<'_> {
    /// Files with this ending.
    fn files(&self, extension: &str) -> Result<Vec<PathBuf>> {
        let names = archive::file_names(self.out)?.into_iter().map(PathBuf::from);
        let is_one = |name: &PathBuf| name.extension().is_some_and(|found| found == extension);
        Ok(names.filter(is_one).map(|name| self.out.join(name)).collect())
    }

    /// Files that were packaged for the platform.
    fn tree(&self, platform: Platform) -> PathBuf {
        super::tree(self.work, platform)
    }

    /// True when the packages have static programs, not one that was given.
    fn is_static(&self) -> bool {
        self.options.program.is_none()
    }
}

/// Runs every check; prints one line each, and returns true when none failed.
pub(super) fn run(directories: &BuildDirectories, options: &DistOptions) -> bool {
    let packages = CheckedPackages { out: &directories.out, work: &directories.work, options };
    let mut failed = 0;
    for check in CHECKS {
        match (check.run)(&packages) {
            Ok(()) => println!("dist ok     {}", check.name),
            Err(error) => {
                println!("dist FAILED {}: {error:#}", check.name);
                failed += 1;
            }
        }
    }
    println!("dist: {} checks, {failed} failed", CHECKS.len());
    failed == 0
}

fn digests(packages: &CheckedPackages<'_>) -> Result<()> {
    tools::run(
        Command::new("sha256sum").args(["--check", "--strict", "--quiet", "SHA256SUMS"]).current_dir(packages.out),
    )
}

/// The Nix flake parses and has the version of the manifest; the formula has no word left to fill in.
fn recipes(packages: &CheckedPackages<'_>) -> Result<()> {
    let flake = workspace::root().join("flake.nix");
    tools::run(
        Command::new("nix-instantiate").args(["--parse", "--quiet"]).arg(flake).stdout(std::process::Stdio::null()),
    )?;
    for formula in packages.files("rb")? {
        let text = fs::read_to_string(&formula).context("cannot read the formula")?;
        ensure!(!text.contains("\"@") && !text.contains("@/"), "the formula has words to fill in");
    }
    Ok(())
}

fn unit(packages: &CheckedPackages<'_>) -> Result<()> {
    let root = std::env::temp_dir().join(format!("linerate-unit-{}", std::process::id()));
    archive::clear(&root)?;
    let checked = packages.files("deb").and_then(|files| {
        let of_this_machine = format!("_{}.deb", Platform::of_this_machine()?.debian());
        let is_it = |file: &&PathBuf| file.to_string_lossy().ends_with(&of_this_machine);
        let file = files.iter().find(is_it).context("no package of this machine")?;
        tools::run(Command::new("dpkg-deb").arg("--extract").arg(file).arg(&root))?;
        let program = root.join("usr/bin/linerate");
        let mut local = Vec::new();
        for name in stage::UNITS {
            let unit = ["usr/lib", "lib"].map(|lib| root.join(lib).join("systemd/system").join(name));
            let unit = unit.iter().find(|unit| unit.exists()).with_context(|| format!("the package has no {name}"))?;
            let text = fs::read_to_string(unit).context("cannot read the unit")?;
            // systemd checks that the program exists: here it is in another directory.
            let text = text.replace("/usr/bin/linerate", &program.display().to_string());
            local.push(root.join(name));
            fs::write(root.join(name), text).context("cannot write a unit")?;
        }
        tools::run(Command::new("systemd-analyze").args(["verify", "--man=no"]).args(&local))?;
        tools::run(
            Command::new("systemd-analyze")
                .args(["security", "--offline=true", "--threshold=20", "--no-pager"])
                .arg(root.join("linerate.service"))
                .stdout(std::process::Stdio::null()),
        )
    });
    fs::remove_dir_all(&root).with_context(|| format!("cannot remove {}", root.display()))?;
    checked
}

fn rpmlint(packages: &CheckedPackages<'_>) -> Result<()> {
    let settings = workspace::root().join("packaging/rpm/rpmlint.toml");
    tools::run(Command::new("rpmlint").arg("--strict").arg("--config").arg(settings).args(packages.files("rpm")?))
}

fn lintian(packages: &CheckedPackages<'_>) -> Result<()> {
    let mut lintian = Command::new("lintian");
    lintian.args(["--allow-root", "--fail-on=error,warning", "--tag-display-limit=0"]);
    if !packages.is_static() {
        // The packages have no dependencies, as only static programs are released.
        lintian.args(["--suppress-tags", "undeclared-elf-prerequisites,unused-override"]);
    }
    tools::run(lintian.args(packages.files("deb")?))
}

/// Static programs name neither the directory of cargo nor that of the sources.
fn no_local_directory(packages: &CheckedPackages<'_>) -> Result<()> {
    if !packages.is_static() {
        return Ok(());
    }
    let home = std::env::var("HOME").context("HOME is not set")?;
    let local = [home, workspace::root().display().to_string()];
    for platform in &packages.options.platforms {
        let file = packages.tree(*platform).join("bin/linerate");
        let program = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        for directory in &local {
            let needle = format!("{directory}/");
            let is_named = program.windows(needle.len()).any(|window| window == needle.as_bytes());
            ensure!(!is_named, "the program for {} names {directory}", platform.processor());
        }
    }
    Ok(())
}

/// The static program runs the lab: functions of musl that only answer ENOSYS are seen nowhere else.
fn lab(packages: &CheckedPackages<'_>) -> Result<()> {
    if !packages.is_static() {
        return Ok(());
    }
    let program = packages.tree(Platform::of_this_machine()?).join("bin/linerate");
    let command = |arguments: &str| {
        tools::run(Command::new(&program).args(arguments.split(' ')).stdout(std::process::Stdio::null()))
    };
    command("lab kernel build")?;
    command("--no-history test lab:rate=10M,rtt=10ms -t 1")
}

/// The .deb in a fresh Debian, with one of the next revision to upgrade to.
fn debian_system(packages: &CheckedPackages<'_>) -> Result<()> {
    let work = packages.out.with_extension("next");
    let platform = Platform::of_this_machine()?;
    ensure!(packages.tree(platform).exists(), "nothing is packaged for this machine's processor");
    let next = DistOptions { revision: packages.options.revision + 1, ..packages.options.clone() };
    let release = Release::of(&workspace::root(), &next)?;
    let out = work.join("out");
    archive::clear(&out)?;
    debian::package(BinaryPackage::Linerate, (platform, &packages.tree(platform)), &release, &work.join("deb"), &out)?;
    let checked = script("debian.sh", &[packages.out, &out]);
    fs::remove_dir_all(&work).with_context(|| format!("cannot remove {}", work.display()))?;
    checked
}

fn systems(packages: &CheckedPackages<'_>) -> Result<()> {
    if packages.is_static() { script("systems.sh", &[packages.out]) } else { Ok(()) }
}

fn script(name: &str, arguments: &[&Path]) -> Result<()> {
    tools::run(Command::new(workspace::root().join("packaging/check").join(name)).args(arguments))
}
