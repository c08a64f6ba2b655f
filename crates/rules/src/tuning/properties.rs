//! Property tests of the hard rules for every proposal.

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_model::change::{ChangeGroup, ChangeTarget, HostChange};
use linerate_model::diagnosis::{Cause, CauseLocation, DiagnosisVerdict, GoodputEstimate};
use linerate_model::host::kernel::KernelVersion;
use linerate_units::{BitRate, ByteCount, Mss, PacketCount, Ratio, StreamCount};
use proptest::prelude::*;
use proptest::sample::select;

use super::test_cases::diagnosed;
use super::*;

/// Settings that are only ever set to 1.
const FEATURES: [&str; 5] = [
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_mtu_probing",
];

fn settings() -> impl Strategy<Value = Vec<(String, String)>> {
    let switch = || select(vec!["0", "1"]);
    let control = select(vec!["cubic", "reno", "bbr", "htcp"]);
    let features = proptest::collection::vec(switch(), FEATURES.len());
    (features, control, 100_000_u64..1 << 31, 100_000_u64..1 << 31, 1_000_u64..1 << 24, 1_000_u64..1 << 26).prop_map(
        |(features, control, receive, send, total, most)| {
            let mut settings: Vec<(String, String)> =
                FEATURES.iter().zip(features).map(|(key, value)| ((*key).to_owned(), value.to_owned())).collect();
            let mut set = |key: &str, value: String| settings.push((key.to_owned(), value));
            set("net.ipv4.tcp_rmem", format!("4096 131072 {receive}"));
            set("net.ipv4.tcp_wmem", format!("4096 16384 {send}"));
            set("net.ipv4.tcp_mem", format!("{} {total} {}", total / 4 * 3, total / 2 * 3));
            set("net.ipv4.tcp_congestion_control", control.to_owned());
            set("net.ipv4.tcp_notsent_lowat", u32::MAX.to_string());
            set("net.core.rmem_max", most.to_string());
            set("net.core.wmem_max", most.to_string());
            set("net.core.default_qdisc", "fq_codel".to_owned());
            set("net.core.netdev_max_backlog", "1000".to_owned());
            set("net.core.netdev_budget_usecs", "8000".to_owned());
            settings
        },
    )
}

fn receiving() -> impl Strategy<Value = Option<ReceiveCounters>> {
    proptest::option::of((0_u64..3, 0_u64..1000).prop_map(|(dropped, squeezed)| ReceiveCounters {
        elapsed: Duration::from_secs(10),
        processors: 2,
        dropped: PacketCount::new(dropped),
        squeezed,
        backlog: PacketCount::new(1000),
        budget: Duration::from_millis(8),
    }))
}

fn hosts() -> impl Strategy<Value = TuningHost> {
    let version = select(vec![(5, 14), (6, 1), (6, 12), (6, 18)]).prop_map(|(a, b)| KernelVersion::new(a, b));
    let route = proptest::option::of(Just(RouteText {
        destination: "default".into(),
        attributes: "dev eth0".into(),
        peer: Some("192.0.2.9".into()),
    }));
    let interface = proptest::option::of(Just(EgressInterface { name: "eth0".into(), queueing: None }));
    let stuck = select(vec![None, Some("net.ipv4.tcp_mem"), Some("net.ipv4.tcp_rmem")]);
    (version, settings(), 256_u64..1 << 20, receiving(), route, interface, stuck).prop_map(
        |(kernel, settings, mebibytes, receiving, route, interface, stuck)| TuningHost {
            kernel: Some(kernel),
            settings: settings.into_iter().collect(),
            unwritable: stuck.map(|key| (key.to_owned(), "a container".to_owned())).into_iter().collect(),
            memory: Some(ByteCount::from_mebibytes(mebibytes)),
            page: None,
            sockets: None,
            receiving,
            interface,
            route,
            unreadable: Vec::new(),
        },
    )
}

fn ways() -> impl Strategy<Value = DirectionMetrics> {
    (proptest::option::of(1e6_f64..1e11), proptest::option::of(0.0_f64..0.5), any::<bool>(), any::<bool>()).prop_map(
        |(capacity, loss, policed, hole)| DirectionMetrics {
            capacity: capacity.map(BitRate::from_bits_per_second),
            at_least: false,
            loss: loss.and_then(Ratio::new),
            policer: policed.then(|| BitRate::from_bits_per_second(1e8)),
            mtu: None,
            black_hole: hole.then(|| ByteCount::new(1401)),
        },
    )
}

fn seen() -> impl Strategy<Value = ObservedTransfer> {
    let sizes = || proptest::option::of(1_000_u64..1 << 30);
    let control = proptest::option::of(select(vec!["cubic", "reno", "bbr"]));
    let loaded = proptest::option::of(0_u64..1_000_000);
    (control, proptest::option::of(0.0_f64..0.5), proptest::option::of(0.0_f64..1.0), sizes(), sizes(), loaded)
        .prop_map(|(control, again, share, buffer, waits, loaded)| ObservedTransfer {
            goodput: Some(BitRate::from_bits_per_second(1e7)),
            congestion_control: control.map(str::to_owned),
            segment: Some(Mss::new(1448)),
            retransmitted: again.and_then(Ratio::new),
            window_share: share.and_then(Ratio::new),
            receive_buffer: buffer.map(ByteCount::new),
            send_buffer: buffer.map(ByteCount::new),
            asked_buffer: None,
            not_sent: waits.map(ByteCount::new),
            loaded_round_trip: loaded.map(Duration::from_micros),
        })
}

prop_compose! {
    fn any_inputs()(
        goal in select(TuningGoal::ALL.to_vec()),
        near in hosts(),
        far in proptest::option::of(hosts()),
        one_kernel in any::<bool>(),
        (out, back) in (ways(), ways()),
        microseconds in 50_u64..600_000,
        data in select(vec![None, Some(Direction::Up), Some(Direction::Down)]),
        flows in proptest::option::of(1_u64..400),
        cause in proptest::option::of(select(Cause::ALL.to_vec())),
        clamped in any::<bool>(),
        mut seen in seen(),
    ) -> TuningInputs {
        let limit = near.number("net.core.rmem_max").map(|most| ByteCount::new(most * 2));
        if clamped {
            (seen.receive_buffer, seen.send_buffer) = (limit, limit);
        }
        let path = TuningPath { round_trip: Some(Duration::from_micros(microseconds)), out, back };
        let flows = flows.map(StreamCount::new);
        let inputs = TuningInputs { goal, near, far, one_kernel, path, data, flows, diagnosis: None, focus: None, seen };
        match cause {
            Some(cause) => diagnosed(inputs, cause),
            None => inputs,
        }
    }
}

/// Settings that bound all connections of a host.
const CEILINGS: [&str; 9] = [
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_mem",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.core.rmem_default",
    "net.core.wmem_default",
    "net.core.optmem_max",
    "net.ipv4.tcp_limit_output_bytes",
];

prop_compose! {
    /// Inputs after a measurement that named several causes, each with or without an estimate.
    fn several_causes()(
        inputs in any_inputs(),
        causes in proptest::collection::vec((select(Cause::ALL.to_vec()), proptest::option::of(0.9_f64..100.0)), 1..5),
    ) -> TuningInputs {
        let measured = BitRate::from_bits_per_second(1e7);
        let mut inputs = diagnosed(inputs, causes[0].0);
        let diagnosis = inputs.diagnosis.as_mut().expect("diagnosed");
        let template = diagnosis.verdicts[0].clone();
        let verdict = |(cause, factor): &(Cause, Option<f64>)| {
            let estimate = |factor: f64| GoodputEstimate {
                low: measured,
                expected: measured * factor,
                high: measured * (factor * 1.1),
            };
            DiagnosisVerdict { cause: *cause, without: factor.map(estimate), ..template.clone() }
        };
        diagnosis.verdicts = causes.iter().map(verdict).collect();
        diagnosis.goodput = measured;
        inputs
    }
}

/// No ceiling of a host goes below its present value, whatever the path.
fn no_lower_ceiling(inputs: &TuningInputs, end: HostEnd, change: &HostChange) {
    match &change.target {
        ChangeTarget::Setting { key } if CEILINGS.contains(&key.as_str()) => {
            let present = inputs.host(end).and_then(|host| numbers(host.settings.get(key)?)).expect("a known value");
            let to = numbers(&change.to).expect("numbers");
            assert!(present.len() == to.len() && present.iter().zip(&to).all(|(now, to)| to >= now), "{change:?}");
        }
        // The window of one destination.
        ChangeTarget::Route { destination } if change.to.contains("window") => {
            assert!(destination == "192.0.2.9", "{change:?}");
        }
        // The rate of all connections through an interface: a work-around that the user asks for (--work-around).
        ChangeTarget::Queueing { .. } if change.to.contains("maxrate") => {
            assert_eq!(change.reason.rule, "pacing", "{change:?}");
        }
        _ => {}
    }
}

fn numbers(value: &str) -> Option<Vec<u64>> {
    value.split_ascii_whitespace().map(|number| number.parse().ok()).collect()
}

/// Returns the [`TuningInputs`] after all changes.
fn applied(mut inputs: TuningInputs, proposal: &TuningProposal) -> TuningInputs {
    for ProposedHostChange { end, change, .. } in &proposal.changes {
        let host = match end {
            HostEnd::Near => &mut inputs.near,
            HostEnd::Far => inputs.far.as_mut().expect("a change of a known host"),
        };
        match &change.target {
            ChangeTarget::Setting { key } => drop(host.settings.insert(key.clone(), change.to.clone())),
            ChangeTarget::Route { destination } => {
                host.route =
                    Some(RouteText { destination: destination.clone(), attributes: change.to.clone(), peer: None });
            }
            ChangeTarget::Queueing { interface } => {
                host.interface = Some(EgressInterface { name: interface.clone(), queueing: Some(change.to.clone()) });
            }
            other => panic!("{other} is not proposed by any rule"),
        }
    }
    inputs
}

/// No value decreases, except the limit of unsent data, for which a delay was measured.
fn never_less(inputs: &TuningInputs, change: &HostChange) {
    let ChangeTarget::Setting { key } = &change.target else { return };
    let from = change.from.as_deref().and_then(numbers);
    let (Some(from), Some(to)) = (from, numbers(&change.to)) else { return };
    if key == "net.ipv4.tcp_notsent_lowat" {
        assert!(inputs.goal.minds_waiting() && inputs.seen.not_sent.is_some());
    } else {
        assert!(from.len() == to.len() && from.iter().zip(&to).all(|(from, to)| to >= from), "{change:?}");
        assert!(from != to, "{change:?}");
    }
}

/// Checks the list of changes that must never be recommended.
fn hard_rules(inputs: &TuningInputs, end: HostEnd, change: &HostChange) {
    let host = inputs.host(end).expect("a known host");
    match &change.target {
        ChangeTarget::Setting { key } if FEATURES.contains(&key.as_str()) => assert_eq!(change.to, "1", "{key}"),
        ChangeTarget::Setting { key } => match key.as_str() {
            "net.core.netdev_max_backlog" => assert!(host.receiving.is_some_and(|seen| !seen.dropped.is_zero())),
            "net.ipv4.tcp_congestion_control" if change.to == "bbr" => no_policer(inputs, end),
            "net.ipv4.tcp_rmem" | "net.ipv4.tcp_wmem" => {
                let (to, usual) = (numbers(&change.to).expect("numbers"), host.default_triple(key).expect("known"));
                // Below the kernel's default only where a measurement shows the need.
                assert!(to[2] >= usual[2] || inputs.diagnosis.is_some(), "{change:?}");
                assert!(i32::try_from(to[2]).is_ok(), "{change:?}");
                let flows = inputs.flows.map_or(4, StreamCount::get);
                let memory = host.memory.expect("known").get();
                assert!(to[2] <= (memory / 8 / flows).max(usual[2]), "{change:?}");
            }
            "net.ipv4.tcp_mem" => {
                let (from, to) = (numbers(change.from.as_deref().expect("there")), numbers(&change.to));
                let pages = host.memory.expect("known").get() / 4096;
                assert!(to.as_ref().is_some_and(|to| to.is_sorted() && to[1] <= pages * 3 / 16 + 1));
                assert!(to.zip(from).is_some_and(|(to, from)| to[2] <= (pages / 4).max(from[2])), "{change:?}");
            }
            "net.core.rmem_default" | "net.core.wmem_default" => panic!("{key} is not about TCP"),
            _ => {}
        },
        ChangeTarget::Route { .. } if change.to.contains("congctl bbr") => no_policer(inputs, end),
        ChangeTarget::Link { .. } => panic!("neither MTU nor txqueuelen is raised without verification"),
        _ => {}
    }
}

fn no_policer(inputs: &TuningInputs, end: HostEnd) {
    let transfers = inputs.transfers();
    let clean = |transfer: &&inputs::DataFlow<'_>| transfer.sender == end && transfer.way.policer.is_none();
    assert!(transfers.iter().any(|transfer| clean(&transfer)), "BBR where a policer was found");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn every_proposal_follows_the_hard_rules(inputs in any_inputs()) {
        let proposal = propose(&inputs);
        for ProposedHostChange { end, change, alternatives } in &proposal.changes {
            for change in core::iter::once(change).chain(alternatives) {
                never_less(&inputs, change);
                hard_rules(&inputs, *end, change);
                prop_assert!(!change.reason.text.is_empty() && !change.reason.risk.is_empty());
            }
            if let ChangeTarget::Setting { key } = &change.target {
                prop_assert!(!inputs.host(*end).expect("known").unwritable.contains_key(key), "{key} cannot be written");
            }
        }
        prop_assert!(!proposal.is_empty() || !proposal.refusals.is_empty(), "neither a change nor a reason");
        let groups = proposal.groups();
        prop_assert!(groups.is_sorted() && groups.windows(2).all(|pair| pair[0] != pair[1]), "{groups:?}");
        if !inputs.goal.ends_connections() {
            prop_assert!(groups.iter().all(|group| matches!(group, ChangeGroup::Processors | ChangeGroup::Queueing)));
        }
    }

    /// A cap for one path is of the route to that host; a tightened buffer stays above its present size.
    #[test]
    fn no_ceiling_is_lowered_for_one_path(inputs in any_inputs(), base in 1_u64..200, more in 0_u64..400) {
        let cap = lid(&inputs, ChangeGroup::Features);
        if let Some(ProposedHostChange { change, .. }) = &cap {
            prop_assert_eq!(&change.target, &ChangeTarget::Route { destination: "192.0.2.9".to_owned() });
        }
        let (base, under_load) = (Duration::from_millis(base), Duration::from_millis(base + more));
        let mut changes = propose(&inputs).changes;
        for cap in [None, cap] {
            changes.extend(cap);
            let narrower = tighten_cap(&inputs, &changes, base, under_load).unwrap_or_default();
            for ProposedHostChange { change, .. } in &narrower {
                never_less(&inputs, change);
            }
        }
    }

    /// All candidates of a run: each proposal of the plan, its other values, with a cap, and with that tightened.
    #[test]
    fn no_candidate_of_a_plan_lowers_a_ceiling_of_the_host(
        inputs in several_causes(),
        base in 1_u64..200,
        more in proptest::collection::vec(0_u64..400, 3),
    ) {
        let base = Duration::from_millis(base);
        let all = plan(&inputs);
        prop_assert!(!all.is_empty());
        for proposal in &all {
            let paces = proposal.changes.iter().any(|one| one.change.to.contains("maxrate"));
            prop_assert!(!paces || proposal.lives_with_the_path() && !proposal.is_combination, "{proposal:#?}");
            for group in proposal.groups() {
                let own = || proposal.changes.iter().filter(|one| one.change.group == group).cloned();
                let mut candidates: Vec<Vec<ProposedHostChange>> = vec![own().collect(), own().chain(lid(&inputs, group)).collect()];
                for more in &more {
                    let last = candidates.last().expect("two of them");
                    candidates.extend(tighten_cap(&inputs, last, base, base + Duration::from_millis(*more)));
                }
                for one in candidates.iter().flatten() {
                    no_lower_ceiling(&inputs, one.end, &one.change);
                    hard_rules(&inputs, one.end, &one.change);
                    for other in &one.alternatives {
                        no_lower_ceiling(&inputs, one.end, other);
                    }
                }
            }
        }
    }

    #[test]
    fn plans_are_ordered_complete_and_explained(inputs in several_causes()) {
        let all = plan(&inputs);
        let gains: Vec<f64> = all.iter().filter_map(|one| one.expected).map(|one| one.expected.bits_per_second()).collect();
        prop_assert!(gains.windows(2).all(|pair| pair[0] >= pair[1]), "{gains:?}");
        let is_told = all.iter().any(|one| !one.is_empty() || !one.refusals.is_empty());
        prop_assert!(is_told, "neither a change nor a reason");
        prop_assert!(all.iter().rev().skip(1).all(|one| !one.is_combination), "the combination is the last");
        for one in all.iter().filter(|one| one.is_combination) {
            prop_assert!(one.groups().len() == 1 && one.changes.len() > 1 && !one.lives_with_the_path());
            let mut targets: Vec<_> = one.changes.iter().map(|one| (one.end, &one.change.target)).collect();
            targets.sort_unstable();
            prop_assert!(targets.windows(2).all(|pair| pair[0] != pair[1]), "{one:#?}");
        }
    }

    #[test]
    fn applied_changes_are_not_proposed_again(inputs in any_inputs()) {
        let first = propose(&inputs);
        let second = propose(&applied(inputs, &first));
        prop_assert!(second.is_empty(), "{:#?}\nthen\n{:#?}", first.changes, second.changes);
    }

    #[test]
    fn where_no_host_is_the_limit_nothing_is_changed(inputs in any_inputs()) {
        let Some(cause) = inputs.cause() else { return Ok(()) };
        let of_a_program = [Cause::SlowReader, Cause::SocketPacing, Cause::Application, Cause::ApplicationPacing];
        let lived_with = [Cause::BlackHole, Cause::Policer, Cause::Loss, Cause::BurstyLoss];
        let outside = matches!(cause.location(), CauseLocation::Network | CauseLocation::Nowhere | CauseLocation::Unknown) && !lived_with.contains(&cause);
        if outside || of_a_program.contains(&cause) {
            let proposal = propose(&inputs);
            prop_assert!(proposal.is_empty(), "{cause:?}: {:?}", proposal.changes);
            prop_assert!(proposal.refusals.iter().all(|refusal| refusal.text.ends_with('.')));
        }
    }

    #[test]
    fn more_path_never_needs_less(bits in 1e6_f64..1e10, factor in 1.0_f64..8.0, microseconds in 100_u64..200_000) {
        let buffers = |bits: f64| {
            let near = test_cases::host(&[("net.ipv4.tcp_rmem", "4096 131072 131072"), ("net.ipv4.tcp_wmem", "4096 16384 65536")]);
            let (rate, time) = (BitRate::from_bits_per_second(bits), Duration::from_micros(microseconds));
            let proposal = propose(&TuningInputs::from_rate_and_rtt(TuningGoal::WanBulk, near, None, rate, time));
            proposal.changes.iter().filter_map(|proposed| numbers(&proposed.change.to)?.pop()).collect::<Vec<u64>>()
        };
        let (less, more) = (buffers(bits), buffers(bits * factor));
        prop_assert!(less.iter().zip(&more).all(|(less, more)| less <= more), "{less:?} {more:?}");
    }
}
