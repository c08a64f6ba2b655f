//! Downloads the package with the kernel's sources, as any user and without changing the system.
//!
//! First the system's own lists are queried. When these lack the package, or are too old for the mirror to have it
//! still, this build makes lists of its own in its directory: with the mirror, the releases and the keys of the
//! system's configuration, then with Debian's other archives of the same mirror.

use core::time::Duration;
use std::fs;
use std::path::{Path, PathBuf};

use linerate_sys::command;
use linerate_sys::command_stream::OutputEvent;
use linerate_units::{ByteCount, Ratio};

use super::error::KernelError;
use super::version::SeriesVersion;
use super::workspace::{BuildTask, BuildWorkspace, TaskResult};
use super::{BuildEvent, BuildStep};

/// Packages in the order of preference: from 7.2 on, guests need half of the processor time for their system calls.
const SOURCE_PACKAGES: [&str; 3] = ["linux-source-7.2", "linux-source-6.12", "linux-source-6.1"];

/// Debian's release that has them, the first in its backports, for systems whose own lacks them.
const NEWER_RELEASE: &str = "trixie";

/// Debian's earlier release that the mirrors have, for older versions.
const EARLIER_RELEASE: &str = "bullseye";

/// Debian's keys, which sign all of its archives.
const DEBIAN_KEYS: [&str; 2] =
    ["/usr/share/keyrings/debian-archive-keyring.gpg", "/usr/share/keyrings/debian-archive-keyring.pgp"];

const TIMEOUT: Duration = Duration::from_secs(60);

/// A downloaded package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourcePackage {
    pub(super) file: PathBuf,
    /// Name and version.
    pub(super) description: String,
}

/// A source of the system's packages: a line of `apt-get indextargets`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ArchiveTarget {
    /// The archive's address, with a slash at its end.
    address: String,
    suite: String,
    component: String,
    /// Configuration file that names it.
    configured_in: PathBuf,
}

/// Package lists to query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PackageLists {
    /// The system's.
    System,
    /// Own ones of the system's archives, with the updates and backports of its release.
    Fresh,
    /// Those, and [`NEWER_RELEASE`] of the same mirror.
    Newer,
    /// Those of [`Self::Fresh`], and [`EARLIER_RELEASE`] of the same mirror.
    Earlier,
}

/// Downloads the package of this version, or the first of [`SOURCE_PACKAGES`].
pub(super) fn download(
    workshop: &mut BuildWorkspace<'_>,
    version: Option<SeriesVersion>,
) -> Result<SourcePackage, KernelError> {
    const PREFERRED: &[PackageLists] = &[PackageLists::System, PackageLists::Fresh, PackageLists::Newer];
    const ALL: &[PackageLists] =
        &[PackageLists::System, PackageLists::Fresh, PackageLists::Newer, PackageLists::Earlier];
    let (packages, all_lists) = match version {
        Some(version) => (vec![format!("linux-source-{version}")], ALL),
        None => (SOURCE_PACKAGES.map(str::to_owned).to_vec(), PREFERRED),
    };
    workshop.step(BuildStep::Searching);
    let mut apt = AptSession::new(workshop)?;
    let mut said = String::new();
    for package in &packages {
        for lists in all_lists.iter().copied() {
            match apt.try_download(workshop, package, lists)? {
                Ok(package) => return Ok(package),
                Err(reason) => {
                    workshop
                        .tell(&BuildEvent::Note(format!("{package} is not available from {}: {reason}", lists.name())));
                    said = reason;
                }
            }
        }
    }
    Err(KernelError::NoPackage { packages, said })
}

impl PackageLists {
    fn name(self) -> &'static str {
        match self {
            Self::System => "the system's package lists",
            Self::Fresh => "fresh lists of the system's archives",
            Self::Newer => "newer releases on the system's mirror",
            Self::Earlier => "an earlier release on the system's mirror",
        }
    }
}

/// The package manager with this build's own configuration.
struct AptSession {
    directory: PathBuf,
    downloads: PathBuf,
    targets: Vec<ArchiveTarget>,
    /// Own lists that were fetched last.
    fetched: Option<PackageLists>,
    /// Lists that could not be fetched, with the reason.
    unreachable: Vec<(PackageLists, String)>,
}

impl AptSession {
    fn new(workshop: &BuildWorkspace<'_>) -> Result<Self, KernelError> {
        let targets = system_targets()?;
        let (directory, downloads) = (workshop.subdirectory("apt")?, workshop.subdirectory("downloads")?);
        Ok(Self { directory, downloads, targets, fetched: None, unreachable: Vec::new() })
    }

    /// Downloads one package from these lists; the inner error is the reason why it is not available.
    fn try_download(
        &mut self,
        workshop: &mut BuildWorkspace<'_>,
        package: &str,
        lists: PackageLists,
    ) -> Result<Result<SourcePackage, String>, KernelError> {
        if lists != PackageLists::System
            && let Err(reason) = self.fetch_lists(workshop, lists)?
        {
            return Ok(Err(reason));
        }
        let configuration = self.configuration();
        let mut options = Vec::new();
        if lists != PackageLists::System {
            options.extend(["-c", configuration.as_str()]);
        }
        let question = [options.as_slice(), &["show", "--no-all-versions", package]].concat();
        let answer = command::run("apt-cache", &question, None, TIMEOUT).map_err(no_apt)?;
        let Some((description, size)) = parse_description(&answer.stdout_text()) else {
            return Ok(Err("it is not listed there".into()));
        };
        workshop.step(BuildStep::Downloading { package: description.clone(), size });
        let order = [options.as_slice(), &["-q", "-o", "Acquire::Retries=2", "download", package]].concat();
        let finished = self.run(workshop, &order, size)?;
        let file = fs::read_dir(&self.downloads)
            .ok()
            .and_then(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())).find(|path| is_package(path)));
        Ok(match file {
            Some(file) if finished.success => Ok(SourcePackage { file, description }),
            _ => Err(first_reason(&finished)),
        })
    }

    fn configuration(&self) -> String {
        self.directory.join("apt.conf").to_string_lossy().into_owned()
    }

    /// Makes lists of this build's own.
    fn fetch_lists(
        &mut self,
        workshop: &mut BuildWorkspace<'_>,
        lists: PackageLists,
    ) -> Result<Result<(), String>, KernelError> {
        if self.fetched == Some(lists) {
            return Ok(Ok(()));
        }
        if let Some((_, reason)) = self.unreachable.iter().find(|(other, _)| *other == lists) {
            return Ok(Err(reason.clone()));
        }
        let wanted = archives(&self.targets, lists);
        if wanted.is_empty() {
            return Ok(Err("the system has no usable archives".into()));
        }
        let keys = |file: &Path| keys_in(&fs::read_to_string(file).unwrap_or_default());
        let write = |name: &str, text: String| {
            let path = self.directory.join(name);
            fs::write(&path, text).map_err(|cause| KernelError::file("writing", &path, cause))
        };
        write("sources.list", sources_list(&wanted, keys))?;
        write("apt.conf", configuration_file(&self.directory))?;
        write("status", String::new())?;
        for name in ["state/lists/partial", "cache/archives/partial", "none"] {
            let path = self.directory.join(name);
            fs::create_dir_all(&path).map_err(|cause| KernelError::file("making", &path, cause))?;
        }
        self.fetched = None;
        let configuration = self.configuration();
        let finished = self.run(workshop, &["-c", &configuration, "-q", "update"], None)?;
        // An archive that does not have one of the releases is an error for `update`, and one that cannot be reached is
        // none; so what counts is what has come.
        if !fs::read_dir(self.directory.join("state/lists")).is_ok_and(has_lists) {
            let reason = first_reason(&finished);
            self.unreachable.push((lists, reason.clone()));
            return Ok(Err(reason));
        }
        self.fetched = Some(lists);
        Ok(Ok(()))
    }

    /// Runs `apt-get` where its downloads go, with progress by what has arrived there.
    fn run(
        &self,
        workshop: &mut BuildWorkspace<'_>,
        arguments: &[&str],
        size: Option<ByteCount>,
    ) -> Result<TaskResult, KernelError> {
        let task = BuildTask {
            what: None,
            program: "apt-get",
            arguments,
            directory: &self.downloads,
            environment: &[("DEBIAN_FRONTEND", "noninteractive")],
        };
        let finished = workshop.try_run(task, &mut |said| match said {
            OutputEvent::Nothing => size.map(|size| progress(content_size(&self.downloads), size)),
            OutputEvent::Line(_) => None,
        })?;
        if finished.disk_is_full() { Err(workshop.failure(task, &finished)) } else { Ok(finished) }
    }
}

fn no_apt(error: linerate_sys::Error) -> KernelError {
    if error.kind() == std::io::ErrorKind::NotFound { KernelError::NoPackageManager } else { error.into() }
}

/// First reason of a failure: the further lines repeat it for further archives.
fn first_reason(finished: &TaskResult) -> String {
    let reasons = finished.reasons();
    let first = reasons.first().map_or("no output", String::as_str);
    first.trim_start_matches("W: ").trim_start_matches("E: ").trim_end_matches(':').to_owned()
}

fn is_package(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "deb")
}

fn has_lists(entries: fs::ReadDir) -> bool {
    entries.filter_map(Result::ok).any(|entry| entry.file_name().to_string_lossy().contains("Packages"))
}

/// Bytes in a directory's files.
fn content_size(directory: &Path) -> ByteCount {
    let sizes =
        fs::read_dir(directory).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len()));
    ByteCount::new(sizes.sum())
}

#[expect(clippy::cast_precision_loss, reason = "a share for people")]
fn progress(arrived: ByteCount, size: ByteCount) -> (Option<Ratio>, String) {
    let text = format!("{} of {} MB", arrived.get() / 1_000_000, size.get() / 1_000_000);
    (Ratio::of(arrived.get() as f64, size.get() as f64), text)
}

/// Archives of the system's configuration (apt-get(8), `indextargets`).
fn system_targets() -> Result<Vec<ArchiveTarget>, KernelError> {
    let format = "--format=$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(SOURCESENTRY)";
    let arguments = ["indextargets", "--no-release-info", format, "Created-By: Packages"];
    let output = command::run("apt-get", &arguments, None, TIMEOUT).map_err(no_apt)?;
    Ok(parse_targets(&output.stdout_text()))
}

fn parse_targets(text: &str) -> Vec<ArchiveTarget> {
    let mut targets: Vec<_> = text.lines().filter_map(parse_target).collect();
    targets.sort();
    targets.dedup();
    targets
}

fn parse_target(line: &str) -> Option<ArchiveTarget> {
    let mut fields = line.split('|');
    let (address, suite, component) = (fields.next()?, fields.next()?, fields.next()?);
    // A number of the line in the file follows its name.
    let configured_in = fields.next()?.rsplit_once(':')?.0.into();
    let plain =
        |text: &str| !text.is_empty() && !text.contains(|found: char| found.is_whitespace() || "[]$".contains(found));
    let usable = address.starts_with("http") && plain(address) && plain(suite) && plain(component);
    let address = format!("{}/", address.trim_end_matches('/'));
    usable.then(|| ArchiveTarget { address, suite: suite.into(), component: component.into(), configured_in })
}

/// Name with version, and size, of the first package that `apt-cache show` describes.
fn parse_description(text: &str) -> Option<(String, Option<ByteCount>)> {
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let size = value("Size:").and_then(|size| size.parse().ok()).map(ByteCount::new);
    Some((format!("{} {}", value("Package:")?, value("Version:")?), size))
}

/// Archives to query: the system's own, and further ones of Debian on the same mirrors.
fn archives(targets: &[ArchiveTarget], lists: PackageLists) -> Vec<ArchiveTarget> {
    let mut wanted = targets.to_vec();
    let is_release = |target: &&ArchiveTarget| is_debian(&target.address) && !target.suite.contains('-');
    let releases: Vec<_> = targets.iter().filter(is_release).cloned().collect();
    for main in &releases {
        let named = |address: &str, suite: String| ArchiveTarget {
            address: address.into(),
            suite,
            component: "main".into(),
            configured_in: main.configured_in.clone(),
        };
        let security = security_address(targets, &main.address);
        let mut add = |release: &str| {
            wanted.push(named(&main.address, format!("{release}-updates")));
            wanted.push(named(&security, format!("{release}-security")));
        };
        add(&main.suite);
        let other = match lists {
            PackageLists::System | PackageLists::Fresh => None,
            PackageLists::Newer => Some(NEWER_RELEASE),
            PackageLists::Earlier => Some(EARLIER_RELEASE),
        };
        if let Some(release) = other {
            add(release);
            wanted.push(named(&main.address, release.into()));
            wanted.push(named(&main.address, format!("{release}-backports")));
        }
        wanted.push(named(&main.address, format!("{}-backports", main.suite)));
    }
    wanted.sort();
    wanted.dedup_by(|a, b| (&a.address, &a.suite, &a.component) == (&b.address, &b.suite, &b.component));
    wanted
}

fn is_debian(address: &str) -> bool {
    address.ends_with("/debian/")
}

/// Archive of security updates: the one that the system uses, else the one next to the mirror's.
fn security_address(targets: &[ArchiveTarget], mirror: &str) -> String {
    let known = targets.iter().find(|target| target.suite.ends_with("-security"));
    known.map_or_else(
        || format!("{}debian-security/", mirror.trim_end_matches("debian/")),
        |target| target.address.clone(),
    )
}

/// The archives as a file for the package manager, each with the keys that the system has for it.
fn sources_list(archives: &[ArchiveTarget], keys: impl Fn(&Path) -> Vec<String>) -> String {
    let line = |archive: &ArchiveTarget| {
        let mut keys = keys(&archive.configured_in);
        // Without one here the keys that the system trusts for everything are used.
        if !keys.is_empty() && archive.address.contains("debian") {
            keys.extend(DEBIAN_KEYS.iter().filter(|key| Path::new(key).exists()).map(|key| (*key).to_owned()));
            keys.sort();
            keys.dedup();
        }
        let signed = if keys.is_empty() { String::new() } else { format!("[signed-by={}] ", keys.join(",")) };
        format!("deb {signed}{} {} {}\n", archive.address, archive.suite, archive.component)
    };
    archives.iter().map(line).collect()
}

/// Key files that a file of the configuration names, in either of its two forms.
fn keys_in(configuration: &str) -> Vec<String> {
    let lines = configuration.lines().filter(|line| !line.trim_start().starts_with('#'));
    let values = lines.filter_map(|line| {
        let lower = line.to_ascii_lowercase();
        let start = ["signed-by:", "signed-by="].iter().find_map(|word| Some(lower.find(word)? + word.len()))?;
        line.get(start..)?.trim_start().split([' ', ']', '\t']).next()
    });
    let files = values.flat_map(|value| value.split(',')).filter(|file| file.starts_with('/'));
    let mut keys: Vec<_> = files.map(str::to_owned).collect();
    keys.sort();
    keys.dedup();
    keys
}

/// The package manager's configuration for the own lists: everything that it writes is in `directory`.
fn configuration_file(directory: &Path) -> String {
    let place = |name: &str| format!("\"{}\"", directory.join(name).display());
    [
        format!("Dir::State {};\n", place("state")),
        format!("Dir::State::lists {};\n", place("state/lists")),
        format!("Dir::State::status {};\n", place("status")),
        format!("Dir::Cache {};\n", place("cache")),
        format!("Dir::Etc::sourcelist {};\n", place("sources.list")),
        format!("Dir::Etc::sourceparts {};\n", place("none")),
        format!("Dir::Etc::preferencesparts {};\n", place("none")),
        // Its usual user for downloads may not write here.
        "APT::Sandbox::User \"root\";\n".into(),
        "Acquire::Languages \"none\";\nAcquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n".into(),
        "Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled \"false\";\n".into(),
        // The hooks after the system's own updates do not apply to these lists.
        "#clear APT::Update::Pre-Invoke;\n#clear APT::Update::Post-Invoke;\n#clear APT::Update::Post-Invoke-Success;\n"
            .into(),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGETS: &str = "http://deb.debian.org/debian/|bookworm|main|/etc/apt/sources.list.d/debian.sources:1\n\
                           http://deb.debian.org/debian/|bookworm|main|/etc/apt/sources.list.d/debian.sources:1\n\
                           http://deb.debian.org/debian-security/|bookworm-security|main|/etc/apt/sources.list.d/debian.sources:2\n\
                           https://deb.nodesource.com/node_20.x|nodistro|main|/etc/apt/sources.list.d/node.list:1\n\
                           cdrom:[Debian]/|bookworm|main|/etc/apt/sources.list:1\n\
                           broken line\n";

    fn suites(lists: PackageLists) -> Vec<String> {
        let short = |target: ArchiveTarget| {
            format!("{} {}", target.address.trim_start_matches("http://deb.debian.org"), target.suite)
        };
        archives(&parse_targets(TARGETS), lists).into_iter().map(short).collect()
    }

    /// The package manager leaves a field that it does not know as it is, which makes each archive unusable.
    #[test]
    fn the_package_manager_knows_every_field() {
        match system_targets() {
            Ok(targets) => assert!(targets.iter().any(|target| target.component == "main"), "{targets:?}"),
            Err(error) => assert!(matches!(error, KernelError::NoPackageManager), "{error}"),
        }
    }

    #[test]
    fn sources_of_the_systems_packages() {
        let targets = parse_targets(TARGETS);
        assert_eq!(targets.len(), 3, "{targets:?}");
        assert_eq!(targets[1].configured_in, Path::new("/etc/apt/sources.list.d/debian.sources"));
        assert_eq!(targets[2].address, "https://deb.nodesource.com/node_20.x/");
    }

    #[test]
    fn other_archives_of_the_same_mirror() {
        let fresh = [
            "/debian-security/ bookworm-security",
            "/debian/ bookworm",
            "/debian/ bookworm-backports",
            "/debian/ bookworm-updates",
            "https://deb.nodesource.com/node_20.x/ nodistro",
        ];
        assert_eq!(suites(PackageLists::Fresh), fresh);
        let newer = suites(PackageLists::Newer);
        for more in [
            "/debian/ trixie",
            "/debian/ trixie-updates",
            "/debian/ trixie-backports",
            "/debian-security/ trixie-security",
        ] {
            assert!(newer.iter().any(|suite| suite == more), "{more} in {newer:?}");
        }
        assert_eq!(newer.len(), fresh.len() + 4);
    }

    #[test]
    fn security_updates_next_to_a_mirror_without_an_entry_for_them() {
        let targets = parse_targets("http://mirror.example.org/pub/debian|trixie|main|/etc/apt/sources.list:3");
        let found = archives(&targets, PackageLists::Fresh);
        let security = found.iter().find(|target| target.suite == "trixie-security").expect("is asked");
        assert_eq!(security.address, "http://mirror.example.org/pub/debian-security/");
    }

    #[test]
    fn keys_of_both_forms_of_configuration() {
        let new_form = "Types: deb\nURIs: http://x/debian\nSigned-By: /usr/share/keyrings/a.gpg\n#Signed-By: /b.gpg\n";
        assert_eq!(keys_in(new_form), ["/usr/share/keyrings/a.gpg"]);
        assert_eq!(keys_in("deb [arch=amd64 signed-by=/k/a.gpg,/k/b.asc] http://x y main"), ["/k/a.gpg", "/k/b.asc"]);
        assert_eq!(keys_in("Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n"), Vec::<String>::new());
    }

    #[test]
    fn a_line_for_each_archive() {
        let targets = parse_targets("https://deb.nodesource.com/node_20.x|nodistro|main|/etc/x.list:1");
        let with_keys = sources_list(&targets, |_| vec!["/k/a.gpg".into()]);
        assert_eq!(with_keys, "deb [signed-by=/k/a.gpg] https://deb.nodesource.com/node_20.x/ nodistro main\n");
        let without = sources_list(&targets, |_| Vec::new());
        assert_eq!(without, "deb https://deb.nodesource.com/node_20.x/ nodistro main\n");
    }

    #[test]
    fn description_of_a_package() {
        let text = "Package: linux-source-6.12\nSource: linux-6.12\nVersion: 6.12.117-1~deb12u1\n\
                    Installed-Size: 149880\nSize: 153476148\n";
        let (name, size) = parse_description(text).expect("complete");
        assert_eq!(name, "linux-source-6.12 6.12.117-1~deb12u1");
        assert_eq!(size, Some(ByteCount::new(153_476_148)));
        assert_eq!(parse_description("E: No packages found\n"), None);
        assert_eq!(progress(ByteCount::new(76_738_074), ByteCount::new(153_476_148)).1, "76 of 153 MB");
    }

    #[test]
    fn nothing_is_written_outside_of_its_directory() {
        let text = configuration_file(Path::new("/c"));
        for line in text.lines().filter(|line| line.starts_with("Dir::")) {
            assert!(line.contains(" \"/c/"), "{line}");
        }
    }
}
