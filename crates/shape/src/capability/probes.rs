//! The trials.

use super::{Feature, Support};
use crate::plan::{Command, words};

/// How to find out whether a kernel has a feature: commands for a fresh network namespace, in which nothing can break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// What it decides.
    pub feature: Feature,
    /// What comes first; failures do not count.
    pub before: Vec<Command>,
    /// The trial.
    pub trial: Command,
    /// What comes last; failures do not count.
    pub after: Vec<Command>,
    /// Why the trial looks like this, as a phrase without a full stop.
    pub reason: &'static str,
}

impl Probe {
    /// What the trial's end says: whether it ended with exit status 0, and what it wrote to standard error.
    ///
    /// The kernel answers an unknown kind with `ENOENT` and "Specified qdisc kind is unknown", an unknown filter or action
    /// with "… not found" or `ENOENT`, an unknown type of device with `EOPNOTSUPP` and "Unknown device type".
    #[must_use]
    pub fn read(&self, succeeded: bool, standard_error: &str) -> Support {
        if succeeded {
            return Support::Present;
        }
        let said = told(standard_error);
        // A tc that does not know a kind cannot ask the kernel, which is another thing than a kernel that lacks it.
        let unasked = ["unparsable", "is not understood", "Operation not permitted", "mandatory", "What is"];
        let unknown =
            ["is unknown", "not found", "Failed to load TC", "No such file or directory", "Unknown device type"];
        let has = |list: &[&str]| list.iter().any(|part| standard_error.contains(part));
        if !has(&unasked) && has(&unknown) { Support::Absent(said) } else { Support::Refused(said) }
    }
}

/// The line that says most: `RTNETLINK answers` is only a head.
fn told(standard_error: &str) -> String {
    let lines = standard_error.lines().map(str::trim).filter(|line| !line.is_empty());
    let said = lines.min_by_key(|line| !line.starts_with("Error:")).unwrap_or("no reason was given");
    said.trim_start_matches("Error:").trim_start_matches("RTNETLINK answers:").trim().trim_end_matches('.').to_owned()
}

/// The loopback interface is there in each fresh namespace, whatever kinds of devices a kernel knows.
const DEVICE: &str = "lo";

/// The device with two queues that `cake_mq` needs.
const QUEUES: &str = "queues0";

/// With the options that `tc` insists on, so that the kernel is asked at all.
const DISCIPLINES: [(&str, &str); 11] = [
    ("htb", ""),
    ("tbf", "rate 1mbit burst 10k latency 50ms"),
    ("cake", "unlimited"),
    ("fq_codel", ""),
    ("fq_pie", ""),
    ("codel", ""),
    ("sfq", ""),
    ("bfifo", "limit 10000"),
    ("pfifo", "limit 10"),
    ("cbq", "bandwidth 10mbit avpkt 1000"),
    ("ingress", ""),
];

const FILTERS: [(&str, &str); 2] = [("u32", "match u32 0 0 flowid 1:1"), ("matchall", "flowid 1:1")];

const ACTIONS: [(&str, &str); 3] = [
    ("mirred", "action mirred egress redirect dev lo"),
    ("police", "action police rate 1mbit burst 10k drop"),
    ("skbedit", "action skbedit priority 1:1"),
];

/// An action hangs on a filter: where one is missing, the other shows it.
const CARRIERS: [(&str, &str); 2] = [("u32", "match u32 0 0"), ("matchall", "")];

/// All trials, in the order in which they should run.
#[must_use]
pub fn probes() -> Vec<Probe> {
    let disciplines = DISCIPLINES.iter().map(|(kind, options)| discipline(kind, options));
    let filters = FILTERS.iter().map(|(kind, options)| classified(Feature::Filter(kind), kind, options));
    let actions = ACTIONS.iter().flat_map(|(kind, options)| {
        let on = |(filter, all): &(&str, &str)| classified(Feature::Action(kind), filter, &format!("{all} {options}"));
        CARRIERS.each_ref().map(on)
    });
    disciplines.chain([cake_mq(), intermediate_device()]).chain(filters).chain(actions).collect()
}

fn tc(text: &str) -> Command {
    Command::tc(words(text))
}

fn ip(text: &str) -> Command {
    Command::ip(words(text))
}

fn discipline(kind: &'static str, options: &str) -> Probe {
    let (place, remove) = if kind == "ingress" { ("handle ffff:", "ingress") } else { ("root handle 1:", "root") };
    Probe {
        feature: Feature::Discipline(kind),
        before: vec![],
        trial: tc(&format!("qdisc add dev {DEVICE} {place} {kind} {options}")),
        after: vec![tc(&format!("qdisc del dev {DEVICE} {remove}"))],
        reason: "a discipline that can be attached is there",
    }
}

fn cake_mq() -> Probe {
    Probe {
        feature: Feature::Discipline("cake_mq"),
        before: vec![ip(&format!("link add name {QUEUES} numtxqueues 2 numrxqueues 2 type ifb"))],
        trial: tc(&format!("qdisc add dev {QUEUES} root handle 1: cake_mq unlimited")),
        after: vec![ip(&format!("link del dev {QUEUES}"))],
        reason: "it attaches only to a device with several queues",
    }
}

fn intermediate_device() -> Probe {
    Probe {
        feature: Feature::IntermediateDevice,
        before: vec![],
        trial: ip("link add name probe0 type ifb"),
        after: vec![ip("link del dev probe0")],
        reason: "a device that can be made is there",
    }
}

/// On HTB, or on prio where HTB is missing: the second attempt fails when the first did not.
fn classified(feature: Feature, filter: &str, options: &str) -> Probe {
    Probe {
        feature,
        before: ["htb", "prio"].map(|kind| tc(&format!("qdisc add dev {DEVICE} root handle 1: {kind}"))).to_vec(),
        trial: tc(&format!("filter add dev {DEVICE} parent 1: protocol all prio 1 {filter} {options}")),
        after: vec![tc(&format!("qdisc del dev {DEVICE} root"))],
        reason: "a filter needs a discipline with classes to hang on",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_trial_differs() {
        let all = probes();
        for (number, probe) in all.iter().enumerate() {
            assert!(all[..number].iter().all(|other| other.trial != probe.trial), "{:?}", probe.trial);
            assert!(!probe.after.is_empty() && !probe.reason.is_empty());
        }
    }

    /// What iproute2 6.1 on Linux 6.12 and 6.18 print.
    #[test]
    fn answers_are_read() {
        let probe = &probes()[0];
        assert_eq!(probe.read(true, ""), Support::Present);
        let absent = |text: &str| matches!(probe.read(false, text), Support::Absent(_));
        assert_eq!(
            probe.read(false, "Error: Specified qdisc kind is unknown.\n"),
            Support::Absent("Specified qdisc kind is unknown".to_owned())
        );
        assert!(absent("RTNETLINK answers: No such file or directory\nWe have an error talking to the kernel\n"));
        assert!(absent("Error: TC classifier not found.\nWe have an error talking to the kernel\n"));
        assert!(absent("Error: Failed to load TC action module.\nWe have an error talking to the kernel\n"));
        assert!(absent("Error: Unknown device type.\n"));
        assert!(!absent("RTNETLINK answers: Operation not permitted\n"));
        assert!(!absent("Unknown qdisc \"cake_mq\", hence option \"unlimited\" is unparsable\n"));
        assert!(!absent(""));
    }
}
