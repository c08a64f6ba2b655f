//! Table of nftables that stores the codepoints of sent packets, for `--restore-dscp`.

use std::collections::BTreeSet;

use linerate_units::Dscp;

use super::PlanCommand;

/// Bit of a connection's mark that is set when a codepoint is stored, and the lowest bit of the codepoint: those of
/// sqm-scripts and qosify.
const IS_STORED: u32 = 1 << 24;
const CODEPOINT_SHIFT: u32 = 26;

/// Bits of a mark that hold the codepoint.
const CODEPOINT_BITS: u32 = 0x3f << CODEPOINT_SHIFT;

/// Table that stores the codepoints of packets sent on an interface in the marks of their connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodepointTable {
    /// Interface.
    pub device: String,
    /// Codepoints to store.
    pub codepoints: BTreeSet<Dscp>,
}

impl CodepointTable {
    /// Reason for the table, as a phrase without a full stop.
    pub const REASON: &str = "the codepoints of sent packets are stored in the marks of their connections";

    /// Name of the table, in the family `inet`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("linerate_dscp_{}", self.device)
    }

    /// Commands that create it, in order.
    #[must_use]
    pub fn commands(&self) -> Vec<PlanCommand> {
        let name = self.name();
        let chain =
            ["{", "type", "filter", "hook", "postrouting", "priority", "-150", ";", "policy", "accept", ";", "}"];
        let mut commands = vec![
            PlanCommand::nft(["create", "table", "inet", &name]),
            PlanCommand::nft(["add", "chain", "inet", &name, "store"].into_iter().chain(chain)),
        ];
        commands.extend(["ip", "ip6"].iter().flat_map(|family| self.rules(family)));
        commands
    }

    fn rules<'a>(&'a self, family: &'a str) -> impl Iterator<Item = PlanCommand> + 'a {
        self.codepoints.iter().map(move |codepoint| {
            let device = format!("\"{}\"", self.device);
            let number = format!("{:#04x}", codepoint.get());
            let others = format!("{:#010x}", !(CODEPOINT_BITS | IS_STORED));
            let stored = format!("{:#010x}", stored_mark(*codepoint));
            let (place, mark) = (["add", "rule", "inet", &self.name(), "store"], ["ct", "mark"]);
            let matches = ["oifname", &device, family, "dscp", &number];
            let sets = [&mark[..], &["set"], &mark[..], &["and", &others, "or", &stored]].concat();
            PlanCommand::nft(place.iter().chain(&matches).chain(&sets).copied())
        })
    }

    /// Command that deletes it.
    #[must_use]
    pub fn removal(&self) -> PlanCommand {
        PlanCommand::nft(["delete", "table", "inet", &self.name()])
    }

    /// Commands that create it as one input of `nft -f`, which reads its lines without the quotes of a shell.
    #[must_use]
    pub fn input(&self) -> String {
        self.commands().iter().map(|command| command.words.join(" ")).collect::<Vec<_>>().join("\n")
    }

    /// True when `nft` reads the name of an interface as part of the table's name.
    #[must_use]
    pub(crate) fn can_name(device: &str) -> bool {
        device.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
    }
}

/// Mark of a connection with this codepoint.
fn stored_mark(codepoint: Dscp) -> u32 {
    u32::from(codepoint.get()) << CODEPOINT_SHIFT | IS_STORED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_store_a_codepoint_and_keep_other_bits() {
        let codepoints = [46, 1].into_iter().filter_map(Dscp::new).collect();
        let table = CodepointTable { device: "eth0.7".to_owned(), codepoints };
        let expected = "create table inet linerate_dscp_eth0.7\n\
            add chain inet linerate_dscp_eth0.7 store { type filter hook postrouting priority -150 ; policy accept ; }\n\
            add rule inet linerate_dscp_eth0.7 store oifname \"eth0.7\" ip dscp 0x01 ct mark set ct mark and 0x02ffffff or 0x05000000\n\
            add rule inet linerate_dscp_eth0.7 store oifname \"eth0.7\" ip dscp 0x2e ct mark set ct mark and 0x02ffffff or 0xb9000000\n\
            add rule inet linerate_dscp_eth0.7 store oifname \"eth0.7\" ip6 dscp 0x01 ct mark set ct mark and 0x02ffffff or 0x05000000\n\
            add rule inet linerate_dscp_eth0.7 store oifname \"eth0.7\" ip6 dscp 0x2e ct mark set ct mark and 0x02ffffff or 0xb9000000";
        assert_eq!(table.input(), expected);
        assert_eq!(table.removal().to_string(), "nft delete table inet linerate_dscp_eth0.7");
        assert!(table.commands()[1].to_string().contains("store '{' type"), "{}", table.commands()[1]);
        assert!(
            CodepointTable::can_name("br-lan") && !CodepointTable::can_name("a\"b") && !CodepointTable::can_name("a*")
        );
    }
}
