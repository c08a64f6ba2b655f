//! Configuration files that exist as a whole or not at all, even after a power cut.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Permissions of a configuration file; only its owner ever writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileMode {
    /// Readable by all users (0644).
    Plain,
    /// Readable and executable by all users (0755).
    Program,
}

/// Symbolic links that the kernel follows (`MAXSYMLINKS`).
const MAX_LINKS: usize = 40;

impl FileMode {
    /// Argument of chmod(1): four octal digits.
    #[must_use]
    pub const fn octal(self) -> &'static str {
        match self {
            Self::Plain => "0644",
            Self::Program => "0755",
        }
    }

    const fn bits(self) -> u32 {
        match self {
            Self::Plain => 0o644,
            Self::Program => 0o755,
        }
    }
}

/// Contents of a file, and its mode; `None` when there is no such file. Bytes that are not text become replacement
/// characters, so that the file differs from any text of ours.
pub fn read(path: &Path) -> Result<Option<(String, FileMode)>> {
    let contents = || {
        let bytes = fs::read(path)?;
        let is_program = fs::metadata(path)?.permissions().mode() & 0o111 != 0;
        let mode = if is_program { FileMode::Program } else { FileMode::Plain };
        Ok((String::from_utf8_lossy(&bytes).into_owned(), mode))
    };
    match contents() {
        Ok(found) => Ok(Some(found)),
        Err(cause) if is_absent(&cause) => Ok(None),
        Err(cause) => Err(Error::system(format!("reading {}", path.display()), cause)),
    }
}

/// Replaces a file atomically: the old or the new one exists at any time. Missing parent directories are made. A symbolic
/// link stays one: the file to which it leads is replaced.
pub fn replace(path: &Path, contents: &str, mode: FileMode) -> Result<()> {
    put(&without_links(path)?, contents, mode).map_err(|cause| explained(path, cause))
}

/// Removes a file, or the one to which a symbolic link leads; a missing one is no error.
pub fn remove(path: &Path) -> Result<()> {
    let file = without_links(path)?;
    match fs::remove_file(&file) {
        Err(cause) if is_absent(&cause) => Ok(()),
        Err(cause) => Err(cause),
        Ok(()) => file.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all()),
    }
    .map_err(|cause| explained(path, cause))
}

/// The file to which a symbolic link leads; it may be missing. Fails for devices: a link to `/dev/null` disables a file.
fn without_links(path: &Path) -> Result<PathBuf> {
    let mut file = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&file) {
            Ok(target) => file = file.parent().unwrap_or(Path::new("/")).join(target),
            Err(_) => return check_regular(path, file),
        }
    }
    Err(explained(path, io::Error::from_raw_os_error(libc::ELOOP)))
}

fn check_regular(path: &Path, file: PathBuf) -> Result<PathBuf> {
    if file != path && fs::metadata(&file).is_ok_and(|found| !found.is_file()) {
        let reason = format!("it is a link to {}, which is not a regular file: remove the link first", file.display());
        return Err(Error::refused(format!("writing {}", path.display()), reason));
    }
    Ok(file)
}

fn is_absent(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn explained(path: &Path, cause: io::Error) -> Error {
    Error::system(format!("writing {}", path.display()), cause)
        .hint_on(libc::EACCES, "be root")
        .hint_on(libc::EROFS, "the file system is mounted read-only: the change lasts only until the next boot")
}

/// A new file next to the old one takes its place once it is on the disk.
fn put(path: &Path, contents: &str, mode: FileMode) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(directory)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy().into_owned();
    // No program reads files of such names, in none of the directories that linerate writes to.
    let new = directory.join(format!(".{name}.linerate-new"));
    let _ = fs::remove_file(&new);
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode.bits()).open(&new)?;
        file.write_all(contents.as_bytes())?;
        // The umask of the calling process has removed bits.
        file.set_permissions(Permissions::from_mode(mode.bits()))?;
        if let Ok(old) = fs::metadata(path) {
            keep_owner(&file, &old)?;
        }
        file.sync_all()?;
        fs::rename(&new, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written.and_then(|()| File::open(directory)?.sync_all())
}

/// Gives the file the owner of the old one, which may be a user's behind a link.
fn keep_owner(file: &File, old: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    if (old.uid(), old.gid()) == (new.uid(), new.gid()) {
        return Ok(());
    }
    fchown(file, Some(old.uid()), Some(old.gid()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_has_what_it_was_given_and_its_mode() {
        let directory = std::env::temp_dir().join(format!("linerate-whole-{}", std::process::id()));
        let path = directory.join("below").join("90-linerate");
        assert_eq!(read(&path).expect("no error"), None);
        for (contents, mode) in
            [("first", FileMode::Plain), ("second, longer", FileMode::Program), ("", FileMode::Plain)]
        {
            replace(&path, contents, mode).expect("written");
            assert_eq!(read(&path).expect("read"), Some((contents.to_owned(), mode)));
            let bits = fs::metadata(&path).expect("there").permissions().mode() & 0o7777;
            assert_eq!(format!("{bits:04o}"), mode.octal());
            assert_eq!(fs::read_dir(directory.join("below")).expect("there").count(), 1, "nothing else is left");
        }
        assert_eq!(read(&path.join("x")).expect("a file is no directory"), None);
        assert!(replace(&path.join("x"), "y", FileMode::Plain).is_err());
        remove(&path).expect("removed");
        remove(&path).expect("nothing left to do");
        fs::remove_dir_all(&directory).expect("ours");
    }

    #[test]
    fn links_stay_links() {
        let directory = std::env::temp_dir().join(format!("linerate-links-{}", std::process::id()));
        let (link, file) = (directory.join("90-linerate.conf"), directory.join("dotfiles/mine.conf"));
        fs::create_dir_all(directory.join("dotfiles")).expect("room");
        symlink("second", &link).expect("room");
        symlink("dotfiles/mine.conf", directory.join("second")).expect("room");
        // Also while there is no file.
        for contents in ["first", "second"] {
            replace(&link, contents, FileMode::Plain).expect("written");
            assert_eq!(fs::read_to_string(&file).expect("there"), contents);
            assert_eq!(fs::read_link(&link).expect("a link").to_str(), Some("second"));
        }
        remove(&link).expect("removed");
        assert!(!file.exists() && fs::read_link(&link).is_ok());
        for (place, target) in [("null", "/dev/null"), ("loop", "loop")] {
            let place = directory.join(place);
            symlink(target, &place).expect("room");
            assert!(replace(&place, "x", FileMode::Plain).is_err() && remove(&place).is_err(), "{target}");
        }
        let error = replace(&directory.join("null"), "x", FileMode::Plain).expect_err("a device").to_string();
        assert!(error.contains("link to /dev/null") && error.contains("remove the link first"), "{error}");
        fs::remove_dir_all(&directory).expect("ours");
    }

    #[test]
    #[ignore = "needs root: a file of another user"]
    fn a_replaced_file_keeps_its_owner() {
        let path = std::env::temp_dir().join(format!("linerate-owner-{}", std::process::id()));
        fs::write(&path, "mine").expect("room");
        std::os::unix::fs::chown(&path, Some(4242), Some(4243)).expect("root may");
        replace(&path, "other", FileMode::Plain).expect("written");
        let found = fs::metadata(&path).expect("there");
        assert_eq!((found.uid(), found.gid()), (4242, 4243));
        fs::remove_file(&path).expect("ours");
    }

    #[test]
    fn files_that_are_not_text_can_be_read() {
        let path = std::env::temp_dir().join(format!("linerate-bytes-{}", std::process::id()));
        fs::write(&path, [b'#', 0xff, b'\n']).expect("written");
        let (text, mode) = read(&path).expect("read").expect("there");
        assert_eq!((text.as_str(), mode), ("#\u{fffd}\n", FileMode::Plain));
        fs::remove_file(&path).expect("ours");
    }
}
