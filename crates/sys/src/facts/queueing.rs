//! Queueing disciplines of all interfaces: from `tc`, or with less detail from the kernel where `tc` is missing.

use core::time::Duration;
use std::collections::BTreeMap;

use linerate_model::environment::QueueStatistics;
use linerate_model::fact::{Fact, UnreadFact};
use linerate_model::host::link::{NetworkLink, QdiscNode};
use linerate_units::{ByteCount, CompactSort, PacketCount};
use serde_json::{Map, Value};

use super::reading::fact;
use crate::command;
use crate::error::{Error, Result};
use crate::interface::{QueueDescription, TCMSG_LENGTH};
use crate::netlink::{NetlinkMessage, NetlinkSocket};

/// Timeout of `tc`, which takes milliseconds; hosts with thousands of disciplines take longer.
const TC_TIMEOUT: Duration = Duration::from_secs(2);

/// Disciplines by interface.
type DisciplineTrees = BTreeMap<String, Vec<QdiscNode>>;

pub(super) fn read(links: &[NetworkLink]) -> core::result::Result<DisciplineTrees, UnreadFact> {
    let outcome = from_tc_json().or_else(|_| from_rtnetlink(links));
    match fact(outcome) {
        Fact::Known(trees) => Ok(trees),
        Fact::Unknown(unread) => Err(unread),
    }
}

fn from_tc_json() -> Result<DisciplineTrees> {
    let arguments = ["-j", "-s", "qdisc", "show"];
    let output = command::run_checked("tc", &arguments, None, TC_TIMEOUT)?;
    parse(&output.stdout)
        .ok_or_else(|| Error::refused(command::running("tc", &arguments), "its answer is no list of disciplines"))
}

/// Parses the output of `tc -j -s qdisc show`.
fn parse(json: &[u8]) -> Option<DisciplineTrees> {
    let list: Value = serde_json::from_slice(json).ok()?;
    let mut trees = DisciplineTrees::new();
    for entry in list.as_array()?.iter().filter_map(Value::as_object) {
        if let Some((device, discipline)) = entry.get("dev").and_then(Value::as_str).zip(discipline(entry)) {
            trees.entry(device.to_owned()).or_default().push(discipline);
        }
    }
    for tree in trees.values_mut() {
        tree.sort_compactly_by_key(|discipline| discipline.parent.is_some());
    }
    Some(trees)
}

/// Keys that are not a discipline's own counters.
const COMMON_COUNTERS: [&str; 8] = ["refcnt", "bytes", "packets", "drops", "overlimits", "requeues", "backlog", "qlen"];

fn discipline(entry: &Map<String, Value>) -> Option<QdiscNode> {
    let text = |name| entry.get(name).and_then(Value::as_str).map(str::to_owned);
    let count = |name| entry.get(name).and_then(Value::as_u64);
    let packets = |name| count(name).map(PacketCount::new);
    let statistics = || {
        Some(QueueStatistics {
            sent: ByteCount::new(count("bytes")?),
            packets: packets("packets")?,
            dropped: packets("drops")?,
            overlimits: packets("overlimits")?,
            requeues: packets("requeues")?,
            backlog: ByteCount::new(count("backlog")?),
            backlog_packets: packets("qlen")?,
        })
    };
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let options = entry.get("options").and_then(Value::as_object);
    let own = entry.iter().filter(|(name, _)| !COMMON_COUNTERS.contains(&name.as_str()));
    Some(QdiscNode {
        kind: text("kind")?,
        handle: text("handle")?,
        parent: text("parent"),
        options: options.into_iter().flatten().map(|(name, value)| (name.clone(), shown(value))).collect(),
        statistics: statistics(),
        counters: own.filter_map(|(name, value)| Some((name.clone(), value.as_u64()?))).collect(),
    })
}

/// Disciplines from rtnetlink, without settings and counters of their own.
fn from_rtnetlink(links: &[NetworkLink]) -> Result<DisciplineTrees> {
    let failed = |cause| Error::system("listing the queueing disciplines", cause);
    let mut trees = DisciplineTrees::new();
    let mut socket = NetlinkSocket::route().map_err(failed)?;
    let each = |message: NetlinkMessage<'_>| {
        let found = described(message.body);
        let name = |index| links.iter().find(|link| link.index == index).map(|link| link.name.clone());
        if let Some((device, discipline)) = found.and_then(|(index, discipline)| Some((name(index)?, discipline))) {
            trees.entry(device).or_default().push(discipline);
        }
    };
    socket.list(libc::RTM_GETQDISC, &[0; TCMSG_LENGTH], each).map_err(failed)?;
    Ok(trees)
}

fn described(body: &[u8]) -> Option<(u32, QdiscNode)> {
    let queue = QueueDescription::parse(body)?;
    let discipline = QdiscNode {
        handle: format!("{:x}:", queue.handle >> 16),
        parent: queue.parent.map(|parent| match (parent >> 16, parent & 0xffff) {
            (0, minor) => format!(":{minor:x}"),
            (major, minor) => format!("{major:x}:{minor:x}"),
        }),
        options: BTreeMap::new(),
        statistics: queue.statistics(),
        counters: BTreeMap::new(),
        kind: queue.kind,
    };
    Some((queue.index, discipline))
}

#[cfg(test)]
mod tests {
    use linerate_model::host::link::{leaves, root};

    use super::*;

    /// From `tc -j -s qdisc show` of iproute2 6.15, shortened.
    const CAPTURED: &[u8] = br#"[
        {"kind":"noqueue","handle":"0:","dev":"lo","root":true,"refcnt":2,"options":{},"bytes":0,"packets":0,"drops":0,
         "overlimits":0,"requeues":0,"backlog":0,"qlen":0},
        {"kind":"fq","handle":"10:","dev":"eth0","parent":"1:10","options":{"limit":10000,"quantum":3028,"timers":"x"},
         "bytes":1000,"packets":7,"drops":3,"overlimits":0,"requeues":1,"backlog":1500,"qlen":1,"flows":3,"throttled":12,
         "flows_plimit":2},
        {"kind":"htb","handle":"1:","dev":"eth0","root":true,"refcnt":2,"options":{"r2q":10,"default":"0x10"},
         "bytes":1000,"packets":7,"drops":3,"overlimits":5,"requeues":1,"backlog":0,"qlen":0}]"#;

    #[test]
    fn trees_from_tc_json() {
        let trees = parse(CAPTURED).expect("a list");
        let tree = &trees["eth0"];
        assert_eq!(root(tree).map(|root| root.kind.as_str()), Some("htb"));
        let leaf = leaves(tree)[0];
        assert_eq!((leaf.kind.as_str(), leaf.parent.as_deref()), ("fq", Some("1:10")));
        let statistics = leaf.statistics.expect("counted");
        assert_eq!((statistics.dropped, statistics.backlog), (PacketCount::new(3), ByteCount::new(1500)));
        assert_eq!((leaf.options["limit"].as_str(), leaf.options["timers"].as_str()), ("10000", "x"));
        let own = [("flows", 3), ("flows_plimit", 2), ("throttled", 12)];
        assert_eq!(leaf.counters, own.map(|(name, count)| (name.to_owned(), count)).into());
        assert_eq!(leaves(&trees["lo"]).len(), 1);
        for length in 0..CAPTURED.len() {
            assert_eq!(parse(&CAPTURED[..length]), None, "{length}");
        }
        assert_eq!(parse(b"[{}, 3, {\"dev\":\"x\"}]"), Some(DisciplineTrees::new()));
    }

    #[test]
    fn rtnetlink_has_the_same_tree() {
        let links = super::super::link::listed();
        let by_kernel = from_rtnetlink(&links).expect("every kernel does");
        // Hosts without tc have nothing to compare with.
        let Ok(by_tc) = from_tc_json() else { return };
        let shape = |trees: &DisciplineTrees| -> Vec<(String, String, String, Option<String>)> {
            let mut shape: Vec<_> = trees
                .iter()
                .flat_map(|(device, tree)| {
                    let one =
                        |one: &QdiscNode| (device.clone(), one.kind.clone(), one.handle.clone(), one.parent.clone());
                    tree.iter().map(one).collect::<Vec<_>>()
                })
                .collect();
            shape.sort();
            shape
        };
        assert_eq!(shape(&by_kernel), shape(&by_tc));
    }
}
