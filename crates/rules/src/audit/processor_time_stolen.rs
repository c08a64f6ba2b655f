//! The hypervisor takes processor time (steal).

use linerate_model::fact::Fact;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::processors::ProcessorTicks;

use super::AuditRule;
use super::link_support::FindingDraft;

const ID: &str = "processor-time-stolen";
const CITATION: &str = "proc_stat(5) (steal)";
const MIN_STEAL_SHARE: f64 = 0.05;
const CRITICAL_STEAL_SHARE: f64 = 0.2;

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "The hypervisor takes more than 5 % of the processors' time (steal).",
    explanation: "While a virtual machine waits for a processor, its packets wait, too: round trips become longer and \
        uneven, acknowledgements arrive in bursts, rings overflow. The machine is overcommitted, or this guest has \
        used up its credits. No setting of the guest changes that.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host(90),
    silent: || host(10),
};

fn host(stolen: u64) -> HostFacts {
    let mut host = HostFacts::default();
    host.processors.total_ticks =
        Fact::Known(ProcessorTicks { stolen, user: 100, idle: 900, ..ProcessorTicks::default() });
    host
}

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let share = host.processors.total_ticks.known().and_then(ProcessorTicks::stolen_share);
    let Some(share) = share.filter(|share| share.get() > MIN_STEAL_SHARE) else { return Vec::new() };
    let draft = FindingDraft {
        rule: (ID, CITATION),
        severity: if share.get() > CRITICAL_STEAL_SHARE { FindingSeverity::Critical } else { FindingSeverity::Warning },
        subject: "processors".to_owned(),
        text: format!("The hypervisor took {share} of the processors' time since boot (steal)."),
        evidence: vec![format!("/proc/stat: steal is {share} of all")],
        remedy: vec![
            "vmstat 1 (is the column `st` high now, while the transfer is slow?)".to_owned(),
            "ask for reserved processors, another host, or a larger instance".to_owned(),
        ],
        risk: "",
    };
    vec![draft.finding()]
}
