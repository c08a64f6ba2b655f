//! Payload of the streams: random bytes, a repeating pattern, or a file.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use linerate_analysis::statistics::SeededRandom;
use linerate_sys::file::{self, PageBuffer};
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
    let mut seed = [0; 8];
    host::random_bytes(&mut seed).map_err(io::Error::other)?;
    fill_random(block, u64::from_ne_bytes(seed));
    Ok(())
}

/// Fills `block` with numbers that no device compresses. The kernel's generator, fit for secrets, takes ten times as long.
fn fill_random(block: &mut [u8], seed: u64) {
    let mut random = SeededRandom::new(seed);
    let (pieces, rest) = block.as_chunks_mut();
    for piece in pieces {
        *piece = random.next_u64().to_le_bytes();
    }
    rest.copy_from_slice(&random.next_u64().to_le_bytes()[..rest.len()]);
}

/// Block that all TCP senders of a session send repeatedly: shared, and created on first use, once.
#[derive(Debug, Default)]
pub(crate) struct StreamPayload {
    block: Mutex<Option<Arc<PageBuffer>>>,
    /// File that holds the block, for `sendfile`.
    file: Mutex<Option<Arc<File>>>,
}

impl StreamPayload {
    /// Returns the block of `length` bytes; all callers of one payload pass the same length.
    pub(super) fn block(&self, length: ByteCount, repeating: bool) -> io::Result<Arc<PageBuffer>> {
        shared(&self.block, || {
            let mut block = PageBuffer::new(length)?;
            fill(&mut block, repeating)?;
            Ok(block)
        })
    }

    /// Returns the file that holds `block`.
    pub(super) fn file(&self, block: &[u8]) -> io::Result<Arc<File>> {
        shared(&self.file, || Ok(file::temporary_file(block)?))
    }
}

/// Returns what all threads share; the first one makes it while the others wait.
fn shared<T>(place: &Mutex<Option<Arc<T>>>, make: impl FnOnce() -> io::Result<T>) -> io::Result<Arc<T>> {
    let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(existing) = &*place {
        return Ok(Arc::clone(existing));
    }
    let new = Arc::new(make()?);
    *place = Some(Arc::clone(&new));
    Ok(new)
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
        let _turn = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        (&self.file).write_all(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_payload_is_that_of_the_generator_to_the_last_byte_and_differs_between_blocks() {
        let (mut block, mut random) = ([0; 20], SeededRandom::new(7));
        fill_random(&mut block, 7);
        assert_eq!(block, [(); 3].map(|()| random.next_u64().to_le_bytes()).concat()[..20]);
        let (mut first, mut second) = ([0; 64], [0; 64]);
        fill(&mut first, false).expect("random bytes");
        fill(&mut second, false).expect("random bytes");
        assert_ne!(first, second);
    }

    #[test]
    fn all_senders_of_a_session_share_one_block_and_one_file() {
        let payload = StreamPayload::default();
        let made: Vec<_> = std::thread::scope(|scope| {
            let make = || {
                let block = payload.block(ByteCount::new(1000), true).expect("memory");
                let file = payload.file(&block).expect("a directory for temporary files");
                (block, file)
            };
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(make)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(made.iter().all(|(block, file)| Arc::ptr_eq(block, &made[0].0) && Arc::ptr_eq(file, &made[0].1)));
        assert_eq!(made[0].1.metadata().expect("a file").len(), 1000);
    }
}
