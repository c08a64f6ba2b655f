//! The hypervisor takes the processors away.

use linerate_model::fact::Fact;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::processors::ProcessorTicks;

use super::Rule;
use super::link_support::Saying;

const ID: &str = "processor-time-stolen";
const CITATION: &str = "proc_stat(5) (steal)";
const MUCH: f64 = 0.05;
const VERY_MUCH: f64 = 0.2;

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "The hypervisor takes more than 5 % of the processors' time away.",
    explanation: "While a virtual machine waits for a processor, its packets wait, too: round trips become longer and uneven, acknowledgements come in bunches, rings overflow. The machine is overcommitted, or this guest has used up its credits. No setting of the guest changes that.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host(90),
    silent: || host(10),
};

fn host(stolen: u64) -> HostFacts {
    let mut host = HostFacts::default();
    host.processors.together =
        Fact::Known(ProcessorTicks { stolen, user: 100, idle: 900, ..ProcessorTicks::default() });
    host
}

fn check(host: &HostFacts) -> Vec<Finding> {
    let share = host.processors.together.known().and_then(ProcessorTicks::stolen_share);
    let Some(share) = share.filter(|share| share.get() > MUCH) else { return Vec::new() };
    let saying = Saying {
        rule: (ID, CITATION),
        severity: if share.get() > VERY_MUCH { Severity::Critical } else { Severity::Warning },
        subject: "processors".to_owned(),
        text: format!("The hypervisor took {share} of the processors' time away since the boot."),
        evidence: vec![format!("/proc/stat: steal is {share} of all")],
        remedy: vec![
            "vmstat 1 (is the column `st` high now, while the transfer is slow?)".to_owned(),
            "ask for reserved processors, another host, or a larger instance".to_owned(),
        ],
        risk: "",
    };
    vec![saying.finding()]
}
