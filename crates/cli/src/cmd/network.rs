//! Address and interface of this host that a command uses: `-B`, `--bind-dev`, `-4` and `-6`.

use std::net::IpAddr;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use linerate_sys::interface::NetworkInterface;
use linerate_sys::options;

/// From where and over which family.
#[derive(Clone, Debug)]
pub(crate) struct NetworkArguments {
    /// Address to use on this host.
    pub(crate) bind: Option<IpAddr>,
    /// Interface to use on this host, of `--bind-dev` or behind the address.
    pub(crate) bind_dev: Option<String>,
    /// IPv4 only.
    pub(crate) ipv4: bool,
    /// IPv6 only.
    pub(crate) ipv6: bool,
}

/// The options as they are given.
#[derive(Clone, Debug, Args)]
struct NetworkOptions {
    /// Address to use on this host; a link-local one needs its interface
    #[arg(short = 'B', long, value_name = "ADDRESS[%INTERFACE]", value_parser = bind_address)]
    bind: Option<BindAddress>,
    /// Network interface to use on this host
    #[arg(long, value_name = "INTERFACE")]
    bind_dev: Option<String>,
    /// IPv4 only
    #[arg(short = '4', conflicts_with = "ipv6")]
    ipv4: bool,
    /// IPv6 only
    #[arg(short = '6')]
    ipv6: bool,
}

/// Value of `-B`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct BindAddress {
    address: IpAddr,
    interface: Option<String>,
}

/// Reads an address, and the interface behind a `%` (RFC 4007 §11): its name, or its number.
fn bind_address(text: &str) -> Result<BindAddress, String> {
    let (address, zone) = text.split_once('%').map_or((text, None), |(address, zone)| (address, Some(zone)));
    let address = address.parse().map_err(|_| {
        "an address is expected, and %INTERFACE behind a link-local one; --bind-dev takes an interface alone".to_owned()
    })?;
    Ok(BindAddress { address, interface: zone.map(interface_name).transpose()? })
}

/// Name of the interface that a zone identifier names.
pub(crate) fn interface_name(zone: &str) -> Result<String, String> {
    options::check_interface_name(zone).map_err(|error| error.to_string())?;
    match zone.parse() {
        Ok(number) if options::interface_index(zone).is_err() => {
            NetworkInterface::by_index(number).map(|found| found.name).map_err(|error| error.to_string())
        }
        _ => Ok(zone.to_owned()),
    }
}

impl TryFrom<NetworkOptions> for NetworkArguments {
    type Error = clap::Error;

    fn try_from(given: NetworkOptions) -> Result<Self, clap::Error> {
        let (bind, behind) = given.bind.map_or((None, None), |bind| (Some(bind.address), bind.interface));
        if let (Some(behind), Some(alone)) = (&behind, &given.bind_dev)
            && behind != alone
        {
            let text =
                format!("-B names the interface {behind}, and --bind-dev the interface {alone}: give one of them\n");
            return Err(clap::Error::raw(ErrorKind::ArgumentConflict, text));
        }
        Ok(Self { bind, bind_dev: given.bind_dev.or(behind), ipv4: given.ipv4, ipv6: given.ipv6 })
    }
}

impl FromArgMatches for NetworkArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        NetworkOptions::from_arg_matches(matches)?.try_into()
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for NetworkArguments {
    fn augment_args(command: Command) -> Command {
        NetworkOptions::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        NetworkOptions::augment_args_for_update(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<(Option<String>, Option<String>), String> {
        let command = NetworkArguments::augment_args(Command::new("test").no_binary_name(true));
        let matches = command.try_get_matches_from(line.split_whitespace()).map_err(|error| error.to_string())?;
        let found = NetworkArguments::from_arg_matches(&matches).map_err(|error| error.to_string())?;
        Ok((found.bind.map(|address| address.to_string()), found.bind_dev))
    }

    #[test]
    fn an_address_may_have_its_interface() {
        for (line, address, interface) in [
            ("", None, None),
            ("-B 192.0.2.1", Some("192.0.2.1"), None),
            ("-B fe80::1%va", Some("fe80::1"), Some("va")),
            ("--bind 192.0.2.1%eth0.7", Some("192.0.2.1"), Some("eth0.7")),
            ("-B fe80::1 --bind-dev va", Some("fe80::1"), Some("va")),
            ("-B fe80::1%va --bind-dev va", Some("fe80::1"), Some("va")),
            ("-B ::1%1", Some("::1"), Some("lo")),
            ("--bind-dev va", None, Some("va")),
        ] {
            let expected = (address.map(str::to_owned), interface.map(str::to_owned));
            assert_eq!(parsed(line), Ok(expected), "{line}");
        }
    }

    #[test]
    fn mistakes_are_explained() {
        for (line, text) in [
            ("-B fe80::1%va --bind-dev vb", "-B names the interface va, and --bind-dev the interface vb"),
            ("-B far.example", "an address is expected"),
            ("-B %va", "--bind-dev takes an interface alone"),
            ("-B fe80::1%", "1 to 15 bytes"),
            ("-B fe80::1%a-name-of-sixteen", "1 to 15 bytes"),
            ("-B fe80::1%2147483632", "ip link"),
        ] {
            let error = parsed(line).expect_err(line);
            assert!(error.contains(text), "{line}: {error}");
        }
    }
}
