//! Every kind of target with every fault at every step of a trial: each access to the host and each write to the disk of
//! the journals. Afterwards the host is as before, or the report names the reason and nothing else is changed.

mod faulty_host;
mod scenario;

use std::collections::BTreeMap;

use linerate_model::change::{ChangeTarget, DeviceAttribute, LinkAttribute};
use linerate_sys::host_access::FakeHost;

use faulty_host::Fault;

const INTERFACE: &str = "eth0";

/// Least number of cases: 21 targets with 10 faults at about 70 steps each are 14,810.
const MIN_CASES: usize = 14_000;

/// A target with the value before, the one that is applied, and the one of another program.
#[derive(Clone, Debug)]
struct TestedTarget {
    target: ChangeTarget,
    values: [String; 3],
}

fn tested(target: ChangeTarget, value: impl Fn(u8) -> String) -> TestedTarget {
    TestedTarget { target, values: [value(1), value(2), value(3)] }
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
        tested(ChangeTarget::TrafficControl { interface: interface() }, |value| {
            format!("traffic control of eth0\nqdisc dev eth0 parent root handle {value}: kind tbf options 0{value}")
        }),
        tested(ChangeTarget::Route { destination: "default".into() }, |value| {
            format!("via 192.0.2.1 dev eth0 initcwnd {value}")
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

/// Number of cases of one target, and its defects.
fn all_cases(tested: &TestedTarget) -> (usize, Vec<String>) {
    let (mut cases, mut defects) = (0, Vec::new());
    for fault in Fault::ALL {
        for step in 0.. {
            let Some(outcome) = scenario::run(tested, fault, step) else { break };
            cases += 1;
            let named = |defect| format!("{} with {fault:?} at step {step}: {defect}", tested.target);
            defects.extend(outcome.err().map(named));
        }
    }
    (cases, defects)
}

#[test]
fn every_target_with_every_fault_at_every_step() {
    let targets = targets();
    let results: Vec<(usize, Vec<String>)> = std::thread::scope(|scope| {
        let running: Vec<_> = targets.iter().map(|tested| scope.spawn(|| all_cases(tested))).collect();
        running.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let cases: usize = results.iter().map(|(cases, _)| cases).sum();
    let defects: Vec<&String> = results.iter().flat_map(|(_, defects)| defects).collect();
    assert!(defects.is_empty(), "{} of {cases} cases: {:#?}", defects.len(), &defects[..defects.len().min(20)]);
    assert!(cases >= MIN_CASES, "{cases} cases: steps are missing");
}
