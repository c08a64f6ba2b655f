//! Which packets a person means: `tcp/22`, `udp/5060`, `dscp/46`, `host/192.0.2.0/24`, `protocol/47`.

use core::fmt;
use core::str::FromStr;

use linerate_shape::policy::{IpProtocol, Selector, Transport};
use linerate_units::{Dscp, Port};

/// A selector with the word that it was written as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selection {
    pub(crate) selector: Selector,
    text: String,
}

impl fmt::Display for Selection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

const FORMS: &str =
    "tcp/PORT, udp/PORT, dscp/0 to 63 or a name (ef), host/ADDRESS[/LENGTH], protocol/0 to 255, icmp or ack";

impl FromStr for Selection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, value) = text.split_once('/').unwrap_or((text, ""));
        let port = || value.parse().ok().and_then(Port::new);
        let selector = match kind {
            "tcp" => port().map(|port| Selector::Port(Transport::Tcp, port)),
            "udp" => port().map(|port| Selector::Port(Transport::Udp, port)),
            "dscp" => value.parse().ok().and_then(Dscp::new).or_else(|| Dscp::from_name(value)).map(Selector::Mark),
            "protocol" => value.parse().ok().map(|number| Selector::Protocol(IpProtocol::new(number))),
            "icmp" if value.is_empty() => Some(Selector::Icmp),
            "ack" if value.is_empty() => Some(Selector::PureAcknowledgement),
            "host" => match value.parse() {
                Ok(prefix) => Some(Selector::Host(prefix)),
                Err(error) => return Err(format!("{error}")),
            },
            _ => None,
        };
        let selector = selector.ok_or_else(|| format!("'{text}' names no packets: there are {FORMS}"))?;
        Ok(Self { selector, text: text.to_owned() })
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
            "host/192.0.2.7",
            "host/2001:db8::/32",
            "protocol/47",
            "icmp",
            "ack",
        ] {
            assert_eq!(text.parse::<Selection>().map(|one| one.to_string()), Ok(text.to_owned()));
        }
        for text in ["tcp/0", "tcp", "udp/65536", "dscp/64", "host/192.0.2.0/40", "protocol/256", "icmp/8", "22", ""] {
            assert!(text.parse::<Selection>().is_err(), "{text}");
        }
    }
}
