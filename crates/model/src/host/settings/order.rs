//! Order in which settings files are read, and the line that takes effect.
//!
//! Two programs read them. systemd-sysctl does at boot: of files with the same name only the one in the highest
//! directory (`/etc`, `/run`, `/usr/local/lib`, `/usr/lib`), all of them sorted by name whatever their directory, and
//! of several lines for one setting the last; an exact name overrides a wildcard, in either order (sysctl.d(5)).
//! procps' `sysctl --system` does the same, and then reads `/etc/sysctl.conf` (sysctl(8)), which systemd-sysctl reads
//! only through a link from `sysctl.d`.

use super::syntax::SettingAssignment;
use super::{KernelSettings, SettingsFile};
use linerate_units::CompactSort;

/// Program whose order applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReadOrder {
    /// systemd-sysctl, at boot.
    Systemd,
    /// `sysctl --system` of procps: by hand, from installation scripts, and at boot without systemd.
    Procps,
}

/// Directories of drop-in files, the highest first.
pub const DIRECTORIES: [&str; 5] =
    ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d"];

/// File that procps reads last.
pub const SYSCTL_CONF: &str = "/etc/sysctl.conf";

/// Assignment with its file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SettingSource {
    /// File as found; `None` for the kernel command line.
    pub file: Option<String>,
    /// Target of the file's symbolic link, if it is one: the file to edit.
    pub leads_to: Option<String>,
    /// Assignment.
    pub assignment: SettingAssignment,
}

/// Owner of a settings file, which decides where a line is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileOwner {
    /// Administrator (`/etc`): the line is edited.
    Administrator,
    /// Package (`/usr`, `/lib`): the line is overridden in `/etc`.
    Package,
    /// Program that writes it anew after each boot (`/run`).
    Runtime,
    /// Boot loader: the kernel command line.
    CommandLine,
}

impl SettingSource {
    /// Owner of the file, with links resolved.
    #[must_use]
    pub fn owner(&self) -> FileOwner {
        match self.leads_to.as_deref().or(self.file.as_deref()) {
            None => FileOwner::CommandLine,
            Some(file) if file.starts_with("/run/") || file.starts_with("/var/run/") => FileOwner::Runtime,
            Some(file) if file.starts_with("/usr/") || file.starts_with("/lib/") => FileOwner::Package,
            Some(_) => FileOwner::Administrator,
        }
    }

    /// Location in the format of compilers, `/etc/sysctl.d/99-old.conf:12`.
    #[must_use]
    pub fn location(&self) -> String {
        match &self.file {
            Some(file) => format!("{file}:{}", self.assignment.line),
            None => format!("kernel command line, argument {}", self.assignment.line),
        }
    }

    /// Location to edit, with links resolved.
    #[must_use]
    pub fn edit_location(&self) -> String {
        match &self.leads_to {
            Some(file) => format!("{file}:{}", self.assignment.line),
            None => self.location(),
        }
    }

    /// Assigned value; `None` for a line that only excludes wildcards.
    #[must_use]
    pub fn value(&self) -> Option<&str> {
        self.assignment.value.as_deref()
    }
}

impl SettingsFile {
    /// File name without the directory.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// True for a file below `/run`, which is empty after a boot.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        self.path.starts_with("/run/")
    }

    /// Index of its directory in [`DIRECTORIES`].
    #[must_use]
    pub fn rank(&self) -> Option<usize> {
        let (directory, _) = self.path.rsplit_once('/')?;
        DIRECTORIES.iter().position(|known| *known == directory)
    }
}

impl KernelSettings {
    /// Files that are read, in order.
    #[must_use]
    pub fn files_read(&self, order: ReadOrder) -> Vec<&SettingsFile> {
        let mut files: Vec<&SettingsFile> = self.drop_ins().filter(|file| self.hidden_by(file).is_none()).collect();
        files.sort_compactly_by(|one, other| one.name().as_bytes().cmp(other.name().as_bytes()));
        if order == ReadOrder::Procps {
            files.extend(self.files.iter().find(|file| file.path == SYSCTL_CONF));
        }
        files
    }

    /// Line that determines a setting at the next boot: as [`Self::decides`] in the boot's order, without the files below
    /// `/run`, which do not survive until then.
    #[must_use]
    pub fn decides_at_boot(&self, key: &str) -> Option<SettingSource> {
        if !self.files.iter().any(SettingsFile::is_temporary) {
            return self.decides(key, self.order_at_boot());
        }
        let mut lasting = Self { command_line: self.command_line.clone(), ..Self::default() };
        lasting.files = self.files.iter().filter(|file| !file.is_temporary()).cloned().collect();
        lasting.decides(key, self.order_at_boot())
    }

    /// File of the same name in a higher directory, which replaces this one.
    #[must_use]
    pub fn hidden_by(&self, file: &SettingsFile) -> Option<&SettingsFile> {
        let rank = file.rank()?;
        let twins = self.drop_ins().filter(|other| other.name() == file.name());
        twins.filter(|other| other.rank() < Some(rank)).min_by_key(|other| other.rank())
    }

    fn drop_ins(&self) -> impl Iterator<Item = &SettingsFile> {
        // Files with other suffixes are not read: README, and backups of package managers.
        self.files.iter().filter(|file| file.rank().is_some() && file.name().strip_suffix(".conf").is_some())
    }

    /// All lines about a setting, by name or wildcard, in read order; the kernel command line first, as the kernel
    /// applies it before any process runs.
    #[must_use]
    pub fn sources(&self, key: &str, order: ReadOrder) -> Vec<SettingSource> {
        self.all_sources(order).into_iter().filter(|source| source.assignment.concerns(key)).collect()
    }

    /// All lines of the kernel command line and of the files that are read, in order.
    #[must_use]
    pub fn all_sources(&self, order: ReadOrder) -> Vec<SettingSource> {
        let early = self.command_line.known().into_iter().flatten();
        let mut sources: Vec<SettingSource> = early
            .map(|assignment| SettingSource { file: None, leads_to: None, assignment: assignment.clone() })
            .collect();
        for file in self.files_read(order) {
            sources.extend(file.sources());
        }
        sources
    }

    /// Line that determines a setting, when everything is read in this order; `None` where nothing sets it. The line
    /// `-key` excludes it from wildcards.
    #[must_use]
    pub fn decides(&self, key: &str, order: ReadOrder) -> Option<SettingSource> {
        let sources = self.sources(key, order);
        let (early, files): (Vec<SettingSource>, Vec<SettingSource>) =
            sources.into_iter().partition(|source| source.file.is_none());
        effective_source_of(files, order).or_else(|| early.into_iter().next_back())
    }
}

impl SettingsFile {
    /// Lines of the file with their locations.
    pub fn sources(&self) -> impl Iterator<Item = SettingSource> + '_ {
        self.content.known().into_iter().flat_map(|content| &content.assignments).map(|assignment| SettingSource {
            file: Some(self.path.clone()),
            leads_to: self.leads_to.clone(),
            assignment: assignment.clone(),
        })
    }
}

/// Effective one of the lines about one setting: the last with its exact name, else the last wildcard. Of a repeated
/// wildcard with another value the later line counts; with the same value it keeps its former position. A line `-key`
/// excludes wildcards in both orders; for systemd-sysctl it also replaces an earlier line with that name, for procps
/// (4.0.2) it does not.
fn effective_source_of(sources: Vec<SettingSource>, order: ReadOrder) -> Option<SettingSource> {
    let (patterns, mut own): (Vec<SettingSource>, Vec<SettingSource>) =
        sources.into_iter().partition(|source| source.assignment.is_pattern());
    if order == ReadOrder::Procps && own.iter().any(|source| source.value().is_some()) {
        own.retain(|source| source.value().is_some());
    }
    if let Some(last) = own.into_iter().next_back() {
        return Some(last).filter(|source| source.value().is_some());
    }
    let mut standing: Vec<SettingSource> = Vec::new();
    for source in patterns {
        match standing.iter().position(|earlier| earlier.assignment.key == source.assignment.key) {
            Some(position) if standing[position].value() == source.value() => {}
            Some(position) => {
                standing.remove(position);
                standing.push(source);
            }
            None => standing.push(source),
        }
    }
    standing.into_iter().rfind(|source| source.value().is_some())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::fact::Fact;
    use crate::host::settings::SettingsFile;
    use crate::host::settings::syntax::parse_command_line;

    const KEY: &str = "net.ipv4.tcp_rmem";

    fn settings(files: &[(&str, &str)]) -> KernelSettings {
        KernelSettings {
            files: files.iter().map(|(path, text)| SettingsFile::parsed(*path, text)).collect(),
            ..KernelSettings::default()
        }
    }

    fn decided(files: &[(&str, &str)], key: &str) -> [Option<String>; 2] {
        let settings = settings(files);
        [ReadOrder::Systemd, ReadOrder::Procps]
            .map(|order| settings.decides(key, order).and_then(|source| source.assignment.value))
    }

    fn both(value: &str) -> [Option<String>; 2] {
        [Some(value.to_owned()), Some(value.to_owned())]
    }

    #[test]
    fn names_decide_and_not_directories() {
        let files = [
            ("/etc/sysctl.d/10-mine.conf", "net.ipv4.tcp_rmem = 1 1 1"),
            ("/usr/lib/sysctl.d/50-vendor.conf", "net.ipv4.tcp_rmem = 2 2 2"),
        ];
        assert_eq!(decided(&files, KEY), both("2 2 2"));
    }

    #[test]
    fn a_higher_directory_hides_the_same_name() {
        let files = [
            ("/usr/lib/sysctl.d/50-default.conf", "net.ipv4.tcp_rmem = 2 2 2"),
            ("/run/sysctl.d/50-default.conf", "net.ipv4.tcp_rmem = 3 3 3"),
            ("/etc/sysctl.d/50-default.conf", ""),
        ];
        assert_eq!(decided(&files, KEY), [None, None]);
        assert_eq!(decided(&files[..2], KEY), both("3 3 3"));
        let settings = settings(&files);
        let hidden = settings.hidden_by(&settings.files[0]).map(|file| file.path.as_str());
        assert_eq!(hidden, Some("/etc/sysctl.d/50-default.conf"));
    }

    /// A `zz-` file wins at boot and loses to `sysctl --system`, although both find the same link.
    #[test]
    fn sysctl_conf_is_read_last_by_procps_only() {
        let files = [
            ("/etc/sysctl.d/99-sysctl.conf", "net.ipv4.tcp_rmem = 4 4 4"),
            ("/etc/sysctl.conf", "net.ipv4.tcp_rmem = 4 4 4"),
            ("/etc/sysctl.d/zz-mine.conf", "net.ipv4.tcp_rmem = 5 5 5"),
        ];
        assert_eq!(decided(&files, KEY), [Some("5 5 5".to_owned()), Some("4 4 4".to_owned())]);
        let only_the_file = [("/etc/sysctl.conf", "net.ipv4.tcp_rmem = 4 4 4")];
        assert_eq!(decided(&only_the_file, KEY), [None, Some("4 4 4".to_owned())]);
    }

    #[test]
    fn names_override_wildcards_and_hyphens_exclude_them() {
        let key = "net.ipv4.conf.eth0.rp_filter";
        let named = [
            ("/etc/sysctl.d/10.conf", "net.ipv4.conf.eth0.rp_filter = 2"),
            ("/etc/sysctl.d/20.conf", "net/ipv4/conf/*/rp_filter = 1"),
        ];
        assert_eq!(decided(&named, key), both("2"));
        let kept_away = [("/etc/sysctl.d/10.conf", "-net.ipv4.conf.eth0.rp_filter"), named[1]];
        assert_eq!(decided(&kept_away, key), [None, None]);
        assert_eq!(decided(&named[1..], key), both("1"));
        // A repeated wildcard with the same value keeps its position, so the other one is later.
        let again = [(
            "/etc/sysctl.d/10.conf",
            "net.ipv4.conf.*.rp_filter=1\nnet.ipv4.*.eth0.rp_filter=2\nnet.ipv4.conf.*.rp_filter=1",
        )];
        assert_eq!(decided(&again, key), both("2"));
    }

    /// Results of `systemd-sysctl` 252 and `sysctl --system` of procps 4.0.2 for the same files.
    #[test]
    fn results_match_the_programs() {
        let files = [
            ("/usr/lib/sysctl.d/50-a.conf", "net.ipv4.conf.*.rp_filter=1\nnet.ipv4.conf.lo.rp_filter=2\n"),
            ("/etc/sysctl.d/60-b.conf", "-net.ipv4.conf.lo.rp_filter\n"),
            ("/usr/lib/sysctl.d/10-x.conf", "net.ipv4.tcp_fin_timeout=51\n"),
            ("/etc/sysctl.d/10-x.conf", ""),
            ("/run/sysctl.d/20-x.conf", "net/ipv4/tcp_fin_timeout=52\n"),
            ("/etc/sysctl.d/30-x.conf", "net.ipv4.tcp_retries2 14\nnet.ipv4.tcp_retries2 = 13\n"),
            ("/etc/sysctl.d/zz.conf", "net.ipv4.tcp_fin_timeout=50\n"),
            ("/etc/sysctl.conf", "net.ipv4.tcp_fin_timeout = 41\n"),
        ];
        assert_eq!(decided(&files, "net.ipv4.conf.lo.rp_filter"), [None, Some("2".to_owned())]);
        assert_eq!(decided(&files, "net.ipv4.conf.all.rp_filter"), both("1"));
        assert_eq!(decided(&files, "net.ipv4.tcp_fin_timeout"), [Some("50".to_owned()), Some("41".to_owned())]);
        assert_eq!(decided(&files, "net.ipv4.tcp_retries2"), both("13"));
    }

    #[test]
    fn the_command_line_comes_before_the_files() {
        let mut host = settings(&[]);
        host.command_line = Fact::Known(parse_command_line("sysctl.net.ipv4.tcp_sack=0"));
        let source = host.decides("net.ipv4.tcp_sack", ReadOrder::Systemd).expect("set there");
        assert_eq!((source.value(), source.file.as_deref()), (Some("0"), None));
        host.files.push(SettingsFile::parsed("/etc/sysctl.d/a.conf", "net.ipv4.tcp_sack = 1"));
        let source = host.decides("net.ipv4.tcp_sack", ReadOrder::Systemd).expect("set there");
        assert_eq!(source.location(), "/etc/sysctl.d/a.conf:1");
    }

    #[test]
    fn other_endings_are_not_read() {
        assert_eq!(decided(&[("/etc/sysctl.d/README", "net.ipv4.tcp_rmem = 1 1 1")], KEY), [None, None]);
        assert_eq!(decided(&[("/etc/sysctl.d/a.conf.dpkg-old", "net.ipv4.tcp_rmem = 1 1 1")], KEY), [None, None]);
    }

    prop_compose! {
        fn file()(directory in 0..4_usize, name in "[a-c0-3]{1,2}", keys in prop::collection::vec((0..3_u8, 0..4_u8), 0..4))
            -> (String, String)
        {
            let lines = keys.iter().map(|(key, value)| format!("net.core.k{key} = {value}\n"));
            (format!("{}/{name}.conf", DIRECTORIES[directory]), lines.collect())
        }
    }

    proptest! {
        /// Without wildcards it is a plain fold: the last line of the merged, sorted files.
        #[test]
        fn the_last_line_of_the_sorted_files(files in prop::collection::vec(file(), 0..8), key in 0..3_u8) {
            let files: BTreeMap<String, String> = files.into_iter().collect();
            let listed: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
            let mut by_name: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
            for (path, text) in &listed {
                let (directory, name) = path.rsplit_once('/').expect("a path");
                let rank = DIRECTORIES.iter().position(|known| *known == directory).expect("one of them");
                if by_name.get(name).is_none_or(|(other, _)| rank < *other) {
                    by_name.insert(name, (rank, text));
                }
            }
            let prefix = format!("net.core.k{key} = ");
            let last = by_name.values().flat_map(|(_, text)| text.lines()).filter_map(|line| line.strip_prefix(&prefix)).next_back();
            prop_assert_eq!(decided(&listed, &format!("net.core.k{key}")), [last.map(str::to_owned), last.map(str::to_owned)]);
        }

        /// The order in which a directory lists its files does not matter.
        #[test]
        fn the_listing_does_not_matter(files in prop::collection::vec(file(), 0..8), key in 0..3_u8) {
            let files: BTreeMap<String, String> = files.into_iter().collect();
            let mut listed: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
            let key = format!("net.core.k{key}");
            let forwards = decided(&listed, &key);
            listed.reverse();
            prop_assert_eq!(decided(&listed, &key), forwards);
        }
    }
}
