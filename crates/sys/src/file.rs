//! Files without a name, and memory straight from the system.

use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use linerate_units::ByteCount;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::error::{Error, Result};
use crate::host;

/// A file that has these contents and no name, positioned at its start: for `sendfile(2)`. It lies in `$TMPDIR`, else
/// in `/tmp`, else in memory (`memfd_create(2)`), where nothing else can be written.
pub fn temporary_file(contents: &[u8]) -> Result<File> {
    let configured = std::env::var_os("TMPDIR").filter(|path| !path.is_empty()).map(PathBuf::from);
    temporary_file_in(configured.into_iter().chain([PathBuf::from("/tmp")]), contents)
}

fn temporary_file_in(directories: impl Iterator<Item = PathBuf>, contents: &[u8]) -> Result<File> {
    for directory in directories {
        // The next directory may be writable, or have space.
        if let Ok(file) = unlinked_file(&directory).and_then(|file| filled(file, contents)) {
            return Ok(file);
        }
    }
    let failed = |cause| Error::system("making a temporary file in $TMPDIR, /tmp and memory", cause);
    memory_file().and_then(|file| filled(file, contents)).map_err(failed)
}

fn filled(mut file: File, contents: &[u8]) -> io::Result<File> {
    file.write_all(contents)?;
    file.rewind()?;
    Ok(file)
}

fn unlinked_file(directory: &Path) -> io::Result<File> {
    let open = |path: &Path, create: bool, flags| {
        OpenOptions::new().read(true).write(true).create_new(create).mode(0o600).custom_flags(flags).open(path)
    };
    open(directory, false, libc::O_TMPFILE).or_else(|_| {
        // Not every file system can create files without a name.
        let mut random = [0; 8];
        host::random_bytes(&mut random)?;
        let path = directory.join(format!("linerate-{:016x}", u64::from_ne_bytes(random)));
        let file = open(&path, true, libc::O_NOFOLLOW)?;
        std::fs::remove_file(&path)?;
        Ok(file)
    })
}

fn memory_file() -> io::Result<File> {
    Ok(rustix::fs::memfd_create(c"linerate", rustix::fs::MemfdFlags::CLOEXEC)?.into())
}

/// Zeroed memory in whole pages straight from the kernel: page-aligned, and returned to the system at once when
/// dropped, regardless of the allocator.
#[derive(Debug)]
pub struct PageBuffer {
    /// A mapping of this buffer's own, unless it is empty.
    bytes: NonNull<[u8]>,
}

// SAFETY: the buffer owns its memory like a Vec<u8> does; nothing is shared.
unsafe impl Send for PageBuffer {}
// SAFETY: a shared reference only reads.
unsafe impl Sync for PageBuffer {}

impl PageBuffer {
    /// `size` bytes of zeros.
    pub fn new(size: ByteCount) -> Result<Self> {
        let length = size.to_usize();
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let start = match length {
            0 => Ok(NonNull::dangling()),
            // SAFETY: asks for new anonymous memory anywhere; nothing of ours is touched.
            _ => unsafe { mmap_anonymous(core::ptr::null_mut(), length, protection, MapFlags::PRIVATE) }
                .and_then(|start| NonNull::new(start.cast()).ok_or(Errno::NOMEM)),
        };
        start
            .map(|start| Self { bytes: NonNull::slice_from_raw_parts(start, length) })
            .map_err(|cause| Error::system(format!("reserving {length} bytes of memory"), cause))
    }
}

impl Deref for PageBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the bytes are initialised and valid as long as `self` lives (dangling only for none).
        unsafe { self.bytes.as_ref() }
    }
}

impl DerefMut for PageBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `self` is borrowed mutably, so nothing else refers to the memory.
        unsafe { self.bytes.as_mut() }
    }
}

impl Drop for PageBuffer {
    fn drop(&mut self) {
        if !self.bytes.is_empty() {
            // SAFETY: this is the mapping that `new` made, and nothing refers to it any more. It cannot fail.
            let _ = unsafe { munmap(self.bytes.as_ptr().cast(), self.bytes.len()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_temporary_file_has_contents_and_no_name() {
        let mut file = temporary_file(b"0123456789").expect("space in one of the directories");
        let mut text = String::new();
        file.read_to_string(&mut text).expect("readable");
        assert_eq!(text, "0123456789");
        assert_eq!(file.metadata().expect("open").nlink(), 0);
    }

    #[test]
    fn memory_is_the_last_resort() {
        let nowhere = ["/proc/no/such/place", "/proc"].map(PathBuf::from);
        let mut file = temporary_file_in(nowhere.into_iter(), b"in memory").expect("memory");
        let mut text = String::new();
        file.read_to_string(&mut text).expect("readable");
        assert_eq!(text, "in memory");
    }

    #[test]
    fn a_file_system_without_nameless_files() {
        // procfs cannot make them, and cannot make others either: both attempts must fail cleanly.
        assert!(unlinked_file(Path::new("/proc")).is_err());
    }

    #[test]
    fn pages_are_zero_aligned_and_writable() {
        let mut buffer = PageBuffer::new(ByteCount::new(100_000)).expect("memory");
        assert_eq!(buffer.len(), 100_000);
        assert!(buffer.iter().all(|byte| *byte == 0));
        assert_eq!(buffer.as_ptr().addr() % 4096, 0);
        buffer.fill(7);
        assert_eq!(buffer[99_999], 7);
        let sum = std::thread::spawn(move || buffer.iter().map(|byte| u64::from(*byte)).sum::<u64>());
        assert_eq!(sum.join().expect("no panic"), 700_000);
    }

    /// True when one mapping of this process covers all of these addresses.
    fn is_mapped(start: usize, length: usize) -> bool {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("procfs");
        maps.lines().any(|line| {
            let (from, to) = line.split(' ').next().and_then(|range| range.split_once('-')).expect("a range");
            let address = |text| usize::from_str_radix(text, 16).expect("hexadecimal");
            address(from) <= start && start + length <= address(to)
        })
    }

    #[test]
    fn pages_are_returned_at_once() {
        // Large enough that nothing else in this process could get its place; never touched, so it costs nothing.
        let buffer = PageBuffer::new(ByteCount::from_mebibytes(512)).expect("address space");
        let (start, length) = (buffer.as_ptr().addr(), buffer.len());
        assert!(is_mapped(start, length));
        drop(buffer);
        assert!(!is_mapped(start, length));
    }

    #[test]
    fn empty_and_impossible_sizes() {
        assert!(PageBuffer::new(ByteCount::ZERO).expect("nothing to reserve").is_empty());
        let error = PageBuffer::new(ByteCount::new(1 << 60)).expect_err("no host has that");
        assert_eq!(error.errno(), Some(libc::ENOMEM));
    }
}
