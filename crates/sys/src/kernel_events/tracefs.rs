//! Formats of tracepoints in tracefs, mounted or not.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;

use linerate_model::host::tracepoint::TracepointFormat;
use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use crate::error::{Error, Result};

/// Directories where distributions mount it.
const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Maximum size of a format, above that of any kernel.
const MAX_FORMAT_SIZE: u64 = 1 << 18;

/// Open directory of tracefs.
#[derive(Debug)]
pub(super) struct Tracefs {
    root: OwnedFd,
}

impl Tracefs {
    /// Opens the mounted one, else an instance of this process's own that appears in no directory.
    pub(super) fn open() -> Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mounted = MOUNTED.iter().find_map(|directory| {
            let root = rustix::fs::open(*directory, flags, Mode::empty()).ok()?;
            openat(&root, "events", flags, Mode::empty()).ok()?;
            Some(root)
        });
        let root = mounted.map_or_else(Self::detached, Ok).map_err(|cause| {
            Error::system("opening the kernel's tracepoints (tracefs)", cause)
                .hint_on(libc::EPERM, "tracing needs root (CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN)")
                .hint_on(libc::EACCES, "tracing needs root (CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN)")
                .hint_on(libc::ENODEV, "this kernel has no tracepoints (CONFIG_TRACING)")
        })?;
        Ok(Self { root })
    }

    fn detached() -> rustix::io::Result<OwnedFd> {
        let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
    }

    /// Format of a tracepoint, for example `irq/softirq_entry`.
    pub(super) fn format(&self, tracepoint: &str) -> Result<TracepointFormat> {
        let operation = || format!("reading the format of the tracepoint {tracepoint}");
        let path = format!("events/{tracepoint}/format");
        let file = openat(&self.root, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|cause| Error::system(operation(), cause).hint_on(libc::ENOENT, "this kernel has no such one"))?;
        let mut text = String::new();
        let read = File::from(file).take(MAX_FORMAT_SIZE).read_to_string(&mut text);
        read.map_err(|cause| Error::system(operation(), cause))?;
        TracepointFormat::parse(&text)
            .ok_or_else(|| Error::refused(operation(), "the kernel's description has an unknown form"))
    }
}
