//! The guest of each path has the memory for the settings that its path needs: nothing that `linerate tune` would propose
//! there is cut short.

use std::collections::BTreeMap;
use std::time::Duration;

use linerate_lab::bounds::{Way, bounds};
use linerate_lab::compile::compile;
use linerate_lab::description::PathDescription;
use linerate_lab::library;
use linerate_lab::plan::Plan;
use linerate_model::host::kernel::KernelVersion;
use linerate_rules::tuning::{Data, End, Goal, Host, Inputs, Proposal, propose};
use linerate_units::{ByteCount, StreamCount};

/// What a kernel of User-Mode Linux counts of the memory that it was given: 97 % of the smallest guest's, seen there.
const COUNTED: f64 = 0.96;

fn host(plan: &Plan, name: &str) -> Host {
    let own = plan.namespaces.iter().filter(|space| space.name == name).flat_map(|space| &space.sysctls);
    // The settings of the whole system can be seen from the near host alone.
    let all = own.chain(plan.system.iter().filter(|_| name == "near"));
    Host {
        kernel: Some(KernelVersion::new(6, 12)),
        settings: all.map(|setting| (setting.key.clone(), setting.value.clone())).collect::<BTreeMap<_, _>>(),
        memory: Some(ByteCount::from_f64(plan.sizing.memory.as_f64() * COUNTED)),
        ..Host::default()
    }
}

/// What would be proposed for one connection to the far end; `None` where nothing has a rate.
fn proposal(path: &PathDescription) -> Option<Proposal> {
    let (plan, way) = (compile(path), bounds(path, Way::Forward));
    let round_trip = way.base_rtt.max(Duration::from_micros(1));
    let hosts = (host(&plan, "near"), host(&plan, "far"));
    let mut inputs = Inputs::given(Goal::WanBulk, hosts.0, Some(hosts.1), way.bottleneck?.rate, round_trip);
    (inputs.one_kernel, inputs.data, inputs.flows) = (true, Data::ToFar, Some(StreamCount::new(1)));
    Some(propose(&inputs))
}

#[test]
fn no_proposal_is_cut_short_by_the_guests_memory() {
    for entry in library::all() {
        let path = entry.description().expect("a path of the library");
        let Some(proposal) = proposal(&path) else { continue };
        for refusal in proposal.refusals.iter().filter(|refusal| refusal.rule.is_some()) {
            let about = ["receive-buffer", "send-buffer", "tcp-memory"].contains(&refusal.rule.unwrap_or_default());
            assert!(!about, "{}: {}", entry.name(), refusal.text);
        }
    }
}

#[test]
fn the_window_of_the_guides_path_is_raised_to_more_than_its_product() {
    let path = library::all().iter().find(|entry| entry.name() == "rhel-10g-117ms").expect("in the library");
    let proposal = proposal(&path.description().expect("a path of the library")).expect("it has a rate");
    let window = proposal
        .changes
        .iter()
        .find(|proposed| proposed.end == End::Far && proposed.change.target.to_string().contains("net.ipv4.tcp_rmem"));
    let to = &window.expect("the receive window").change.to;
    let largest: f64 = to.split(' ').next_back().and_then(|word| word.parse().ok()).expect("three numbers");
    assert!(largest * 0.62 >= 146.25e6, "{to}");
}

#[test]
fn no_guest_takes_more_of_a_host_than_it_may_have() {
    for entry in library::all() {
        let sizing = compile(&entry.description().expect("a path of the library")).sizing;
        assert!(sizing.taken <= sizing.memory, "{}", entry.name());
        // A machine with 8 GiB has some 7 to spare.
        assert!(sizing.taken <= ByteCount::from_mebibytes(6 << 10), "{}: {}", entry.name(), sizing.reason);
    }
}
