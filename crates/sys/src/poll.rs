//! Waiting until file descriptors are ready (`ppoll(2)`), and waking a thread that waits.

use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

use crate::clock;
use crate::error::{Error, Result, check};

/// Events to wait for on a file descriptor. Errors and the peer's hang-up are always reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PollInterest(libc::c_short);

impl PollInterest {
    /// Nothing but errors.
    pub const NONE: Self = Self(0);
    /// Data, a connection or the end of the stream can be read.
    pub const READ: Self = Self(libc::POLLIN);
    /// There is space to write, or a connection attempt is over.
    pub const WRITE: Self = Self(libc::POLLOUT);
    /// Either.
    pub const READ_WRITE: Self = Self(libc::POLLIN | libc::POLLOUT);
}

/// A file descriptor to wait for, and its events.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct PollItem<'a> {
    raw: libc::pollfd,
    borrowed: PhantomData<BorrowedFd<'a>>,
}

impl<'a> PollItem<'a> {
    /// Waits for `interest` on `descriptor`.
    pub fn new(descriptor: &'a impl AsFd, interest: PollInterest) -> Self {
        let raw = libc::pollfd { fd: descriptor.as_fd().as_raw_fd(), events: interest.0, revents: 0 };
        Self { raw, borrowed: PhantomData }
    }

    /// True when anything at all happened.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.raw.revents != 0
    }

    /// True when a read would not block: data, the end of the stream or an error is there.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        self.raw.revents & (libc::POLLIN | libc::POLLHUP | libc::POLLERR | libc::POLLRDHUP) != 0
    }

    /// True when a write would not block: there is space or an error.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.raw.revents & (libc::POLLOUT | libc::POLLERR | libc::POLLHUP) != 0
    }

    /// True when an error is pending; for a socket also when its error queue has something (`MSG_ERRQUEUE`).
    #[must_use]
    pub fn has_error(&self) -> bool {
        self.raw.revents & (libc::POLLERR | libc::POLLNVAL) != 0
    }
}

impl fmt::Debug for PollItem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PollItem(fd {}, events {:#x}, ready {:#x})", self.raw.fd, self.raw.events, self.raw.revents)
    }
}

/// The system call itself: unlike the C library's `ppoll`, it stores the time that is left, so that a signal costs no
/// reading of the clock and a wait none at all.
#[cfg(target_pointer_width = "64")]
const PPOLL: libc::c_long = libc::SYS_ppoll;
#[cfg(not(target_pointer_width = "64"))]
const PPOLL: libc::c_long = libc::SYS_ppoll_time64;

/// `struct __kernel_timespec` (`include/uapi/linux/time_types.h`).
#[repr(C)]
struct KernelTimespec {
    seconds: i64,
    nanoseconds: i64,
}

impl From<Duration> for KernelTimespec {
    fn from(time: Duration) -> Self {
        Self { seconds: i64::try_from(time.as_secs()).unwrap_or(i64::MAX), nanoseconds: time.subsec_nanos().into() }
    }
}

/// Waits until at least one of `items` is ready or `timeout` is over; `None` waits without limit.
///
/// Returns the number of ready ones: 0 after a time-out. A signal does not end the wait; to notice signals, wait for
/// [`crate::signals::InterruptSignals`] too.
pub fn wait(items: &mut [PollItem<'_>], timeout: Option<Duration>) -> Result<usize> {
    let count = libc::nfds_t::try_from(items.len()).unwrap_or(libc::nfds_t::MAX);
    let mut left = timeout.map(KernelTimespec::from);
    let left = left.as_mut().map_or(core::ptr::null_mut(), core::ptr::from_mut);
    let ready = clock::retry(|| {
        // SAFETY: `PollItem` is a transparent pollfd, and the slice holds `count` of them, borrowed mutably for the
        // call; `left` is null or points to a live time in the kernel's layout; a null signal mask of any size leaves
        // the mask as it is.
        check(unsafe { libc::syscall(PPOLL, items.as_mut_ptr(), count, left, core::ptr::null::<u8>(), 0_usize) })
    });
    ready
        .map(|ready| usize::try_from(ready).unwrap_or(0))
        .map_err(|cause| Error::system(format!("waiting for {} file descriptors", items.len()), cause))
}

/// Waits until `descriptor` is ready for `interest`; returns true if that was before `timeout`.
pub fn wait_for(descriptor: &impl AsFd, interest: PollInterest, timeout: Option<Duration>) -> Result<bool> {
    Ok(wait(&mut [PollItem::new(descriptor, interest)], timeout)? > 0)
}

/// Wakes threads that wait in [`wait`] for this object to be readable (`eventfd(2)`).
///
/// Stays readable until it is drained, so nothing is missed.
#[derive(Debug)]
pub struct Waker {
    event: OwnedFd,
}

impl Waker {
    /// A waker that is not readable yet.
    pub fn new() -> Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        event.map(|event| Self { event }).map_err(|cause| Error::system("creating an eventfd", cause))
    }

    /// Makes it readable.
    pub fn wake(&self) {
        // A full counter (EAGAIN) is readable too, so failure is none.
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }

    /// Clears all wake-ups so far; returns true if there were any.
    #[expect(clippy::must_use_candidate, reason = "draining is the point; the answer is extra")]
    pub fn drain(&self) -> bool {
        rustix::io::read(&self.event, &mut [0_u8; 8]) == Ok(8)
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

/// True when an I/O error only means that a queue or the memory for buffers is full (`ENOBUFS`, whose number differs
/// between architectures).
#[must_use]
pub fn is_queue_full(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOBUFS)
}

/// True when an I/O error is one of a device or file (`EIO`).
#[must_use]
pub fn is_device_failure(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EIO)
}

/// True when an I/O error only means that the call would have had to wait.
#[must_use]
pub fn would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

/// True when a call on a blocking socket may be made again: its time limit has passed, or a signal has interrupted it.
#[must_use]
pub fn is_temporary(error: &io::Error) -> bool {
    would_block(error) || matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::thread::JoinHandleExt;
    use std::sync::Arc;
    use std::time::Instant;

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("loopback");
        (client, listener.accept().expect("a client came").0)
    }

    #[test]
    fn a_time_out_has_nothing_ready() {
        let waker = Waker::new().expect("eventfd");
        let start = clock::monotonic_now();
        assert_eq!(
            wait(&mut [PollItem::new(&waker, PollInterest::READ)], Some(Duration::from_millis(20))).expect("poll"),
            0
        );
        assert!(clock::monotonic_now() - start >= Duration::from_millis(20));
    }

    extern "C" fn ignore(_signal: libc::c_int) {}

    #[test]
    fn signals_leave_the_time_as_it_is() {
        let action = libc::sigaction {
            sa_sigaction: ignore as extern "C" fn(libc::c_int) as usize,
            // SAFETY: integers and an optional function; zero is a value of each.
            ..unsafe { core::mem::zeroed() }
        };
        // SAFETY: the action is complete and its handler does nothing.
        assert_eq!(unsafe { libc::sigaction(libc::SIGURG, &raw const action, core::ptr::null_mut()) }, 0);
        let waker = Waker::new().expect("eventfd");
        let time = Duration::from_millis(300);
        let thread = std::thread::spawn(move || {
            let start = Instant::now();
            let came = wait_for(&waker, PollInterest::READ, Some(time)).expect("a signal is no error");
            (came, start.elapsed())
        });
        while !thread.is_finished() {
            // SAFETY: the thread is joined below, so that its identifier is still valid.
            unsafe { libc::pthread_kill(thread.as_pthread_t(), libc::SIGURG) };
            std::thread::sleep(Duration::from_millis(20));
        }
        let (came, elapsed) = thread.join().expect("no panic");
        assert!(!came && elapsed >= time, "{elapsed:?}");
    }

    #[test]
    fn a_waker_stays_readable_until_it_is_drained() {
        let waker = Waker::new().expect("eventfd");
        waker.wake();
        waker.wake();
        for _ in 0..2 {
            assert!(wait_for(&waker, PollInterest::READ, Some(Duration::ZERO)).expect("poll"));
        }
        assert!(waker.drain());
        assert!(!waker.drain());
        assert!(!wait_for(&waker, PollInterest::READ, Some(Duration::ZERO)).expect("poll"));
    }

    #[test]
    fn another_thread_is_woken() {
        let waker = Arc::new(Waker::new().expect("eventfd"));
        let other = Arc::clone(&waker);
        let thread = std::thread::spawn(move || wait_for(&*other, PollInterest::READ, Some(Duration::from_secs(10))));
        waker.wake();
        assert!(thread.join().expect("no panic").expect("poll"));
    }

    #[test]
    fn each_item_reports_its_own_readiness() {
        let (client, mut server) = pair();
        let mut items = [PollItem::new(&client, PollInterest::READ_WRITE), PollItem::new(&server, PollInterest::READ)];
        assert_eq!(wait(&mut items, Some(Duration::from_secs(5))).expect("poll"), 1);
        assert!(items[0].is_writable() && !items[0].is_readable());
        assert!(!items[1].is_ready());
        server.write_all(b"x").expect("buffer space");
        assert!(wait_for(&client, PollInterest::READ, Some(Duration::from_secs(5))).expect("poll"));
    }

    #[test]
    fn the_end_of_a_stream_is_readable() {
        let (client, server) = pair();
        drop(server);
        let mut items = [PollItem::new(&client, PollInterest::READ)];
        assert_eq!(wait(&mut items, Some(Duration::from_secs(5))).expect("poll"), 1);
        assert!(items[0].is_readable());
        assert!(!items[0].has_error());
    }
}
