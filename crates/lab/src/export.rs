//! A path for other tools: as a script of `tc` for hosts of one's own, and as a topology for containerlab.
//!
//! Both have the properties of a direction on the device that sends in it. What only a wire between the hosts can have
//! is named in comments.

use core::fmt::Write as _;

use crate::compile::address::{self, LinkEnd};
use crate::compile::sender::SenderLines;
use crate::description::{HostDescription, LinkDirection, LossModel, PathDescription};

/// A device of a host, and what it sends.
struct SendingDevice<'a> {
    link: usize,
    end: LinkEnd,
    direction: &'a LinkDirection,
    /// Name of the host at the other end.
    to: &'a str,
}

/// The devices of the host `index`, the one towards near first.
fn devices(path: &PathDescription, index: usize) -> Vec<SendingDevice<'_>> {
    let device = |link: usize, end: LinkEnd| {
        let to = &path.hosts[address::host_index(link, end.other())].name;
        let link_description = &path.links[link];
        let direction = match end {
            LinkEnd::Near => &link_description.forward,
            LinkEnd::Far => &link_description.backward,
        };
        SendingDevice { link, end, direction, to }
    };
    let towards_near = index.checked_sub(1).map(|link| device(link, LinkEnd::Far));
    let towards_far = (index < path.links.len()).then(|| device(index, LinkEnd::Near));
    towards_near.into_iter().chain(towards_far).collect()
}

/// Settings of a host as `sysctl` takes them, the congestion control first.
fn settings(host: &HostDescription) -> Vec<(String, String)> {
    let control = ("net.ipv4.tcp_congestion_control".to_owned(), host.congestion_control.clone());
    let own = host.sysctls.iter().map(|setting| (setting.key.clone(), setting.value.clone()));
    core::iter::once(control).chain(own).collect()
}

/// A script for `/bin/sh` that takes the name of a host, and its device where it has one.
#[must_use]
pub fn tc_script(path: &PathDescription) -> String {
    let names: Vec<&str> = path.hosts.iter().map(|host| host.name.as_str()).collect();
    let names = names.join("|");
    let mut text = format!(
        "#!/bin/sh\n\
         # The path {} by tc, on the devices that send. Run it on each host, as root:\n\
         #   sh FILE {names} [DEVICE]\n\
         # To undo: tc qdisc del dev DEVICE root; tc qdisc del dev DEVICE clsact\n\
         # Large packets of TCP count as one: ethtool -K DEVICE tso off gso off gro off\n\
         set -e\n\
         case \"$1\" in\n",
        path.name
    );
    for (index, host) in path.hosts.iter().enumerate() {
        let _ = writeln!(text, "{})", host.name);
        for (key, value) in settings(host) {
            let _ = writeln!(text, "  # sysctl -w {key}={}", shell_quoted(&value));
        }
        host_script(&mut text, path, index);
        text.push_str("  ;;\n");
    }
    let _ = write!(text, "*)\n  echo \"usage: $0 {names} [DEVICE]\" >&2\n  exit 2\n  ;;\nesac\n");
    text
}

fn host_script(text: &mut String, path: &PathDescription, index: usize) {
    let devices = devices(path, index);
    let is_single = devices.len() == 1;
    let mut has_loops = false;
    for device in &devices {
        let name = address::host_device(device.link, device.end);
        let variable = if is_single { "\"${2:-eth0}\"" } else { name };
        let sender = SenderLines::of(path, device.link, device.direction, variable);
        let _ = writeln!(text, "  # towards {}", device.to);
        if sender.lines.is_empty() {
            text.push_str("  # nothing to do\n");
        }
        for missing in &sender.missing {
            let _ = writeln!(text, "  # without {missing}");
        }
        for line in &sender.lines {
            let _ = writeln!(text, "  tc {}", with_quoted_match(line));
        }
        has_loops |= push_changes(text, &sender);
    }
    if has_loops {
        text.push_str("  wait\n");
    }
}

/// Changes of the rate, as a loop next to the others; true when there are any.
fn push_changes(text: &mut String, sender: &SenderLines) -> bool {
    if sender.changes.is_empty() {
        return false;
    }
    text.push_str("  # The rate changes as long as the script runs.\n  {\n");
    if sender.period.is_some() {
        text.push_str("    while :; do\n");
    }
    let mut now = core::time::Duration::ZERO;
    for (at, line) in &sender.changes {
        if *at > now {
            let _ = writeln!(text, "    sleep {}", at.saturating_sub(now).as_secs_f64());
        }
        now = *at;
        let _ = writeln!(text, "    tc {line}");
    }
    if let Some(period) = sender.period {
        let _ = writeln!(text, "    sleep {}\n    done", period.saturating_sub(now).as_secs_f64());
    }
    text.push_str("  } &\n");
    true
}

/// Line whose match has parentheses, which a shell would read.
fn with_quoted_match(line: &str) -> String {
    let quoted = line.split_once("meta(").and_then(|(before, rest)| {
        let (expression, after) = rest.split_once(')')?;
        Some(format!("{before}'meta({expression})'{after}"))
    });
    quoted.unwrap_or_else(|| line.to_owned())
}

fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Image of the nodes, with iproute2 and common tools.
const IMAGE: &str = "ghcr.io/srl-labs/network-multitool";

/// A topology for `containerlab deploy`. A node's devices are `eth1` and, towards far of a router, `eth2`.
#[must_use]
pub fn containerlab(path: &PathDescription) -> String {
    let mut text = format!(
        "---\n# The path {0} for containerlab: containerlab deploy -t FILE, then docker exec clab-{0}-near ping 10.0.{1}.2\n\
         # The host needs the modules of tc: modprobe -a sch_netem sch_tbf\n\
         name: {0}\ntopology:\n  kinds:\n    linux:\n      image: {IMAGE}\n  nodes:\n",
        path.name,
        path.links.len().saturating_sub(1)
    );
    for (index, host) in path.hosts.iter().enumerate() {
        node(&mut text, path, index, host);
    }
    text.push_str("  links:\n");
    for (link, description) in path.links.iter().enumerate() {
        let end = |end: LinkEnd| {
            let host = &path.hosts[address::host_index(link, end)].name;
            format!("{host}:{}", node_device(link, end))
        };
        let (near, far) = (end(LinkEnd::Near), end(LinkEnd::Far));
        let _ =
            writeln!(text, "    - endpoints: [{}, {}]\n      mtu: {}", quoted(&near), quoted(&far), description.mtu);
    }
    text
}

fn node(text: &mut String, path: &PathDescription, index: usize, host: &HostDescription) {
    let devices = devices(path, index);
    let _ = writeln!(text, "    {}:\n      kind: linux\n      sysctls:", host.name);
    let forward = if devices.len() > 1 { "1" } else { "0" };
    let _ = writeln!(text, "        net.ipv4.ip_forward: {}", quoted(forward));
    for (key, value) in settings(host).iter().filter(|(key, _)| is_of_a_namespace(key)) {
        let _ = writeln!(text, "        {key}: {}", quoted(value));
    }
    text.push_str("      exec:\n");
    let mut exec = |line: &str| {
        let _ = writeln!(text, "        - {}", quoted(line));
    };
    for device in &devices {
        exec(&format!(
            "ip addr add {}/30 dev {}",
            address::ipv4(device.link, device.end),
            node_device(device.link, device.end)
        ));
    }
    for device in &devices {
        let behind = match device.end {
            LinkEnd::Far => 0..device.link,
            LinkEnd::Near => device.link + 1..path.links.len(),
        };
        let through = address::ipv4(device.link, device.end.other());
        for network in behind {
            exec(&format!("ip route add {}/30 via {through}", address::ipv4_network(network)));
        }
    }
    let mut comments = Vec::new();
    for device in &devices {
        let name = node_device(device.link, device.end);
        let sender = SenderLines::of(path, device.link, device.direction, name);
        for line in &sender.lines {
            exec(&format!("tc {line}"));
        }
        let changes = (!sender.changes.is_empty()).then_some("changes of the rate: `--format tc` has them");
        for missing in sender.missing.iter().copied().chain(changes) {
            comments.push(format!("towards {} without {missing}", device.to));
        }
        if let Some(options) = netem_options(device.direction) {
            let node = format!("clab-{}-{}", path.name, host.name);
            comments.push(format!("or, without queues: containerlab tools netem set -n {node} -i {name}{options}"));
        }
    }
    for comment in comments {
        let _ = writeln!(text, "      # {comment}");
    }
}

/// True for settings that a container has for itself.
fn is_of_a_namespace(key: &str) -> bool {
    key.starts_with("net.") && !crate::compile::sysctl::is_system_wide(key)
}

const fn node_device(link: usize, end: LinkEnd) -> &'static str {
    match end {
        LinkEnd::Near if link > 0 => "eth2",
        LinkEnd::Near | LinkEnd::Far => "eth1",
    }
}

/// Options of `containerlab tools netem set`; `None` where it would do nothing.
fn netem_options(direction: &LinkDirection) -> Option<String> {
    let mut options = String::new();
    if !direction.delay.is_zero() {
        let _ = write!(options, " --delay {}us", direction.delay.as_micros());
    }
    if let Some(jitter) = direction.jitter {
        let _ = write!(options, " --jitter {}us", jitter.by.as_micros());
    }
    if let Some(LossModel::Random(share)) = direction.loss {
        let _ = write!(options, " --loss {}", share.percent());
    }
    if let Some(share) = direction.corrupt {
        let _ = write!(options, " --corruption {}", share.percent());
    }
    if let Some(rate) = direction.rate {
        let _ = write!(options, " --rate {}", rate.whole_bits_per_second().div_ceil(1000));
    }
    (!options.is_empty()).then_some(options)
}

/// A scalar of YAML in double quotes, which takes the escapes of JSON (YAML 1.2 §7.3.1).
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library;

    fn path(keys: &str) -> PathDescription {
        let text = format!("[host.near]\n[host.far]\n[[link]]\nbetween = [\"near\", \"far\"]\n{keys}");
        PathDescription::parse("own", &text).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Lines of `tc` in the section of `host`.
    fn section(script: &str, host: &str) -> Vec<String> {
        let lines =
            script.lines().skip_while(|line| *line != format!("{host})")).take_while(|line| line.trim() != ";;");
        lines.filter_map(|line| line.trim().strip_prefix("tc ")).map(str::to_owned).collect()
    }

    #[test]
    fn a_plain_link_is_a_netem_over_a_shaper() {
        let path = path("rate = \"10 Mbit/s\"\ndelay = \"10 ms\"\nloss = \"0.1 %\"\nbuffer = \"500 ms\"");
        let expected = [
            "qdisc replace dev \"${2:-eth0}\" root handle 1: netem limit 1000000000 delay 10000us loss random 0.1%",
            "qdisc add dev \"${2:-eth0}\" parent 1:1 handle 2: tbf rate 10000000bit burst 1519 limit 625000",
        ];
        assert_eq!(section(&tc_script(&path), "near"), expected);
        assert_eq!(section(&tc_script(&path), "far"), expected);
    }

    #[test]
    fn stages_are_below_each_other() {
        let keys = "delay = \"10 ms\"\nreorder = { share = \"1 %\", by = \"1 ms\" }\nrate = \"10 Mbit/s\"\nbuffer = \"9 packets\"";
        let lines = section(&tc_script(&path(keys)), "near");
        let places: Vec<&str> = lines.iter().map(|line| &line[line.find("\" ").expect("a device") + 2..]).collect();
        assert_eq!(
            places,
            [
                "root handle 1: netem limit 1000000000 delay 9000us",
                "parent 1:1 handle 2: netem limit 1000000000 delay 1000us reorder 1%",
                "parent 2:1 handle 3: tbf rate 10000000bit burst 1519 limit 13626",
                "parent 3:1 handle 100: pfifo limit 9",
            ]
        );
        let queue = section(&tc_script(&path("rate = \"10 Mbit/s\"\nqueue = \"fq_codel\"")), "near");
        assert!(queue[0].contains("root handle 1: tbf rate"), "{queue:?}");
        assert!(queue[1].contains("parent 1:1 handle 100: fq_codel"), "{queue:?}");
    }

    #[test]
    fn filters_count_the_header_of_a_sending_device() {
        let lines = section(&tc_script(&path("drop_larger_than = \"1400 B\"\nloss = { every = 10 }")), "near");
        assert_eq!(lines[0], "qdisc replace dev \"${2:-eth0}\" clsact");
        assert!(
            lines[1].contains("egress prio 3 protocol all basic match 'meta(pkt_len gt 1414)' action"),
            "{lines:?}"
        );
        assert!(lines[2].contains("egress prio 4"), "{lines:?}");
    }

    #[test]
    fn rates_that_change_are_loops() {
        let keys = "rate = \"20 Mbit/s\"\nbuffer = \"1 MB\"\nsteps = [{ at = \"1.5 s\", rate = \"5 Mbit/s\" }, { at = \"2 s\", rate = \"6 Mbit/s\" }]";
        let script = tc_script(&path(keys));
        let steps = ["sleep 1.5\n", "rate 5000000bit", "sleep 0.5\n", "rate 6000000bit", "} &\n  wait\n"];
        let places: Vec<Option<usize>> = steps.iter().map(|step| script.find(step)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{script}");
    }

    #[test]
    fn every_path_of_the_library_is_exported_with_all_its_hosts() {
        for entry in library::all() {
            let path = entry.description().expect("valid");
            let (script, topology) = (tc_script(&path), containerlab(&path));
            for host in &path.hosts {
                assert!(script.contains(&format!("\n{})\n", host.name)), "{}: {script}", path.name);
                assert!(topology.contains(&format!("\n    {}:\n      kind: linux\n", host.name)), "{}", path.name);
            }
            assert_eq!(topology.matches("- endpoints:").count(), path.links.len(), "{}", path.name);
        }
    }

    #[test]
    fn text_of_a_description_stays_text() {
        let text = "[host.near]\nsysctl = { \"net.ipv4.tcp_rmem\" = \"4096 5000 6000\", \"net.core.default_qdisc\" = \"a'; rm -rf x #\\\" b\" }\n[host.far]\n[[link]]\nbetween = [\"near\", \"far\"]";
        let path = PathDescription::parse("own", text).unwrap_or_else(|error| panic!("{error}"));
        assert!(tc_script(&path).contains("'a'\\''; rm -rf x #\" b'"));
        assert!(!containerlab(&path).contains("default_qdisc"), "a container has no setting of the whole system");
    }
}
