//! Tests from a measured transfer to a proposal and a judgement, as in `linerate tune`.

use std::time::Duration;

use linerate_model::change::{ChangeGroup, ChangeTarget};
use linerate_model::diagnosis::{
    Cause, ObservedConnection, PathEvidence, SocketInterval, TransferObservation, TransferSettings,
};
use linerate_model::far::HostEvidence;
use linerate_model::host::kernel::KernelVersion;
use linerate_model::path::{CapacityMeasurement, CapacityMethod, PathDirection};
use linerate_model::sample::SocketSample;
use linerate_model::socket::SocketMemory;
use linerate_model::tcp_info::TcpInfo;
use linerate_rules::diagnosis::diagnose;
use linerate_rules::judge::{
    MeasurementPair, PairBudget, TransferMeasurement, TrialDecision, TrialDesign, judge, more_pairs_needed,
};
use linerate_rules::tuning::{HostEnd, TuningGoal, TuningHost, TuningInputs, propose};
use linerate_units::{BitRate, ByteCount, Mss, Ratio, SegmentCount};

const SAMPLE_INTERVAL: Duration = Duration::from_millis(250);
const ROUND_TRIP: Duration = Duration::from_micros(20_100);

fn direction(megabits: f64) -> PathDirection {
    let capacity = CapacityMeasurement {
        bits_per_second: megabits * 1e6,
        low_bits_per_second: None,
        high_bits_per_second: None,
        at_least: false,
        limited_by: None,
        shared: Some(false),
        packet_bytes: 1500,
        loss: None,
        loss_below: None,
        packets_below: None,
        queueing_ns: None,
        sent_bytes: 1_000_000,
        duration_ns: 1,
        method: CapacityMethod::UdpSearch,
    };
    PathDirection { capacity: Some(capacity), ..PathDirection::default() }
}

fn host(receive: &str) -> HostEvidence {
    let setting = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    HostEvidence {
        kernel: Some("6.12.38".to_owned()),
        settings: [
            setting("net.ipv4.tcp_rmem", receive),
            setting("net.ipv4.tcp_wmem", "4096 16384 4194304"),
            setting("net.ipv4.tcp_mem", "100000 200000 300000"),
        ]
        .into(),
        memory_bytes: Some(1 << 33),
        ..HostEvidence::default()
    }
}

/// Ten seconds of 300 Mbit/s and 20.1 ms with a receive buffer of 375 kB at one end, as the lab shows it: 90.5 Mbit/s.
fn window_limited(from_far: bool) -> TransferObservation {
    let moment = |index: u32| {
        let time = SAMPLE_INTERVAL * (index + 1);
        let bytes = BitRate::from_bits_per_second(90.5e6) * time;
        let info = TcpInfo {
            rtt: Some(Duration::from_micros(20_300)),
            min_rtt: Some(ROUND_TRIP),
            send_mss: Some(Mss::new(1448)),
            congestion_window: Some(ByteCount::new(400_000)),
            slow_start_threshold: None,
            send_window: Some(ByteCount::new(237_000)),
            unacknowledged: Some(SegmentCount::new(237_000 / 1448)),
            retransmits: Some(SegmentCount::ZERO),
            bytes_sent: Some(bytes),
            bytes_retransmitted: Some(ByteCount::ZERO),
            bytes_acknowledged: Some(bytes),
            busy_time: Some(time),
            receive_window_limited: Some(time.mul_f64(0.76)),
            send_buffer_limited: Some(Duration::ZERO),
            not_sent: Some(ByteCount::new(100_000)),
            ..TcpInfo::default()
        };
        let size = if index == 0 { 131_072 } else { 375_000 };
        let memory = SocketMemory {
            receive_buffer: ByteCount::new(size),
            send_buffer: ByteCount::new(1_000_000 + u64::from(index)),
            ..SocketMemory::default()
        };
        let socket = SocketSample { info, memory: Some(memory) };
        SocketInterval {
            from: SAMPLE_INTERVAL * index,
            to: time,
            bytes: BitRate::from_bits_per_second(90.5e6) * SAMPLE_INTERVAL,
            socket,
        }
    };
    let moments: Vec<SocketInterval> = (0..40).map(moment).collect();
    TransferObservation {
        asked: TransferSettings { from_far, ..TransferSettings::default() },
        elapsed: SAMPLE_INTERVAL * 40,
        received: BitRate::from_bits_per_second(90.5e6) * (SAMPLE_INTERVAL * 40),
        congestion_control: Some("cubic".to_owned()),
        connections: vec![ObservedConnection {
            sender: moments.clone(),
            receiver: moments,
            ..ObservedConnection::default()
        }],
        sender: Some(host("4096 131072 6291456")),
        receiver: Some(host("4096 131072 375000")),
        path: Some(PathEvidence {
            round_trip: Some(ROUND_TRIP),
            with_data: direction(297.0),
            with_acknowledgements: direction(10.0),
            ..PathEvidence::default()
        }),
        ..TransferObservation::default()
    }
}

#[test]
fn a_measured_window_leads_to_one_change_of_the_receiver() {
    for (from_far, receiver) in [(false, HostEnd::Far), (true, HostEnd::Near)] {
        let observation = window_limited(from_far);
        let diagnosis = diagnose(&observation);
        assert_eq!(diagnosis.verdicts[0].cause, Cause::ReceiveWindow);
        let inputs =
            TuningInputs::from_measurement(TuningGoal::WanBulk, (TuningHost::default(), None), &observation, diagnosis);
        assert_eq!(inputs.near.kernel, Some(KernelVersion::new(6, 12)));
        let proposal = propose(&inputs);
        assert_eq!((proposal.refusals.len(), proposal.changes.len()), (0, 1), "{proposal:#?}");
        assert_eq!((proposal.groups(), proposal.lives_with_the_path()), (vec![ChangeGroup::Buffers], false));
        let [change] = proposal.changes_of(receiver, Some(ChangeGroup::Buffers))[..] else { panic!("{proposal:#?}") };
        assert_eq!(change.target, ChangeTarget::Setting { key: "net.ipv4.tcp_rmem".to_owned() });
        assert_eq!(change.from.as_deref(), Some("4096 131072 375000"));
        // 1.12 products of what flows with the data, of a buffer of which 0.632 are window: 237 of 375 kB.
        let least = 1.12 * 297e6 * 0.0201 / 8.0 / 0.632;
        let to: u32 = change.to.split(' ').next_back().expect("three numbers").parse().expect("a number");
        assert!(f64::from(to) >= least && f64::from(to) < least * 1.02, "{to} {least}");
        let arithmetic = change.reason.arithmetic.as_deref().expect("computed");
        assert!(arithmetic.starts_with("1.12 x 297 Mbit/s x 20.1 ms / 8 / 0.63 = "), "{arithmetic}");
        assert!(change.reason.evidence.iter().any(|line| line.contains("goodput: 90.5 Mbit/s")), "{change:?}");
    }
}

#[test]
fn no_observation_leads_to_no_proposal() {
    let observation = TransferObservation::default();
    let inputs = TuningInputs::from_measurement(
        TuningGoal::WanBulk,
        (TuningHost::default(), None),
        &observation,
        diagnose(&observation),
    );
    let proposal = propose(&inputs);
    assert!(proposal.is_empty() && !proposal.refusals.is_empty());
}

#[test]
fn a_trial_of_it_is_kept_after_five_pairs() {
    let measured = |megabits: f64, milliseconds: f64| TransferMeasurement {
        goodput: BitRate::from_bits_per_second(megabits * 1e6),
        round_trip_p95: Some(Duration::from_secs_f64(milliseconds / 1e3)),
        base_round_trip: Some(ROUND_TRIP),
        retransmitted: Some(Ratio::ZERO),
        processor: None,
        disturbed: None,
    };
    let objective = TuningGoal::WanBulk.objective();
    let (mut pairs, design) = (Vec::new(), TrialDesign::new(PairBudget::default(), 7));
    while more_pairs_needed(&objective, &design, &pairs) {
        let changed_first = design.is_changed_first(pairs.len());
        pairs.push(MeasurementPair::new(measured(90.5, 20.3), measured(285.8, 23.6), changed_first));
    }
    let judgement = judge(&objective, &design, &pairs);
    assert_eq!((judgement.decision, judgement.counted), (TrialDecision::Keep, 5), "{}", judgement.sentence);
}
