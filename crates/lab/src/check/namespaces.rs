//! Requirements of the namespaces of this host's kernel: each is tried in a private network namespace.

use core::time::Duration;

use linerate_model::lab_check::{BackEndReport, CheckItem, CheckOutcome};
use linerate_sys::namespace::NetworkNamespace;
use linerate_sys::{Result, command, process};

use super::user_mode::tool;

const TIMEOUT: Duration = Duration::from_secs(10);

/// Trials, in this order: each needs the pair of devices of the first.
const TRIALS: [(&str, &str, &[&str], &str); 7] = [
    ("veth pair", "ip", &["link", "add", "name", "a", "type", "veth", "peer", "name", "b"], "CONFIG_VETH"),
    (
        "netem",
        "tc",
        &["qdisc", "add", "dev", "a", "root", "netem", "delay", "1ms", "loss", "1%"],
        "CONFIG_NET_SCH_NETEM",
    ),
    (
        "tbf",
        "tc",
        &["qdisc", "add", "dev", "b", "root", "tbf", "rate", "10mbit", "burst", "3000", "limit", "30000"],
        "CONFIG_NET_SCH_TBF",
    ),
    ("ingress hook", "tc", &["qdisc", "add", "dev", "a", "clsact"], "CONFIG_NET_SCH_INGRESS and CONFIG_NET_CLS_ACT"),
    (
        "redirection",
        "tc",
        &["filter", "add", "dev", "a", "ingress", "matchall", "action", "mirred", "egress", "redirect", "dev", "b"],
        "CONFIG_NET_CLS_MATCHALL and CONFIG_NET_ACT_MIRRED",
    ),
    (
        "policer",
        "tc",
        &[
            "filter", "add", "dev", "a", "egress", "matchall", "action", "police", "rate", "10mbit", "burst", "10k",
            "drop",
        ],
        "CONFIG_NET_ACT_POLICE",
    ),
    ("L4S", "tc", &["qdisc", "replace", "dev", "b", "root", "dualpi2"], "CONFIG_NET_SCH_DUALPI2, from Linux 6.17 on"),
];

/// Only paths with a policer or a dual queue need these.
const OPTIONAL_TRIALS: [&str; 2] = ["policer", "L4S"];

pub(super) fn report() -> BackEndReport {
    let (root, namespace) = if process::is_root() { create_namespace() } else { (not_root(), None) };
    let mut items = vec![
        CheckItem::required("root", root),
        CheckItem::required("ip", tool("ip")),
        CheckItem::required("tc", tool("tc")),
    ];
    items.extend(trials(namespace.as_ref()));
    BackEndReport::of(items)
}

fn not_root() -> CheckOutcome {
    CheckOutcome::missing(
        "this user may not create network namespaces",
        "run as root, or use User-Mode Linux, which needs no privileges",
    )
}

fn create_namespace() -> (CheckOutcome, Option<NetworkNamespace>) {
    match NetworkNamespace::create() {
        Ok(namespace) => (CheckOutcome::works("made a network namespace"), Some(namespace)),
        Err(error) => {
            let way_out = "in a container allow it (docker run --privileged), or use User-Mode Linux";
            (CheckOutcome::missing(error.to_string(), way_out), None)
        }
    }
}

fn trials(namespace: Option<&NetworkNamespace>) -> Vec<CheckItem> {
    let mut has_pair = None;
    let mut items = Vec::new();
    for (name, program, arguments, option) in TRIALS {
        let outcome = match (namespace, has_pair) {
            (None, _) => not_tried("it needs a network namespace"),
            (_, Some(false)) => not_tried("it needs a pair of devices"),
            (Some(namespace), _) => judge(attempt(namespace, program, arguments), option),
        };
        has_pair.get_or_insert(outcome.is_working());
        let is_optional = OPTIONAL_TRIALS.contains(&name);
        items.push(if is_optional { CheckItem::useful(name, outcome) } else { CheckItem::required(name, outcome) });
    }
    items
}

fn not_tried(because: &str) -> CheckOutcome {
    CheckOutcome::NotTried { because: because.into() }
}

fn attempt(namespace: &NetworkNamespace, program: &str, arguments: &[&str]) -> Result<()> {
    namespace.within(|| command::run_checked(program, arguments, None, TIMEOUT).map(drop))?
}

fn judge(outcome: Result<()>, option: &str) -> CheckOutcome {
    match outcome {
        Ok(()) => CheckOutcome::works("tried"),
        Err(error) => CheckOutcome::missing(
            error.to_string(),
            format!("use a kernel with {option} (of a distribution, not a stripped-down one), or User-Mode Linux"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_namespace_nothing_is_tried() {
        let items = trials(None);
        assert_eq!(items.len(), TRIALS.len());
        assert!(items.iter().all(|item| matches!(item.outcome, CheckOutcome::NotTried { .. })));
        assert!(items.iter().filter(|item| !item.required).map(|item| &*item.name).eq(OPTIONAL_TRIALS));
    }

    #[test]
    fn a_refusal_has_the_programs_message_and_the_kernels_option() {
        let outcome = command::run_checked(
            "sh",
            &["-c", "echo 'Error: Specified qdisc kind is unknown.' >&2; exit 2"],
            None,
            TIMEOUT,
        );
        let CheckOutcome::Missing { what, way_out } = judge(outcome.map(drop), "CONFIG_NET_SCH_NETEM") else {
            panic!("it failed")
        };
        assert!(what.contains("qdisc kind is unknown") && way_out.contains("CONFIG_NET_SCH_NETEM"), "{what} {way_out}");
    }

    #[test]
    #[ignore = "needs root: makes a network namespace"]
    fn a_pair_of_devices_can_be_made_and_is_gone_afterwards() {
        let (outcome, namespace) = create_namespace();
        assert!(outcome.is_working(), "{outcome:?}");
        let items = trials(namespace.as_ref());
        assert!(items[0].outcome.is_working(), "{items:?}");
        drop(namespace);
        assert!(linerate_sys::namespace::device_index("a").is_err());
    }
}
