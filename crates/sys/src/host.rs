//! Facts about this host.

use core::num::NonZeroUsize;
use linerate_units::CompactCollect;
use std::collections::BTreeMap;
use std::ffi::CStr;

use linerate_model::host::processors::ProcessorTicks;
use rustix::io::retry_on_intr;
use rustix::rand::{GetRandomFlags, getrandom};
use rustix::system::uname;

use crate::error::{Error, Result};

/// Name of this host (`uname -n`).
#[must_use]
pub fn host_name() -> String {
    text(uname().nodename())
}

/// Output of `uname(2)`, joined as iperf3 joins it (`get_system_info`): system, node name, release, version, machine.
#[must_use]
pub fn system_information() -> String {
    let names = uname();
    [names.sysname(), names.nodename(), names.release(), names.version(), names.machine()].map(text).join(" ")
}

/// The release of the running kernel, for example `6.18.44-amd64`.
#[must_use]
pub fn kernel_release() -> String {
    text(uname().release())
}

/// The architecture of the machine by the kernel's name, for example `x86_64`.
#[must_use]
pub fn architecture() -> String {
    text(uname().machine())
}

/// Number of processors that this process may use: its affinity and its control group's quota are taken into account.
#[must_use]
pub fn cpu_count() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Number of online logical processors of this host; `None` where the kernel does not report it.
#[must_use]
pub fn online_processors() -> Option<usize> {
    // SAFETY: takes a number and touches no memory of ours.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).ok().filter(|count| *count > 0)
}

/// Processor time of all processors of this host together (`None` as key) and of each, since it booted (`/proc/stat`,
/// proc(5)); empty where it is not reported.
#[must_use]
pub fn all_processor_ticks() -> BTreeMap<Option<u32>, ProcessorTicks> {
    std::fs::read_to_string("/proc/stat").map(|text| ProcessorTicks::parse_all(&text)).unwrap_or_default()
}

/// Processor time of each processor of this host since it booted, by the kernel's numbers; empty where it is not
/// reported.
#[must_use]
pub fn ticks_of_each_processor() -> BTreeMap<u32, ProcessorTicks> {
    all_processor_ticks().into_iter().filter_map(|(number, ticks)| Some((number?, ticks))).collect_compactly()
}

/// Fills `buffer` with random bytes fit for secrets (`getrandom(2)`).
pub fn random_bytes(buffer: &mut [u8]) -> Result<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        let rest = &mut buffer[filled..];
        filled += retry_on_intr(|| getrandom(&mut *rest, GetRandomFlags::empty()))
            .map_err(|cause| Error::system("asking the kernel for random bytes", cause))?;
    }
    Ok(())
}

fn text(field: &CStr) -> String {
    field.to_string_lossy().into_owned()
}

/// Congestion controls that the kernel grants every user; none where it does not report them.
#[must_use]
pub fn allowed_congestion_controls() -> Vec<String> {
    let names = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control").unwrap_or_default();
    names.split_ascii_whitespace().map(str::to_owned).collect()
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
        let (each, all) = (ticks_of_each_processor(), all_processor_ticks().remove(&None).expect("procfs"));
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
