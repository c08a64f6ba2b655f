//! Network namespaces (`network_namespaces(7)`): creating, naming and entering them.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, gettid, move_into_link_name_space, unshare_unsafe};

use crate::error::{Error, Result};
use crate::mount;
use crate::netlink::NetlinkSocket;
use crate::sockopt::{self, SocketOption};

const NEEDS_ROOT: &str = "namespaces need root (CAP_SYS_ADMIN)";

/// A network of its own: devices, addresses, routes, sockets and settings that are invisible outside of it. It exists
/// for as long as a process runs in it, a file is bound to it, or this value lives.
#[derive(Debug)]
pub struct NetworkNamespace {
    file: File,
}

impl NetworkNamespace {
    /// The namespace of the calling thread.
    pub fn current() -> Result<Self> {
        Self::open(&own_file())
    }

    /// The namespace of a file: a named bind mount, or a process's file in `/proc`.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |cause| Error::system(format!("opening the network namespace {}", path.display()), cause);
        File::open(path).map(|file| Self { file }).map_err(failed)
    }

    /// Creates one, with a loopback device that is down and nothing else in it.
    pub fn create() -> Result<Self> {
        in_thread(|| {
            // Only this thread is affected, and it ends here.
            unshare(UnshareFlags::NEWNET)
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

    /// Runs `action` in it, in a thread of its own: sockets that it opens and programs that it starts belong to this
    /// namespace, also afterwards.
    pub fn within<T: Send>(&self, action: impl FnOnce() -> T + Send) -> Result<T> {
        in_thread(|| {
            move_into_link_name_space(self.as_fd(), Some(LinkNameSpaceType::Network)).map_err(|cause| {
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

/// The network namespace of a thread is the thread's own: one that ends with the action cannot be left in the wrong
/// one.
pub(crate) fn in_thread<T: Send>(action: impl FnOnce() -> T + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("namespace".into());
        let running = thread.spawn_scoped(scope, action).map_err(|cause| Error::system("starting a thread", cause))?;
        running.join().or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// File of the calling thread's network namespace.
#[must_use]
pub fn own_file() -> PathBuf {
    own_file_in(Path::new("/proc"))
}

/// Kernels before 3.17 have no `thread-self`.
fn own_file_in(proc: &Path) -> PathBuf {
    let own = proc.join("thread-self/ns/net");
    if own.exists() { own } else { proc.join(format!("self/task/{}/ns/net", gettid().as_raw_pid())) }
}

/// Number of the calling thread's network namespace.
#[must_use]
pub fn own_number() -> Option<u64> {
    number_of(&own_file()).ok()
}

/// Number of the calling thread's network namespace that no other has before the next boot, unlike [`own_number`]; `None`
/// before Linux 5.14.
#[must_use]
pub fn own_cookie() -> Option<u64> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None).ok()?;
    sockopt::get(&socket, NAMESPACE_COOKIE).ok()
}

/// `SO_NETNS_COOKIE` of `asm-generic/socket.h`.
const NAMESPACE_COOKIE: SocketOption =
    SocketOption::new(libc::SOL_SOCKET, 71, "SO_NETNS_COOKIE", "cookie of the network namespace");

/// Number of the network namespace of a file.
pub fn number_of(file: &Path) -> io::Result<u64> {
    fs::metadata(file).map(|metadata| metadata.ino())
}

/// The number of a network device in the calling thread's namespace.
pub fn device_index(device: &str) -> Result<u32> {
    index_of(device).map_err(|cause| Error::system(format!("looking for the network device {device}"), cause))
}

/// The same with the kernel's error alone.
pub(crate) fn index_of(device: &str) -> io::Result<u32> {
    if device.contains('\0') {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    Ok(name_to_index(socket, device)?)
}

/// Moves the calling thread into new namespaces. Its descriptors stay shared with the other threads.
pub(crate) fn unshare(namespaces: UnshareFlags) -> io::Result<()> {
    // SAFETY: without FILES, each thread still sees the descriptors of all others.
    Ok(unsafe { unshare_unsafe(namespaces.difference(UnshareFlags::FILES)) }?)
}

/// Sets the calling thread's loopback device up, which also gives it its addresses.
pub fn take_loopback_up() -> Result<()> {
    let failed = |cause: io::Error| Error::system("setting the loopback device up", cause);
    let up = libc::IFF_UP.to_ne_bytes();
    // `ifinfomsg`: family and type, number, flags, flags to change.
    let request = [[0; 4], device_index("lo")?.to_ne_bytes(), up, up].concat();
    NetlinkSocket::route().and_then(|mut socket| socket.change(libc::RTM_NEWLINK, &request)).map_err(failed)
}

/// A device's name as the requests of netdevice(7) have it.
pub(crate) fn device_name(device: &str) -> Result<[libc::c_char; libc::IFNAMSIZ]> {
    let mut name = [0; libc::IFNAMSIZ];
    // The last character stays the NUL at the end.
    if device.is_empty() || device.len() >= name.len() || device.contains('\0') {
        return Err(Error::refused(format!("asking about the network device {device:?}"), "names have 1 to 15 bytes"));
    }
    for (place, byte) in name.iter_mut().zip(device.bytes()) {
        *place = libc::c_char::from_ne_bytes([byte]);
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_devices() {
        assert!(device_name("eth0").is_ok());
        for wrong in ["", "a-name-of-sixteen", "0123456789abcdef", "e\0"] {
            let error = device_name(wrong).expect_err("refused");
            assert!(error.to_string().contains("1 to 15 bytes"), "{error}");
        }
        assert_eq!(device_index("lo").expect("everywhere"), 1);
        let error = device_index("no-such-device").expect_err("none");
        assert_eq!(error.errno(), Some(libc::ENODEV));
        assert!(error.to_string().contains("no-such-device"), "{error}");
    }

    /// A directory that has what `/proc` had before `thread-self`.
    #[test]
    fn without_thread_self() {
        let old = std::env::temp_dir().join(format!("linerate-proc-{}", std::process::id()));
        fs::create_dir_all(&old).expect("room");
        std::os::unix::fs::symlink("/proc/self", old.join("self")).expect("room");
        assert_eq!(number_of(&own_file_in(&old)).ok(), own_number());
        assert!(own_number().is_some());
        fs::remove_dir_all(&old).expect("ours");
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
