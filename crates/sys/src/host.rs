//! Facts about this host.

use core::num::NonZeroUsize;
use std::ffi::CStr;
use std::io;

use linerate_units::Ratio;

use crate::clock::retry;
use crate::error::{Error, Result, check};

/// The version of the running kernel, as far as its numbers go: 6.18.44 of `6.18.44-amd64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelVersion {
    /// First number.
    pub major: u32,
    /// Second number.
    pub minor: u32,
    /// Third number; 0 when the release has none.
    pub patch: u32,
}

/// What `uname(2)` says, joined as iperf3 joins it (`get_system_info`): system, node name, release, version, machine.
#[must_use]
pub fn system_information() -> String {
    let names = uname();
    [&names.sysname, &names.nodename, &names.release, &names.version, &names.machine].map(|field| text(field)).join(" ")
}

/// The release of the running kernel, for example `6.18.44-amd64`.
#[must_use]
pub fn kernel_release() -> String {
    text(&uname().release)
}

/// The architecture of the machine by the kernel's name, for example `x86_64`.
#[must_use]
pub fn architecture() -> String {
    text(&uname().machine)
}

/// The version of the running kernel; `None` when its release does not begin with two numbers.
#[must_use]
pub fn kernel_version() -> Option<KernelVersion> {
    parse_release(&text(&uname().release))
}

fn parse_release(release: &str) -> Option<KernelVersion> {
    let mut numbers = release.split(|character: char| !character.is_ascii_digit()).map(str::parse::<u32>);
    let (major, minor) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    let patch = numbers.next().and_then(core::result::Result::ok).unwrap_or(0);
    Some(KernelVersion { major, minor, patch })
}

/// How many processors this process may use: its affinity and its control group's quota are taken into account.
#[must_use]
pub fn cpu_count() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// How many logical processors of this host are switched on; `None` where the kernel does not tell.
#[must_use]
pub fn online_processors() -> Option<usize> {
    // SAFETY: takes a number and touches no memory of ours.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).ok().filter(|count| *count > 0)
}

/// What all processors of this host have done since it booted, in the kernel's ticks (`/proc/stat`, proc(5)).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessorTicks {
    busy: f64,
    idle: f64,
}

impl ProcessorTicks {
    /// The share of all processors' time between two readings that was not idle; `None` when no tick lies between them.
    #[must_use]
    pub fn busy_since(&self, earlier: &Self) -> Option<Ratio> {
        let (busy, idle) = (self.busy - earlier.busy, self.idle - earlier.idle);
        Ratio::of(busy, busy + idle)
    }

    /// Reads the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal.
    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.lines().next()?.split_ascii_whitespace();
        (fields.next()? == "cpu").then_some(())?;
        let ticks: Vec<f64> = fields.take(8).map_while(|field| field.parse().ok()).collect();
        let idle = ticks.get(3)? + ticks.get(4)?;
        Some(Self { busy: ticks.iter().sum::<f64>() - idle, idle })
    }
}

/// Reads what the processors have done; `None` where `/proc` does not tell.
#[must_use]
pub fn processor_ticks() -> Option<ProcessorTicks> {
    ProcessorTicks::parse(&std::fs::read_to_string("/proc/stat").ok()?)
}

/// Fills `buffer` with random bytes fit for secrets (`getrandom(2)`).
pub fn random_bytes(buffer: &mut [u8]) -> Result<()> {
    let mut rest = buffer;
    while !rest.is_empty() {
        // SAFETY: the pointer and length describe `rest`, which is ours alone.
        let call = || match unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) } {
            -1 => Err(io::Error::last_os_error()),
            length => Ok(usize::try_from(length).unwrap_or(0)),
        };
        let filled = retry(call).map_err(|cause| Error::system("asking the kernel for random bytes", cause))?;
        rest = &mut rest[filled..];
    }
    Ok(())
}

fn uname() -> libc::utsname {
    // SAFETY: utsname is arrays of characters, for which zero is a value (empty strings).
    let mut names: libc::utsname = unsafe { core::mem::zeroed() };
    // SAFETY: `names` is ours alone. The call fails only for a bad pointer.
    let answer = check(unsafe { libc::uname(&raw mut names) });
    debug_assert!(answer.is_ok(), "uname: {answer:?}");
    names
}

fn text(field: &[libc::c_char]) -> String {
    // SAFETY: c_char is a byte, whichever sign it has.
    let bytes = unsafe { core::slice::from_raw_parts(field.as_ptr().cast::<u8>(), field.len()) };
    CStr::from_bytes_until_nul(bytes).map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_information_has_unames_fields() {
        let read = |name: &str| {
            let path = format!("/proc/sys/kernel/{name}");
            std::fs::read_to_string(path).expect("procfs").trim_end().to_owned()
        };
        let [system, node, release, version] = ["ostype", "hostname", "osrelease", "version"].map(read);
        let expected = format!("{system} {node} {release} {version} {}", std::env::consts::ARCH);
        assert_eq!(system_information(), expected);
    }

    #[test]
    fn kernel_releases() {
        let version = |major, minor, patch| Some(KernelVersion { major, minor, patch });
        for (release, expected) in [
            ("6.18.44-fc-v657", version(6, 18, 44)),
            ("6.1.0-18-amd64", version(6, 1, 0)),
            ("5.4", version(5, 4, 0)),
            ("6.12-rc3", version(6, 12, 0)),
            ("linux", None),
            ("", None),
            ("99999999999.1", None),
        ] {
            assert_eq!(parse_release(release), expected, "{release:?}");
        }
        assert!(kernel_version() >= version(3, 0, 0));
    }

    #[test]
    fn processor_ticks_add_up() {
        let before = ProcessorTicks::parse("cpu  100 0 50 800 50 0 0 0 7 7\ncpu0 1 1\n").expect("a reading");
        let after = ProcessorTicks::parse("cpu  160 0 80 805 55 0 0 0 9 9\ncpu0 1 1\n").expect("a reading");
        assert_eq!(after.busy_since(&before), Ratio::new(0.9));
        assert_eq!(before.busy_since(&before), None);
        for wrong in ["", "cpu", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8"] {
            assert_eq!(ProcessorTicks::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn random_bytes_fill_the_buffer_and_differ() {
        let (mut first, mut second) = ([0; 300], [0; 300]);
        random_bytes(&mut first).expect("getrandom");
        random_bytes(&mut second).expect("getrandom");
        assert_ne!(first, second);
        assert_ne!(&first[268..], &[0; 32], "filled to the end");
        random_bytes(&mut []).expect("nothing to do");
    }
}
