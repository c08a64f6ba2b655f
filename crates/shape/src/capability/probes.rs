//! Probes of kernel features.

use super::{FeatureSupport, KernelFeature};
use crate::plan::{PlanCommand, arguments};

/// Probe of a kernel feature: commands for a fresh network namespace, where they are harmless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureProbe {
    /// Probed feature.
    pub feature: KernelFeature,
    /// Setup commands, whose failures are ignored.
    pub before: Vec<PlanCommand>,
    /// Probe command.
    pub trial: PlanCommand,
    /// Cleanup commands, whose failures are ignored.
    pub after: Vec<PlanCommand>,
    /// Reason of the command, as a phrase without a full stop.
    pub reason: &'static str,
}

impl FeatureProbe {
    /// Interprets the probe command's exit status (0: `succeeded`) and standard error.
    ///
    /// The kernel answers an unknown kind with `ENOENT` and "Specified qdisc kind is unknown", an unknown filter or action
    /// with "… not found" or `ENOENT`, an unknown type of device with `EOPNOTSUPP` and "Unknown device type".
    #[must_use]
    pub fn interpret(&self, succeeded: bool, standard_error: &str) -> FeatureSupport {
        if succeeded {
            return FeatureSupport::Present;
        }
        let said = error_line(standard_error);
        // A kind unknown to tc itself is distinct from a kind missing in the kernel.
        let unasked = ["unparsable", "is not understood", "Operation not permitted", "mandatory", "What is"];
        let unknown =
            ["is unknown", "not found", "Failed to load TC", "No such file or directory", "Unknown device type"];
        let has = |list: &[&str]| list.iter().any(|part| standard_error.contains(part));
        if !has(&unasked) && has(&unknown) { FeatureSupport::Absent(said) } else { FeatureSupport::Refused(said) }
    }
}

/// Most informative line: `RTNETLINK answers` is only a prefix.
fn error_line(standard_error: &str) -> String {
    let lines = standard_error.lines().map(str::trim).filter(|line| !line.is_empty());
    let said = lines.min_by_key(|line| !line.starts_with("Error:")).unwrap_or("no reason given");
    said.trim_start_matches("Error:").trim_start_matches("RTNETLINK answers:").trim().trim_end_matches('.').to_owned()
}

/// Loopback interface, which exists in each fresh namespace with any kernel.
pub(super) const PROBE_DEVICE: &str = "lo";

/// Device with two queues, as `cake_mq` needs.
const MULTIQUEUE_DEVICE: &str = "queues0";

/// Disciplines with the options that `tc` requires.
const DISCIPLINES: [(&str, &str); 12] = [
    ("htb", ""),
    ("tbf", "rate 1mbit burst 10k latency 50ms"),
    ("cake", "unlimited"),
    ("fq_codel", ""),
    ("fq_pie", ""),
    ("dualpi2", ""),
    ("codel", ""),
    ("sfq", ""),
    ("bfifo", "limit 10000"),
    ("pfifo", "limit 10"),
    ("cbq", "bandwidth 10mbit avpkt 1000"),
    ("ingress", ""),
];

/// Filters with their options; `fw` has a handle, which is the mark, before its kind.
const FILTERS: [(&str, &str, &str); 4] = [
    ("u32", "u32", "match u32 0 0 flowid 1:1"),
    ("matchall", "matchall", "flowid 1:1"),
    ("fw", "handle 1 fw", "flowid 1:1"),
    ("flow", "handle 1 flow", "hash keys src divisor 64 baseclass 1:1"),
];

const ACTIONS: [(&str, &str); 7] = [
    ("mirred", "action mirred egress redirect dev lo"),
    ("police", "action police rate 1mbit burst 10k drop"),
    ("skbedit", "action skbedit priority 1:1"),
    ("ctinfo", "action ctinfo cpmark"),
    ("connmark", "action connmark"),
    ("pedit", "action pedit ex munge ip dsfield set 0 retain 0xfc"),
    ("csum", "action csum iph"),
];

/// Filters for probing an action, which needs one: either suffices.
const ACTION_FILTERS: [(&str, &str); 2] = [("u32", "match u32 0 0"), ("matchall", "")];

/// All probes, in order of execution.
#[must_use]
pub fn probes() -> Vec<FeatureProbe> {
    let disciplines = DISCIPLINES.iter().map(|(kind, options)| discipline(kind, options));
    let filters = FILTERS.iter().map(|(kind, head, options)| classified(KernelFeature::Filter(kind), head, options));
    let actions = ACTIONS.iter().flat_map(|(kind, options)| {
        let on =
            |(filter, all): &(&str, &str)| classified(KernelFeature::Action(kind), filter, &format!("{all} {options}"));
        ACTION_FILTERS.each_ref().map(on)
    });
    disciplines.chain([cake_mq(), intermediate_device()]).chain(filters).chain(actions).collect()
}

fn tc(text: &str) -> PlanCommand {
    PlanCommand::tc(arguments(text))
}

fn ip(text: &str) -> PlanCommand {
    PlanCommand::ip(arguments(text))
}

fn discipline(kind: &'static str, options: &str) -> FeatureProbe {
    let (place, remove) = if kind == "ingress" { ("handle ffff:", "ingress") } else { ("root handle 1:", "root") };
    FeatureProbe {
        feature: KernelFeature::Discipline(kind),
        before: vec![],
        trial: tc(&format!("qdisc add dev {PROBE_DEVICE} {place} {kind} {options}")),
        after: vec![tc(&format!("qdisc del dev {PROBE_DEVICE} {remove}"))],
        reason: "a discipline that can be attached is supported",
    }
}

fn cake_mq() -> FeatureProbe {
    FeatureProbe {
        feature: KernelFeature::Discipline("cake_mq"),
        before: vec![ip(&format!("link add name {MULTIQUEUE_DEVICE} numtxqueues 2 numrxqueues 2 type ifb"))],
        trial: tc(&format!("qdisc add dev {MULTIQUEUE_DEVICE} root handle 1: cake_mq unlimited")),
        after: vec![ip(&format!("link del dev {MULTIQUEUE_DEVICE}"))],
        reason: "it attaches only to a device with several queues",
    }
}

fn intermediate_device() -> FeatureProbe {
    FeatureProbe {
        feature: KernelFeature::IntermediateDevice,
        before: vec![],
        trial: ip("link add name probe0 type ifb"),
        after: vec![ip("link del dev probe0")],
        reason: "a device that can be created is supported",
    }
}

/// Probes on HTB, or on prio without HTB: the second setup fails after a successful first one.
fn classified(feature: KernelFeature, filter: &str, options: &str) -> FeatureProbe {
    FeatureProbe {
        feature,
        before: ["htb", "prio"].map(|kind| tc(&format!("qdisc add dev {PROBE_DEVICE} root handle 1: {kind}"))).to_vec(),
        trial: tc(&format!("filter add dev {PROBE_DEVICE} parent 1: protocol all prio 1 {filter} {options}")),
        after: vec![tc(&format!("qdisc del dev {PROBE_DEVICE} root"))],
        reason: "a filter needs a classful discipline",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_probe_differs() {
        let all = probes();
        for (number, probe) in all.iter().enumerate() {
            assert!(all[..number].iter().all(|other| other.trial != probe.trial), "{:?}", probe.trial);
            assert!(!probe.after.is_empty() && !probe.reason.is_empty());
        }
    }

    /// Output of iproute2 6.1 on Linux 6.12 and 6.18.
    #[test]
    fn answers_are_read() {
        let probe = &probes()[0];
        assert_eq!(probe.interpret(true, ""), FeatureSupport::Present);
        let absent = |text: &str| matches!(probe.interpret(false, text), FeatureSupport::Absent(_));
        assert_eq!(
            probe.interpret(false, "Error: Specified qdisc kind is unknown.\n"),
            FeatureSupport::Absent("Specified qdisc kind is unknown".to_owned())
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
