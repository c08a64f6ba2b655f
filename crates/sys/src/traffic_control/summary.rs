//! Short descriptions of records, and the comparison of two of them.

use std::collections::{BTreeMap, BTreeSet};

use linerate_units::display;

use super::commands;
use super::record::{INGRESS, ObjectCategory, ROOT, TrafficControlObject, TrafficControlRecord};

/// Parent of filters for received packets of `clsact` (`TC_H_MIN_INGRESS`), and of `ingress` by another name.
const INGRESS_HOOK: u32 = 0xffff_fff2;

/// One line for users: the origin of the disciplines, and their contents. Values that are neither a record nor commands
/// are returned as they are.
#[must_use]
pub fn summary(value: &str) -> String {
    if commands::is_commands(value) {
        return describe_commands(value);
    }
    let Ok(record) = TrafficControlRecord::parse(value) else { return value.to_owned() };
    let mut parts: Vec<String> =
        [ROOT, INGRESS].iter().filter_map(|top| tree(&record, &record.interface, *top)).collect();
    if let Some(link) = &record.intermediate {
        let inside = [ROOT, INGRESS].iter().filter_map(|top| tree(&record, &link.name, *top)).collect::<Vec<_>>();
        let inside = if inside.is_empty() { "nothing".to_owned() } else { inside.join(" and ") };
        parts.push(format!("{} with {inside}", link.name));
    }
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
}

/// True when a record has nothing but the kernel's defaults.
#[must_use]
pub fn is_kernel_default(record: &str) -> bool {
    TrafficControlRecord::parse(record)
        .is_ok_and(|record| record.intermediate.is_none() && record.made().next().is_none())
}

/// The tree below the root, or below the hook for received packets.
fn tree(record: &TrafficControlRecord, device: &str, top: u32) -> Option<String> {
    let own = || record.objects.iter().filter(|object| object.device == device);
    let root = own().find(|object| object.what == ObjectCategory::Discipline && object.parent == top)?;
    let inside = || own().filter(|object| object.is_ingress() == (top == INGRESS));
    if root.is_kernels {
        return Some(format!("the kernel's own {}", root.kind));
    }
    let classes = inside().filter(|object| object.what == ObjectCategory::Class).count();
    let filters = inside().filter(|object| matches!(object.what, ObjectCategory::Filter(_))).count();
    let counted = [counted(classes, "class", "classes"), counted(filters, "filter", "filters")];
    let counted: Vec<String> = counted.into_iter().flatten().collect();
    let with = if counted.is_empty() { String::new() } else { format!(" with {}", counted.join(" and ")) };
    Some(format!("{}{with}", root.kind))
}

fn counted(number: usize, one: &str, several: &str) -> Option<String> {
    match number {
        0 => None,
        1 => Some(format!("1 {one}")),
        number => Some(format!("{number} {several}")),
    }
}

fn describe_commands(value: &str) -> String {
    // In the order of their first occurrence, so that the interface's own precedes the intermediate device's.
    let mut roots: Vec<&str> = Vec::new();
    for line in value.lines().filter(|line| line.starts_with("tc qdisc ")) {
        let words: Vec<&str> = line.split(' ').collect();
        let is_top = words.contains(&"root") || words.contains(&"ingress") || words.contains(&"clsact");
        let kind = words.iter().position(|word| *word == "handle").and_then(|place| words.get(place + 2));
        if let Some(kind) = kind.filter(|kind| is_top && !roots.contains(kind)) {
            roots.push(kind);
        }
    }
    let kinds = if roots.is_empty() { String::new() } else { format!(" for {}", roots.join(" and ")) };
    format!("{}{kinds}", display::counted(value.lines().count(), "command"))
}

/// Parts that were set up explicitly: below the interface's root, for received packets, and on its intermediate device.
fn parts(record: &TrafficControlRecord) -> BTreeMap<(bool, bool), BTreeSet<String>> {
    let mut parts: BTreeMap<(bool, bool), BTreeSet<String>> = BTreeMap::new();
    for object in record.made() {
        let part = (object.device == record.interface, object.is_ingress());
        parts.entry(part).or_default().insert(skeleton(object));
    }
    parts
}

/// The head of an object without the name of its device, which may be another one by now.
fn skeleton(object: &TrafficControlObject) -> String {
    // Numbers of filters change when one is replaced by a better one.
    let handle = if matches!(object.what, ObjectCategory::Filter(_)) { 0 } else { object.handle };
    // Another name of the same hook.
    let parent = if object.parent == INGRESS_HOOK { 0xffff_0000 } else { object.parent };
    TrafficControlObject { handle, parent, device: String::new(), ..object.clone() }.head()
}

/// True when the present state `now` is still the one of `put`: rates and other options may have changed, and parts may
/// have been removed, but nothing may have been added, and something has to be left. If the intermediate device still
/// exists, a part may also have lost some of its objects: a redirect without which nothing that is received is shaped.
#[must_use]
pub fn is_still_installed(put: &str, now: &str) -> bool {
    if put == now {
        return true;
    }
    let (Ok(put), Ok(now)) = (TrafficControlRecord::parse(put), TrafficControlRecord::parse(now)) else { return false };
    let (ours, there) = (parts(&put), parts(&now));
    let device = |record: &TrafficControlRecord| record.intermediate.as_ref().map(|link| link.index);
    let device_is_left = device(&put).is_some() && device(&put) == device(&now);
    // With our own device present, even a part with missing objects is ours: another program begins with the same
    // handles, but does not make the very same device.
    let nothing_foreign = there.iter().all(|(part, objects)| {
        ours.get(part).is_some_and(|ours| ours == objects || (device_is_left && objects.is_subset(ours)))
    });
    nothing_foreign && (!there.is_empty() || device_is_left)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "traffic control of eth0\n\
        link dev ifb4eth0 kind ifb index 7 state up mtu 1500 txqueuelen 32 address 020000000001 queues 1 1\n\
        qdisc dev ifb4eth0 parent root handle 1: kind tbf options 01\n\
        qdisc dev eth0 parent root handle 1: kind htb options 02\n\
        class dev eth0 parent root handle 1:1 kind htb options 03\n\
        class dev eth0 parent 1:1 handle 1:10 kind htb options 03\n\
        filter dev eth0 parent 1: protocol 0x0800 preference 10 chain 0 handle 0x80000800 kind u32 options 04\n\
        qdisc dev eth0 parent ingress handle ffff: kind ingress options -\n\
        filter dev eth0 parent ffff: protocol 0x0003 preference 10 chain 0 handle 0x00000001 kind matchall options 05 towards ifb4eth0";

    #[test]
    fn records_and_commands_are_described() {
        assert_eq!(summary(OURS), "htb with 2 classes and 1 filter, ingress with 1 filter, ifb4eth0 with tbf");
        let own = "traffic control of eth0\nqdisc dev eth0 parent root kind noqueue made-by-the-kernel";
        assert_eq!(summary(own), "the kernel's own noqueue");
        assert_eq!(summary("traffic control of eth0"), "nothing");
        let commands =
            "tc qdisc add dev eth0 root handle 1: htb default 10\ntc qdisc add dev eth0 handle ffff: ingress";
        assert_eq!(summary(commands), "2 commands for htb and ingress");
        assert_eq!(summary("something else"), "something else");
        assert!(is_kernel_default(own) && !is_kernel_default(OURS) && !is_kernel_default("something else"));
    }

    #[test]
    fn ours_is_what_has_our_skeleton() {
        let without = |what: &str| OURS.lines().filter(|line| !line.contains(what)).collect::<Vec<_>>().join("\n");
        assert!(is_still_installed(OURS, OURS));
        assert!(is_still_installed(OURS, &OURS.replace("options 03", "options ff")), "another rate");
        assert!(is_still_installed(OURS, &OURS.replace("0x80000800", "0x80000801")), "a filter was replaced");
        assert!(is_still_installed(OURS, &without("ffff:")), "the redirect was removed");
        assert!(is_still_installed(OURS, &without("towards")), "the redirect was removed without its hook");
        let lone = without("ifb4eth0");
        let fewer: Vec<&str> = lone.lines().filter(|line| !line.contains("handle 1:10")).collect();
        assert!(
            is_still_installed(&lone, &lone) && !is_still_installed(&lone, &fewer.join("\n")),
            "others' trees begin alike"
        );
        assert!(is_still_installed(OURS, &without("dev eth0")), "only the intermediate device is left");
        assert!(!is_still_installed(OURS, &OURS.replace("kind htb", "kind hfsc")), "another root");
        assert!(!is_still_installed(
            OURS,
            &format!("{OURS}\nclass dev eth0 parent 1:1 handle 1:20 kind htb options 03")
        ));
        assert!(!is_still_installed(&without("ffff:"), OURS), "an ingress was added");
        let own = "traffic control of eth0\nqdisc dev eth0 parent root kind noqueue made-by-the-kernel";
        assert!(!is_still_installed(OURS, own) && is_still_installed(own, own) && !is_still_installed(own, "others'"));
    }
}
