//! Sequential writing, reading and copying of files without names.

use linerate_model::baseline::{DiskRates, TimedTransfer};
use linerate_model::fact::{Fact, ReadObstacle, UnreadFact};
use linerate_sys::disk::{CacheMode, ScratchFile};
use linerate_sys::file::PageBuffer;
use linerate_sys::{Result, host};
use linerate_units::ByteCount;

use super::{BaselinePlan, TransferTimer, fact, unknown};

/// Block of one read or write: large enough for striped disks.
const BLOCK: ByteCount = ByteCount::from_mebibytes(1);

/// Bytes between two flushes, so that a stop does not wait for gigabytes in the page cache.
const FLUSH_EVERY: ByteCount = ByteCount::from_mebibytes(64);

/// Measures the disk: each of the three operations for at most the plan's time, and with `room` bytes.
pub(super) fn measure(
    plan: &BaselinePlan,
    room: ByteCount,
    access: CacheMode,
    stop: &(dyn Fn() -> bool + Sync),
) -> DiskRates {
    if room < BLOCK {
        let reason = format!("the file system of {} has too little free space", plan.directory.display());
        return unknown(&Fact::failed(reason));
    }
    let file = match ScratchFile::create(&plan.directory, access) {
        Ok(file) => file,
        Err(error) => return unknown(&refusal(error, access)),
    };
    let trial = DiskTrial { plan, room, access, stop };
    let write = trial.write(&file);
    let written = match &write {
        Ok(passage) if !stop() => passage.bytes,
        _ => return DiskRates { write: fact(write), ..DiskRates::default() },
    };
    let read = trial.read(&file, written);
    let copy = if stop() { Fact::default() } else { fact(trial.copy(&file, written)) };
    DiskRates { write: fact(write), read: fact(read), copy }
}

fn refusal(error: linerate_sys::Error, access: CacheMode) -> Fact<TimedTransfer> {
    let no_such_access = access == CacheMode::Direct
        && matches!(error.kind(), std::io::ErrorKind::InvalidInput | std::io::ErrorKind::Unsupported);
    match (no_such_access, fact::<TimedTransfer>(Err(error))) {
        (true, Fact::Unknown(unread)) => Fact::Unknown(UnreadFact {
            obstacle: ReadObstacle::Absent,
            reason: format!("this file system does not support direct access ({})", unread.reason),
        }),
        (_, fact) => fact,
    }
}

struct DiskTrial<'a> {
    plan: &'a BaselinePlan,
    room: ByteCount,
    access: CacheMode,
    stop: &'a (dyn Fn() -> bool + Sync),
}

impl DiskTrial<'_> {
    fn goes_on(&self, watch: &TransferTimer) -> bool {
        watch.elapsed() < self.plan.time && !(self.stop)()
    }

    fn write(&self, file: &ScratchFile) -> Result<TimedTransfer> {
        let mut block = random_block()?;
        let watch = TransferTimer::start();
        let mut written = ByteCount::new(0);
        while written.get() + BLOCK.get() <= self.room.get() && self.goes_on(&watch) {
            make_unique(&mut block, written);
            file.write(&block, written)?;
            written += BLOCK;
            self.flush_periodically(file, written)?;
        }
        file.flush()?;
        Ok(watch.passage(written))
    }

    fn read(&self, file: &ScratchFile, length: ByteCount) -> Result<TimedTransfer> {
        let mut block = PageBuffer::new(BLOCK)?;
        let watch = TransferTimer::start();
        let mut read = ByteCount::new(0);
        while read < length && self.goes_on(&watch) {
            let count = file.read(&mut block, read)?;
            if count.is_zero() {
                break;
            }
            read += count;
        }
        Ok(watch.passage(read))
    }

    /// Reads from the disk, not from the cache, also when the access goes through it.
    fn copy(&self, from: &ScratchFile, length: ByteCount) -> Result<TimedTransfer> {
        let to = ScratchFile::create(&self.plan.directory, self.access)?;
        from.forget()?;
        let mut block = PageBuffer::new(BLOCK)?;
        let watch = TransferTimer::start();
        let mut copied = ByteCount::new(0);
        while copied < length && self.goes_on(&watch) {
            let count = from.read(&mut block, copied)?;
            if count < BLOCK {
                break;
            }
            to.write(&block, copied)?;
            copied += count;
            self.flush_periodically(&to, copied)?;
        }
        to.flush()?;
        Ok(watch.passage(copied))
    }

    fn flush_periodically(&self, file: &ScratchFile, written: ByteCount) -> Result<()> {
        let is_time = self.access == CacheMode::Cached && written.get().is_multiple_of(FLUSH_EVERY.get());
        if is_time { file.flush() } else { Ok(()) }
    }
}

/// Incompressible data.
fn random_block() -> Result<PageBuffer> {
    let mut block = PageBuffer::new(BLOCK)?;
    host::random_bytes(&mut block)?;
    Ok(block)
}

/// Makes each block unique, for file systems that deduplicate.
fn make_unique(block: &mut PageBuffer, place: ByteCount) {
    const PAGE: usize = 4096;
    for page in block.chunks_exact_mut(PAGE) {
        page[..8].copy_from_slice(&place.get().to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn plan() -> BaselinePlan {
        BaselinePlan {
            directory: std::env::temp_dir(),
            most_bytes: ByteCount::from_mebibytes(4),
            time: Duration::from_secs(20),
        }
    }

    #[test]
    fn all_that_may_be_written_is_written_read_and_copied() {
        let plan = plan();
        let rates = measure(&plan, plan.most_bytes, CacheMode::Cached, &|| false);
        for fact in [&rates.write, &rates.read, &rates.copy] {
            assert_eq!(fact.known().map(|passage| passage.bytes), Some(ByteCount::from_mebibytes(4)), "{fact:?}");
        }
    }

    #[test]
    fn after_a_stop_the_remaining_parts_stay_unread() {
        let asked = AtomicUsize::new(0);
        let stop = || asked.fetch_add(1, Ordering::Relaxed) >= 2;
        let plan = plan();
        let rates = measure(&plan, plan.most_bytes, CacheMode::Cached, &stop);
        assert_eq!(rates.write.known().map(|passage| passage.bytes), Some(ByteCount::from_mebibytes(2)));
        assert_eq!((rates.read, rates.copy), (Fact::default(), Fact::default()));
    }

    #[test]
    fn missing_space_and_a_missing_directory_are_reasons() {
        let rates = measure(&plan(), ByteCount::from_kibibytes(4), CacheMode::Cached, &|| false);
        assert!(rates.write.unread().is_some_and(|unread| unread.reason.contains("space")));
        let nowhere = BaselinePlan { directory: "/no/such/directory".into(), ..plan() };
        let rates = measure(&nowhere, nowhere.most_bytes, CacheMode::Direct, &|| false);
        assert!(rates.read.unread().is_some_and(|unread| unread.reason.contains("/no/such/directory")));
    }
}
