//! Settings of ethtool: offloads, rings, channels, coalescing, pause (`SIOCETHTOOL`, `linux/ethtool.h`).

use std::io;

use linerate_model::change::DeviceAttribute;

use crate::error::Result;
use crate::features;

/// Location of a number in an ethtool structure: these are rows of 32-bit words, of which the first is the command.
struct FieldLocation {
    get: u32,
    set: u32,
    words: usize,
    word: usize,
    /// True for a switch, shown as `on` and `off`.
    switch: bool,
}

const fn place(attribute: DeviceAttribute) -> FieldLocation {
    let (get, words, word, switch) = match attribute {
        // ethtool_ringparam: four largest values, then rx, rx mini, rx jumbo, tx.
        DeviceAttribute::ReceiveRing => (0x10, 9, 5, false),
        DeviceAttribute::TransmitRing => (0x10, 9, 8, false),
        // ethtool_channels: four largest values, then rx, tx, other, combined.
        DeviceAttribute::CombinedChannels => (0x3c, 9, 8, false),
        // ethtool_coalesce.
        DeviceAttribute::ReceiveCoalescing => (0x0e, 23, 1, false),
        DeviceAttribute::AdaptiveReceiveCoalescing => (0x0e, 23, 10, true),
        // ethtool_pauseparam: autonegotiation, rx, tx.
        DeviceAttribute::ReceivePause => (0x12, 4, 2, true),
        DeviceAttribute::TransmitPause => (0x12, 4, 3, true),
    };
    FieldLocation { get, set: get + 1, words, word, switch }
}

fn current(interface: &str, place: &FieldLocation) -> io::Result<Vec<u32>> {
    let mut words = vec![0; place.words];
    words[0] = place.get;
    features::request_device(interface, &mut words)?;
    Ok(words)
}

/// `None` where the driver has no such number.
pub(super) fn read(interface: &str, attribute: DeviceAttribute) -> io::Result<Option<String>> {
    let place = place(attribute);
    match current(interface, &place) {
        Ok(words) if place.switch => Ok(Some(on_off(words[place.word] != 0).to_owned())),
        Ok(words) => Ok(Some(words[place.word].to_string())),
        Err(cause) if cause.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
        Err(cause) => Err(cause),
    }
}

pub(super) fn write(interface: &str, attribute: DeviceAttribute, value: &str) -> io::Result<()> {
    let place = place(attribute);
    let wrong = || io::Error::from_raw_os_error(libc::EINVAL);
    let value =
        if place.switch { u32::from(switch(value).ok_or_else(wrong)?) } else { value.parse().map_err(|_| wrong())? };
    let mut words = current(interface, &place)?;
    words[0] = place.set;
    words[place.word] = value;
    features::request_device(interface, &mut words)
}

/// `None` for a feature that this kernel does not know.
pub(super) fn read_offload(interface: &str, feature: &str) -> Result<Option<String>> {
    Ok(features::features(interface)?.get(feature).map(|is_on| on_off(*is_on).to_owned()))
}

pub(super) fn write_offload(interface: &str, feature: &str, value: &str) -> io::Result<()> {
    let is_on = switch(value).ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
    features::set_feature(interface, feature, is_on)
}

const fn on_off(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

fn switch(text: &str) -> Option<bool> {
    match text {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_attributes_are_none_and_missing_devices_an_error() {
        for attribute in DeviceAttribute::ALL {
            assert_eq!(read("lo", *attribute).expect("an answer"), None, "{attribute:?}");
            let error = read("no-such-dev", *attribute).expect_err("not there");
            assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
        }
        assert_eq!(read_offload("lo", "loopback").expect("read").as_deref(), Some("on"));
        assert_eq!(read_offload("lo", "no-such-feature").expect("read"), None);
        assert_eq!(write_offload("lo", "rx-gro", "perhaps").expect_err("no switch").raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn places_lie_within_their_structures() {
        for attribute in DeviceAttribute::ALL {
            let place = place(*attribute);
            assert!(place.word > 0 && place.word < place.words && place.set == place.get + 1);
        }
    }
}
