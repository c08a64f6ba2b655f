//! Queueing disciplines of all interfaces: as `tc` tells them, or with less detail as the kernel does where there is no `tc`.

use core::time::Duration;
use std::collections::BTreeMap;

use linerate_model::environment::QueueStatistics;
use linerate_model::fact::{Fact, Unread};
use linerate_model::host::link::{Discipline, Link};
use linerate_units::{ByteCount, PacketCount};
use serde_json::{Map, Value};

use super::reading::fact;
use crate::command;
use crate::error::{Error, Result};
use crate::interface::{QUEUE_DESCRIPTION, parse_queue};
use crate::netlink::{RouteSocket, number};

/// `tc` has done its work in milliseconds; hosts with thousands of disciplines take longer.
const TIME_FOR_TC: Duration = Duration::from_secs(2);
const TC_H_ROOT: u32 = u32::MAX;

/// Disciplines by interface.
type Trees = BTreeMap<String, Vec<Discipline>>;

pub(super) fn read(links: &[Link]) -> core::result::Result<Trees, Unread> {
    let outcome = told_by_tc().or_else(|_| told_by_kernel(links));
    match fact(outcome) {
        Fact::Known(trees) => Ok(trees),
        Fact::Unknown(unread) => Err(unread),
    }
}

fn told_by_tc() -> Result<Trees> {
    let arguments = ["-j", "-s", "qdisc", "show"];
    let output = command::run_checked("tc", &arguments, None, TIME_FOR_TC)?;
    parse(&output.stdout)
        .ok_or_else(|| Error::refused(command::running("tc", &arguments), "its answer is no list of disciplines"))
}

/// Reads what `tc -j -s qdisc show` writes.
fn parse(json: &[u8]) -> Option<Trees> {
    let list: Value = serde_json::from_slice(json).ok()?;
    let mut trees = Trees::new();
    for entry in list.as_array()?.iter().filter_map(Value::as_object) {
        if let Some((device, discipline)) = entry.get("dev").and_then(Value::as_str).zip(discipline(entry)) {
            trees.entry(device.to_owned()).or_default().push(discipline);
        }
    }
    for tree in trees.values_mut() {
        tree.sort_by_key(|discipline| discipline.parent.is_some());
    }
    Some(trees)
}

/// What is no counter of a discipline's own.
const NOT_OWN: [&str; 8] = ["refcnt", "bytes", "packets", "drops", "overlimits", "requeues", "backlog", "qlen"];

fn discipline(entry: &Map<String, Value>) -> Option<Discipline> {
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
    let own = entry.iter().filter(|(name, _)| !NOT_OWN.contains(&name.as_str()));
    Some(Discipline {
        kind: text("kind")?,
        handle: text("handle")?,
        parent: text("parent"),
        options: options.into_iter().flatten().map(|(name, value)| (name.clone(), shown(value))).collect(),
        statistics: statistics(),
        counters: own.filter_map(|(name, value)| Some((name.clone(), value.as_u64()?))).collect(),
    })
}

/// The same without settings and counters of their own.
fn told_by_kernel(links: &[Link]) -> Result<Trees> {
    let failed = |cause| Error::system("listing the queueing disciplines", cause);
    let mut trees = Trees::new();
    let mut socket = RouteSocket::open().map_err(failed)?;
    let each = |body: &[u8]| {
        let found = described(body);
        let name = |index| links.iter().find(|link| link.index == index).map(|link| link.name.clone());
        if let Some((device, discipline)) = found.and_then(|(index, discipline)| Some((name(index)?, discipline))) {
            trees.entry(device).or_default().push(discipline);
        }
    };
    let mut each = each;
    socket.list(libc::RTM_GETQDISC, &[0; QUEUE_DESCRIPTION], |message| each(message.body)).map_err(failed)?;
    Ok(trees)
}

/// `tcmsg`: number of the interface, handle, parent; then kind and statistics.
fn described(body: &[u8]) -> Option<(u32, Discipline)> {
    let (index, handle, parent) = (number(body, 4)?, number(body, 8)?, number(body, 12)?);
    let queue = parse_queue(body)?;
    let (major, minor) = (parent >> 16, parent & 0xffff);
    let discipline = Discipline {
        kind: queue.kind,
        handle: format!("{:x}:", handle >> 16),
        parent: (parent != TC_H_ROOT).then(|| match major {
            0 => format!(":{minor:x}"),
            major => format!("{major:x}:{minor:x}"),
        }),
        options: BTreeMap::new(),
        statistics: queue.statistics,
        counters: BTreeMap::new(),
    };
    Some((index, discipline))
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
    fn trees_as_tc_tells_them() {
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
        assert_eq!(parse(b"[{}, 3, {\"dev\":\"x\"}]"), Some(Trees::new()));
    }

    #[test]
    fn the_kernel_tells_the_same_tree() {
        let links = super::super::link::listed();
        let by_kernel = told_by_kernel(&links).expect("every kernel does");
        // Hosts without tc have nothing to compare with.
        let Ok(by_tc) = told_by_tc() else { return };
        let shape = |trees: &Trees| -> Vec<(String, String, String, Option<String>)> {
            let mut shape: Vec<_> = trees
                .iter()
                .flat_map(|(device, tree)| {
                    let one =
                        |one: &Discipline| (device.clone(), one.kind.clone(), one.handle.clone(), one.parent.clone());
                    tree.iter().map(one).collect::<Vec<_>>()
                })
                .collect();
            shape.sort();
            shape
        };
        assert_eq!(shape(&by_kernel), shape(&by_tc));
    }
}
