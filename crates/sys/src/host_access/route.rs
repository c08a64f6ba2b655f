//! The attributes of a route, in the words of `ip route` (`ip-route(8)`).

use core::time::Duration;

use crate::command;
use crate::error::{Error, Result};

const PATIENCE: Duration = Duration::from_secs(10);

/// Words that tell a route's state and are not taken.
const STATE: [&str; 6] = ["linkdown", "dead", "offload", "rt_offload", "trap", "cache"];

fn family(destination: &str) -> &'static str {
    if destination.contains(':') { "-6" } else { "-4" }
}

fn checked(destination: &str) -> Result<()> {
    let harmless = |byte: u8| byte.is_ascii_alphanumeric() || b".:/".contains(&byte);
    if destination.is_empty() || !destination.bytes().all(harmless) {
        let reason = "destinations are like default, 192.0.2.0/24 or 2001:db8::/32";
        return Err(Error::refused(format!("looking for the route {destination:?}"), reason));
    }
    Ok(())
}

/// What the main table has for exactly this destination; of several the first, which is the one that is used.
pub(super) fn read(destination: &str) -> Result<Option<String>> {
    checked(destination)?;
    let arguments = [family(destination), "route", "show", "exact", destination];
    let output = command::run_checked("ip", &arguments, None, PATIENCE)?;
    Ok(parse(&output.stdout_text()))
}

pub(super) fn write(destination: &str, value: Option<&str>) -> Result<()> {
    checked(destination)?;
    let words: Vec<&str> = value.unwrap_or_default().split_ascii_whitespace().collect();
    let verb = match (value, read(destination)?) {
        (None, None) => return Ok(()),
        (None, Some(_)) => "del",
        (Some(_), None) => "replace",
        (Some(_), Some(_)) => "change",
    };
    let mut arguments = vec![family(destination), "route", verb, destination];
    arguments.extend(words);
    command::run_checked("ip", &arguments, None, PATIENCE).map(drop)
}

/// What follows the destination, of the first route.
fn parse(text: &str) -> Option<String> {
    let mut lines = text.lines();
    let first = lines.next()?;
    // The next hops of a route with several stand on lines of their own.
    let more = lines.take_while(|line| line.starts_with([' ', '\t']));
    let all = core::iter::once(first).chain(more).flat_map(str::split_ascii_whitespace);
    let mut words = all.skip(1);
    let mut taken = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "expires" => drop(words.next()),
            state if STATE.contains(&state) => {}
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
    #[ignore = "needs root and ip: devices in a network namespace"]
    fn attributes_are_set_and_put_back() {
        let chain = crate::test_network::Chain::new(1400);
        let within = || {
            let destination = "203.0.113.0/24";
            assert_eq!(read(destination).expect("read"), None);
            write(destination, Some("dev near0 proto static")).expect("made");
            let before = read(destination).expect("read").expect("there");
            write(destination, Some(&format!("{before} initcwnd 20"))).expect("changed");
            assert!(read(destination).expect("read").expect("there").contains("initcwnd 20"));
            write(destination, Some(&before)).expect("put back");
            assert_eq!(read(destination).expect("read"), Some(before));
            write(destination, None).expect("taken away");
            write(destination, None).expect("nothing left to do");
            assert_eq!(read(destination).expect("read"), None);
        };
        chain.near.within(within).expect("entered");
    }
}
