//! Kernel settings (sysctl(8)): written, read back, compared.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

use linerate_sys::describe_os_error;

use super::failure::{GuestFailure, NEWER_KERNEL};
use crate::plan::SysctlSetting;

/// Writes a setting of the calling thread's network namespace, or of the system.
pub(super) fn write(setting: &SysctlSetting) -> Result<(), GuestFailure> {
    let path = path_of(&setting.key)?;
    let write = || OpenOptions::new().write(true).open(&path)?.write_all(setting.value.as_bytes());
    write().map_err(|cause| refused(setting, &cause))?;
    let made = fs::read_to_string(&path).map_err(|cause| refused(setting, &cause))?;
    let same = if is_unordered_list(&setting.key) { same_set } else { same_words };
    if same(&made, &setting.value) {
        return Ok(());
    }
    Err(GuestFailure::with_advice(
        format!("setting {} to {:?}: the kernel stored {:?}", setting.key, setting.value, made.trim()),
        "use a value that the kernel stores unchanged",
    ))
}

/// True when the setting already has its value; `false` when it cannot be read.
pub(super) fn is_in_effect(setting: &SysctlSetting) -> bool {
    let value = path_of(&setting.key).ok().and_then(|path| fs::read_to_string(path).ok());
    value.is_some_and(|value| same_words(&value, &setting.value))
}

/// Error for a setting of the whole system, which is not written on a host that goes on.
pub(super) fn host_setting_failure(setting: &SysctlSetting) -> GuestFailure {
    GuestFailure::with_advice(
        format!("setting {} to {:?}: it belongs to the whole host, and has another value", setting.key, setting.value),
        format!(
            "run the path in virtual time, where it has a kernel of its own, or set it on this host first: `sysctl -w \
             '{}={}'`",
            setting.key, setting.value
        ),
    )
}

fn refused(setting: &SysctlSetting, cause: &io::Error) -> GuestFailure {
    let error = format!("setting {} to {:?}: {}", setting.key, setting.value, describe_os_error(cause));
    let exists = path_of(&setting.key).is_ok_and(|path| path.exists());
    match cause.kind() {
        // Names of algorithms and disciplines are looked up, too.
        io::ErrorKind::InvalidInput if exists && setting.key == "net.ipv4.tcp_ecn" => {
            GuestFailure::with_advice(error, NEWER_KERNEL)
        }
        io::ErrorKind::InvalidInput | io::ErrorKind::NotFound if exists => {
            GuestFailure::with_advice(error, "this kernel does not know the value")
        }
        io::ErrorKind::NotFound => GuestFailure::with_advice(
            error,
            "this kernel has no such setting, or none in this namespace: settings of the whole system belong to the near \
             host",
        ),
        _ => GuestFailure::new(error),
    }
}

/// File of a setting. As in sysctl(8), a slash in the key means a dot in a name (`eth0/1` for `eth0.1`).
fn path_of(key: &str) -> Result<PathBuf, GuestFailure> {
    let mut path = PathBuf::from("/proc/sys");
    for part in key.split('.') {
        if part.is_empty() || part.starts_with('/') {
            return Err(GuestFailure::with_advice(
                format!("{key:?} is not a kernel setting"),
                "use a name such as net.ipv4.tcp_rmem",
            ));
        }
        path.push(part.replace('/', "."));
    }
    Ok(path)
}

/// True for a list in which the kernel has an order of its own.
fn is_unordered_list(key: &str) -> bool {
    key.ends_with("tcp_allowed_congestion_control")
}

fn same_set(one: &str, other: &str) -> bool {
    let sorted = |text: &str| {
        let mut words: Vec<String> = text.split_ascii_whitespace().map(str::to_owned).collect();
        words.sort();
        words
    };
    sorted(one) == sorted(other)
}

/// Compares values: the kernel writes tabs for spaces, and ends with a newline.
fn same_words(one: &str, other: &str) -> bool {
    one.split_ascii_whitespace().eq(other.split_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(key: &str, value: &str) -> SysctlSetting {
        SysctlSetting { key: key.into(), value: value.into() }
    }

    #[test]
    fn keys_and_files() {
        let path = |key| path_of(key).map(|path| path.display().to_string());
        assert_eq!(path("net.ipv4.tcp_rmem").expect("a key"), "/proc/sys/net/ipv4/tcp_rmem");
        assert_eq!(path("net.ipv4.conf.eth0/1.rp_filter").expect("a key"), "/proc/sys/net/ipv4/conf/eth0.1/rp_filter");
        for wrong in ["", ".", "net.", "net..core", "/etc.passwd", "net./.x"] {
            assert!(path(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn no_key_leaves_the_directory() {
        for key in ["net.../x", "..", "net.//.x"] {
            if let Ok(path) = path_of(key) {
                let inside = path.components().all(|part| part != std::path::Component::ParentDir);
                assert!(inside, "{key}: {}", path.display());
            }
        }
    }

    #[test]
    fn blanks_do_not_matter() {
        assert!(same_words("4096\t131072\t6291456\n", "4096 131072  6291456"));
        assert!(!same_words("4096\t131072\n", "4096 131072 6291456"));
    }

    #[test]
    fn settings_in_effect_and_settings_that_do_not_exist() {
        let kind = fs::read_to_string("/proc/sys/kernel/ostype").expect("procfs");
        assert!(is_in_effect(&setting("kernel.ostype", kind.trim())));
        assert!(!is_in_effect(&setting("kernel.ostype", "Minix")));
        assert!(!is_in_effect(&setting("net.ipv4.no_such_setting", "1")));
        let failure = write(&setting("net.ipv4.no_such_setting", "1")).expect_err("none");
        assert!(failure.error.starts_with("setting net.ipv4.no_such_setting to \"1\": "), "{failure:?}");
        assert!(host_setting_failure(&setting("net.ipv4.tcp_mem", "1 2 3")).error.contains("whole host"));
    }
}
