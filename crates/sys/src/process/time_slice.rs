//! Time slices of threads (`sched_setattr(2)`).

use core::marker::PhantomData;
use core::time::Duration;
use std::io;

use crate::error::{Error, Result, check};

/// Time slices of the calling thread that differ from the scheduler's, until this is dropped.
#[derive(Debug)]
pub struct TimeSliceChange {
    before: libc::sched_attr,
    /// It belongs to its thread.
    _thread: PhantomData<*const ()>,
}

impl TimeSliceChange {
    /// Asks for time slices of `slice` for the calling thread and those that it starts: while others of its priority keep a
    /// processor busy, it is let in before theirs end, and gives way as early itself. Kernels before 6.12 take the request
    /// and change nothing; of a real-time thread nothing changes either.
    pub fn new(slice: Duration) -> Result<Self> {
        let failed = |cause| Error::system(format!("asking for time slices of {slice:?}"), cause);
        let before = attributes().map_err(failed)?;
        if matches!(i32::try_from(before.sched_policy), Ok(libc::SCHED_OTHER | libc::SCHED_BATCH)) {
            let sched_runtime = u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX);
            set_attributes(&libc::sched_attr { sched_runtime, ..before }).map_err(failed)?;
        }
        Ok(Self { before, _thread: PhantomData })
    }
}

impl Drop for TimeSliceChange {
    fn drop(&mut self) {
        // The kernel has taken such a request before; the slices of a thread change no result.
        let _ = set_attributes(&self.before);
    }
}

/// Scheduling attributes of the calling thread.
fn attributes() -> io::Result<libc::sched_attr> {
    // SAFETY: all its fields are integers.
    let mut attributes: libc::sched_attr = unsafe { core::mem::zeroed() };
    let size = size_of::<libc::sched_attr>();
    // SAFETY: the kernel writes at most `size` bytes into `attributes`.
    let answer = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    check(answer).map(|_| attributes)
}

fn set_attributes(attributes: &libc::sched_attr) -> io::Result<()> {
    // SAFETY: the kernel reads `attributes`, whose first field has its size.
    let answer = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const *attributes, 0) };
    check(answer).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_thread() -> (u64, u32, i32) {
        let found = attributes().expect("Linux reports them");
        (found.sched_runtime, found.sched_policy, found.sched_nice)
    }

    #[test]
    fn a_thread_has_other_slices_until_the_change_ends() {
        let before = of_thread();
        let change = TimeSliceChange::new(Duration::from_micros(200)).expect("no privilege is needed");
        let (slice, policy, nice) = of_thread();
        // Kernels before 6.12 report none.
        assert!([0, 200_000].contains(&slice), "{slice} ns");
        assert_eq!((policy, nice), (before.1, before.2));
        assert_eq!(std::thread::spawn(of_thread).join().expect("no panic").0, slice);
        drop(change);
        assert_eq!(of_thread(), before);
    }
}
