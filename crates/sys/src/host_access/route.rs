//! The attributes of a route, in the syntax of `ip route` (`ip-route(8)`).

use std::net::IpAddr;

use crate::command;
use crate::error::{Error, Result};
use crate::iproute2;

use super::explain::UNKNOWN_ALGORITHM_HINT;

/// Destination of the IPv6 default route.
const IPV6_DEFAULT: &str = "::/0";

/// Exit status of `ip` after an error of the kernel, as opposed to one of its arguments.
const KERNEL_REFUSED: i32 = 2;

/// Tokens that show a route's state and are not accepted.
const STATE_TOKENS: [&str; 6] = ["linkdown", "dead", "offload", "rt_offload", "trap", "cache"];

fn family(destination: &str) -> &'static str {
    if destination.contains(':') { "-6" } else { "-4" }
}

fn check_destination(destination: &str) -> Result<()> {
    let harmless = |byte: u8| byte.is_ascii_alphanumeric() || b".:/".contains(&byte);
    if destination.is_empty() || !destination.bytes().all(harmless) {
        let reason = "destinations are like default, 192.0.2.0/24 or 2001:db8::/32";
        return Err(Error::refused(format!("looking for the route {destination:?}"), reason));
    }
    Ok(())
}

/// The attributes in the main table for exactly this destination; of several routes the first, which is the one in use.
pub(super) fn read(destination: &str) -> Result<Option<String>> {
    check_destination(destination)?;
    iproute2::require("ip")?;
    let arguments = [family(destination), "route", "show", "exact", destination];
    let output = command::run_checked("ip", &arguments, None, iproute2::TIME_LIMIT)?;
    Ok(parse(&output.stdout_text()))
}

/// The route of the main table in use for this address, as [`linerate_model::change::ChangeTarget::Route`] has it: its
/// destination, and its attributes. `None` where another route is in use (another table, an address of this host, no
/// route at all), or where another route has the same destination: a change would not affect the one in use.
pub fn towards(address: IpAddr) -> Result<Option<(String, String)>> {
    iproute2::require("ip")?;
    let address = address.to_canonical().to_string();
    let arguments = [family(&address), "route", "get", "fibmatch", &address];
    let output = command::run("ip", &arguments, None, iproute2::TIME_LIMIT)?;
    // The kernel's answer is that there is none; other failures are of the program, or of an older kernel.
    if !matches!(output.status.code(), Some(0 | KERNEL_REFUSED)) {
        return Err(command::failure("ip", &arguments, &output));
    }
    let text = output.stdout_text();
    let Some(destination) = text.split_ascii_whitespace().next().filter(|_| output.status.success()) else {
        return Ok(None);
    };
    // Routes that are not for forwarding begin with their kind: `local 127.0.0.1 dev lo`.
    let network = destination.split('/').next().and_then(|network| network.parse::<IpAddr>().ok());
    if network.is_none() && destination != "default" {
        return Ok(None);
    }
    // The kernel renews a route of a router advertisement only as long as nothing else has changed it.
    if text.split_ascii_whitespace().any(|token| token == "expires") {
        return Ok(None);
    }
    // The name `default` means the IPv4 route.
    let destination = if destination == "default" && address.contains(':') { IPV6_DEFAULT } else { destination };
    let used = parse(&text);
    Ok(read(destination)?.filter(|there| Some(there) == used.as_ref()).map(|there| (destination.to_owned(), there)))
}

pub(super) fn write(destination: &str, value: Option<&str>) -> Result<()> {
    check_destination(destination)?;
    let words: Vec<&str> = value.unwrap_or_default().split_ascii_whitespace().collect();
    let verb = match (value, read(destination)?) {
        (None, None) => return Ok(()),
        (None, Some(_)) => "del",
        (Some(_), None) => "replace",
        (Some(_), Some(_)) => "change",
    };
    let mut arguments = vec![family(destination), "route", verb, destination];
    arguments.extend(words);
    command::run_bound_checked("ip", &arguments, None, iproute2::TIME_LIMIT)
        .map(drop)
        .map_err(explain_congestion_control)
}

/// The error, with the remedy where the kernel has no such congestion control (`fib_metrics.c`, `ip_metrics_convert`).
fn explain_congestion_control(error: Error) -> Error {
    match error {
        Error::Program { command, output, .. } if output.contains("congestion algorithm") => {
            Error::refused(format!("`{command}`"), format!("{output} ({UNKNOWN_ALGORITHM_HINT})"))
        }
        other => other,
    }
}

/// Text after the destination, of the first route.
fn parse(text: &str) -> Option<String> {
    let mut lines = text.lines();
    let first = lines.next()?;
    // The next hops of a route with several are on lines of their own.
    let more = lines.take_while(|line| line.starts_with([' ', '\t']));
    let all = core::iter::once(first).chain(more).flat_map(str::split_ascii_whitespace);
    let mut words = all.skip(1);
    let mut taken = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "expires" => drop(words.next()),
            state if STATE_TOKENS.contains(&state) => {}
            word => taken.push(word),
        }
    }
    Some(taken.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_route_without_its_state() {
        let text = "default via 192.0.2.1 dev eth0 proto dhcp src 192.0.2.7 metric 100 linkdown \ndefault dev eth1 metric 200\n";
        assert_eq!(parse(text).as_deref(), Some("via 192.0.2.1 dev eth0 proto dhcp src 192.0.2.7 metric 100"));
        let several =
            "default proto static \n\tnexthop via 192.0.2.1 dev a weight 1 \n\tnexthop via 192.0.2.2 dev b weight 1 \n";
        assert_eq!(
            parse(several).as_deref(),
            Some("proto static nexthop via 192.0.2.1 dev a weight 1 nexthop via 192.0.2.2 dev b weight 1")
        );
        assert_eq!(
            parse("default via fe80::1 dev eth0 proto ra expires 1797sec pref medium").as_deref(),
            Some("via fe80::1 dev eth0 proto ra pref medium")
        );
        assert_eq!(parse(""), None);
        for wrong in ["", "default; reboot", "-x", "a b"] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn an_unknown_congestion_control_names_the_package() {
        let failed = |output: &str| Error::Program {
            command: "ip -4 route change default via 192.0.2.1 congctl bbr".into(),
            status: "exit status: 2".into(),
            output: output.into(),
        };
        let explained = explain_congestion_control(failed("Error: Unknown tcp congestion algorithm.")).to_string();
        assert!(explained.contains("congctl bbr") && explained.contains("kernel-modules-extra"), "{explained}");
        let other = explain_congestion_control(failed("RTNETLINK answers: No such file or directory")).to_string();
        assert!(!other.contains("modules"), "{other}");
    }

    #[test]
    #[ignore = "needs root and ip: devices in a network namespace"]
    fn the_route_in_use() {
        let chain = crate::test_network::NamespaceChain::new(1400);
        let within = || {
            let to = |address: &str| towards(address.parse().expect("valid")).expect("ip");
            let (found, attributes) = to("10.99.2.2").expect("there is one");
            assert!(found == "default" && attributes.contains("via 10.99.1.2"), "{found} {attributes}");
            let (found, attributes) = to("fd99:2::2").expect("there is one");
            assert!(found == "::/0" && attributes.contains("via fd99:1::2"), "{found} {attributes}");
            assert!(to("fd99:1::2").is_some_and(|(found, _)| found == "fd99:1::/64"), "{:?}", to("fd99:1::2"));
            assert!(
                to("10.99.1.2").is_some_and(|(found, attributes)| found == "10.99.1.0/24" && !attributes.is_empty())
            );
            assert_eq!((to("127.0.0.1"), to("10.99.1.1")), (None, None), "addresses of this host");
            let ip = |line: &str| {
                let words: Vec<&str> = line.split(' ').collect();
                command::run_checked("ip", &words, None, iproute2::TIME_LIMIT).expect("ip");
            };
            // The attributes of one family's default route are its own.
            let default4 = read("default").expect("read");
            write("::/0", Some(&format!("{attributes} initcwnd 20"))).expect("changed");
            assert!(to("fd99:2::2").is_some_and(|(_, attributes)| attributes.contains("initcwnd 20")));
            assert_eq!(read("default").expect("read"), default4);
            write("::/0", Some(&attributes)).expect("restored");
            assert_eq!(to("fd99:2::2"), Some((found, attributes)));
            // One that a router advertises.
            ip("-6 route add 2001:db8:9::/48 via fd99:1::2 dev near0 proto ra expires 1000");
            assert_eq!(to("2001:db8:9::1"), None);
            // With a table of its own for this destination, the main one is not in use.
            ip("route add default dev near0 table 77");
            ip("rule add to 10.99.2.2 lookup 77");
            assert_eq!(to("10.99.2.2"), None);
            assert!(to("10.99.2.3").is_some());
        };
        chain.near.within(within).expect("entered");
        let alone = crate::namespace::NetworkNamespace::create().expect("root");
        let nowhere = || towards("192.0.2.1".parse().expect("valid")).expect("ip");
        assert_eq!(alone.within(nowhere).expect("entered"), None);
    }

    #[test]
    #[ignore = "needs root and ip: devices in a network namespace"]
    fn attributes_are_set_and_restored() {
        let chain = crate::test_network::NamespaceChain::new(1400);
        let within = || {
            let destination = "203.0.113.0/24";
            assert_eq!(read(destination).expect("read"), None);
            write(destination, Some("dev near0 proto static")).expect("made");
            let before = read(destination).expect("read").expect("there");
            write(destination, Some(&format!("{before} initcwnd 20"))).expect("changed");
            assert!(read(destination).expect("read").expect("there").contains("initcwnd 20"));
            write(destination, Some(&before)).expect("restored");
            assert_eq!(read(destination).expect("read"), Some(before));
            write(destination, None).expect("removed");
            write(destination, None).expect("nothing left to do");
            assert_eq!(read(destination).expect("read"), None);
        };
        chain.near.within(within).expect("entered");
    }
}
