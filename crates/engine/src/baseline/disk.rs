//! Sequential writing, reading and copying of files without names.

use linerate_model::baseline::{DiskRates, Passage};
use linerate_model::fact::{Fact, Obstacle, Unread};
use linerate_sys::disk::{Access, ScratchFile};
use linerate_sys::file::PageBuffer;
use linerate_sys::{Result, host};
use linerate_units::ByteCount;

use super::{Plan, Watch, fact, unknown};

/// What is written and read at once: large enough for disks that are many.
const BLOCK: ByteCount = ByteCount::from_mebibytes(1);

/// How often to ask the disk to have what was written, so that a stop does not wait for gigabytes in the page cache.
const FLUSH_EVERY: ByteCount = ByteCount::from_mebibytes(64);

/// Tries the disk; each of the three for the plan's time at the most, and with `room` bytes.
pub(super) fn measure(plan: &Plan, room: ByteCount, access: Access, stop: &(dyn Fn() -> bool + Sync)) -> DiskRates {
    if room < BLOCK {
        let reason = format!("the file system of {} has too little room left", plan.directory.display());
        return unknown(&Fact::failed(reason));
    }
    let file = match ScratchFile::create(&plan.directory, access) {
        Ok(file) => file,
        Err(error) => return unknown(&refusal(error, access)),
    };
    let trial = Trial { plan, room, access, stop };
    let write = trial.write(&file);
    let written = match &write {
        Ok(passage) if !stop() => passage.bytes,
        _ => return DiskRates { write: fact(write), ..DiskRates::default() },
    };
    let read = trial.read(&file, written);
    let copy = if stop() { Fact::default() } else { fact(trial.copy(&file, written)) };
    DiskRates { write: fact(write), read: fact(read), copy }
}

fn refusal(error: linerate_sys::Error, access: Access) -> Fact<Passage> {
    let no_such_access = access == Access::Direct
        && matches!(error.kind(), std::io::ErrorKind::InvalidInput | std::io::ErrorKind::Unsupported);
    match (no_such_access, fact::<Passage>(Err(error))) {
        (true, Fact::Unknown(unread)) => Fact::Unknown(Unread {
            obstacle: Obstacle::Absent,
            reason: format!("this file system takes no direct access ({})", unread.reason),
        }),
        (_, fact) => fact,
    }
}

struct Trial<'a> {
    plan: &'a Plan,
    room: ByteCount,
    access: Access,
    stop: &'a (dyn Fn() -> bool + Sync),
}

impl Trial<'_> {
    fn goes_on(&self, watch: &Watch) -> bool {
        watch.elapsed() < self.plan.time && !(self.stop)()
    }

    fn write(&self, file: &ScratchFile) -> Result<Passage> {
        let mut block = random_block()?;
        let watch = Watch::start();
        let mut written = ByteCount::new(0);
        while written.get() + BLOCK.get() <= self.room.get() && self.goes_on(&watch) {
            differ(&mut block, written);
            file.write(&block, written)?;
            written += BLOCK;
            self.flush_sometimes(file, written)?;
        }
        file.flush()?;
        Ok(watch.passage(written))
    }

    fn read(&self, file: &ScratchFile, length: ByteCount) -> Result<Passage> {
        let mut block = PageBuffer::new(BLOCK)?;
        let watch = Watch::start();
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

    /// Reads from the disk, not from the cache, also where the access goes through it.
    fn copy(&self, from: &ScratchFile, length: ByteCount) -> Result<Passage> {
        let to = ScratchFile::create(&self.plan.directory, self.access)?;
        from.forget()?;
        let mut block = PageBuffer::new(BLOCK)?;
        let watch = Watch::start();
        let mut copied = ByteCount::new(0);
        while copied < length && self.goes_on(&watch) {
            let count = from.read(&mut block, copied)?;
            if count < BLOCK {
                break;
            }
            to.write(&block, copied)?;
            copied += count;
            self.flush_sometimes(&to, copied)?;
        }
        to.flush()?;
        Ok(watch.passage(copied))
    }

    fn flush_sometimes(&self, file: &ScratchFile, written: ByteCount) -> Result<()> {
        let is_time = self.access == Access::Cached && written.get().is_multiple_of(FLUSH_EVERY.get());
        if is_time { file.flush() } else { Ok(()) }
    }
}

/// What no file system can make smaller.
fn random_block() -> Result<PageBuffer> {
    let mut block = PageBuffer::new(BLOCK)?;
    host::random_bytes(&mut block)?;
    Ok(block)
}

/// No two blocks are the same, for file systems that keep equal ones once.
fn differ(block: &mut PageBuffer, place: ByteCount) {
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

    fn plan() -> Plan {
        Plan {
            directory: std::env::temp_dir(),
            most_bytes: ByteCount::from_mebibytes(4),
            time: Duration::from_secs(20),
        }
    }

    #[test]
    fn all_that_may_be_written_is_written_read_and_copied() {
        let plan = plan();
        let rates = measure(&plan, plan.most_bytes, Access::Cached, &|| false);
        for fact in [&rates.write, &rates.read, &rates.copy] {
            assert_eq!(fact.known().map(|passage| passage.bytes), Some(ByteCount::from_mebibytes(4)), "{fact:?}");
        }
    }

    #[test]
    fn a_stop_leaves_the_rest_unread() {
        let asked = AtomicUsize::new(0);
        let stop = || asked.fetch_add(1, Ordering::Relaxed) >= 2;
        let plan = plan();
        let rates = measure(&plan, plan.most_bytes, Access::Cached, &stop);
        assert_eq!(rates.write.known().map(|passage| passage.bytes), Some(ByteCount::from_mebibytes(2)));
        assert_eq!((rates.read, rates.copy), (Fact::default(), Fact::default()));
    }

    #[test]
    fn no_room_and_no_directory_are_reasons() {
        let rates = measure(&plan(), ByteCount::from_kibibytes(4), Access::Cached, &|| false);
        assert!(rates.write.unread().is_some_and(|unread| unread.reason.contains("room")));
        let nowhere = Plan { directory: "/no/such/directory".into(), ..plan() };
        let rates = measure(&nowhere, nowhere.most_bytes, Access::Direct, &|| false);
        assert!(rates.read.unread().is_some_and(|unread| unread.reason.contains("/no/such/directory")));
    }
}
