//! Tests of known paths, and of the list of rules.

use core::time::Duration;
use std::collections::BTreeMap;

use linerate_analysis::formulas::bandwidth_delay_product;
use linerate_model::change::{ChangeGroup, ChangeTarget};
use linerate_model::diagnosis::Cause;
use linerate_model::direction::Direction;
use linerate_model::host::kernel::KernelVersion;
use linerate_units::{BitRate, ByteCount, Ratio, StreamCount, WallTime};

use super::test_cases::{diagnosed, host, rhel};
use super::*;

const RECEIVE: &str = "net.ipv4.tcp_rmem";
const SEND: &str = "net.ipv4.tcp_wmem";
const TOTAL: &str = "net.ipv4.tcp_mem";
const OLD_DEFAULTS: [(&str, &str); 2] = [(RECEIVE, "4096 131072 6291456"), (SEND, "4096 16384 4194304")];

/// Returns the proposed value of a setting at that end.
fn value(proposal: &TuningProposal, end: HostEnd, key: &str) -> Option<String> {
    let target = ChangeTarget::Setting { key: key.to_owned() };
    proposal.changes_of(end, None).into_iter().find(|change| change.target == target).map(|change| change.to.clone())
}

fn largest(proposal: &TuningProposal, end: HostEnd, key: &str) -> Option<u64> {
    value(proposal, end, key)?.split(' ').next_back()?.parse().ok()
}

fn inputs(bits: f64, microseconds: u64, values: &[(&str, &str)], mebibytes: u64) -> TuningInputs {
    let near = TuningHost { memory: Some(ByteCount::from_mebibytes(mebibytes)), ..host(values) };
    let (rate, time) = (BitRate::from_bits_per_second(bits), Duration::from_micros(microseconds));
    TuningInputs {
        flows: Some(StreamCount::new(1)),
        ..TuningInputs::from_rate_and_rtt(TuningGoal::WanBulk, near, None, rate, time)
    }
}

#[test]
fn rules_are_listed_by_group_once_and_documented() {
    assert!(TUNING_RULES.is_sorted_by_key(|rule| rule.group));
    for (index, rule) in TUNING_RULES.iter().enumerate() {
        assert!(rule.id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{}", rule.id);
        assert!(!rule.explanation.is_empty() && rule.explanation.ends_with('.') && !rule.citation.is_empty());
        assert!(TUNING_RULES[..index].iter().all(|other| other.id != rule.id), "{}", rule.id);
        assert!(rule.unmeasured || !rule.causes.is_empty(), "{} is never asked", rule.id);
    }
}

#[test]
fn each_rule_has_a_case_that_fires_and_one_that_does_not() {
    for rule in TUNING_RULES {
        let changes = |inputs: &TuningInputs| -> Vec<ProposedHostChange> {
            let answers = (rule.propose)(inputs).into_iter();
            answers
                .filter_map(|answer| if let RuleAnswer::Change(change) = answer { Some(*change) } else { None })
                .collect()
        };
        let fires = (rule.fires)();
        assert!(rule.is_asked(&fires), "{} is not asked in its own case", rule.id);
        let found = changes(&fires);
        assert!(!found.is_empty(), "{} proposes nothing where it should", rule.id);
        for ProposedHostChange { change, alternatives, .. } in &found {
            assert_eq!((change.reason.rule.as_str(), change.group), (rule.id, rule.group));
            assert!(
                !change.reason.text.is_empty() && !change.reason.risk.is_empty() && !change.reason.evidence.is_empty()
            );
            assert!(alternatives.iter().all(|other| (&other.target, &other.to) != (&change.target, &change.to)));
        }
        assert_eq!(changes(&(rule.silent)()), [], "{}", rule.id);
        assert_eq!(changes(&TuningInputs::default()), [], "{}: nothing is known, nothing is proposed", rule.id);
    }
}

/// Published bandwidth-delay products: the window holds 1.25 of them, the send buffer two.
#[test]
fn buffers_of_published_paths() {
    for (bits, microseconds, product) in [
        (1e9, 20_000, 2_500_000),
        (10e9, 20_000, 25_000_000),
        (1e9, 53_000, 6_625_000),
        (10e9, 117_000, 146_250_000),
        (100e9, 50_000, 625_000_000_u64),
    ] {
        let proposal = propose(&inputs(bits, microseconds, &OLD_DEFAULTS, 1 << 20));
        let product = ByteCount::new(product);
        let path = bandwidth_delay_product(BitRate::from_bits_per_second(bits), Duration::from_micros(microseconds));
        assert_eq!(path, product);
        let expected =
            [(RECEIVE, product.as_f64() * 1.25 / 0.62, 6_291_456), (SEND, product.as_f64() * 2.0, 4_194_304)];
        for (key, least, now) in expected {
            let Some(found) = largest(&proposal, HostEnd::Near, key).map(ByteCount::new) else {
                assert!(least <= ByteCount::new(now).as_f64(), "{key}: nothing for {bits} bit/s, {microseconds} us");
                continue;
            };
            let found = found.as_f64();
            assert!(
                found >= least && found <= (least * 1.016).max(ByteCount::new(now).as_f64()),
                "{key} {found} {least}"
            );
        }
    }
    // 1.25 MB and 187.5 kB fit into the current values.
    for (bits, microseconds) in [(10e9, 1_000), (1e9, 1_500)] {
        let proposal = propose(&inputs(bits, microseconds, &OLD_DEFAULTS, 16 << 10));
        assert!(proposal.is_empty() && !proposal.refusals.is_empty(), "{proposal:?}");
    }
}

#[test]
fn the_path_of_the_guide() {
    let total = [OLD_DEFAULTS[0], OLD_DEFAULTS[1], (TOTAL, "72132 96179 144264")];
    let proposal = propose(&inputs(10e9, 117_000, &total, 6 << 10));
    assert_eq!(proposal.refusals, []);
    for key in [RECEIVE, SEND] {
        assert!(largest(&proposal, HostEnd::Near, key).is_some_and(|bytes| bytes >= 292_500_000), "{proposal:?}");
    }
    let pages: Vec<u64> = value(&proposal, HostEnd::Near, TOTAL)
        .expect("394 MB are less than one and a half buffers")
        .split(' ')
        .map(|word| word.parse().expect("a number"))
        .collect();
    assert!(pages.is_sorted() && pages[1] * 4096 >= 438_750_000 && pages[2] * 4096 <= (6 << 30) / 4, "{pages:?}");
    let change =
        proposal.changes_of(HostEnd::Near, None).into_iter().find(|change| change.reason.rule == "receive-buffer");
    let reason = &change.expect("a receive buffer").reason;
    let arithmetic = reason.arithmetic.as_deref().expect("computed");
    assert!(arithmetic.starts_with("1.25 x 10.0 Gbit/s x 117 ms / 8 / 0.62 = 295 MB"), "{arithmetic}");
    // 0.62 x 6 291 456 B x 8 / 117 ms.
    assert!(reason.text.contains("267 Mbit/s"), "{}", reason.text);
    assert_eq!(proposal.groups(), [ChangeGroup::Buffers]);
    assert_eq!(proposal.plan(HostEnd::Near, None, WallTime::from_unix(Duration::ZERO)).changes.len(), 3);
    assert_eq!(proposal.plan(HostEnd::Far, None, WallTime::from_unix(Duration::ZERO)).changes, []);
}

#[test]
fn little_memory_is_reported_and_respected() {
    let proposal = propose(&inputs(10e9, 117_000, &OLD_DEFAULTS, 1024));
    // 1/8 of 1 GiB.
    assert_eq!(largest(&proposal, HostEnd::Near, RECEIVE), Some(128 << 20));
    let is_reported = proposal.refusals.iter().any(|refusal| refusal.text.contains("1/8 of its memory of 1.0 GiB"));
    assert!(is_reported, "{:?}", proposal.refusals);
    let mut several = inputs(10e9, 117_000, &OLD_DEFAULTS, 8 << 10);
    several.flows = None;
    // 1/32 where the number of connections is unknown.
    assert_eq!(largest(&propose(&several), HostEnd::Near, RECEIVE), Some((8 << 30) / 32));
}

#[test]
fn both_ends_of_one_kernel_share_its_total() {
    let total = [OLD_DEFAULTS[0], OLD_DEFAULTS[1], (TOTAL, "72132 96179 144264")];
    let mut shared = diagnosed(inputs(10e9, 117_000, &total, 6 << 10), Cause::ReceiveWindow);
    shared.data = Some(Direction::Up);
    shared.far = Some(TuningHost { memory: shared.near.memory, ..host(&OLD_DEFAULTS) });
    shared.one_kernel = true;
    let proposal = propose(&shared);
    assert_eq!(proposal.refusals, []);
    // 1.12 products in flight, of a send buffer of which 0.7 are.
    assert!(largest(&proposal, HostEnd::Near, SEND).is_some_and(|bytes| bytes >= 234_000_000));
    assert!(largest(&proposal, HostEnd::Far, RECEIVE).is_some_and(|bytes| bytes >= 292_500_000));
    assert_eq!((largest(&proposal, HostEnd::Near, RECEIVE), largest(&proposal, HostEnd::Far, SEND)), (None, None));
    let pressure: u64 = value(&proposal, HostEnd::Near, TOTAL)
        .expect("raised")
        .split(' ')
        .nth(1)
        .expect("three")
        .parse()
        .expect("a number");
    assert!(pressure * 4096 >= 789_750_000, "{pressure}");
}

#[test]
fn the_lab_path_with_a_small_total_gets_the_kernels_own() {
    let total = [OLD_DEFAULTS[0], OLD_DEFAULTS[1], (TOTAL, "768 1024 1536")];
    let proposal = propose(&diagnosed(inputs(300e6, 20_100, &total, 1024), Cause::KernelMemory));
    // 1/16 of 1 GiB in pages.
    assert_eq!(value(&proposal, HostEnd::Near, TOTAL).as_deref(), Some("12288 16384 24576"));
    assert_eq!(proposal.changes.len(), 1);
}

#[test]
fn a_measured_share_and_an_old_kernel_change_the_arithmetic() {
    let mut measured = inputs(10e9, 117_000, &OLD_DEFAULTS, 64 << 10);
    measured.seen.window_share = Ratio::new(0.94);
    let with_more = largest(&propose(&measured), HostEnd::Near, RECEIVE).expect("raised");
    measured.seen.window_share = None;
    measured.near.kernel = Some(KernelVersion::new(6, 1));
    let with_half = largest(&propose(&measured), HostEnd::Near, RECEIVE).expect("raised");
    assert!((194_000_000..200_000_000).contains(&with_more), "{with_more}");
    assert!((365_625_000..372_000_000).contains(&with_half), "{with_half}");
}

/// lab:300m-20ms-receive-buffer-375k and its send buffer's sibling: full, and the queue of the window stays below a
/// fifth.
#[test]
fn a_measured_need_is_met_closely() {
    let values = [(RECEIVE, "4096 131072 375000"), (SEND, "4096 16384 375000")];
    let mut inputs = diagnosed(inputs(300e6, 20_100, &values, 1024), Cause::ReceiveWindow);
    inputs.seen.window_share = Ratio::new(0.632);
    let proposal = propose(&inputs);
    let (first, kernels_own) = (&proposal.changes[0], "4096 131072 6291456");
    assert_eq!(first.alternatives.first().map(|other| other.to.as_str()), Some(kernels_own));
    // Payload of full packets: 1448 of 1514 bytes that the link counts.
    let product = 300e6 * 1448.0 / 1514.0 * 0.0201 / 8.0;
    for (key, share) in [(RECEIVE, 0.632), (SEND, 0.67), (SEND, 0.7)] {
        let size = ByteCount::new(largest(&proposal, HostEnd::Near, key).expect("raised")).as_f64();
        let in_flight = size * share / product;
        assert!(in_flight > 1.1 && in_flight < 1.2, "{key}: {in_flight} products in flight");
    }
}

#[test]
fn bbr_gets_three_products_to_send() {
    let values = [OLD_DEFAULTS[0], OLD_DEFAULTS[1], ("net.ipv4.tcp_congestion_control", "bbr")];
    let found = largest(&propose(&inputs(300e6, 100_000, &values, 16 << 10)), HostEnd::Near, SEND).expect("raised");
    assert!((11_250_000..11_500_000).contains(&found), "{found}");
}

#[test]
fn congestion_control_by_loss() {
    let chosen = |control: &str, cause, loss: f64, policed: bool| {
        let mut inputs = diagnosed(inputs(300e6, 20_100, &[("net.ipv4.tcp_congestion_control", control)], 1024), cause);
        inputs.data = Some(Direction::Up);
        inputs.seen.retransmitted = Ratio::new(loss).filter(|loss| *loss > Ratio::ZERO);
        inputs.path.out.policer = policed.then(|| BitRate::from_bits_per_second(100e6));
        value(&propose(&inputs), HostEnd::Near, "net.ipv4.tcp_congestion_control")
    };
    assert_eq!(chosen("cubic", Cause::Loss, 1e-3, false).as_deref(), Some("bbr"));
    assert_eq!(chosen("reno", Cause::Loss, 1e-3, false).as_deref(), Some("bbr"));
    assert_eq!(chosen("cubic", Cause::Loss, 1e-3, true), None, "a policer is paced for first");
    assert_eq!(chosen("cubic", Cause::Loss, 1e-6, false), None, "CUBIC reaches 80 % of the path");
    assert_eq!(chosen("reno", Cause::CongestionControl, 1e-6, false).as_deref(), Some("cubic"));
    assert_eq!(chosen("reno", Cause::CongestionControl, 0.0, false).as_deref(), Some("cubic"));
    assert_eq!(chosen("bbr", Cause::Loss, 1e-2, false), None);
    assert_eq!(chosen("cubic", Cause::Loss, 0.3, false), None, "no congestion control helps");
    assert_eq!(chosen("cubic", Cause::SlowStartExit, 0.0, false).as_deref(), Some("bbr"));
}

#[test]
fn a_known_route_comes_before_the_whole_host() {
    let mut inputs = diagnosed(rhel(host(&[("net.ipv4.tcp_congestion_control", "cubic")])), Cause::Loss);
    inputs.seen.retransmitted = Ratio::new(1e-3);
    inputs.near.route = Some(RouteText {
        destination: "198.51.100.0/24".to_owned(),
        attributes: "via 192.0.2.1 dev eth0 congctl cubic mtu 1400".to_owned(),
        peer: None,
    });
    let proposal = propose(&inputs);
    let [ProposedHostChange { change, alternatives, .. }] = &proposal.changes[..] else { panic!("{proposal:?}") };
    assert_eq!(change.target, ChangeTarget::Route { destination: "198.51.100.0/24".to_owned() });
    assert_eq!(change.to, "via 192.0.2.1 dev eth0 mtu 1400 congctl bbr");
    assert!(
        matches!(&alternatives[..], [global, htcp] if matches!(global.target, ChangeTarget::Setting { .. }) && htcp.to.ends_with("congctl htcp"))
    );
    assert!(proposal.lives_with_the_path());
}

/// The list names loaded modules only; the kernel loads another one when its name is written.
#[test]
fn a_congestion_control_that_is_not_loaded_is_tried() {
    const CONTROL: &str = "net.ipv4.tcp_congestion_control";
    let settings = [(CONTROL, "cubic"), ("net.ipv4.tcp_available_congestion_control", "reno cubic")];
    let mut inputs = diagnosed(rhel(host(&settings)), Cause::Loss);
    inputs.seen.retransmitted = Ratio::new(1e-3);
    let proposal = propose(&inputs);
    assert_eq!(value(&proposal, HostEnd::Near, CONTROL).as_deref(), Some("bbr"));
    assert_eq!(proposal.refusals, []);
    let others: Vec<&str> = proposal.changes[0].other_values().map(|other| other.to.as_str()).collect();
    assert_eq!(others, ["htcp"]);
}

#[test]
fn an_allowed_request_of_a_program_follows_the_path() {
    let proposal =
        propose(&(TUNING_RULES.iter().find(|rule| rule.id == "socket-buffer-limit").expect("listed").fires)());
    // 64 MiB were requested, which is less than half of the path's need.
    assert_eq!(value(&proposal, HostEnd::Near, "net.core.rmem_max").as_deref(), Some("67108864"));
}

#[test]
fn settings_that_cannot_be_written_are_refused() {
    let mut inputs = inputs(10e9, 117_000, &OLD_DEFAULTS, 64 << 10);
    inputs.near.unwritable.insert(RECEIVE.to_owned(), "/proc/sys is mounted read-only".to_owned());
    let proposal = propose(&inputs);
    assert_eq!(largest(&proposal, HostEnd::Near, RECEIVE), None);
    assert!(proposal.refusals.iter().any(|refusal| refusal.text.contains("mounted read-only")), "{proposal:?}");
}

#[test]
fn causes_outside_of_the_hosts_are_refused_with_a_reason() {
    use linerate_model::diagnosis::CauseLocation;
    // For these a host can work around the cause.
    let lived_with = [Cause::BlackHole, Cause::Policer, Cause::Loss, Cause::BurstyLoss];
    let programs = [Cause::SlowReader, Cause::SocketPacing];
    for cause in Cause::ALL {
        let outside =
            !matches!(cause.location(), CauseLocation::Sender | CauseLocation::Receiver | CauseLocation::Hosts)
                || programs.contains(cause);
        let spared = lived_with.contains(cause) || *cause == Cause::SocketBuffer || *cause == Cause::KernelMemory;
        let asked: Vec<&str> =
            TUNING_RULES.iter().filter(|rule| rule.causes.contains(cause)).map(|rule| rule.id).collect();
        assert!(!outside || spared || asked.is_empty(), "{cause:?}: {asked:?}");
        assert!(refusals::reason(*cause).ends_with('.'));
    }
}

/// lab:rhel-1g-1500us-no-window-scaling: 188 kB in flight, and two bursts of 64 KiB in addition.
#[test]
fn on_a_short_path_bursts_fit_into_the_window() {
    let values = [(RECEIVE, "4096 131072 131072"), (SEND, "4096 16384 4194304")];
    let need = |microseconds| {
        let mut inputs = diagnosed(inputs(1e9, microseconds, &values, 1024), Cause::ReceiveWindow);
        inputs.seen.window_share = Ratio::new(0.632);
        ByteCount::new(largest(&propose(&inputs), HostEnd::Near, RECEIVE).expect("raised")).as_f64() * 0.632
    };
    let product = |microseconds: f64| 1e9 * microseconds / 1e6 / 8.0;
    let (short, long) = (need(1500), need(20_000));
    assert!(short >= product(1500.0) + 131_072.0 && short < (product(1500.0) + 131_072.0) * 1.05, "{short}");
    assert!(long < product(20_000.0) * 1.2, "{long}");
}

/// lab:data-centre-25g-200us-receive-buffer-300k: wake-ups and reads prolong the round trips.
#[test]
fn on_a_short_path_the_delay_of_the_hosts_counts() {
    let values = [(RECEIVE, "4096 131072 131072"), (SEND, "4096 16384 4194304")];
    let need = |base, loaded: Option<u64>| {
        let mut inputs = diagnosed(inputs(10e9, base, &values, 1024), Cause::ReceiveWindow);
        inputs.seen.window_share = Ratio::new(0.632);
        inputs.seen.loaded_round_trip = loaded.map(Duration::from_micros);
        ByteCount::new(largest(&propose(&inputs), HostEnd::Near, RECEIVE).expect("raised")).as_f64()
    };
    let factor = |base, loaded| need(base, Some(loaded)) / need(base, None);
    assert!((factor(400, 480) - 1.2).abs() < 0.05, "{}", factor(400, 480));
    assert!((factor(400, 4000) - 1.5).abs() < 0.05, "a bound: {}", factor(400, 4000));
    assert!((factor(400, 300) - 1.0).abs() < 1e-9);
    assert!((factor(20_000, 30_000) - 1.0).abs() < 1e-9, "a queue, not the hosts");
}

/// Softnet counters that a host reported during a transfer reach the rules.
#[test]
fn softnet_counters_of_a_measured_host_are_used() {
    use linerate_model::diagnosis::TransferObservation;
    use linerate_model::far::{HostEvidence, ReceivingEvidence};

    let settings = [("net.core.netdev_max_backlog", "1000"), ("net.core.netdev_budget_usecs", "8000")];
    let evidence = HostEvidence {
        settings: settings.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        receiving: Some(ReceivingEvidence { processors: 2, dropped: 300, squeezed: 5 }),
        ..HostEvidence::default()
    };
    let elapsed = Duration::from_secs(10);
    let observation = TransferObservation { receiver: Some(evidence), elapsed, ..TransferObservation::default() };
    let diagnosis = diagnosed(inputs(1e9, 10_000, &settings, 1024), Cause::HostDrops).diagnosis.expect("a cause");
    let measured =
        TuningInputs::from_measurement(TuningGoal::WanBulk, (TuningHost::default(), None), &observation, diagnosis);
    let seen = measured.far.as_ref().and_then(|host| host.receiving).expect("reported");
    assert_eq!((seen.dropped.get(), seen.backlog.get(), seen.elapsed), (300, 1000, elapsed));
    let changes = propose(&measured);
    assert!(
        changes.changes.iter().any(|one| one.change.target == setting("net.core.netdev_max_backlog")),
        "{changes:#?}"
    );
}

fn setting(key: &str) -> ChangeTarget {
    ChangeTarget::Setting { key: key.to_owned() }
}

#[test]
fn a_host_of_the_agent_protocol_round_trips() {
    let host = TuningHost {
        kernel: Some(KernelVersion::new(6, 12)),
        settings: BTreeMap::from([("net.ipv4.tcp_rmem".to_owned(), "4096 131072 6291456".to_owned())]),
        unwritable: BTreeMap::from([("net.ipv4.tcp_mem".to_owned(), "of the whole host".to_owned())]),
        memory: Some(ByteCount::new(1 << 33)),
        page: Some(ByteCount::new(4096)),
        sockets: Some(StreamCount::new(7)),
        receiving: None,
        interface: Some(EgressInterface {
            name: "eth0".to_owned(),
            queueing: Some("# made by the kernel: fq".to_owned()),
        }),
        route: Some(RouteText {
            destination: "default".to_owned(),
            attributes: "via 192.0.2.1 dev eth0".to_owned(),
            peer: Some("198.51.100.7".to_owned()),
        }),
        unreadable: vec!["the queueing disciplines of eth1: no tc".to_owned()],
    };
    for host in [host, TuningHost::default()] {
        let text = serde_json::to_string(&host).expect("JSON");
        assert_eq!(serde_json::from_str::<TuningHost>(&text).expect("a host"), host);
    }
    let odd = TuningHost { page: Some(ByteCount::ZERO), memory: Some(ByteCount::ZERO), ..TuningHost::default() };
    let text = serde_json::to_string(&odd).expect("JSON");
    assert_eq!(serde_json::from_str::<TuningHost>(&text).expect("a host"), TuningHost::default());
}
