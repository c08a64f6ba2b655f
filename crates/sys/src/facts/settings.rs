//! Current kernel settings, and the files that set them.

use linerate_units::CompactCollect;
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use linerate_model::fact::Fact;
use linerate_model::host::catalogue::CATALOGUE;
use linerate_model::host::settings::order::{DIRECTORIES, SYSCTL_CONF};
use linerate_model::host::settings::syntax;
use linerate_model::host::settings::{
    KernelSetting, KernelSettings, SettingWritability, SettingsContent, SettingsFile,
};
use rustix::fs::{Access, AtFlags, CWD};

use super::{below, text, unread};

/// Maximum size of a settings file, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Directories below `net` in which misspelt names are searched. The next ones, below these, are of single interfaces.
const NAME_SPACES: [&str; 5] = ["core", "ipv4", "ipv6", "mptcp", "unix"];
const INTERFACE_DIRECTORIES: [&str; 2] = ["conf", "neigh"];

/// Reads settings and files below `root`, which is `/` but in tests. `mounted_for_writing` is that of `/proc/sys`.
#[must_use]
pub fn read(root: &Path, mounted_for_writing: &Fact<bool>) -> KernelSettings {
    let mut settings = KernelSettings {
        names: names(root),
        command_line: text(root, "proc/cmdline").map(|line| syntax::parse_command_line(&line)),
        systemd: Fact::Known(below(root, "run/systemd/system").is_dir()),
        ..KernelSettings::default()
    };
    for directory in DIRECTORIES {
        read_directory(root, directory, &mut settings);
    }
    settings.files.extend(read_file(root, SYSCTL_CONF));
    let keys =
        CATALOGUE.iter().map(|knob| knob.key.to_owned()).chain(assigned_keys(&settings)).collect::<BTreeSet<_>>();
    settings.values = keys.into_iter().map(|key| (key.clone(), setting(root, &key, mounted_for_writing))).collect();
    settings
}

/// The setting's value and its write access.
#[must_use]
pub fn setting(root: &Path, key: &str, mounted_for_writing: &Fact<bool>) -> KernelSetting {
    let path = format!("proc/sys/{}", syntax::procfs_path(key));
    let value = text(root, &path).map(|value| syntax::single_blanks(&value));
    KernelSetting { writability: writing(root, &path, mounted_for_writing), value }
}

fn writing(root: &Path, path: &str, mounted_for_writing: &Fact<bool>) -> SettingWritability {
    let file = below(root, path);
    let Ok(metadata) = fs::metadata(&file) else { return SettingWritability::Unknown };
    if mounted_for_writing.known() == Some(&false) {
        return SettingWritability::Impossible(
            "/proc/sys is mounted read-only, as in containers without --privileged".to_owned(),
        );
    }
    if metadata.permissions().mode() & 0o222 == 0 {
        return SettingWritability::Impossible("it is read-only in this network namespace".to_owned());
    }
    if may_write(&file) { SettingWritability::Possible } else { SettingWritability::NeedsPrivilege }
}

/// Asks the kernel, by the effective user's rights, without opening the file (`faccessat(2)`).
fn may_write(file: &Path) -> bool {
    rustix::fs::accessat(CWD, file, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}

/// Names that files and the command line set, in addition to the catalogue.
fn assigned_keys(settings: &KernelSettings) -> BTreeSet<String> {
    let of_files = settings.files.iter().filter_map(|file| file.content.known());
    let assignments = of_files.flat_map(|content| &content.assignments);
    let all = assignments.chain(settings.command_line.known().into_iter().flatten());
    let named = all.filter(|assignment| !assignment.is_pattern() && !assignment.key.split('.').any(|word| word == "/"));
    named.map(|assignment| assignment.key.clone()).filter(|key| key.starts_with("net.")).collect_compactly()
}

fn read_directory(root: &Path, directory: &str, settings: &mut KernelSettings) {
    let path = below(root, directory);
    // With a merged /usr, /lib is the same directory under another name.
    if directory == "/lib/sysctl.d" && is_same_file(&path, &below(root, "/usr/lib/sysctl.d")) {
        return;
    }
    let entries = match fs::read_dir(&path) {
        Ok(entries) => entries,
        Err(cause) if cause.kind() == ErrorKind::NotFound => return,
        Err(cause) => {
            return settings.directories_unread.push((directory.to_owned(), unread("listing", directory, &cause)));
        }
    };
    let mut files: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.strip_suffix(".conf").is_some())
        .map(|name| format!("{directory}/{name}"))
        .collect();
    files.sort();
    settings.files.extend(files.iter().filter_map(|file| read_file(root, file)));
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// A settings file, if it exists.
fn read_file(root: &Path, path: &str) -> Option<SettingsFile> {
    let place = below(root, path);
    fs::symlink_metadata(&place).ok()?;
    let leads_to = fs::read_link(&place).ok().map(|target| resolve_link(path, &target.to_string_lossy()));
    let content = match leads_to.as_deref() {
        // An empty file that masks one of the distribution (sysctl.d(5)).
        Some("/dev/null") => Fact::Known(SettingsContent::default()),
        // Below another root, an absolute link leads out of it.
        Some(target) if root != Path::new("/") => content(root, target),
        _ => content(root, path),
    };
    let changed_since_boot = changed_since_boot(root, &place, leads_to.as_deref());
    Some(SettingsFile { path: path.to_owned(), leads_to, changed_since_boot, content })
}

/// Compares the file's change time, which copying and unpacking do not preserve, with the boot time of `/proc/stat`.
fn changed_since_boot(root: &Path, place: &Path, leads_to: Option<&str>) -> Fact<bool> {
    let boot = text(root, "proc/stat");
    let Some(boot) = boot.known().and_then(|text| text.lines().find_map(|line| line.strip_prefix("btime "))) else {
        return Fact::absent("/proc/stat has no boot time");
    };
    let Ok(boot) = boot.trim().parse::<i64>() else {
        return Fact::failed(format!("the boot time '{boot}' is no number"));
    };
    let target = leads_to.map(|target| below(root, target));
    match fs::metadata(target.as_deref().unwrap_or(place)) {
        Ok(metadata) => Fact::Known(metadata.ctime() > boot),
        Err(cause) => unread("reading", &place.display().to_string(), &cause),
    }
}

fn content(root: &Path, path: &str) -> Fact<SettingsContent> {
    let place = below(root, path);
    match fs::metadata(&place) {
        Ok(metadata) if !metadata.is_file() => return Fact::failed(format!("{path} is not a file")),
        Ok(metadata) if metadata.len() > MAX_FILE_BYTES => {
            return Fact::failed(format!("{path} has {} bytes, more than any file of settings", metadata.len()));
        }
        _ => {}
    }
    text(root, path).map(|text| {
        let (assignments, nonsense) = syntax::parse(&text);
        SettingsContent { assignments, nonsense }
    })
}

/// Target of a link, from the root.
fn resolve_link(path: &str, target: &str) -> String {
    if target.starts_with('/') {
        return target.to_owned();
    }
    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    format!("/{}", parts.join("/"))
}

/// Every name below `net` that is not of a single interface.
fn names(root: &Path) -> Fact<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for space in NAME_SPACES {
        collect(root, &format!("net/{space}"), &mut names);
    }
    if names.is_empty() { Fact::absent("nothing is listed below /proc/sys/net") } else { Fact::Known(names) }
}

fn collect(root: &Path, directory: &str, names: &mut BTreeSet<String>) {
    let Ok(entries) = fs::read_dir(below(root, &format!("proc/sys/{directory}"))) else { return };
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let path = format!("{directory}/{name}");
        if !is_directory {
            names.insert(syntax::normalised_name(&path));
        } else if !INTERFACE_DIRECTORIES.contains(&name.as_str()) {
            collect(root, &path, names);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};

    use linerate_model::host::settings::ReadOrder;

    use super::*;

    /// A made-up tree, gone with its owner.
    struct Tree(PathBuf);

    impl Tree {
        fn new() -> Self {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let name = format!("linerate-settings-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).expect("a scratch folder");
            Self(path)
        }

        fn file(&self, path: &str, text: &str) -> &Self {
            let place = below(&self.0, path);
            fs::create_dir_all(place.parent().expect("a folder")).expect("a scratch folder");
            fs::write(place, text).expect("a scratch file");
            self
        }

        fn link(&self, path: &str, target: &str) -> &Self {
            let place = below(&self.0, path);
            fs::create_dir_all(place.parent().expect("a folder")).expect("a scratch folder");
            symlink(target, place).expect("a scratch link");
            self
        }

        fn read(&self) -> KernelSettings {
            read(&self.0, &Fact::Known(true))
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn files_links_and_masks() {
        let tree = Tree::new();
        tree.file("proc/sys/net/ipv4/tcp_sack", "0\n")
            .file("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n")
            .file("proc/cmdline", "quiet sysctl.net.ipv4.tcp_ecn=1\n")
            .file("etc/sysctl.conf", "net.ipv4.tcp_sack=0\n")
            .link("etc/sysctl.d/99-sysctl.conf", "../sysctl.conf")
            .link("etc/sysctl.d/50-vendor.conf", "/dev/null")
            .file("usr/lib/sysctl.d/50-vendor.conf", "net.ipv4.tcp_sack = 1\n")
            .file("usr/lib/sysctl.d/10-odd.conf", "net.ipv4.tcp_sack\n")
            .file("etc/sysctl.d/README.sysctl", "net.ipv4.tcp_sack = 3\n");
        let settings = tree.read();
        assert_eq!(settings.value("net.ipv4.tcp_rmem"), Some("4096 131072 6291456"));
        let places = |order| {
            settings
                .sources("net.ipv4.tcp_sack", order)
                .iter()
                .map(linerate_model::host::settings::SettingSource::location)
                .collect::<Vec<_>>()
        };
        assert_eq!(places(ReadOrder::Systemd), ["/etc/sysctl.d/99-sysctl.conf:1"]);
        assert_eq!(places(ReadOrder::Procps), ["/etc/sysctl.d/99-sysctl.conf:1", "/etc/sysctl.conf:1"]);
        let decides = settings.decides("net.ipv4.tcp_sack", ReadOrder::Systemd).expect("set");
        assert_eq!((decides.value(), decides.edit_location().as_str()), (Some("0"), "/etc/sysctl.conf:1"));
        assert_eq!(settings.decides("net.ipv4.tcp_ecn", ReadOrder::Systemd).expect("set").file, None);
        assert!(settings.values["net.ipv4.tcp_wmem"].value.unread().is_some_and(|why| why.reason.contains("tcp_wmem")));
    }

    #[test]
    fn unreadable_settings_have_a_reason() {
        let tree = Tree::new();
        tree.file("etc/sysctl.d", "not a directory");
        tree.link("usr/lib/sysctl.d/10-gone.conf", "nowhere");
        let settings = tree.read();
        assert_eq!(settings.directories_unread.len(), 1);
        assert!(settings.files[0].content.unread().is_some());
        assert!(settings.names.unread().is_some() && settings.command_line.unread().is_some());
    }

    #[test]
    fn bytes_that_are_not_text() {
        let tree = Tree::new();
        tree.file("etc/sysctl.d/a.conf", "x");
        fs::write(below(&tree.0, "etc/sysctl.d/a.conf"), b"\xff\xfe=1\nnet.core.rmem_max = 5\n")
            .expect("a scratch file");
        let settings = tree.read();
        assert_eq!(
            settings
                .decides("net.core.rmem_max", ReadOrder::Systemd)
                .and_then(|found| found.assignment.value)
                .as_deref(),
            Some("5")
        );
    }

    #[test]
    fn links_lead_somewhere() {
        for (target, expected) in [
            ("../sysctl.conf", "/etc/sysctl.conf"),
            ("/a/b", "/a/b"),
            ("./x.conf", "/etc/sysctl.d/x.conf"),
            ("../../../y", "/y"),
        ] {
            assert_eq!(resolve_link("/etc/sysctl.d/99.conf", target), expected, "{target}");
        }
    }

    #[test]
    fn this_host() {
        let settings = read(Path::new("/"), &Fact::Known(true));
        assert!(settings.value("net.ipv4.tcp_rmem").is_some_and(|value| value.split(' ').count() == 3));
        assert!(settings.names.known().is_some_and(|names| names.contains("net.ipv4.tcp_sack")));
        assert!(!settings.names.known().is_some_and(|names| names.iter().any(|name| name.contains(".conf."))));
    }
}
