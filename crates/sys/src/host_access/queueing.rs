//! The queueing disciplines of an interface as lines of `tc -batch` (`tc(8)`).
//!
//! `tc` prints a discipline almost in the syntax that it accepts. Only kinds of which that is known are read, so that
//! everything that was read can be restored; others, and filters, are refused before anything is changed.

use super::squeezed;
use crate::command;
use crate::error::{Error, Result};
use crate::iproute2;

/// Prefix of the kind of a discipline that the kernel makes by itself, as it does for each new device.
pub(super) const KERNEL_DEFAULT_PREFIX: &str = "# made by the kernel: ";

/// Kinds whose printed options are accepted again.
const RESTORABLE_KINDS: [&str; 13] =
    ["bfifo", "cake", "codel", "fq", "fq_codel", "htb", "mq", "netem", "noqueue", "pfifo", "pfifo_fast", "prio", "tbf"];

/// Tokens that `tc` prints and does not accept, each with the number of its arguments.
const OUTPUT_ONLY_TOKENS: [(&str, usize); 4] =
    [("refcnt", 1), ("direct_packets_stat", 1), ("offloaded", 0), ("leaf", 1)];

/// One line of `tc qdisc show` or `tc class show`.
#[derive(Debug, PartialEq, Eq)]
struct TcItem {
    is_class: bool,
    kind: String,
    /// `1:` of a discipline, `1:10` of a class.
    handle: String,
    /// `None` at the root.
    parent: Option<String>,
    options: String,
}

pub(super) fn read(interface: &str) -> Result<Option<String>> {
    crate::namespace::device_index(interface)?;
    iproute2::require("tc")?;
    let tc = |what: &str| -> Result<String> {
        let output = command::run_checked("tc", &[what, "show", "dev", interface], None, iproute2::TIME_LIMIT)?;
        Ok(output.stdout_text())
    };
    let unable = |reason: String| Error::refused(format!("reading the queueing disciplines of {interface}"), reason);
    let items = parse(&tc("qdisc")?, &tc("class")?).map_err(unable)?;
    if items.iter().any(|item| item.kind == "htb" || item.kind == "prio") && !squeezed(&tc("filter")?).is_empty() {
        return Err(unable("it has filters (`tc filter show`), which could not be restored".to_owned()));
    }
    lines(interface, &items).map_err(unable)
}

pub(super) fn write(interface: &str, value: Option<&str>) -> Result<()> {
    iproute2::require("tc")?;
    let value = value.unwrap_or_default();
    let batch: Vec<&str> =
        value.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    for line in &batch {
        let mine = line.starts_with("qdisc ") || line.starts_with("class ") || line.starts_with("filter ");
        if !mine || !format!("{line} ").contains(&format!(" dev {interface} ")) {
            let operation = format!("setting the queueing disciplines of {interface}");
            return Err(Error::refused(operation, format!("{line:?} is not a tc command about this interface")));
        }
    }
    if batch.is_empty() {
        return restore_kernel_default(
            interface,
            value.lines().find_map(|line| line.strip_prefix(KERNEL_DEFAULT_PREFIX)),
        );
    }
    // The old configuration would partly remain if the new one had the same handle.
    clear(interface);
    let input: String = batch.iter().map(|line| with_exact_bursts(line) + "\n").collect();
    command::run_bound_checked("tc", &["-batch", "-"], Some(input.as_bytes()), iproute2::TIME_LIMIT).map(drop)
}

/// The line with bursts (`1375b`) that are restored exactly. `tc` stores a burst as whole microseconds at its rate,
/// those as ticks of 64 ns, and truncates each time, also when it prints them as bytes: passed back as printed, it
/// would be a microsecond shorter. With one and a half more it is printed as before.
fn with_exact_bursts(line: &str) -> String {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let rate =
        |name: &str| words.iter().position(|word| *word == name).and_then(|at| bytes_in_a_second(words.get(at + 1)?));
    let (rate, ceil) = (rate("rate"), rate("ceil").or_else(|| rate("rate")));
    let exact = |(at, word): (usize, &&str)| {
        let before = at.checked_sub(1).map_or("", |before| words[before]);
        let speed = match before {
            "burst" => rate,
            "cburst" => ceil,
            _ => None,
        };
        let bytes = word.strip_suffix('b').and_then(|bytes| bytes.parse::<u64>().ok());
        match speed.zip(bytes) {
            Some((speed, bytes)) => format!("{}b", bytes + speed * 3 / 2_000_000),
            None => (*word).to_owned(),
        }
    };
    words.iter().enumerate().map(exact).collect::<Vec<_>>().join(" ")
}

/// A rate as `tc` prints it: `100Mbit`, `1500Kbit`, `800bit`.
fn bytes_in_a_second(text: &str) -> Option<u64> {
    let number = text.trim_end_matches("bit");
    let (number, factor) = match number.as_bytes().last()? {
        b'K' => (number.trim_end_matches('K'), 1_000),
        b'M' => (number.trim_end_matches('M'), 1_000_000),
        b'G' => (number.trim_end_matches('G'), 1_000_000_000),
        _ => (number, 1),
    };
    number.parse::<u64>().ok()?.checked_mul(factor).map(|bits| bits / 8)
}

/// A device without anything to delete is already clear.
fn clear(interface: &str) {
    let _ = command::run_bound_to_thread("tc", &["qdisc", "del", "dev", interface, "root"], None, iproute2::TIME_LIMIT);
}

/// Restores the kernel's default. The kernel makes the one of `net.core.default_qdisc`, but only when there was
/// another.
fn restore_kernel_default(interface: &str, kind: Option<&str>) -> Result<()> {
    crate::namespace::device_index(interface)?;
    clear(interface);
    let as_wanted = || -> Result<bool> {
        let now = read(interface)?.unwrap_or_default();
        Ok(kind.map_or_else(
            || now.is_empty() || now.starts_with(KERNEL_DEFAULT_PREFIX),
            |kind| now.strip_prefix(KERNEL_DEFAULT_PREFIX) == Some(kind),
        ))
    };
    if !as_wanted()? {
        let other = ["qdisc", "replace", "dev", interface, "root", "pfifo", "limit", "1000"];
        command::run_bound_checked("tc", &other, None, iproute2::TIME_LIMIT)?;
        clear(interface);
    }
    Ok(())
}

fn parse(disciplines: &str, classes: &str) -> core::result::Result<Vec<TcItem>, String> {
    let lines = disciplines.lines().chain(classes.lines());
    lines.filter(|line| line.starts_with("qdisc ") || line.starts_with("class ")).map(parse_line).collect()
}

fn parse_line(line: &str) -> core::result::Result<TcItem, String> {
    let unclear = || format!("unknown output of tc: {line:?}");
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [what, kind, handle, place, rest @ ..] = &words[..] else { return Err(unclear()) };
    let (parent, rest) = match (*place, rest) {
        ("root", rest) => (None, rest),
        ("parent", [parent, rest @ ..]) => (Some((*parent).to_owned()), rest),
        _ => return Err(unclear()),
    };
    let handle = (*handle).to_owned();
    Ok(TcItem { is_class: *what == "class", kind: (*kind).to_owned(), handle, parent, options: options(kind, rest) })
}

/// Options in the syntax that `tc` accepts.
fn options(kind: &str, words: &[&str]) -> String {
    if kind == "pfifo_fast" || kind == "noqueue" || kind == "mq" {
        return String::new();
    }
    let mut taken = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if let Some((_, following)) = OUTPUT_ONLY_TOKENS.iter().find(|(shown, _)| shown == word) {
            words.by_ref().take(*following).for_each(drop);
        } else if kind == "fq" && *word == "bands" {
            words.next();
        } else if kind == "fq" && (*word == "quantum" || *word == "initial_quantum") {
            taken.push((*word).to_owned());
            taken.extend(words.next().map(|size| in_bytes(size)));
        } else if kind == "cake" && *word == "nonat" {
            // The default; a kernel without connection tracking does not even accept that.
        } else {
            // Packets are printed as `100p`, and accepted as `100`.
            let digits = word.strip_suffix('p').filter(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
            taken.push(digits.filter(|rest| !rest.is_empty()).unwrap_or(word).to_owned());
        }
    }
    taken.join(" ")
}

/// A size that is printed as `3028b` or `8Kb`, and accepted as a bare number.
fn in_bytes(size: &str) -> String {
    let digits = size.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let factor = match &size[digits.len()..] {
        "b" => 1,
        "Kb" => 1 << 10,
        "Mb" => 1 << 20,
        _ => return size.to_owned(),
    };
    digits.parse::<u64>().map_or_else(|_| size.to_owned(), |number| number.saturating_mul(factor).to_string())
}

/// The commands that restore this, parents first; `None` when there is nothing at all.
fn lines(interface: &str, items: &[TcItem]) -> core::result::Result<Option<String>, String> {
    // Disciplines for received packets stay when the root is replaced.
    let outgoing: Vec<&TcItem> = items.iter().filter(|item| item.kind != "ingress" && item.kind != "clsact").collect();
    let Some(root) = outgoing.iter().find(|item| item.parent.is_none() && !item.is_class) else { return Ok(None) };
    let made: Vec<&TcItem> =
        outgoing.iter().copied().filter(|item| item.handle != "0:" && !is_implied(root, item)).collect();
    if root.handle == "0:" {
        // `mq` of the kernel's own may have foreign leaves.
        return match made.first() {
            None => Ok(Some(format!("{KERNEL_DEFAULT_PREFIX}{}", kernel_default_kind(root, &outgoing)))),
            Some(leaf) => {
                Err(format!("its {} is below one that the kernel made, and could not be restored", leaf.kind))
            }
        };
    }
    if let Some(odd) = made.iter().find(|item| !RESTORABLE_KINDS.contains(&item.kind.as_str())) {
        return Err(format!("linerate cannot restore a qdisc of kind {}", odd.kind));
    }
    let mut text = Vec::new();
    let mut left = made.clone();
    while !left.is_empty() {
        let is_ready = |item: &&TcItem| item.parent.as_ref().is_none_or(|parent| !waits_for(&left, item, parent));
        let (ready, waiting): (Vec<&TcItem>, Vec<&TcItem>) = left.iter().copied().partition(is_ready);
        if ready.is_empty() {
            return Err("their parents form a cycle".to_owned());
        }
        text.extend(ready.iter().map(|item| line(interface, root, item, &made)));
        left = waiting;
    }
    Ok(Some(text.join("\n")))
}

/// True when the parent of `item` is still to be made.
fn waits_for(left: &[&TcItem], item: &TcItem, parent: &str) -> bool {
    let major = parent.split(':').next().unwrap_or_default();
    left.iter().any(|other| {
        let is_itself = core::ptr::eq(*other, item);
        let is_its_class = other.is_class && other.handle == parent;
        let is_its_discipline = !other.is_class && other.handle.trim_end_matches(':') == major;
        !is_itself && (is_its_class || is_its_discipline)
    })
}

/// Classes of all kinds but `htb` come with their discipline, even where `tc` prints them.
fn is_implied(root: &TcItem, item: &TcItem) -> bool {
    item.is_class && (item.kind != "htb" || root.handle == "0:")
}

/// `mq` with the number and the kind of its leaves, else the kind itself.
fn kernel_default_kind(root: &TcItem, items: &[&TcItem]) -> String {
    let leaves: Vec<&&TcItem> = items.iter().filter(|item| item.parent.is_some() && !item.is_class).collect();
    leaves.first().map_or_else(|| root.kind.clone(), |leaf| format!("{} of {} {}", root.kind, leaves.len(), leaf.kind))
}

fn line(interface: &str, root: &TcItem, item: &TcItem, all: &[&TcItem]) -> String {
    let place = match (&item.parent, item.is_class) {
        (Some(parent), _) => format!("parent {parent}"),
        (None, true) => format!("parent {}", root.handle),
        (None, false) => "root".to_owned(),
    };
    let major = item.handle.trim_end_matches(':');
    let has_children = all.iter().any(|other| {
        let parent = other.parent.as_deref().unwrap_or(if other.is_class { &root.handle } else { "" });
        parent.split(':').next() == Some(major) && !major.is_empty()
    });
    // Handles from 8000 on are the kernel's choice, which differs the next time.
    let chosen = u32::from_str_radix(major, 16).is_ok_and(|number| number < 0x8000);
    let (what, name) = match item.is_class {
        true => ("class", format!(" classid {}", item.handle)),
        false if chosen || has_children => ("qdisc", format!(" handle {}", item.handle)),
        false => ("qdisc", String::new()),
    };
    format!("{what} replace dev {interface} {place}{name} {} {}", item.kind, item.options).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(disciplines: &str, classes: &str) -> core::result::Result<Option<String>, String> {
        lines("eth0", &parse(disciplines, classes)?)
    }

    #[test]
    fn kernel_defaults_are_only_named() {
        let read = |text: &str| canonical(text, "").expect("understood").expect("there");
        assert_eq!(read("qdisc noqueue 0: root refcnt 2 \n"), "# made by the kernel: noqueue");
        assert_eq!(read("qdisc fq_codel 0: root refcnt 2 limit 10240p flows 1024\n"), "# made by the kernel: fq_codel");
        let multiqueue =
            "qdisc mq 0: root \nqdisc fq_codel 0: parent :2 limit 10240p\nqdisc fq_codel 0: parent :1 limit 1p\n";
        assert_eq!(
            canonical(multiqueue, "class mq :1 root \n"),
            Ok(Some("# made by the kernel: mq of 2 fq_codel".into()))
        );
        assert_eq!(canonical("", ""), Ok(None));
    }

    #[test]
    fn foreign_disciplines_can_be_restored() {
        let fq = "qdisc fq 8001: root refcnt 2 limit 10000p flow_limit 100p quantum 3028b initial_quantum 8Kb \
                  maxrate 285Mbit horizon_drop\n\
                  qdisc clsact ffff: parent ffff:fff1 \n";
        assert_eq!(
            canonical(fq, "").expect("understood").expect("there"),
            "qdisc replace dev eth0 root fq limit 10000 flow_limit 100 quantum 3028 initial_quantum 8192 maxrate 285Mbit \
             horizon_drop"
        );
        let tree = "qdisc fq 10: parent 1:10 limit 10000p\n\
                    qdisc htb 1: root refcnt 3 r2q 10 default 0x10 direct_packets_stat 1 direct_qlen 1000\n";
        let classes = "class htb 1:10 parent 1:1 leaf 10: prio 0 rate 100Mbit ceil 100Mbit burst 15337b cburst 1600b \n\
                       class htb 1:1 root rate 1Gbit ceil 1Gbit burst 1375b cburst 1375b \n";
        assert_eq!(
            canonical(tree, classes).expect("understood").expect("there").lines().collect::<Vec<_>>(),
            [
                "qdisc replace dev eth0 root handle 1: htb r2q 10 default 0x10 direct_qlen 1000",
                "class replace dev eth0 parent 1: classid 1:1 htb rate 1Gbit ceil 1Gbit burst 1375b cburst 1375b",
                "class replace dev eth0 parent 1:1 classid 1:10 htb prio 0 rate 100Mbit ceil 100Mbit burst 15337b \
                 cburst 1600b",
                "qdisc replace dev eth0 parent 1:10 handle 10: fq limit 10000",
            ]
        );
    }

    #[test]
    fn disciplines_that_cannot_be_restored_are_refused() {
        let error = canonical("qdisc hfsc 1: root refcnt 2 default 1\n", "").expect_err("refused");
        assert!(error.contains("hfsc"), "{error}");
        let error = canonical("qdisc mq 0: root\nqdisc fq 8001: parent :1 limit 1p\n", "").expect_err("refused");
        assert!(error.contains("could not be restored"), "{error}");
        for broken in ["qdisc fq", "qdisc fq 1: elsewhere x", "qdisc fq 1: parent"] {
            assert!(canonical(broken, "").is_err(), "{broken:?}");
        }
        let error = write("eth0", Some("qdisc replace dev eth1 root fq")).expect_err("another interface");
        assert!(error.to_string().contains("about this interface"), "{error}");
        assert!(write("eth0", Some("link set dev eth0 down")).is_err());
    }

    #[test]
    fn bursts_are_whole_microseconds() {
        let line = "class replace dev a parent 1: classid 1:1 htb rate 1Gbit ceil 1Gbit burst 1375b cburst 1375b";
        let exact = "class replace dev a parent 1: classid 1:1 htb rate 1Gbit ceil 1Gbit burst 1562b cburst 1562b";
        assert_eq!(with_exact_bursts(line), exact);
        // A user's own line is left alone.
        let own = "qdisc replace dev a root tbf rate 10mbit burst 10k latency 50ms";
        assert_eq!(with_exact_bursts(own), own);
    }

    #[test]
    #[ignore = "needs root, ip and tc: devices in a network namespace"]
    fn trees_are_restored_exactly() {
        let chain = crate::test_network::NamespaceChain::new(1400);
        let within = || {
            assert_eq!(read("near0").expect("read").as_deref(), Some("# made by the kernel: noqueue"));
            for tree in [
                "qdisc replace dev near0 root pfifo limit 7",
                "qdisc replace dev near0 root tbf rate 10mbit burst 10k latency 50ms",
                "qdisc replace dev near0 root handle 1: htb default 10\n\
                 class replace dev near0 parent 1: classid 1:1 htb rate 1gbit\n\
                 class replace dev near0 parent 1:1 classid 1:10 htb rate 100mbit burst 15k\n\
                 qdisc replace dev near0 parent 1:10 handle 10: pfifo limit 9",
            ] {
                write("near0", Some(tree)).expect("made");
                let made = read("near0").expect("read").expect("there");
                write("near0", Some("qdisc replace dev near0 root pfifo limit 3")).expect("made");
                write("near0", Some(&made)).expect("restored");
                assert_eq!(read("near0").expect("read").as_deref(), Some(made.as_str()));
                write("near0", None).expect("restored");
                assert_eq!(read("near0").expect("read").as_deref(), Some("# made by the kernel: noqueue"));
            }
        };
        chain.near.within(within).expect("entered");
    }

    /// A device with four queues: `mq` stays at the root, with other disciplines below it.
    #[test]
    #[ignore = "needs root, ip and tc: devices in a network namespace"]
    fn leaves_of_mq_are_replaced_and_restored() {
        let namespace = crate::namespace::NetworkNamespace::create().expect("root");
        let within = || {
            let run = |program: &str, line: &str| {
                let words: Vec<&str> = line.split(' ').collect();
                command::run_checked(program, &words, None, iproute2::TIME_LIMIT).expect(line).stdout_text()
            };
            run("ip", "link add multi0 numtxqueues 4 type ifb");
            run("ip", "link set multi0 up");
            let before = read("multi0").expect("read").expect("there");
            assert!(before.starts_with("# made by the kernel: mq of 4 "), "{before}");
            let leaf =
                |queue| format!("qdisc replace dev multi0 parent 1:{queue} tbf rate 95Mbit burst 16k limit 50000");
            let tree =
                core::iter::once("qdisc replace dev multi0 root handle 1: mq".to_owned()).chain((1..=4).map(leaf));
            write("multi0", Some(&tree.collect::<Vec<_>>().join("\n"))).expect("written");
            let now = run("tc", "qdisc show dev multi0");
            assert!(now.matches("qdisc tbf ").count() == 4 && now.contains("qdisc mq 1: root"), "{now}");
            write("multi0", Some(&before)).expect("restored");
            assert_eq!(read("multi0").expect("read"), Some(before));
        };
        namespace.within(within).expect("entered");
    }
}
