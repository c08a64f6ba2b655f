//! Settings of the kernel, as files below `/proc/sys` (`proc(5)`, `sysctl(8)`). Those below `net` are of the network
//! namespace of the calling thread.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

use super::squeezed;
use crate::error::{Error, Result};

/// File of a setting. Names are dotted as `sysctl` prints them; one with a slash before any dot is taken as a path, as
/// in `sysctl.d(5)`, so that names of interfaces may have dots. Refuses names that lead outside of `/proc/sys`.
pub fn path_of(key: &str) -> Result<PathBuf> {
    let slashes_first = key.find('/').is_some_and(|slash| key.find('.').is_none_or(|dot| slash < dot));
    let path: String = if slashes_first {
        key.to_owned()
    } else {
        let swapped = |character| match character {
            '.' => '/',
            '/' => '.',
            other => other,
        };
        key.chars().map(swapped).collect()
    };
    let harmless = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains(['\0', '\n']);
    if !path.contains('/') || !path.split('/').all(harmless) {
        let reason = "settings have names like net.ipv4.tcp_rmem";
        return Err(Error::refused(format!("looking for the setting {key:?}"), reason));
    }
    Ok(PathBuf::from("/proc/sys").join(path))
}

/// `None` when there is no such file.
pub(super) fn read(path: &std::path::Path) -> io::Result<Option<String>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(squeezed(&String::from_utf8_lossy(&bytes)))),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(cause),
    }
}

/// Writes in one call, as the kernel requires; creates no file.
pub(super) fn write(path: &std::path::Path, value: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    let text = format!("{value}\n");
    match file.write(text.as_bytes())? {
        length if length == text.len() => Ok(()),
        length => Err(io::Error::other(format!("the kernel accepted {length} of {} bytes", text.len()))),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn names_become_paths() {
        for (key, path) in [
            ("net.ipv4.tcp_rmem", "/proc/sys/net/ipv4/tcp_rmem"),
            ("net.ipv4.conf.eth0/100.rp_filter", "/proc/sys/net/ipv4/conf/eth0.100/rp_filter"),
            ("net/ipv4/conf/eth0.100/rp_filter", "/proc/sys/net/ipv4/conf/eth0.100/rp_filter"),
        ] {
            assert_eq!(path_of(key).expect("a name"), Path::new(path));
        }
        for wrong in ["", "net", "net..ipv4", "../etc/passwd", "net/../../etc", "/net/ipv4", "net.ipv4.", "net.a\n"] {
            assert!(path_of(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn values_are_read_in_canonical_form() {
        let path = path_of("net.ipv4.tcp_rmem").expect("a name");
        let value = read(&path).expect("readable").expect("there");
        assert_eq!(value.split(' ').count(), 3, "{value:?}");
        assert_eq!(read(Path::new("/proc/sys/net/ipv4/no_such")).expect("no error"), None);
        let error = write(Path::new("/proc/sys/net/ipv4/no_such"), "1").expect_err("not there");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
