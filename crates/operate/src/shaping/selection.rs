//! Traffic selectors of the command line: `tcp/22`, `udp/5060`, `dscp/46`, `mark/0x10`, `host/192.0.2.0/24`, `protocol/47`.

use core::fmt;
use core::str::FromStr;

use linerate_model::socket::FirewallMark;
use linerate_shape::policy::{IpProtocol, PacketSelector, ParsePrefixError, PortTransport};
use linerate_units::{Dscp, Port};

/// A selector with its original text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrafficSelection {
    /// Packets.
    pub selector: PacketSelector,
    text: String,
}

impl fmt::Display for TrafficSelection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

const SELECTOR_FORMS: &str = "tcp/PORT, udp/PORT, dscp/0 to 63 or a name (ef), mark/NUMBER, host/ADDRESS[/LENGTH], protocol/0 \
                              to 255, icmp, ack or syn";

impl FromStr for TrafficSelection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, value) = text.split_once('/').unwrap_or((text, ""));
        let port = || value.parse().ok().and_then(Port::new);
        let selector = match kind {
            "tcp" => port().map(|port| PacketSelector::Port(PortTransport::Tcp, port)),
            "udp" => port().map(|port| PacketSelector::Port(PortTransport::Udp, port)),
            "dscp" => {
                value.parse().ok().and_then(Dscp::new).or_else(|| Dscp::from_name(value)).map(PacketSelector::Codepoint)
            }
            "mark" => return Self::with(text, FirewallMark::parse(value).map(PacketSelector::FirewallMark)),
            "protocol" => value.parse().ok().map(|number| PacketSelector::Protocol(IpProtocol::new(number))),
            "icmp" if value.is_empty() => Some(PacketSelector::Icmp),
            "ack" if value.is_empty() => Some(PacketSelector::PureAcknowledgement),
            "syn" if value.is_empty() => Some(PacketSelector::ConnectionRequest),
            "host" => {
                let prefix = value.parse().map_err(|error: ParsePrefixError| error.to_string());
                return Self::with(text, prefix.map(PacketSelector::Host));
            }
            _ => None,
        };
        Self::with(text, selector.ok_or_else(|| format!("unknown selector '{text}' (expected {SELECTOR_FORMS})")))
    }
}

impl TrafficSelection {
    fn with(text: &str, selector: Result<PacketSelector, String>) -> Result<Self, String> {
        Ok(Self { selector: selector?, text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_read_and_nothing_else() {
        for text in [
            "tcp/22",
            "udp/5060",
            "dscp/46",
            "dscp/ef",
            "mark/16",
            "mark/0xffffffff",
            "host/192.0.2.7",
            "host/2001:db8::/32",
            "protocol/47",
            "icmp",
            "ack",
            "syn",
        ] {
            assert_eq!(text.parse::<TrafficSelection>().map(|one| one.to_string()), Ok(text.to_owned()));
        }
        for text in [
            "tcp/0",
            "tcp",
            "udp/65536",
            "dscp/64",
            "mark/0",
            "mark/ef",
            "host/192.0.2.0/40",
            "protocol/256",
            "icmp/8",
            "22",
            "",
        ] {
            assert!(text.parse::<TrafficSelection>().is_err(), "{text}");
        }
    }
}
