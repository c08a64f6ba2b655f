//! The disk of the state directory. Every write to it passes here, so that tests can let it fail at each one.

/// Fails where a test lets the disk fail.
#[cfg(not(test))]
#[expect(clippy::unnecessary_wraps, reason = "it fails in tests")]
pub(crate) fn check() -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
pub(crate) use in_tests::{check, with_fault};

#[cfg(test)]
mod in_tests {
    use std::cell::RefCell;
    use std::io;
    use std::rc::Rc;

    type DiskFault = Rc<dyn Fn() -> io::Result<()>>;

    thread_local! {
        static FAULT: RefCell<Option<DiskFault>> = const { RefCell::new(None) };
    }

    pub(crate) fn check() -> io::Result<()> {
        FAULT.with(|fault| fault.borrow().clone()).map_or(Ok(()), |fault| fault())
    }

    /// Runs `work` with this answer to each write of the calling thread.
    pub(crate) fn with_fault<T>(fault: DiskFault, work: impl FnOnce() -> T) -> T {
        FAULT.with(|place| *place.borrow_mut() = Some(fault));
        let done = work();
        FAULT.with(|place| *place.borrow_mut() = None);
        done
    }
}
