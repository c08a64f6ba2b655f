//! The seed of a `netem` discipline, which decides which packets it loses, delays or damages.

use std::io;

use crate::error::{Error, Result};
use crate::interface::{QueueDescription, TCMSG_LENGTH};
use crate::namespace;
use crate::netlink::{self, NetlinkSocket, append_attribute, attribute, attributes};

// From the kernel's linux/rtnetlink.h and linux/pkt_sched.h.
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_NETEM_PAD: u16 = 9;
const TCA_NETEM_PRNG_SEED: u16 = 14;

/// Length of `tc_netem_qopt`, which precedes the attributes of the options.
const NETEM_QOPT_LENGTH: usize = 24;

/// Result of setting a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeedOutcome {
    /// The discipline begins again with this seed.
    Set,
    /// This kernel's netem takes no seed (it came with 6.6): its losses differ from run to run.
    NotSupported,
}

/// Gives the netem with this handle (`1:`, in hexadecimal) at `device` a seed, and leaves all else as it is. In the
/// calling thread's network namespace; needs root.
pub fn set_netem_seed(device: &str, handle: &str, seed: u64) -> Result<SeedOutcome> {
    let operation = || format!("setting the seed of netem {handle} at {device}");
    let failed = |cause| Error::system(operation(), cause);
    let number = parse_handle(handle)
        .ok_or_else(|| Error::refused(operation(), "the handle is not a hexadecimal number and a colon"))?;
    let index = namespace::device_index(device)?;
    let mut socket = NetlinkSocket::route().map_err(failed)?;
    let mut found = None;
    let look = |message: netlink::NetlinkMessage<'_>| {
        if found.is_none() && is_it(message.body, index, number) {
            found = Some(message.body.to_vec());
        }
    };
    socket.list(libc::RTM_GETQDISC, &[0; TCMSG_LENGTH], look).map_err(failed)?;
    let found = found.ok_or_else(|| Error::refused(operation(), "there is no netem with this handle"))?;
    let Some(changed) = with_seed(&found, seed).map_err(failed)? else {
        return Ok(SeedOutcome::NotSupported);
    };
    socket.change(libc::RTM_NEWQDISC, &changed).map_err(failed)?;
    Ok(SeedOutcome::Set)
}

/// `1:` or `1:0` as the kernel has it: the part before the colon in the upper half.
fn parse_handle(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once(':')?;
    let minor = if minor.is_empty() { 0 } else { u16::from_str_radix(minor, 16).ok()? };
    Some(u32::from(u16::from_str_radix(major, 16).ok()?) << 16 | u32::from(minor))
}

/// True when the kernel's description is of this netem.
fn is_it(body: &[u8], device: u32, handle: u32) -> bool {
    QueueDescription::parse(body)
        .is_some_and(|queue| queue.index == device && queue.handle == handle && queue.kind == "netem")
}

/// The request that sets the described options with this seed; `None` when the description has no seed.
fn with_seed(described: &[u8], seed: u64) -> io::Result<Option<Vec<u8>>> {
    let broken = || io::Error::from(io::ErrorKind::InvalidData);
    let (fixed, rest) = described.split_at_checked(TCMSG_LENGTH).ok_or_else(broken)?;
    let options = attribute(rest, TCA_OPTIONS).ok_or_else(broken)?;
    let (settings, options) = options.split_at_checked(NETEM_QOPT_LENGTH).ok_or_else(broken)?;
    if !attributes(options).any(|(kind, _)| kind == TCA_NETEM_PRNG_SEED) {
        return Ok(None);
    }
    let mut changed = settings.to_vec();
    for (kind, content) in attributes(options) {
        match kind {
            TCA_NETEM_PAD => {}
            TCA_NETEM_PRNG_SEED => append_attribute(&mut changed, kind, &seed.to_ne_bytes())?,
            _ => append_attribute(&mut changed, kind, content)?,
        }
    }
    let mut request = fixed.to_vec();
    // In a description the last word counts references; in a request it is ignored.
    request[TCMSG_LENGTH - 4..].fill(0);
    append_attribute(&mut request, TCA_KIND, b"netem\0")?;
    append_attribute(&mut request, TCA_OPTIONS, &changed)?;
    Ok(Some(request))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(options: &[(u16, &[u8])]) -> Vec<u8> {
        let mut settings = vec![5; NETEM_QOPT_LENGTH];
        for (kind, content) in options {
            append_attribute(&mut settings, *kind, content).expect("short");
        }
        let mut body = vec![0; 4];
        for number in [7_u32, 0x1_0000, 0xffff_ffff, 2] {
            body.extend(number.to_ne_bytes());
        }
        append_attribute(&mut body, TCA_KIND, b"netem\0").expect("short");
        append_attribute(&mut body, TCA_OPTIONS, &settings).expect("short");
        append_attribute(&mut body, 11, &[1, 2]).expect("short");
        body
    }

    #[test]
    fn handles() {
        assert_eq!(parse_handle("1:"), Some(0x1_0000));
        assert_eq!(parse_handle("8001:2"), Some(0x8001_0002));
        for wrong in ["", "1", ":", "g:", "10000:", "1:10000"] {
            assert_eq!(parse_handle(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn only_the_seed_changes() {
        let old =
            description(&[(1, &[1; 12]), (TCA_NETEM_PAD, &[]), (TCA_NETEM_PRNG_SEED, &[9; 8]), (0x8005, &[3; 20])]);
        assert!(is_it(&old, 7, 0x1_0000));
        assert!(!is_it(&old, 8, 0x1_0000) && !is_it(&old, 7, 0x2_0000) && !is_it(&old[..10], 7, 0x1_0000));
        let request = with_seed(&old, 77).expect("whole").expect("has a seed");
        assert_eq!(request[..16], old[..16]);
        let fields: Vec<_> = attributes(&request[TCMSG_LENGTH..]).collect();
        assert_eq!((fields.len(), fields[0]), (2, (TCA_KIND, b"netem\0".as_slice())));
        let (settings, options) = fields[1].1.split_at(NETEM_QOPT_LENGTH);
        assert_eq!(settings, [5; NETEM_QOPT_LENGTH]);
        let options: Vec<_> = attributes(options).collect();
        let seed = 77_u64.to_ne_bytes();
        assert_eq!(options, [(1, [1; 12].as_slice()), (TCA_NETEM_PRNG_SEED, &seed), (0x8005, &[3; 20])]);
    }

    #[test]
    fn an_older_kernel_has_no_seed_and_a_broken_answer_is_an_error() {
        let old = description(&[(1, &[1; 12])]);
        assert!(with_seed(&old, 1).expect("whole").is_none());
        assert!(with_seed(&old[..TCMSG_LENGTH], 1).is_err());
        assert!(with_seed(&[], 1).is_err());
    }

    #[test]
    fn a_missing_netem_is_an_error() {
        let error = set_netem_seed("lo", "1:", 1).expect_err("loopback has none");
        assert!(error.to_string().ends_with("there is no netem with this handle"), "{error}");
        assert!(set_netem_seed("lo", "one", 1).is_err());
    }
}
