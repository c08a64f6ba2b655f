//! Clocks, and processor time.

use core::time::Duration;
use std::ffi::CString;
use std::io;

use linerate_units::{MonotonicTime, WallTime};

use crate::error::{Error, Result, check};

/// Processor time, as `getrusage(2)` counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// In user mode.
    pub user: Duration,
    /// In the kernel.
    pub system: Duration,
}

impl CpuTime {
    /// User and system together.
    #[must_use]
    pub fn total(self) -> Duration {
        self.user + self.system
    }
}

/// Now, on the clock that only goes forward (`CLOCK_MONOTONIC`).
#[must_use]
pub fn monotonic_now() -> MonotonicTime {
    let now = read(libc::CLOCK_MONOTONIC);
    MonotonicTime::from_nanos(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}

/// Now, in civil time (`CLOCK_REALTIME`).
#[must_use]
pub fn realtime_now() -> WallTime {
    WallTime::from_unix(read(libc::CLOCK_REALTIME))
}

/// Processor time of the calling thread since it began.
#[must_use]
pub fn thread_cpu_time() -> Duration {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Processor time of this process, all threads, since it began; children are not counted.
#[must_use]
pub fn process_cpu_time() -> CpuTime {
    cpu_time_of(libc::RUSAGE_SELF)
}

/// Processor time of the calling thread since it began, by mode.
#[must_use]
pub fn thread_cpu_usage() -> CpuTime {
    cpu_time_of(libc::RUSAGE_THREAD)
}

fn cpu_time_of(who: libc::c_int) -> CpuTime {
    // SAFETY: rusage is plain integers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    // SAFETY: `usage` is ours alone and of the size that getrusage writes. It cannot fail for these two.
    unsafe { libc::getrusage(who, &raw mut usage) };
    CpuTime { user: from_timeval(usage.ru_utime), system: from_timeval(usage.ru_stime) }
}

/// Sleeps until `deadline`; returns at once when it has passed. Signals do not cut the sleep short.
pub fn sleep_until(deadline: MonotonicTime) {
    let until = to_timespec(deadline.since_epoch());
    loop {
        // SAFETY: `until` lives through the call; with TIMER_ABSTIME the remaining time is not written.
        let answer = unsafe {
            libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const until, core::ptr::null_mut())
        };
        if answer != libc::EINTR {
            return;
        }
    }
}

/// Lets the kernel delay the calling thread's timers by at most `slack` (`PR_SET_TIMERSLACK`; the default is 50 µs).
/// At least one nanosecond, as zero would mean the default.
pub fn set_timer_slack(slack: Duration) -> Result<()> {
    let nanoseconds = libc::c_ulong::try_from(slack.as_nanos()).unwrap_or(libc::c_ulong::MAX).max(1);
    // SAFETY: PR_SET_TIMERSLACK takes a number and touches no memory of ours.
    let answer = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, nanoseconds) };
    check(answer).map(drop).map_err(|cause| Error::system(format!("setting the timer slack to {slack:?}"), cause))
}

/// `time` in local time, laid out by `strftime(3)`. A layout that yields more than 64 KiB gives nothing.
#[must_use]
pub fn format_local(time: WallTime, layout: &str) -> String {
    let seconds = civil_seconds(time);
    // SAFETY: tm is integers and a pointer that strftime ignores when null.
    let mut fields: libc::tm = unsafe { core::mem::zeroed() };
    // SAFETY: both pointers are to live values; `localtime_r` writes only `fields`.
    unsafe { libc::localtime_r(&raw const seconds, &raw mut fields) };
    layout_time(&fields, layout)
}

/// `time` in UTC, laid out by `strftime(3)`. A layout that yields more than 64 KiB gives nothing.
#[must_use]
pub fn format_utc(time: WallTime, layout: &str) -> String {
    let seconds = civil_seconds(time);
    // SAFETY: tm is integers and a pointer that strftime ignores when null.
    let mut fields: libc::tm = unsafe { core::mem::zeroed() };
    // SAFETY: both pointers are to live values; `gmtime_r` writes only `fields`.
    unsafe { libc::gmtime_r(&raw const seconds, &raw mut fields) };
    layout_time(&fields, layout)
}

const LARGEST_TEXT: usize = 64 << 10;

fn layout_time(fields: &libc::tm, layout: &str) -> String {
    // strftime answers 0 both for "no room" and for an empty text; the dot at the end tells them apart.
    let Ok(layout) = CString::new(format!("{layout}.")) else {
        return String::new();
    };
    let mut text = vec![0_u8; 256];
    while text.len() <= LARGEST_TEXT {
        // SAFETY: `text` has the given length, `layout` ends with a NUL, `fields` is a filled tm.
        let length = unsafe {
            libc::strftime(text.as_mut_ptr().cast(), text.len(), layout.as_ptr(), core::ptr::from_ref(fields))
        };
        if length > 0 {
            text.truncate(length - 1);
            return String::from_utf8_lossy(&text).into_owned();
        }
        text.resize(text.len() * 4, 0);
    }
    String::new()
}

/// Seconds since 1970, held within the years that the C library can lay out.
fn civil_seconds(time: WallTime) -> libc::time_t {
    const END_OF_YEAR_9999: u64 = 253_402_300_799;
    let seconds = time.since_unix_epoch().as_secs().min(END_OF_YEAR_9999);
    libc::time_t::try_from(seconds).unwrap_or(libc::time_t::MAX)
}

fn read(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is ours alone. The clocks used here exist on every Linux, so it cannot fail.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[allow(clippy::unnecessary_fallible_conversions, reason = "the fields are narrower on 32-bit systems")]
pub(crate) fn to_timespec(time: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: time.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: time.subsec_nanos().try_into().unwrap_or(0),
    }
}

#[allow(clippy::unnecessary_fallible_conversions, reason = "the fields are narrower on 32-bit systems")]
pub(crate) fn to_timeval(time: Duration) -> libc::timeval {
    libc::timeval {
        tv_sec: time.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_usec: time.subsec_micros().try_into().unwrap_or(0),
    }
}

fn from_timeval(time: libc::timeval) -> Duration {
    let microseconds = u32::try_from(time.tv_usec).unwrap_or(0);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), 0) + Duration::from_micros(microseconds.into())
}

/// Repeats a system call for as long as a signal cuts it short.
pub(crate) fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strftime_table() {
        let time = WallTime::from_unix(Duration::from_secs(1_795_161_262));
        for (layout, expected) in [
            ("%a, %d %b %Y %H:%M:%S GMT", "Fri, 20 Nov 2026 07:54:22 GMT"),
            ("%c ", "Fri Nov 20 07:54:22 2026 "),
            ("%%", "%"),
            ("", ""),
            ("plain", "plain"),
            ("with a \0 in it", ""),
            ("%999999999d", ""),
        ] {
            assert_eq!(format_utc(time, layout), expected, "{layout:?}");
        }
        assert_eq!(format_local(time, "%s"), "1795161262");
        assert_eq!(format_utc(time, "%Y".repeat(2000).as_str()).len(), 8000);
    }

    #[test]
    fn years_beyond_the_calendar_are_held_back() {
        let end = WallTime::from_unix(Duration::MAX);
        assert_eq!(format_utc(end, "%Y-%m-%d"), "9999-12-31");
    }

    #[test]
    fn sleeps_until_the_deadline_and_not_before() {
        let start = monotonic_now();
        let deadline = start + Duration::from_millis(20);
        sleep_until(deadline);
        let end = monotonic_now();
        assert!(end >= deadline, "{end:?} < {deadline:?}");
        sleep_until(start);
        assert!(monotonic_now() - end < Duration::from_millis(500), "a passed deadline must not sleep");
    }

    #[test]
    fn civil_time_is_the_standard_librarys() {
        let here = realtime_now().since_unix_epoch();
        let there = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        assert!(there.abs_diff(here) < Duration::from_secs(2));
    }

    #[test]
    fn processor_time_grows_with_work() {
        let (thread, process) = (thread_cpu_time(), process_cpu_time());
        let mut sum = 0_u64;
        while thread_cpu_time().saturating_sub(thread) < Duration::from_millis(15) {
            sum = core::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
        }
        let grown = process_cpu_time().total().saturating_sub(process.total());
        assert!(grown >= Duration::from_millis(10), "{grown:?}");
    }

    #[test]
    fn timer_slack_is_set() {
        set_timer_slack(Duration::from_micros(1)).expect("any slack is allowed");
        // SAFETY: PR_GET_TIMERSLACK touches no memory of ours.
        let slack = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
        assert_eq!(slack, 1000);
    }
}
