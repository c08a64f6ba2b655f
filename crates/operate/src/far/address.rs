//! Address of a far host.

use core::fmt;
use core::str::FromStr;

use linerate_units::Port;

/// Access to the far host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FarAddress {
    /// `ssh:[USER@]HOST[:PORT]`.
    Ssh {
        /// `[USER@]HOST`, in ssh's syntax.
        destination: String,
        /// Port, if not the one of ssh's configuration.
        port: Option<Port>,
    },
    /// `netns:NAME`.
    Namespace(String),
}

impl FarAddress {
    /// Address of a host that is measured over the user's ssh, `ssh:…`; `None` for all other hosts.
    ///
    /// # Errors
    ///
    /// Text that names the syntax.
    pub fn of_host(host: &str) -> Result<Option<Self>, String> {
        if host.starts_with("ssh:") { host.parse().map(Some) } else { Ok(None) }
    }

    /// True when it shares this host's kernel and memory.
    pub fn is_this_kernel(&self) -> bool {
        matches!(self, Self::Namespace(_))
    }
}

impl fmt::Display for FarAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ssh { destination, port: None } => write!(formatter, "ssh:{destination}"),
            Self::Ssh { destination, port: Some(port) } if destination.contains(':') => {
                let (user, host) = destination.rsplit_once('@').unwrap_or(("", destination));
                let at = if user.is_empty() { "" } else { "@" };
                write!(formatter, "ssh:{user}{at}[{host}]:{port}")
            }
            Self::Ssh { destination, port: Some(port) } => write!(formatter, "ssh:{destination}:{port}"),
            Self::Namespace(name) => write!(formatter, "netns:{name}"),
        }
    }
}

impl FromStr for FarAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = match text.split_once(':') {
            Some(("ssh", rest)) => ssh(rest),
            Some(("netns", name)) => namespace(name),
            _ => None,
        };
        found.ok_or_else(|| format!("invalid address {text:?} (expected ssh:[USER@]HOST[:PORT] or netns:NAME)"))
    }
}

fn ssh(rest: &str) -> Option<FarAddress> {
    let (user, host) = rest.rsplit_once('@').map_or((None, rest), |(user, host)| (Some(user), host));
    let (host, port) = match host.strip_prefix('[') {
        // An IPv6 address is in brackets only before a port.
        Some(bracketed) => {
            let (host, after) = bracketed.split_once(']')?;
            (host, if after.is_empty() { None } else { Some(after.strip_prefix(':')?) })
        }
        None if host.matches(':').count() == 1 => host.split_once(':').map(|(host, port)| (host, Some(port)))?,
        None => (host, None),
    };
    let port = match port {
        Some(port) => Some(Port::new(port.parse().ok()?)?),
        None => None,
    };
    // A leading hyphen would be an option of ssh.
    let is_plain = |word: &str| {
        let harmless = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:%+\\".contains(&byte);
        !word.is_empty() && !word.starts_with('-') && word.bytes().all(harmless)
    };
    if !is_plain(host) || !user.is_none_or(is_plain) {
        return None;
    }
    let destination = user.map_or_else(|| host.to_owned(), |user| format!("{user}@{host}"));
    Some(FarAddress::Ssh { destination, port })
}

fn namespace(name: &str) -> Option<FarAddress> {
    let is_plain = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0']);
    is_plain.then(|| FarAddress::Namespace(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_the_syntax_of_ssh() {
        let ssh = |destination: &str, port: Option<u16>| FarAddress::Ssh {
            destination: destination.to_owned(),
            port: port.and_then(Port::new),
        };
        for (text, address) in [
            ("ssh:host", ssh("host", None)),
            ("ssh:me@host.example:2222", ssh("me@host.example", Some(2222))),
            ("ssh:2001:db8::1", ssh("2001:db8::1", None)),
            ("ssh:me@[2001:db8::1]:22", ssh("me@2001:db8::1", Some(22))),
            ("ssh:[::1]:22", ssh("::1", Some(22))),
            ("netns:far", FarAddress::Namespace("far".to_owned())),
        ] {
            assert_eq!(text.parse(), Ok(address.clone()), "{text}");
            assert_eq!(address.to_string(), text);
            assert_eq!(address.is_this_kernel(), text.starts_with("netns"));
        }
        assert_eq!("ssh:[::1]".parse(), Ok(ssh("::1", None)));
        for wrong in [
            "",
            "host",
            "ssh:",
            "ssh:-oProxyCommand=x",
            "ssh:me@-x",
            "ssh:-me@x",
            "ssh:@x",
            "ssh:a b",
            "ssh:h:0",
            "ssh:h:x",
            "ssh:[::1",
            "ssh:[::1]22",
            "ssh:h;x",
            "netns:",
            "netns:..",
            "netns:a/b",
            "docker:x",
        ] {
            let error = wrong.parse::<FarAddress>().expect_err(wrong);
            assert!(error.contains("ssh:[USER@]HOST[:PORT]"), "{error}");
        }
    }
}
