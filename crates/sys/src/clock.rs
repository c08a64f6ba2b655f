//! Clocks, and processor time.

use core::ffi::c_long;
use core::mem::MaybeUninit;
use core::num::NonZeroU64;
use core::time::Duration;
use std::ffi::CString;
use std::io;

use linerate_units::{MonotonicTime, WallTime};
use rustix::time::{ClockId, Timespec};

use crate::error::{Error, Result};

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

/// Current time on the monotonic clock (`CLOCK_MONOTONIC`).
#[must_use]
pub fn monotonic_now() -> MonotonicTime {
    let now = read(ClockId::Monotonic);
    MonotonicTime::from_nanos(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}

/// Current civil time (`CLOCK_REALTIME`).
#[must_use]
pub fn realtime_now() -> WallTime {
    WallTime::from_unix(read(ClockId::Realtime))
}

/// Processor time of the calling thread since it began.
#[must_use]
pub fn thread_cpu_time() -> Duration {
    read(ClockId::ThreadCPUTime)
}

/// Processor time of this process, all threads, since it began; children are not counted.
#[must_use]
pub fn process_cpu_time() -> CpuTime {
    cpu_time_of(libc::RUSAGE_SELF)
}

/// Account of the child processes that this process has waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChildUsage {
    /// Processor time of all their threads.
    pub cpu: CpuTime,
    /// Times at which a thread of theirs gave up its processor to wait (`ru_nvcsw`).
    pub waits: u64,
}

/// Reads the account of the children.
#[must_use]
pub fn child_usage() -> ChildUsage {
    let usage = usage_of(libc::RUSAGE_CHILDREN);
    ChildUsage { cpu: cpu_time(&usage), waits: u64::try_from(usage.ru_nvcsw).unwrap_or(0) }
}

/// Processor time of the calling thread since it began, by mode.
#[must_use]
pub fn thread_cpu_usage() -> CpuTime {
    cpu_time_of(libc::RUSAGE_THREAD)
}

/// Time for which the calling thread could run and waited for a processor since it began (`/proc/thread-self/schedstat`,
/// second number); `None` where the kernel does not count it (`CONFIG_SCHED_INFO`).
#[must_use]
pub fn thread_run_delay() -> Option<Duration> {
    parse_run_delay(&std::fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// Kernels that do not count print zeros, also for the time that the thread has run.
fn parse_run_delay(text: &str) -> Option<Duration> {
    let mut numbers = text.split_ascii_whitespace().map(|number| number.parse::<u64>().ok());
    let (ran, waited) = (numbers.next()??, numbers.next()??);
    (ran > 0).then(|| Duration::from_nanos(waited))
}

fn cpu_time_of(who: libc::c_int) -> CpuTime {
    cpu_time(&usage_of(who))
}

fn cpu_time(usage: &libc::rusage) -> CpuTime {
    CpuTime { user: from_timeval(usage.ru_utime), system: from_timeval(usage.ru_stime) }
}

fn usage_of(who: libc::c_int) -> libc::rusage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is ours alone, and zero is a value of it as it is integers. The call cannot fail for these three.
    unsafe {
        libc::getrusage(who, usage.as_mut_ptr());
        usage.assume_init()
    }
}

/// Sleeps until `deadline`; returns at once when it has passed. Signals do not cut the sleep short.
pub fn sleep_until(deadline: MonotonicTime) {
    let until = Timespec::try_from(deadline.since_epoch()).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
    while rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &until) == Err(rustix::io::Errno::INTR) {}
}

/// Lets the kernel delay the calling thread's timers by at most `slack` (`PR_SET_TIMERSLACK`; the default is 50 µs).
/// At least one nanosecond, as zero would mean the default.
pub fn set_timer_slack(slack: Duration) -> Result<()> {
    let nanoseconds = u64::try_from(slack.as_nanos()).unwrap_or(u64::MAX);
    rustix::thread::set_current_timer_slack(Some(NonZeroU64::new(nanoseconds).unwrap_or(NonZeroU64::MIN)))
        .map_err(|cause| Error::system(format!("setting the timer slack to {slack:?}"), cause))
}

/// `time` in local time, laid out by `strftime(3)`. A layout that yields more than 64 KiB gives nothing.
#[must_use]
pub fn format_local(time: WallTime, layout: &str) -> String {
    layout_time(&broken_down(time, libc::localtime_r), layout)
}

/// `time` in UTC, laid out by `strftime(3)`. A layout that yields more than 64 KiB gives nothing.
#[must_use]
pub fn format_utc(time: WallTime, layout: &str) -> String {
    layout_time(&broken_down(time, libc::gmtime_r), layout)
}

/// Fields of a time, as one of the C library's two functions converts it.
fn broken_down(
    time: WallTime,
    convert: unsafe extern "C" fn(*const c_long, *mut libc::tm) -> *mut libc::tm,
) -> libc::tm {
    let seconds = civil_seconds(time);
    let mut fields = MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both pointers are to live values, and only `fields` is written: integers and a pointer that strftime
    // ignores when null, for which zero is a value.
    unsafe {
        convert(&raw const seconds, fields.as_mut_ptr());
        fields.assume_init()
    }
}

const MAX_TEXT_BYTES: usize = 64 << 10;

fn layout_time(fields: &libc::tm, layout: &str) -> String {
    // strftime returns 0 both for a full buffer and for an empty text; the dot at the end distinguishes them.
    let Ok(layout) = CString::new(format!("{layout}.")) else {
        return String::new();
    };
    let mut text = vec![0_u8; 256];
    while text.len() <= MAX_TEXT_BYTES {
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

/// Seconds since 1970, clamped to the years that the C library can format.
fn civil_seconds(time: WallTime) -> c_long {
    const END_OF_YEAR_9999: u64 = 253_402_300_799;
    let seconds = time.since_unix_epoch().as_secs().min(END_OF_YEAR_9999);
    c_long::try_from(seconds).unwrap_or(c_long::MAX)
}

fn read(clock: ClockId) -> Duration {
    Duration::try_from(rustix::time::clock_gettime(clock)).unwrap_or_default()
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
    fn children_count_once_they_are_waited_for() {
        let before = child_usage();
        let loops = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.01";
        std::process::Command::new("sh").args(["-c", loops]).status().expect("every machine has sh");
        let after = child_usage();
        assert!(after.cpu.total() > before.cpu.total() && after.waits > before.waits, "{before:?}, {after:?}");
    }

    #[test]
    fn a_run_delay_is_known_where_the_kernel_counts() {
        assert_eq!(parse_run_delay("4035 2000001 7\n"), Some(Duration::from_nanos(2_000_001)));
        for unknown in ["0 0 0\n", "", "7", "7 x 1"] {
            assert_eq!(parse_run_delay(unknown), None, "{unknown:?}");
        }
        // It grows, where there is one.
        let before = thread_run_delay();
        std::thread::yield_now();
        assert!(thread_run_delay() >= before);
    }

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
    fn years_beyond_the_calendar_are_clamped() {
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
        assert_eq!(rustix::thread::current_timer_slack(), Ok(1000));
    }
}
