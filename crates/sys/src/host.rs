//! Facts about this host.

use core::num::NonZeroUsize;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::io;

use linerate_model::host::processors::ProcessorTicks;

use crate::clock::retry;
use crate::error::{Error, Result, check};

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

/// What all processors of this host together have done since it booted (`/proc/stat`, proc(5)); `None` where it does not
/// tell.
#[must_use]
pub fn processor_ticks() -> Option<ProcessorTicks> {
    ProcessorTicks::parse_all(&std::fs::read_to_string("/proc/stat").ok()?).remove(&None)
}

/// What each processor of this host has done since it booted, by the kernel's numbers; empty where it does not tell.
#[must_use]
pub fn ticks_of_each_processor() -> BTreeMap<u32, ProcessorTicks> {
    let all = std::fs::read_to_string("/proc/stat").map(|text| ProcessorTicks::parse_all(&text)).unwrap_or_default();
    all.into_iter().filter_map(|(number, ticks)| Some((number?, ticks))).collect()
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
    fn each_processor_has_ticks() {
        let (each, all) = (ticks_of_each_processor(), processor_ticks().expect("procfs"));
        assert_eq!(Some(each.len()), online_processors());
        assert!(each.values().all(|one| one.total() > 0 && one.total() <= all.total()), "{each:?} of {all:?}");
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
