//! Named link layers: CAKE's keywords (`man tc-cake`, "OVERHEAD COMPENSATION").

use linerate_units::ByteCount;

use super::{LinkFraming, LinkLayer};

/// Named link layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkLayerKeyword {
    /// CAKE's keyword.
    pub name: &'static str,
    /// Link layer.
    pub layer: LinkLayer,
    /// Links that use it.
    pub meaning: &'static str,
}

const fn entry(
    name: &'static str,
    overhead: u64,
    minimum: u64,
    framing: LinkFraming,
    meaning: &'static str,
) -> LinkLayerKeyword {
    let layer = LinkLayer { overhead: ByteCount::new(overhead), minimum: ByteCount::new(minimum), framing };
    LinkLayerKeyword { name, layer, meaning }
}

/// All keywords. `raw` counts bytes as the host does.
pub const KEYWORDS: [LinkLayerKeyword; 14] = [
    entry("raw", 0, 0, LinkFraming::None, "no overhead; for rates that count packets as the host does"),
    entry(
        "conservative",
        48,
        0,
        LinkFraming::Atm,
        "at least the overhead of any usual link: safe, but a tenth too slow",
    ),
    entry("pppoa-vcmux", 10, 0, LinkFraming::Atm, "ADSL, PPP over ATM, VC-multiplexed"),
    entry("pppoa-llc", 14, 0, LinkFraming::Atm, "ADSL, PPP over ATM, LLC"),
    entry("pppoe-vcmux", 32, 0, LinkFraming::Atm, "ADSL, PPP over Ethernet, VC-multiplexed"),
    entry("pppoe-llcsnap", 40, 0, LinkFraming::Atm, "ADSL, PPP over Ethernet, LLC/SNAP"),
    entry("bridged-vcmux", 24, 0, LinkFraming::Atm, "ADSL, bridged Ethernet, VC-multiplexed"),
    entry("bridged-llcsnap", 32, 0, LinkFraming::Atm, "ADSL, bridged Ethernet, LLC/SNAP"),
    entry("ipoa-vcmux", 8, 0, LinkFraming::Atm, "ADSL, IP over ATM, VC-multiplexed"),
    entry("ipoa-llcsnap", 16, 0, LinkFraming::Atm, "ADSL, IP over ATM, LLC/SNAP"),
    entry("pppoe-ptm", 30, 0, LinkFraming::Ptm, "VDSL2 with PPP over Ethernet"),
    entry("bridged-ptm", 22, 0, LinkFraming::Ptm, "VDSL2, bridged Ethernet"),
    entry("docsis", 18, 64, LinkFraming::None, "cable: as the modem's own shaper counts"),
    entry("ethernet", 38, 84, LinkFraming::None, "Ethernet itself: preamble, header, checksum, gap"),
];

/// Overhead of `ether-vlan`: one IEEE 802.1Q tag.
const VLAN_TAG: u64 = 4;

/// Parses keywords such as `pppoe-ptm` or `ethernet ether-vlan`; `None` for an unknown keyword or two layers.
#[must_use]
pub fn parse_keywords(words: &str) -> Option<LinkLayer> {
    let mut named: Option<LinkLayer> = None;
    let mut tags = 0;
    for word in words.split_whitespace() {
        if word == "ether-vlan" {
            tags += VLAN_TAG;
        } else {
            let known = KEYWORDS.iter().find(|entry| entry.name == word)?;
            if named.replace(known.layer).is_some() {
                return None;
            }
        }
    }
    if named.is_none() && tags == 0 {
        return None;
    }
    let mut layer = named.unwrap_or(LinkLayer::NO_OVERHEAD);
    layer.overhead += ByteCount::new(tags);
    Some(layer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for (number, entry) in KEYWORDS.iter().enumerate() {
            assert_eq!(parse_keywords(entry.name), Some(entry.layer), "{}", entry.name);
            assert!(KEYWORDS[..number].iter().all(|other| other.name != entry.name), "{}", entry.name);
            assert!(!entry.meaning.is_empty());
        }
    }

    #[test]
    fn tags_add_up() {
        let layer = parse_keywords("ethernet ether-vlan ether-vlan").expect("known keywords");
        assert_eq!((layer.overhead.get(), layer.minimum.get()), (46, 84));
        assert_eq!(parse_keywords("ether-vlan").map(|layer| layer.overhead.get()), Some(4));
        assert_eq!(parse_keywords("ethernet docsis"), None);
        assert_eq!(parse_keywords("token-ring"), None);
        assert_eq!(parse_keywords(""), None);
    }
}
