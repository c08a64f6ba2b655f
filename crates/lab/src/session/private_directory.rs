//! A directory that only this session uses, with the files that the guest reads at its start.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::session::SessionError;

/// The directory. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct PrivateDirectory {
    path: PathBuf,
}

/// Maximum length of a path: the kernel keeps it in buffers of 256 bytes, together with the names of its own files.
const LONGEST: usize = 150;

impl PrivateDirectory {
    /// Creates one, in `$TMPDIR` if its path is usable on a kernel's command line, else in `/tmp`.
    pub(super) fn new() -> Result<Self, SessionError> {
        let configured = std::env::var_os("TMPDIR").map(PathBuf::from).filter(|path| is_plain(path));
        let mut refused = None;
        for base in configured.into_iter().chain([PathBuf::from("/tmp")]) {
            match make_in(&base) {
                Ok(path) => return Ok(Self { path }),
                Err(cause) => refused = Some((base, cause)),
            }
        }
        let (base, cause) = refused.unwrap_or_else(|| ("/tmp".into(), io::ErrorKind::NotFound.into()));
        Err(SessionError::File { operation: format!("making a directory in {}", base.display()), cause })
    }

    /// Path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file into it.
    pub(super) fn write(&self, name: &str, contents: &[u8]) -> Result<PathBuf, SessionError> {
        let path = self.path.join(name);
        match fs::write(&path, contents) {
            Ok(()) => Ok(path),
            Err(cause) => Err(SessionError::File { operation: format!("writing {}", path.display()), cause }),
        }
    }

    /// Makes a link in it to a file elsewhere, whose path may have any characters.
    pub(super) fn link(&self, name: &str, target: &Path) -> Result<PathBuf, SessionError> {
        let path = self.path.join(name);
        match std::os::unix::fs::symlink(target, &path) {
            Ok(()) => Ok(path),
            Err(cause) => Err(SessionError::File { operation: format!("linking {}", path.display()), cause }),
        }
    }

    /// Removes it now: the guest has read what it needs.
    pub(super) fn remove(&self) {
        // The supervisor may have removed it already.
        let _ = fs::remove_dir_all(&self.path);
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        self.remove();
    }
}

fn make_in(base: &Path) -> io::Result<PathBuf> {
    let mut random = [0; 8];
    linerate_sys::host::random_bytes(&mut random)?;
    let path = base.join(format!("linerate-lab-{:016x}", u64::from_ne_bytes(random)));
    DirBuilder::new().mode(0o700).create(&path)?;
    Ok(path)
}

/// True when the path is absolute, short, and of characters without a meaning on a kernel's command line.
fn is_plain(path: &Path) -> bool {
    let harmless = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.+~".contains(&byte);
    path.is_absolute() && path.to_str().is_some_and(|text| text.len() <= LONGEST && text.bytes().all(harmless))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn it_is_private_and_goes_with_its_owner() {
        let directory = PrivateDirectory::new().expect("temporary directory");
        let path = directory.path().to_owned();
        let file = directory.write("job.json", b"{}").expect("room");
        assert_eq!(fs::read(&file).expect("written"), b"{}");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o700);
        drop(directory);
        assert!(!path.exists());
    }

    #[test]
    fn only_plain_paths_become_arguments_of_a_kernel() {
        assert!(is_plain(Path::new("/var/tmp/a-b_c.1")));
        for path in ["relative", "/with blank", "/with\"quote", "/with=,", "/\u{e9}"] {
            assert!(!is_plain(Path::new(path)), "{path}");
        }
        assert!(!is_plain(Path::new(&format!("/{}", "x".repeat(200)))));
    }
}
