//! Tests that the guest of each path has enough memory for the settings that its path needs: no proposal of `linerate
//! tune` is limited by memory.

use linerate_model::direction::Direction;
use std::collections::BTreeMap;
use std::time::Duration;

use linerate_lab::bounds::bounds;
use linerate_lab::compile::compile;
use linerate_lab::description::PathDescription;
use linerate_lab::library;
use linerate_lab::plan::PathPlan;
use linerate_model::host::kernel::KernelVersion;
use linerate_rules::tuning::{HostEnd, TuningGoal, TuningHost, TuningInputs, TuningProposal, propose};
use linerate_units::{ByteCount, StreamCount};

/// Memory that a kernel of User-Mode Linux counts: 97 % of the smallest guest's, as measured.
const COUNTED: f64 = 0.96;

fn host(plan: &PathPlan, name: &str) -> TuningHost {
    let own = plan.namespaces.iter().filter(|space| space.name == name).flat_map(|space| &space.sysctls);
    // System-wide settings are visible on the near host only.
    let all = own.chain(plan.system.iter().filter(|_| name == "near"));
    TuningHost {
        kernel: Some(KernelVersion::new(6, 12)),
        settings: all.map(|setting| (setting.key.clone(), setting.value.clone())).collect::<BTreeMap<_, _>>(),
        memory: Some(ByteCount::from_f64(plan.sizing.memory.as_f64() * COUNTED)),
        ..TuningHost::default()
    }
}

/// Proposal for one connection to the far host; `None` without any rate.
fn proposal(path: &PathDescription) -> Option<TuningProposal> {
    let (plan, direction) = (compile(path), bounds(path, Direction::Up));
    let round_trip = direction.base_rtt.max(Duration::from_micros(1));
    let hosts = (host(&plan, "near"), host(&plan, "far"));
    let mut inputs = TuningInputs::from_rate_and_rtt(
        TuningGoal::WanBulk,
        hosts.0,
        Some(hosts.1),
        direction.bottleneck?.rate,
        round_trip,
    );
    (inputs.one_kernel, inputs.data, inputs.flows) = (true, Some(Direction::Up), Some(StreamCount::new(1)));
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
fn the_window_of_the_rhel_path_exceeds_its_bdp() {
    let path = library::all().iter().find(|entry| entry.name() == "rhel-10g-117ms").expect("in the library");
    let proposal = proposal(&path.description().expect("a path of the library")).expect("it has a rate");
    let window = proposal.changes.iter().find(|proposed| {
        proposed.end == HostEnd::Far && proposed.change.target.to_string().contains("net.ipv4.tcp_rmem")
    });
    let to = &window.expect("the receive window").change.to;
    let largest: f64 = to.split(' ').next_back().and_then(|word| word.parse().ok()).expect("three numbers");
    assert!(largest * 0.62 >= 146.25e6, "{to}");
}

#[test]
fn no_guest_uses_more_memory_than_its_limit() {
    for entry in library::all() {
        let sizing = compile(&entry.description().expect("a path of the library")).sizing;
        assert!(sizing.taken <= sizing.memory, "{}", entry.name());
        // A host with 8 GiB has about 7 available.
        assert!(sizing.taken <= ByteCount::from_mebibytes(6 << 10), "{}: {}", entry.name(), sizing.reason);
    }
}
