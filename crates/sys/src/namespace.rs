//! Network namespaces (`network_namespaces(7)`): making them, naming them, acting in them.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;

use crate::error::{Error, Result, check};
use crate::mount;

const NEEDS_ROOT: &str = "namespaces need root (CAP_SYS_ADMIN)";

/// A network of its own: devices, addresses, routes, sockets and settings that nothing outside of it sees. It exists for
/// as long as a process runs in it, a file is bound to it, or this value lives.
#[derive(Debug)]
pub struct NetworkNamespace {
    file: File,
}

impl NetworkNamespace {
    /// The namespace of the calling thread.
    pub fn current() -> Result<Self> {
        Self::open(Path::new("/proc/thread-self/ns/net"))
    }

    /// The namespace that a file stands for: one that a name is bound to, or a process's in `/proc`.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |cause| Error::system(format!("opening the network namespace {}", path.display()), cause);
        File::open(path).map(|file| Self { file }).map_err(failed)
    }

    /// A new one, with a loopback device that is down and nothing else in it.
    pub fn create() -> Result<Self> {
        in_thread(|| {
            // SAFETY: takes a number; only this thread is affected, and it ends here.
            check(unsafe { libc::unshare(libc::CLONE_NEWNET) })
                .map_err(|cause| Error::system("making a network namespace", cause).hint_on(libc::EPERM, NEEDS_ROOT))?;
            Self::current()
        })?
    }

    /// Binds it to a file in `directory`, as `ip netns` does in `/run/netns`: programs then find it by that name.
    pub fn set_name(&self, directory: &Path, name: &str) -> Result<()> {
        let path = directory.join(name);
        let failed = |cause| Error::system(format!("naming a network namespace {}", path.display()), cause);
        fs::create_dir_all(directory).and_then(|()| File::create(&path)).map_err(failed)?;
        mount::bind(Path::new(&format!("/proc/self/fd/{}", self.file.as_raw_fd())), &path)
    }

    /// Does something in it. `action` runs in a thread of its own: sockets that it opens and programs that it starts
    /// belong to this namespace, also afterwards.
    pub fn within<T: Send>(&self, action: impl FnOnce() -> T + Send) -> Result<T> {
        in_thread(|| {
            // SAFETY: the descriptor is open, as `self` is borrowed; only this thread is affected, and it ends here.
            check(unsafe { libc::setns(self.file.as_raw_fd(), libc::CLONE_NEWNET) }).map_err(|cause| {
                Error::system("entering a network namespace", cause).hint_on(libc::EPERM, NEEDS_ROOT)
            })?;
            Ok(action())
        })?
    }
}

impl AsFd for NetworkNamespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The network namespace of a thread is the thread's own: one that ends with the action cannot be left in the wrong one.
pub(crate) fn in_thread<T: Send>(action: impl FnOnce() -> T + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("namespace".into());
        let running = thread.spawn_scoped(scope, action).map_err(|cause| Error::system("starting a thread", cause))?;
        running.join().or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The number of a network device in the calling thread's namespace.
pub fn device_index(device: &str) -> Result<u32> {
    let failed = |cause| Error::system(format!("looking for the network device {device}"), cause);
    let name = std::ffi::CString::new(device).map_err(|cause| failed(cause.into()))?;
    // SAFETY: the name ends with a NUL and lives through the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(failed(io::Error::last_os_error())),
        index => Ok(index),
    }
}

/// Takes the calling thread's loopback device up, which also gives it its addresses.
pub fn take_loopback_up() -> Result<()> {
    let failed = |cause| Error::system("taking the loopback device up", cause);
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").map_err(failed)?;
    let mut request = device_request("lo")?;
    let descriptor = socket.as_raw_fd();
    // SAFETY: the request reads the name and writes the flags of `request`, which is ours alone.
    check(unsafe { libc::ioctl(descriptor, libc::SIOCGIFFLAGS, &raw mut request) }).map_err(failed)?;
    // SAFETY: the kernel has just filled the flags, and any number is a value of theirs.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    request.ifr_ifru.ifru_flags = flags | up_flag();
    // SAFETY: the request only reads `request`.
    check(unsafe { libc::ioctl(descriptor, libc::SIOCSIFFLAGS, &raw const request) }).map(drop).map_err(failed)
}

#[expect(clippy::cast_possible_truncation, reason = "the constant is 1")]
const fn up_flag() -> libc::c_short {
    libc::IFF_UP as libc::c_short
}

/// A request about this device, with nothing in it but the name.
pub(crate) fn device_request(device: &str) -> Result<libc::ifreq> {
    // SAFETY: ifreq is characters and a union of plain values, for which zero is a value.
    let mut request: libc::ifreq = unsafe { core::mem::zeroed() };
    // The last character stays the NUL at the end.
    if device.is_empty() || device.len() >= request.ifr_name.len() || device.contains('\0') {
        return Err(Error::refused(format!("asking about the network device {device:?}"), "names have 1 to 15 bytes"));
    }
    for (place, byte) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *place = libc::c_char::from_ne_bytes([byte]);
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_devices() {
        assert!(device_request("eth0").is_ok());
        for wrong in ["", "a-name-of-sixteen", "0123456789abcdef", "e\0"] {
            let error = device_request(wrong).expect_err("refused");
            assert!(error.to_string().contains("1 to 15 bytes"), "{error}");
        }
        assert_eq!(device_index("lo").expect("everywhere"), 1);
        let error = device_index("no-such-device").expect_err("none");
        assert_eq!(error.errno(), Some(libc::ENODEV));
        assert!(error.to_string().contains("no-such-device"), "{error}");
    }

    #[test]
    #[ignore = "needs root: makes a network namespace"]
    fn what_happens_within_stays_within() {
        let namespace = NetworkNamespace::create().expect("root");
        let place = || fs::read_link("/proc/thread-self/ns/net").expect("procfs");
        let here = place();
        let reachable =
            || std::net::UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.connect("127.0.0.1:9")).is_ok();
        let (there, before) = namespace.within(|| (place(), reachable())).expect("entered");
        assert_ne!(here, there);
        assert!(!before, "its loopback device is down");
        namespace.within(take_loopback_up).expect("entered").expect("up");
        assert!(namespace.within(reachable).expect("entered"));
        assert_eq!(place(), here);
    }

    #[test]
    #[ignore = "needs root: makes a network namespace"]
    fn a_panic_within_comes_out() {
        let namespace = NetworkNamespace::create().expect("root");
        let caught = std::panic::catch_unwind(|| namespace.within(|| panic!("as a test")));
        assert!(caught.is_err());
    }
}
