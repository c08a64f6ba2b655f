//! A file for disk benchmarks. It has no name (`O_TMPFILE`, or unlinked right after its creation), so nothing of it
//! remains when this process ends, in any way.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use linerate_units::ByteCount;

use crate::clock::retry;
use crate::error::{Error, Result};
use crate::host;

/// Cache mode of a file's reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CacheMode {
    /// Past the page cache (`O_DIRECT`).
    Direct,
    /// Through the page cache.
    Cached,
}

/// A file without a name, to be written and read in whole pages ([`crate::file::PageBuffer`]).
#[derive(Debug)]
pub struct ScratchFile {
    file: File,
    directory: PathBuf,
}

impl ScratchFile {
    /// Creates one in this directory. Fails with `EINVAL` or `EOPNOTSUPP` where the file system does not support direct
    /// I/O.
    pub fn create(directory: &Path, access: CacheMode) -> Result<Self> {
        let direct = match access {
            CacheMode::Direct => libc::O_DIRECT,
            CacheMode::Cached => 0,
        };
        let failed = |cause| {
            Error::system(format!("creating a benchmark file in {}", directory.display()), cause)
                .hint_on(libc::EACCES, "choose another directory with --directory")
                .hint_on(libc::EROFS, "choose another directory with --directory")
                .hint_on(libc::ENOENT, "there is no such directory")
        };
        let file = create_unnamed(directory, direct).map_err(failed)?;
        Ok(Self { file, directory: directory.to_path_buf() })
    }

    /// Writes a block at this offset.
    pub fn write(&self, block: &[u8], place: ByteCount) -> Result<()> {
        self.file.write_all_at(block, place.get()).map_err(|cause| {
            self.failed("writing to", cause).hint_on(libc::ENOSPC, "the file system is full: ask for fewer bytes")
        })
    }

    /// Reads up to a block from this offset; returns the number of bytes.
    pub fn read(&self, block: &mut [u8], place: ByteCount) -> Result<ByteCount> {
        let read = retry(|| self.file.read_at(block, place.get()));
        read.map(ByteCount::from_usize).map_err(|cause| self.failed("reading from", cause))
    }

    /// Waits until the disk has the written data (`fdatasync(2)`).
    pub fn flush(&self) -> Result<()> {
        self.file.sync_data().map_err(|cause| self.failed("flushing", cause))
    }

    /// Has the kernel drop the file's pages from memory, as far as the disk has them (`posix_fadvise(2)`).
    pub fn forget(&self) -> Result<()> {
        let done = rustix::fs::fadvise(&self.file, 0, None, rustix::fs::Advice::DontNeed);
        done.map_err(|cause| self.failed("dropping from memory", cause.into()))
    }

    fn failed(&self, doing: &str, cause: io::Error) -> Error {
        Error::system(format!("{doing} a file in {}", self.directory.display()), cause)
    }
}

fn create_unnamed(directory: &Path, flags: libc::c_int) -> io::Result<File> {
    let open = |path: &Path, create: bool, more: libc::c_int| {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(create).mode(0o600).custom_flags(flags | more).open(path)
    };
    match open(directory, false, libc::O_TMPFILE) {
        // Not every file system can create files without a name.
        Err(cause) if matches!(cause.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR)) => {}
        outcome => return outcome,
    }
    let mut random = [0; 8];
    host::random_bytes(&mut random)?;
    let path = directory.join(format!(".linerate-{:016x}", u64::from_ne_bytes(random)));
    let file = open(&path, true, libc::O_NOFOLLOW);
    // Some file systems create the file and then refuse direct access.
    let removed = std::fs::remove_file(&path);
    let file = file?;
    removed.map(|()| file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::PageBuffer;

    fn entries(directory: &Path) -> usize {
        std::fs::read_dir(directory).expect("it is there").count()
    }

    #[test]
    fn written_blocks_are_read_and_nothing_is_left() {
        let directory = std::env::temp_dir().join(format!("linerate-disk-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("made");
        for access in [CacheMode::Direct, CacheMode::Cached] {
            let file = match ScratchFile::create(&directory, access) {
                Ok(file) => file,
                // File systems in memory do not support direct I/O before Linux 6.6.
                Err(error) if access == CacheMode::Direct => {
                    assert!(matches!(error.errno(), Some(libc::EINVAL | libc::EOPNOTSUPP)), "{error}");
                    continue;
                }
                Err(error) => panic!("{error}"),
            };
            let mut block = PageBuffer::new(ByteCount::from_kibibytes(64)).expect("memory");
            host::random_bytes(&mut block).expect("random");
            file.write(&block, ByteCount::from_kibibytes(64)).expect("written");
            file.flush().expect("flushed");
            file.forget().expect("dropped");
            let mut back = PageBuffer::new(ByteCount::from_kibibytes(64)).expect("memory");
            let length = file.read(&mut back, ByteCount::from_kibibytes(64)).expect("read");
            assert_eq!((length.to_usize(), &*back), (block.len(), &*block));
            assert_eq!(file.read(&mut back, ByteCount::from_kibibytes(128)).expect("at its end"), ByteCount::new(0));
            assert_eq!(entries(&directory), 0, "it has no name");
        }
        std::fs::remove_dir(&directory).expect("empty");
        let error = ScratchFile::create(&directory, CacheMode::Cached).expect_err("gone");
        assert!(error.to_string().contains("no such directory"), "{error}");
    }
}
