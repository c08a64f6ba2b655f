//! Facts about a device from ethtool (`SIOCETHTOOL`, linux/ethtool.h).

use core::time::Duration;
use std::collections::BTreeMap;

use linerate_model::fact::Fact;
use linerate_model::host::link::{
    DescriptorRings, DeviceChannels, DuplexMode, InterruptCoalescing, NetworkLink, OffloadState, PauseSettings,
    RingSizes,
};
use linerate_units::{BitRate, CompactCollect};

use super::reading::fact;
use crate::error::{Error, Result};
use crate::features::{self, EthtoolSocket, MAX_NAMES};

const ETHTOOL_GCOALESCE: u32 = 0x0e;
const ETHTOOL_GRINGPARAM: u32 = 0x10;
const ETHTOOL_GPAUSEPARAM: u32 = 0x12;
const ETHTOOL_GSTATS: u32 = 0x1d;
const ETHTOOL_GCHANNELS: u32 = 0x3c;
const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;
const ETHTOOL_GFECPARAM: u32 = 0x50;
const ETH_SS_STATS: u32 = 1;
/// Words of `ethtool_link_settings` before its masks.
const LINK_SETTINGS_WORDS: usize = 12;
const SPEED_UNKNOWN: u32 = u32::MAX;

/// Patterns in the names of counters that may explain lost packets.
const LOSS_COUNTER_PATTERNS: [&str; 11] =
    ["flow_control", "drop", "discard", "miss", "no_buf", "nobuf", "out_of_buffer", "err", "pause", "fec", "overrun"];

pub(super) fn describe(link: &mut NetworkLink) {
    let asker = match EthtoolSocket::of(&link.name) {
        Ok(asker) => asker,
        Err(error) => {
            link.driver = fact(Err(error));
            return;
        }
    };
    let device = EthtoolDevice { asker, name: &link.name };
    link.driver = fact(features::driver(&link.name));
    link.offloads = fact(device.offloads());
    link.rings = fact(device.rings());
    link.channels = fact(device.channels());
    link.coalescing = fact(device.coalescing());
    link.pause = fact(device.pause());
    link.error_correction = fact(device.error_correction());
    link.driver_counters = fact(device.counters());
    (link.speed, link.max_speed, link.duplex) = match device.link_settings() {
        Ok(settings) => settings.facts(),
        Err(error) => {
            let reason = error.to_string();
            let [speed, highest] = [(); 2].map(|()| Fact::absent(reason.clone()));
            (speed, highest, Fact::absent(reason))
        }
    };
}

/// Speed of a device's link, highest supported speed, duplex mode; each `None` where the driver does not report it.
pub(crate) fn link_speed(device: &str) -> (Option<BitRate>, Option<BitRate>, Option<DuplexMode>) {
    let settings = EthtoolSocket::of(device).and_then(|asker| EthtoolDevice { asker, name: device }.link_settings());
    settings.map_or((None, None, None), |settings| {
        let (speed, highest, duplex) = settings.facts();
        (speed.known().copied(), highest.known().copied(), duplex.known().copied())
    })
}

struct EthtoolDevice<'a> {
    asker: EthtoolSocket,
    name: &'a str,
}

impl EthtoolDevice<'_> {
    /// Requests with this command a structure of `N` words, the command included.
    fn words<const N: usize>(&self, command: u32, what: &str) -> Result<[u32; N]> {
        let mut answer = [0; N];
        answer[0] = command;
        self.asker.ask(&mut answer).map_err(|cause| self.failed(what, cause))?;
        Ok(answer)
    }

    fn failed(&self, what: &str, cause: std::io::Error) -> Error {
        Error::system(format!("reading the {what} of {}", self.name), cause)
    }

    fn offloads(&self) -> Result<BTreeMap<String, OffloadState>> {
        let failed = |cause| self.failed("offloads", cause);
        let names = self.asker.names().map_err(failed)?;
        let state = self.asker.state(names.len()).map_err(failed)?;
        let offload = |index: usize| {
            let block = state.get(index / 32)?;
            let bit = |word: u32| word >> (index % 32) & 1 == 1;
            Some(OffloadState {
                active: bit(block.active),
                wanted: bit(block.wanted),
                changeable: bit(block.available) && !bit(block.never_changed),
            })
        };
        let features = names.into_iter().enumerate().filter(|(_, name)| !name.is_empty());
        Ok(features.filter_map(|(index, name)| Some((name, offload(index)?))).collect_compactly())
    }

    fn rings(&self) -> Result<DescriptorRings> {
        // Largest: receive, mini, jumbo, transmit; then the same as they are.
        let [_, receive, _, _, transmit, now_receive, _, _, now_transmit] =
            self.words::<9>(ETHTOOL_GRINGPARAM, "rings")?;
        Ok(DescriptorRings {
            current: RingSizes { receive: now_receive, transmit: now_transmit },
            most: RingSizes { receive, transmit },
        })
    }

    fn channels(&self) -> Result<DeviceChannels> {
        let [_, most_receive, _, _, most_combined, receive, transmit, _, combined] =
            self.words::<9>(ETHTOOL_GCHANNELS, "queues")?;
        Ok(DeviceChannels { receive, transmit, combined, most_combined, most_receive })
    }

    fn coalescing(&self) -> Result<InterruptCoalescing> {
        let words = self.words::<23>(ETHTOOL_GCOALESCE, "interrupt coalescing")?;
        let delay = |word: usize| Duration::from_micros(words[word].into());
        Ok(InterruptCoalescing {
            receive_delay: delay(1),
            receive_packets: words[2],
            transmit_delay: delay(5),
            transmit_packets: words[6],
            adapts_receive: words[10] != 0,
            adapts_transmit: words[11] != 0,
        })
    }

    fn pause(&self) -> Result<PauseSettings> {
        let [_, negotiated, receive, transmit] = self.words::<4>(ETHTOOL_GPAUSEPARAM, "flow control")?;
        Ok(PauseSettings { negotiated: negotiated != 0, heeds: receive != 0, asks: transmit != 0 })
    }

    fn error_correction(&self) -> Result<String> {
        let [_, active, ..] = self.words::<4>(ETHTOOL_GFECPARAM, "forward error correction")?;
        Ok(correction_names(active))
    }

    fn counters(&self) -> Result<BTreeMap<String, u64>> {
        let failed = |cause| self.failed("driver's counters", cause);
        let names = self.asker.names_of(ETH_SS_STATS).map_err(failed)?;
        let count = u32::try_from(names.len()).map_err(|_| failed(std::io::ErrorKind::InvalidData.into()))?;
        if count == 0 {
            return Ok(BTreeMap::new());
        }
        // Command, number of counters, then two words for each. Older kernels write the current number of counters,
        // which may exceed the one reported before, so the buffer holds the maximum; untouched pages cost nothing.
        let mut answer = vec![0_u32; 2 + 2 * MAX_NAMES];
        answer[..2].copy_from_slice(&[ETHTOOL_GSTATS, count]);
        self.asker.ask(&mut answer).map_err(failed)?;
        let value = |pair: &[u32]| {
            let [one, other] = [pair[0], pair[1]].map(u32::to_ne_bytes);
            u64::from_ne_bytes([one[0], one[1], one[2], one[3], other[0], other[1], other[2], other[3]])
        };
        let pairs = names.into_iter().zip(answer[2..].chunks_exact(2).map(value));
        Ok(pairs.filter(|(name, _)| is_loss_counter(name)).collect())
    }

    fn link_settings(&self) -> Result<LinkSettings> {
        let failed = |cause| self.failed("speed", cause);
        let mut answer = vec![0_u32; LINK_SETTINGS_WORDS];
        answer[0] = ETHTOOL_GLINKSETTINGS;
        self.asker.ask(&mut answer).map_err(failed)?;
        // The kernel first reports the length of its masks, as a negative number.
        let length = answer[3].to_ne_bytes()[3].cast_signed();
        if length < 0 {
            let words = usize::from(length.unsigned_abs());
            answer = vec![0; LINK_SETTINGS_WORDS + 3 * words];
            answer[0] = ETHTOOL_GLINKSETTINGS;
            answer[3] = u32::from_ne_bytes([0, 0, 0, length.unsigned_abs()]);
            self.asker.ask(&mut answer).map_err(failed)?;
        }
        let words = usize::from(answer[3].to_ne_bytes()[3].cast_signed().unsigned_abs());
        let supported = answer.get(LINK_SETTINGS_WORDS..LINK_SETTINGS_WORDS + words).unwrap_or_default().to_vec();
        Ok(LinkSettings { speed: answer[1], duplex: answer[2].to_ne_bytes()[0], supported })
    }
}

struct LinkSettings {
    speed: u32,
    duplex: u8,
    supported: Vec<u32>,
}

impl LinkSettings {
    fn facts(&self) -> (Fact<BitRate>, Fact<BitRate>, Fact<DuplexMode>) {
        let megabits = |speed: u32| BitRate::from_bits_per_second(f64::from(speed) * 1e6);
        let speed = match self.speed {
            0 | SPEED_UNKNOWN => Fact::absent("the driver reports no speed"),
            speed => Fact::Known(megabits(speed)),
        };
        let highest = highest_speed(&self.supported).map_or_else(
            || Fact::absent("the driver does not report the supported speeds"),
            |speed| Fact::Known(megabits(speed)),
        );
        let duplex = match self.duplex {
            0 => Fact::Known(DuplexMode::Half),
            1 => Fact::Known(DuplexMode::Full),
            _ => Fact::absent("the driver reports no duplex mode"),
        };
        // A link without speed has no duplex either, whatever the driver reports.
        let duplex = if speed.known().is_some() { duplex } else { Fact::absent("the link has no speed") };
        (speed, highest, duplex)
    }
}

/// The highest of the modes of a mask (`ethtool_link_mode_bit_indices`), in Mbit/s; `None` when it has none with a
/// speed.
fn highest_speed(mask: &[u32]) -> Option<u32> {
    let is_set = |bit: usize| mask.get(bit / 32).is_some_and(|word| word >> (bit % 32) & 1 == 1);
    (0..mask.len() * 32).filter(|bit| is_set(*bit)).filter_map(mode_speed).max()
}

/// Modes that are no speeds (autonegotiation, ports, pause, error correction), and those that are newer than this list,
/// have none.
const fn mode_speed(bit: usize) -> Option<u32> {
    Some(match bit {
        0 | 1 | 92 | 99..=102 => 10,
        2 | 3 | 67 | 90 | 91 => 100,
        4 | 5 | 17 | 41 | 68 => 1_000,
        15 | 47 => 2_500,
        48 => 5_000,
        12 | 18..=20 | 42..=46 => 10_000,
        21 | 22 => 20_000,
        31..=33 => 25_000,
        23..=26 => 40_000,
        34 | 35 | 40 | 52..=56 => 50_000,
        27..=30 => 56_000,
        36..=39 | 57..=61 | 75..=79 => 100_000,
        62..=66 | 80..=84 | 103..=108 => 200_000,
        69..=73 | 85..=89 | 109..=114 => 400_000,
        93..=98 | 115..=120 => 800_000,
        _ => return None,
    })
}

fn correction_names(active: u32) -> String {
    let names = ["None", "Auto", "Off", "RS", "BaseR", "LLRS"];
    let set = names.iter().enumerate().filter(|(bit, _)| active >> bit & 1 == 1);
    set.map(|(_, name)| *name).collect::<Vec<_>>().join(" ")
}

fn is_loss_counter(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    LOSS_COUNTER_PATTERNS.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_of_link_modes() {
        let mask = |bits: &[usize]| {
            let mut words = vec![0_u32; 4];
            for bit in bits {
                words[bit / 32] |= 1 << (bit % 32);
            }
            words
        };
        for (bits, expected) in [
            (&[0, 1, 2, 3, 5, 6, 7, 13][..], Some(1_000)),
            (&[6, 10, 12, 13], Some(10_000)),
            (&[31, 49, 50, 51], Some(25_000)),
            (&[36, 62, 69], Some(400_000)),
            (&[6, 7, 13, 14, 49], None),
            (&[], None),
        ] {
            assert_eq!(highest_speed(&mask(bits)), expected, "{bits:?}");
        }
        assert_eq!(highest_speed(&[]), None);
    }

    #[test]
    fn a_link_without_speed_has_no_duplex() {
        let settings = |speed, duplex| LinkSettings { speed, duplex, supported: Vec::new() }.facts();
        assert_eq!(settings(SPEED_UNKNOWN, 1).2.known(), None);
        assert_eq!(settings(100, 0).2, Fact::Known(DuplexMode::Half));
        assert_eq!(settings(100, 0).0, Fact::Known(BitRate::from_bits_per_second(1e8)));
    }

    #[test]
    fn names_of_counters_and_corrections() {
        for name in ["rx_missed_errors", "port.rx_dropped", "rx_out_of_buffer", "tx_pause", "rx0_no_buffer", "fec_x"] {
            assert!(is_loss_counter(name), "{name}");
        }
        assert!(!is_loss_counter("rx_packets") && !is_loss_counter("tx_queue_0_bytes"));
        assert_eq!((correction_names(8), correction_names(0)), ("RS".to_owned(), String::new()));
    }

    #[test]
    #[ignore = "needs root and ip: devices in a network namespace"]
    fn a_pair_of_devices_is_described() {
        let chain = crate::test_network::NamespaceChain::new(1400);
        let within = || {
            let mut link = NetworkLink { name: "near0".to_owned(), ..NetworkLink::default() };
            describe(&mut link);
            assert_eq!(link.driver.known().map(String::as_str), Some("veth"));
            assert_eq!(
                (link.speed.known(), link.duplex.known()),
                (Some(&BitRate::from_bits_per_second(1e10)), Some(&DuplexMode::Full))
            );
            assert!(link.offload("tx-tcp-segmentation").is_some_and(|offload| offload.active && offload.changeable));
            assert!(link.rings.unread().is_some() && link.coalescing.unread().is_some());
            assert!(link.channels.known().is_some_and(|channels| channels.receiving() == 1), "{:?}", link.channels);
            assert!(link.driver_counters.known().is_some_and(|all| all.keys().any(|name| name.contains("drops"))));
        };
        chain.near.within(within).expect("entered");
    }
}
