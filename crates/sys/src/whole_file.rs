//! Configuration files that are there as a whole or not at all, after a power cut too.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::error::{Error, Result};

/// Who may do what with a configuration file; only its owner ever writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Everybody reads it (0644).
    Plain,
    /// Everybody reads it and runs it (0755).
    Program,
}

impl Mode {
    /// As chmod(1) takes it: four octal digits.
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

/// What a file has, and whether it can be run; `None` when there is no such file. Bytes that are no text become
/// replacement characters: whoever compares will find it different from any text of ours.
pub fn read(path: &Path) -> Result<Option<(String, Mode)>> {
    let contents = || {
        let bytes = fs::read(path)?;
        let is_program = fs::metadata(path)?.permissions().mode() & 0o111 != 0;
        let mode = if is_program { Mode::Program } else { Mode::Plain };
        Ok((String::from_utf8_lossy(&bytes).into_owned(), mode))
    };
    match contents() {
        Ok(found) => Ok(Some(found)),
        Err(cause) if is_absent(&cause) => Ok(None),
        Err(cause) => Err(Error::system(format!("reading {}", path.display()), cause)),
    }
}

/// Replaces a file as a whole: at any time there is the old or the new one. Directories on the way to it are made.
pub fn replace(path: &Path, contents: &str, mode: Mode) -> Result<()> {
    put(path, contents, mode).map_err(|cause| explained(path, cause))
}

/// Takes a file away; one that is not there is no error.
pub fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(cause) if is_absent(&cause) => Ok(()),
        Err(cause) => Err(cause),
        Ok(()) => path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all()),
    }
    .map_err(|cause| explained(path, cause))
}

fn is_absent(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn explained(path: &Path, cause: io::Error) -> Error {
    Error::system(format!("writing {}", path.display()), cause)
        .hint_on(libc::EACCES, "be root")
        .hint_on(libc::EROFS, "the file system is mounted read-only: the change holds until the next boot only")
}

/// A new file beside the old one takes its place once it is on the disk.
fn put(path: &Path, contents: &str, mode: Mode) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(directory)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy().into_owned();
    // No program reads files of such names, in none of the directories that linerate writes to.
    let new = directory.join(format!(".{name}.linerate-new"));
    let _ = fs::remove_file(&new);
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode.bits()).open(&new)?;
        file.write_all(contents.as_bytes())?;
        // The mask of the calling process has taken bits away.
        file.set_permissions(Permissions::from_mode(mode.bits()))?;
        file.sync_all()?;
        fs::rename(&new, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written.and_then(|()| File::open(directory)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_what_it_was_given_and_its_mode() {
        let directory = std::env::temp_dir().join(format!("linerate-whole-{}", std::process::id()));
        let path = directory.join("below").join("90-linerate");
        assert_eq!(read(&path).expect("no error"), None);
        for (contents, mode) in [("first", Mode::Plain), ("second, longer", Mode::Program), ("", Mode::Plain)] {
            replace(&path, contents, mode).expect("written");
            assert_eq!(read(&path).expect("read"), Some((contents.to_owned(), mode)));
            let bits = fs::metadata(&path).expect("there").permissions().mode() & 0o7777;
            assert_eq!(format!("{bits:04o}"), mode.octal());
            assert_eq!(fs::read_dir(directory.join("below")).expect("there").count(), 1, "nothing else is left");
        }
        assert_eq!(read(&path.join("x")).expect("a file is no directory"), None);
        assert!(replace(&path.join("x"), "y", Mode::Plain).is_err());
        remove(&path).expect("removed");
        remove(&path).expect("nothing left to do");
        fs::remove_dir_all(&directory).expect("ours");
    }

    #[test]
    fn what_is_no_text_can_be_read() {
        let path = std::env::temp_dir().join(format!("linerate-bytes-{}", std::process::id()));
        fs::write(&path, [b'#', 0xff, b'\n']).expect("written");
        let (text, mode) = read(&path).expect("read").expect("there");
        assert_eq!((text.as_str(), mode), ("#\u{fffd}\n", Mode::Plain));
        fs::remove_file(&path).expect("ours");
    }
}
