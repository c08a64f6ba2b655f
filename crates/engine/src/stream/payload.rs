//! Payload of the streams: random bytes, a repeating pattern, or a file.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use linerate_sys::file::PageBuffer;
use linerate_sys::host;
use linerate_units::ByteCount;

/// The pattern of `--repeating-payload`, as iperf3 fills it (`fill_with_repeating_pattern`).
const PATTERN: &[u8; 10] = b"0123456789";

/// Fills a block with the payload of the test.
pub(super) fn fill(block: &mut [u8], repeating: bool) -> io::Result<()> {
    if repeating {
        for (byte, digit) in block.iter_mut().zip(PATTERN.iter().cycle()) {
            *byte = *digit;
        }
        return Ok(());
    }
    host::random_bytes(block).map_err(io::Error::other)
}

/// Block that all TCP senders of a session send repeatedly: shared, and created on first use.
#[derive(Debug, Default)]
pub(crate) struct StreamPayload(OnceLock<Arc<PageBuffer>>);

impl StreamPayload {
    /// Returns the block of `length` bytes; all callers of one payload pass the same length.
    pub(super) fn block(&self, length: ByteCount, repeating: bool) -> io::Result<Arc<PageBuffer>> {
        if let Some(block) = self.0.get() {
            return Ok(Arc::clone(block));
        }
        let mut block = PageBuffer::new(length)?;
        fill(&mut block, repeating)?;
        Ok(Arc::clone(self.0.get_or_init(|| Arc::new(block))))
    }
}

/// File of `-F`, shared by all streams: each reads or appends the next piece.
#[derive(Debug)]
pub(crate) struct TransferFile {
    /// Name as the user gave it.
    pub name: PathBuf,
    file: File,
    position: AtomicU64,
    writer: Mutex<()>,
}

impl TransferFile {
    /// Opens a file to send from.
    pub(crate) fn source(name: PathBuf) -> io::Result<Self> {
        let file = File::open(&name)?;
        Ok(Self { name, file, position: AtomicU64::new(0), writer: Mutex::new(()) })
    }

    /// Opens a file to receive into; an existing one is overwritten, as iperf3 does.
    pub(crate) fn sink(name: PathBuf) -> io::Result<Self> {
        let file = File::options().write(true).create(true).truncate(true).open(&name)?;
        Ok(Self { name, file, position: AtomicU64::new(0), writer: Mutex::new(()) })
    }

    /// Current size.
    pub(crate) fn size(&self) -> io::Result<ByteCount> {
        Ok(ByteCount::new(self.file.metadata()?.len()))
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Reserves the next `length` bytes of the file and returns their offset.
    pub(super) fn advance(&self, length: usize) -> u64 {
        self.position.fetch_add(length as u64, Ordering::Relaxed)
    }

    /// Reads the next piece into `block`; 0 at the end of the file.
    pub(super) fn read_next(&self, block: &mut [u8]) -> io::Result<usize> {
        let start = self.advance(block.len());
        let mut filled = 0;
        while filled < block.len() {
            match self.file.read_at(&mut block[filled..], start + filled as u64)? {
                0 => break,
                count => filled += count,
            }
        }
        Ok(filled)
    }

    /// Appends a received piece.
    pub(super) fn append(&self, piece: &[u8]) -> io::Result<()> {
        let _turn = self.writer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        (&self.file).write_all(piece)
    }
}
