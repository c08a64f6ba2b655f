//! The names that people know link layers by: those of CAKE (`man tc-cake`, "OVERHEAD COMPENSATION").

use linerate_units::ByteCount;

use super::{Framing, LinkLayer};

/// A link layer with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keyword {
    /// CAKE's word.
    pub name: &'static str,
    /// What it stands for.
    pub layer: LinkLayer,
    /// Which lines have it.
    pub meaning: &'static str,
}

const fn entry(name: &'static str, overhead: u64, minimum: u64, framing: Framing, meaning: &'static str) -> Keyword {
    let layer = LinkLayer { overhead: ByteCount::new(overhead), minimum: ByteCount::new(minimum), framing };
    Keyword { name, layer, meaning }
}

/// All of them. `raw` counts what the host counts.
pub const KEYWORDS: [Keyword; 14] = [
    entry("raw", 0, 0, Framing::None, "nothing is added; for lines whose rate is given in packets of the host"),
    entry("conservative", 48, 0, Framing::Atm, "at least as much as any usual line adds: safe, and a tenth too slow"),
    entry("pppoa-vcmux", 10, 0, Framing::Atm, "ADSL, PPP over ATM, VC-multiplexed"),
    entry("pppoa-llc", 14, 0, Framing::Atm, "ADSL, PPP over ATM, LLC"),
    entry("pppoe-vcmux", 32, 0, Framing::Atm, "ADSL, PPP over Ethernet, VC-multiplexed"),
    entry("pppoe-llcsnap", 40, 0, Framing::Atm, "ADSL, PPP over Ethernet, LLC/SNAP"),
    entry("bridged-vcmux", 24, 0, Framing::Atm, "ADSL, bridged Ethernet, VC-multiplexed"),
    entry("bridged-llcsnap", 32, 0, Framing::Atm, "ADSL, bridged Ethernet, LLC/SNAP"),
    entry("ipoa-vcmux", 8, 0, Framing::Atm, "ADSL, IP over ATM, VC-multiplexed"),
    entry("ipoa-llcsnap", 16, 0, Framing::Atm, "ADSL, IP over ATM, LLC/SNAP"),
    entry("pppoe-ptm", 30, 0, Framing::Ptm, "VDSL2 with PPP over Ethernet"),
    entry("bridged-ptm", 22, 0, Framing::Ptm, "VDSL2, bridged Ethernet"),
    entry("docsis", 18, 64, Framing::None, "cable: what the modem's own shaper counts"),
    entry("ethernet", 38, 84, Framing::None, "Ethernet itself: preamble, header, checksum, gap"),
];

/// What `ether-vlan` adds: one tag of IEEE 802.1Q.
const VLAN_TAG: u64 = 4;

/// The link layer of words such as `pppoe-ptm`, `ethernet ether-vlan`; `None` when a word is not known or two name a layer.
#[must_use]
pub fn keyword(words: &str) -> Option<LinkLayer> {
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
    let mut layer = named.unwrap_or_default();
    layer.overhead += ByteCount::new(tags);
    Some(layer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for (number, entry) in KEYWORDS.iter().enumerate() {
            assert_eq!(keyword(entry.name), Some(entry.layer), "{}", entry.name);
            assert!(KEYWORDS[..number].iter().all(|other| other.name != entry.name), "{}", entry.name);
            assert!(!entry.meaning.is_empty());
        }
    }

    #[test]
    fn tags_add_up() {
        let layer = keyword("ethernet ether-vlan ether-vlan").expect("known words");
        assert_eq!((layer.overhead.get(), layer.minimum.get()), (46, 84));
        assert_eq!(keyword("ether-vlan").map(|layer| layer.overhead.get()), Some(4));
        assert_eq!(keyword("ethernet docsis"), None);
        assert_eq!(keyword("token-ring"), None);
        assert_eq!(keyword(""), None);
    }
}
