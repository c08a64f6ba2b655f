//! Offloads of network devices, their drivers and speeds (`ethtool -k`, `-i` and without options: `SIOCETHTOOL`).

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsRawFd;

use linerate_units::{BitRate, CompactCollect};

use crate::error::{Error, Result, check};
use crate::namespace::device_name;

// From the kernel's linux/ethtool.h.
const ETHTOOL_GSET: u32 = 0x1;
const ETHTOOL_GDRVINFO: u32 = 0x3;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETH_SS_FEATURES: u32 = 4;
/// Length of a name in the kernel's list.
const NAME_LENGTH: usize = 32;
/// Maximum number of names, more than any device has (some have counters for each of hundreds of queues): bounds the
/// memory allocated at the kernel's request.
pub(crate) const MAX_NAMES: usize = 1 << 16;

/// Turns off every offload that makes several packets travel as one: segmentation for sending, aggregation for
/// receiving. Checksums are left as they are. In the calling thread's network namespace; needs root.
pub fn turn_aggregation_off(device: &str) -> Result<()> {
    let failed = |cause| {
        Error::system(format!("turning the segmentation and receive offloads of {device} off"), cause)
            .hint_on(libc::EPERM, "changing a device needs root (CAP_NET_ADMIN)")
    };
    let asker = EthtoolSocket::of(device)?;
    let names = asker.names().map_err(failed)?;
    let unwanted: Vec<usize> = (0..names.len()).filter(|index| makes_aggregates(&names[*index])).collect();
    let changeable = |state: &[FeatureBlock]| -> Vec<usize> {
        unwanted.iter().copied().filter(|index| state[index / 32].can_be_turned_off(index % 32)).collect()
    };
    let before = changeable(&asker.state(names.len()).map_err(failed)?);
    asker.turn_off(&before, names.len()).map_err(failed)?;
    let left: Vec<_> = changeable(&asker.state(names.len()).map_err(failed)?);
    if left.is_empty() {
        return Ok(());
    }
    let left: Vec<_> = left.into_iter().map(|index| names[index].as_str()).collect();
    let reason = format!("the kernel leaves {} on", left.join(", "));
    Err(Error::refused(format!("turning the segmentation and receive offloads of {device} off"), reason))
}

/// State of a device's features, by ethtool's names. In the calling thread's network namespace.
pub fn features(device: &str) -> Result<BTreeMap<String, bool>> {
    let failed = |cause| Error::system(format!("reading the features of {device}"), cause);
    let asker = EthtoolSocket::of(device)?;
    let names = asker.names().map_err(failed)?;
    let state = asker.state(names.len()).map_err(failed)?;
    let is_on = |index: usize| state.get(index / 32).is_some_and(|block| block.active >> (index % 32) & 1 == 1);
    Ok(names.into_iter().enumerate().map(|(index, name)| (name, is_on(index))).collect_compactly())
}

/// The name of a device's driver. The loopback device and some virtual ones have none: not supported.
pub fn driver(device: &str) -> Result<String> {
    // Command; texts of 32 bytes each for driver, version, firmware, bus and ROM, then 12 bytes and five numbers.
    let mut answer = [0; 1 + (5 * 32 + 12 + 5 * 4) / 4];
    answer[0] = ETHTOOL_GDRVINFO;
    let failed = |cause| Error::system(format!("reading the driver of {device}"), cause);
    EthtoolSocket::of(device)?.ask(&mut answer).map_err(failed)?;
    Ok(text(&answer[1..9]))
}

/// The speed of a device's link; `None` when it is unknown, as for virtual devices and links that are down.
pub fn link_speed(device: &str) -> Result<Option<BitRate>> {
    let failed = |cause| Error::system(format!("reading the link speed of {device}"), cause);
    // `ethtool_cmd`: 44 bytes; the speed in Mbit/s has its lower half at byte 12, its upper half at byte 28.
    let mut answer = [0; 11];
    answer[0] = ETHTOOL_GSET;
    EthtoolSocket::of(device)?.ask(&mut answer).map_err(failed)?;
    let half = |word: u32| {
        let [first, second, ..] = word.to_ne_bytes();
        u32::from(u16::from_ne_bytes([first, second]))
    };
    let megabits = half(answer[7]) << 16 | half(answer[3]);
    let known = megabits != 0 && megabits != u32::MAX && megabits != u32::from(u16::MAX);
    Ok(known.then(|| BitRate::from_bits_per_second(f64::from(megabits) * 1e6)))
}

/// Sends an ethtool request to a device of the calling thread's network namespace: the kernel reads `words`, of which
/// the first is the command, and writes its answer over them. The caller sizes them for the command's structure.
pub(crate) fn request_device(device: &str, words: &mut [u32]) -> io::Result<()> {
    EthtoolSocket::of(device)?.ask(words)
}

/// Turns one feature of a device on or off. Fails with `EOPNOTSUPP` for one that this kernel does not know.
pub(crate) fn set_feature(device: &str, feature: &str, is_on: bool) -> io::Result<()> {
    let asker = EthtoolSocket::of(device)?;
    let names = asker.names()?;
    let unknown = || io::Error::from_raw_os_error(libc::EOPNOTSUPP);
    let index = names.iter().position(|name| name == feature).ok_or_else(unknown)?;
    // Command, number of blocks, for each block a mask of the bits meant and their new values.
    let blocks = names.len().div_ceil(32);
    let mut question = vec![ETHTOOL_SFEATURES, u32::try_from(blocks).map_err(io::Error::other)?];
    question.resize(2 + 2 * blocks, 0);
    question[2 + 2 * (index / 32)] = 1 << (index % 32);
    question[3 + 2 * (index / 32)] = u32::from(is_on) << (index % 32);
    asker.ask(&mut question)
}

fn makes_aggregates(name: &str) -> bool {
    name.ends_with("-segmentation")
        || ["tx-gso-", "rx-gro", "rx-lro", "rx-udp-gro"].iter().any(|start| name.starts_with(start))
}

/// 32 features of a device (`ethtool_get_features_block`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FeatureBlock {
    pub(crate) available: u32,
    pub(crate) wanted: u32,
    pub(crate) active: u32,
    pub(crate) never_changed: u32,
}

impl FeatureBlock {
    fn can_be_turned_off(self, bit: usize) -> bool {
        (self.available & self.active & !self.never_changed) >> bit & 1 == 1
    }
}

/// Sends ethtool requests about one device to the kernel.
pub(crate) struct EthtoolSocket {
    socket: std::net::UdpSocket,
    name: [libc::c_char; libc::IFNAMSIZ],
    device: String,
}

impl EthtoolSocket {
    pub(crate) fn of(device: &str) -> Result<Self> {
        let failed = |cause| Error::system("opening a socket", cause);
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").map_err(failed)?;
        Ok(Self { socket, name: device_name(device)?, device: device.to_owned() })
    }

    /// Has the kernel read `words`, and write its answer over them: never more than they hold, which the caller has to
    /// ensure.
    pub(crate) fn ask(&self, words: &mut [u32]) -> io::Result<()> {
        let answer = libc::__c_anonymous_ifr_ifru { ifru_data: words.as_mut_ptr().cast() };
        let mut request = libc::ifreq { ifr_name: self.name, ifr_ifru: answer };
        // SAFETY: the request has the device's name and a pointer to `words`, which is ours alone; each caller has made
        // space for the answer to its request.
        check(unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) }).map(drop)
    }

    /// The names of all features that this kernel knows, in the order of their bits.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        self.names_of(ETH_SS_FEATURES)
    }

    /// The names of one set of strings.
    pub(crate) fn names_of(&self, set: u32) -> io::Result<Vec<String>> {
        // Command, reserved, a mask of 64 bits, one answer.
        let mut question = vec![ETHTOOL_GSSET_INFO, 0];
        question.extend(words(&(1_u64 << set).to_ne_bytes()));
        question.push(0);
        self.ask(&mut question)?;
        let count = usize::try_from(question[4]).unwrap_or(usize::MAX);
        if count > MAX_NAMES {
            return Err(io::Error::other(format!("{} has {count} names", self.device)));
        }
        // Command, set, number of names. The kernel writes the current number of names, which may exceed the one just
        // reported if queues are added to the device at this moment: so the buffer holds the maximum. Untouched pages
        // cost nothing.
        let mut question = vec![0; 3 + MAX_NAMES * NAME_LENGTH / 4];
        question[..3].copy_from_slice(&[ETHTOOL_GSTRINGS, set, u32::try_from(count).map_err(io::Error::other)?]);
        self.ask(&mut question)?;
        Ok(question[3..].chunks_exact(NAME_LENGTH / 4).take(count).map(text).collect())
    }

    pub(crate) fn state(&self, count: usize) -> io::Result<Vec<FeatureBlock>> {
        // Command, number of blocks, four words for each.
        let blocks = count.div_ceil(32);
        let mut question = vec![ETHTOOL_GFEATURES, u32::try_from(blocks).map_err(io::Error::other)?];
        question.resize(2 + 4 * blocks, 0);
        self.ask(&mut question)?;
        let state = |block: &[u32]| FeatureBlock {
            available: block[0],
            wanted: block[1],
            active: block[2],
            never_changed: block[3],
        };
        Ok(question[2..].chunks_exact(4).map(state).collect())
    }

    fn turn_off(&self, features: &[usize], count: usize) -> io::Result<()> {
        // Command, number of blocks, for each block a mask of the bits meant and their new values.
        let blocks = count.div_ceil(32);
        let mut question = vec![ETHTOOL_SFEATURES, u32::try_from(blocks).map_err(io::Error::other)?];
        question.resize(2 + 2 * blocks, 0);
        for feature in features {
            question[2 + 2 * (feature / 32)] |= 1 << (feature % 32);
        }
        self.ask(&mut question)
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]))
}

/// A name from its words, without the zeros at its end.
fn text(words: &[u32]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command;
    use crate::namespace::NetworkNamespace;

    #[test]
    fn which_offloads_make_aggregates() {
        for name in ["tx-tcp-segmentation", "tx-udp-segmentation", "tx-generic-segmentation", "rx-gro", "tx-gso-list"] {
            assert!(makes_aggregates(name), "{name}");
        }
        for name in ["tx-checksum-ip-generic", "rx-checksum", "tx-scatter-gather", "highdma", "loopback"] {
            assert!(!makes_aggregates(name), "{name}");
        }
    }

    #[test]
    fn the_loopback_device_has_features_with_names() {
        let asker = EthtoolSocket::of("lo").expect("a socket");
        let names = asker.names().expect("every kernel has them");
        assert!(names.len() > 32 && names.iter().any(|name| name == "tx-tcp-segmentation"), "{names:?}");
        let state = asker.state(names.len()).expect("as above");
        assert_eq!(state.len(), names.len().div_ceil(32));
        let absent = EthtoolSocket::of("no-such-device").expect("a socket");
        assert_eq!(absent.names().expect_err("none").raw_os_error(), Some(libc::ENODEV));
    }

    #[test]
    fn features_are_read_by_name_and_unknown_devices_refused() {
        let features = features("lo").expect("every host has it");
        assert_eq!((features.get("loopback"), features.get("tx-tcp-segmentation")), (Some(&true), Some(&true)));
        assert_eq!(features.get("rx-lro"), Some(&false));
        for error in [super::features("no-such-dev"), driver("no-such-dev").map(|_| BTreeMap::new())] {
            assert_eq!(error.expect_err("none").errno(), Some(libc::ENODEV));
        }
    }

    #[test]
    #[ignore = "needs root and ip: devices in a network namespace"]
    fn drivers_and_speeds() {
        let chain = crate::test_network::NamespaceChain::new(1400);
        let within = || {
            assert_eq!(driver("near0").expect("has one"), "veth");
            // The speed that the kernel reports for every such pair.
            assert_eq!(link_speed("near0").expect("reported"), Some(BitRate::from_bits_per_second(1e10)));
        };
        chain.near.within(within).expect("entered");
    }

    #[test]
    #[ignore = "needs root and ip: devices in a network namespace"]
    fn a_pair_loses_its_aggregation_and_keeps_its_checksums() {
        let namespace = NetworkNamespace::create().expect("root");
        let within = || {
            let make = ["link", "add", "name", "pair0", "type", "veth", "peer", "name", "pair1"];
            command::run_checked("ip", &make, None, core::time::Duration::from_secs(10)).expect("ip makes a pair");
            let asker = EthtoolSocket::of("pair0").expect("a socket");
            let names = asker.names().expect("names");
            let active = |name: &str| {
                let index = names.iter().position(|other| other == name).expect("known");
                asker.state(names.len()).expect("state")[index / 32].active >> (index % 32) & 1 == 1
            };
            let all = ["tx-tcp-segmentation", "tx-udp-segmentation", "tx-generic-segmentation"];
            assert!(all.iter().all(|name| active(name)));
            turn_aggregation_off("pair0").expect("root");
            assert!(!all.iter().chain(&["rx-gro"]).any(|name| active(name)));
            assert!(active("tx-checksum-ip-generic"));
            turn_aggregation_off("pair0").expect("nothing left to do");
        };
        namespace.within(within).expect("entered");
    }
}
