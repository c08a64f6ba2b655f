//! The disk of the state directory. Every write to it passes here, and every look at an owner, so that tests can let the disk
//! fail at each one.

#[cfg(test)]
pub(crate) use in_tests::{DiskFault, check, owner, with_fault};
#[cfg(not(test))]
pub(crate) use on_disk::{check, owner};

#[cfg_attr(test, expect(dead_code, reason = "tests have their own check"))]
mod on_disk {
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    /// Fails where a test lets the disk fail.
    #[expect(clippy::unnecessary_wraps, reason = "it fails in tests")]
    pub(crate) fn check() -> std::io::Result<()> {
        Ok(())
    }

    /// Owner of a file; `None` when it cannot be looked at.
    pub(crate) fn owner(path: &Path) -> Option<u32> {
        fs::metadata(path).map(|found| found.uid()).ok()
    }
}

#[cfg(test)]
mod in_tests {
    use std::cell::RefCell;
    use std::io;
    use std::path::Path;
    use std::rc::Rc;

    /// A disk of a test.
    pub(crate) trait DiskFault {
        /// Answer to a write.
        fn write(&self) -> io::Result<()>;
        /// Owner of all files, in place of the true one.
        fn owner(&self) -> Option<u32>;
    }

    thread_local! {
        static FAULT: RefCell<Option<Rc<dyn DiskFault>>> = const { RefCell::new(None) };
    }

    fn fault() -> Option<Rc<dyn DiskFault>> {
        FAULT.with(|fault| fault.borrow().clone())
    }

    pub(crate) fn check() -> io::Result<()> {
        fault().map_or(Ok(()), |fault| fault.write())
    }

    pub(crate) fn owner(path: &Path) -> Option<u32> {
        fault().and_then(|fault| fault.owner()).or_else(|| super::on_disk::owner(path))
    }

    /// Runs `work` with this disk for the calling thread.
    pub(crate) fn with_fault<T>(fault: Rc<dyn DiskFault>, work: impl FnOnce() -> T) -> T {
        FAULT.with(|place| *place.borrow_mut() = Some(fault));
        let done = work();
        FAULT.with(|place| *place.borrow_mut() = None);
        done
    }
}
