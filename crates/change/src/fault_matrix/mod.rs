//! Every kind of target with every fault at every step of each procedure: each access to the host and each write to the
//! disk of the journals. Afterwards the host is as before, or the report names the reason and nothing else is changed.

mod fault;
mod faulty_host;
mod procedure;
mod verdict;

use core::num::NonZeroUsize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Mutex;

use linerate_model::change::{ChangeTarget, DeviceAttribute, LinkAttribute};
use linerate_sys::host_access::FakeHost;

use fault::Fault;
use procedure::Procedure;
use verdict::Outcome;

const INTERFACE: &str = "eth0";

/// Least number of cases, so that no step is lost unnoticed.
const MIN_CASES: usize = 14_000;

/// A target with the value before, the one that is applied, the one of another program, and the one that the kernel sets
/// in place of another.
#[derive(Clone, Debug)]
struct TestedTarget {
    target: ChangeTarget,
    values: [String; 4],
}

fn tested(target: ChangeTarget, value: impl Fn(u8) -> String) -> TestedTarget {
    TestedTarget { target, values: [value(1), value(2), value(3), value(4)] }
}

/// One target of each kind and attribute.
fn targets() -> Vec<TestedTarget> {
    let interface = || INTERFACE.to_owned();
    let setting = |key: &str| ChangeTarget::Setting { key: key.to_owned() };
    let file = |path: &str| ChangeTarget::File { path: path.to_owned() };
    let number = |value: u8| value.to_string();
    let mut all = vec![
        tested(setting("net.ipv4.tcp_rmem"), |value| format!("4096 131072 {value}")),
        tested(setting("net.ipv4.conf.eth0.rp_filter"), number),
        tested(ChangeTarget::Offload { interface: interface(), feature: "rx-gro".into() }, number),
        tested(ChangeTarget::Queueing { interface: interface() }, |value| {
            format!("qdisc replace dev eth0 root fq maxrate {value}mbit")
        }),
        tested(ChangeTarget::Queueing { interface: interface() }, |value| {
            let leaf = |queue| format!("\nqdisc replace dev eth0 parent 1:{queue} fq maxrate {value}mbit");
            "qdisc replace dev eth0 root handle 1: mq".to_owned() + &leaf(1) + &leaf(2)
        }),
        tested(ChangeTarget::TrafficControl { interface: interface() }, |value| {
            format!("traffic control of eth0\nqdisc dev eth0 parent root handle {value}: kind tbf options 0{value}")
        }),
        tested(ChangeTarget::FirewallTable { name: "marks".into() }, |value| {
            format!("table inet marks {{\n\tchain store {{\n\t\tct mark set 0x{value}\n\t}}\n}}")
        }),
        tested(ChangeTarget::Route { destination: "default".into() }, |value| {
            format!("via 192.0.2.1 dev eth0 initcwnd {value}")
        }),
        tested(ChangeTarget::Route { destination: "::/0".into() }, |value| {
            format!("via fe80::1 dev eth0 proto static metric 1024 initcwnd {value} pref medium")
        }),
        tested(ChangeTarget::Route { destination: "2001:db8::/32".into() }, |value| {
            format!("via fe80::1 dev eth0 proto ra pref medium initcwnd {value}")
        }),
        tested(file("/sys/class/net/eth0/queues/rx-0/rps_cpus"), number),
        tested(file("/proc/irq/9/smp_affinity_list"), number),
    ];
    all.extend(
        LinkAttribute::ALL
            .iter()
            .map(|attribute| tested(ChangeTarget::Link { interface: interface(), attribute: *attribute }, number)),
    );
    all.extend(
        DeviceAttribute::ALL
            .iter()
            .map(|attribute| tested(ChangeTarget::Device { interface: interface(), attribute: *attribute }, number)),
    );
    all
}

/// The other change of each trial.
fn companion() -> TestedTarget {
    tested(ChangeTarget::Setting { key: "net.core.rmem_max".into() }, |value| format!("{value}000"))
}

fn host(tested: &TestedTarget) -> FakeHost {
    let all = [tested, &companion()].map(|tested| (tested.target.clone(), tested.values[0].clone()));
    let mut values = BTreeMap::from(all);
    // The interface exists for all targets.
    let mtu = ChangeTarget::Link { interface: INTERFACE.into(), attribute: LinkAttribute::Mtu };
    values.entry(mtu).or_insert_with(|| "1500".to_owned());
    FakeHost::new(values)
}

/// Name of the kind; a new kind needs a line of [`targets`].
const fn kind(target: &ChangeTarget) -> &'static str {
    match target {
        ChangeTarget::Setting { .. } => "setting",
        ChangeTarget::Link { .. } => "link",
        ChangeTarget::Offload { .. } => "offload",
        ChangeTarget::Device { .. } => "device",
        ChangeTarget::Queueing { .. } => "queueing",
        ChangeTarget::TrafficControl { .. } => "traffic control",
        ChangeTarget::FirewallTable { .. } => "firewall table",
        ChangeTarget::Route { .. } => "route",
        ChangeTarget::File { .. } => "file",
    }
}

/// Numbers of cases.
#[derive(Default)]
struct Tally {
    by_procedure: BTreeMap<(Fault, Procedure), usize>,
    by_outcome: BTreeMap<(Fault, Outcome), usize>,
    defects: Vec<String>,
}

impl Tally {
    fn of(tested: &TestedTarget) -> Self {
        let mut tally = Self::default();
        for (procedure, fault) in Procedure::ALL.iter().flat_map(|one| Fault::ALL.map(|fault| (*one, fault))) {
            for step in 0.. {
                let Some(outcome) = verdict::run(tested, procedure, fault, step) else { break };
                *tally.by_procedure.entry((fault, procedure)).or_default() += 1;
                match outcome {
                    Ok(outcome) => *tally.by_outcome.entry((fault, outcome)).or_default() += 1,
                    Err(defect) => {
                        let case = format!("{} with {fault:?} at step {step} of {procedure:?}", tested.target);
                        tally.defects.push(format!("{case}: {defect}"));
                    }
                }
            }
        }
        tally
    }

    fn add(mut self, other: Self) -> Self {
        for (key, count) in other.by_procedure {
            *self.by_procedure.entry(key).or_default() += count;
        }
        for (key, count) in other.by_outcome {
            *self.by_outcome.entry(key).or_default() += count;
        }
        self.defects.extend(other.defects);
        self
    }

    fn cases(&self) -> usize {
        self.by_procedure.values().sum()
    }

    /// The table of docs/rollback.md.
    fn table(&self) -> String {
        let outcomes = [Outcome::Restored, Outcome::RestoredLater, Outcome::LeftToOther, Outcome::Unrecorded];
        let mut text = String::from("| fault | trial | watchdog | next start | after a boot | kept, after a boot |");
        text += " restored at once | reported, restored later | of another program | no record |\n";
        let columns = 1 + Procedure::ALL.len() + outcomes.len();
        let _ = writeln!(text, "|---|{}", "--:|".repeat(columns - 1));
        for fault in Fault::ALL {
            let procedures = Procedure::ALL.map(|procedure| self.by_procedure.get(&(fault, procedure)));
            let outcomes = outcomes.map(|outcome| self.by_outcome.get(&(fault, outcome)));
            let cells = procedures.iter().chain(&outcomes).map(|count| count.copied().unwrap_or_default().to_string());
            let _ = writeln!(text, "| {} | {} |", fault.label(), cells.collect::<Vec<_>>().join(" | "));
        }
        text
    }
}

#[test]
fn every_target_with_every_fault_at_every_step() {
    let targets = targets();
    let kinds: BTreeSet<&str> = targets.iter().map(|tested| kind(&tested.target)).collect();
    assert_eq!(kinds.len(), 9, "{kinds:?}");
    let waiting = Mutex::new(targets.iter());
    let work = || {
        let next = || waiting.lock().expect("no panic").next();
        std::iter::from_fn(next).map(Tally::of).fold(Tally::default(), Tally::add)
    };
    // More threads than processors would leave no time for tests of other programs.
    let workers = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let tally = std::thread::scope(|scope| {
        let running: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        running.into_iter().map(|thread| thread.join().expect("no panic")).fold(Tally::default(), Tally::add)
    });
    let (cases, defects) = (tally.cases(), &tally.defects);
    let table = tally.table();
    let _ = write!(
        std::io::stdout(),
        "{} targets, {cases} cases, {} left changed\n\n{table}",
        targets.len(),
        defects.len()
    );
    assert!(defects.is_empty(), "{} of {cases} cases: {:#?}", defects.len(), &defects[..defects.len().min(20)]);
    assert!(cases >= MIN_CASES, "{cases} cases: steps are missing");
}
