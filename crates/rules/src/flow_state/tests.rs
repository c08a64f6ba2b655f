//! Cases are rows of the truth table: a path of 300 Mbit/s and 20 ms with one fault.

use linerate_model::socket::{FlowKey, InstantTcpState, SocketCookie, SocketMemory, SocketTimer, UserId};
use linerate_units::{Mss, TypeOfService};
use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// One second of a sender.
#[derive(Clone, Copy)]
struct SenderCase {
    rate: f64,
    busy: u64,
    receive_window: u64,
    send_buffer: u64,
    again: u64,
    rtt: f64,
    least_rtt: f64,
    send_window: u64,
    congestion_window: u64,
    application_limited: bool,
    not_sent: u64,
    pace: Option<f64>,
}

/// Only the path limits.
const FULL_PATH: SenderCase = SenderCase {
    rate: 285e6,
    busy: 1000,
    receive_window: 0,
    send_buffer: 0,
    again: 0,
    rtt: 41.2,
    least_rtt: 20.1,
    send_window: 3_932_160,
    congestion_window: 1_500_000,
    application_limited: false,
    not_sent: 500_000,
    pace: None,
};

fn sample(info: TcpInfo) -> SocketSnapshot {
    let any = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
    SocketSnapshot {
        key: FlowKey { local: any, remote: any, cookie: SocketCookie(1) },
        state: TcpState::Established,
        user: UserId(0),
        inode: None,
        receive_queue: ByteCount::ZERO,
        send_queue: ByteCount::new(100_000),
        timer: None,
        info: Some(info),
        moment: InstantTcpState::default(),
        memory: None,
        congestion_control: None,
        congestion_state: None,
        type_of_service: Some(TypeOfService::new(0)),
        mark: None,
        control_group: None,
    }
}

#[expect(clippy::unnecessary_wraps, reason = "as the fields of a sample are")]
fn bytes(count: u64) -> Option<ByteCount> {
    Some(ByteCount::new(count))
}

#[expect(clippy::unnecessary_wraps, reason = "as the fields of a sample are")]
fn milliseconds(time: f64) -> Option<Duration> {
    Some(Duration::from_secs_f64(time / 1000.0))
}

fn pair(case: &SenderCase) -> (SocketSnapshot, SocketSnapshot) {
    let start = TcpInfo {
        bytes_acknowledged: bytes(0),
        bytes_received: bytes(0),
        bytes_sent: bytes(0),
        bytes_retransmitted: bytes(0),
        retransmits: Some(SegmentCount::ZERO),
        busy_time: Some(Duration::ZERO),
        receive_window_limited: Some(Duration::ZERO),
        send_buffer_limited: Some(Duration::ZERO),
        ..TcpInfo::default()
    };
    let sent = BitRate::from_bits_per_second(case.rate) * SECOND;
    let end = TcpInfo {
        bytes_acknowledged: Some(sent),
        bytes_received: bytes(0),
        bytes_sent: Some(sent),
        bytes_retransmitted: bytes(case.again * 1448),
        retransmits: Some(SegmentCount::new(case.again)),
        busy_time: Some(Duration::from_millis(case.busy)),
        receive_window_limited: Some(Duration::from_millis(case.receive_window)),
        send_buffer_limited: Some(Duration::from_millis(case.send_buffer)),
        rtt: milliseconds(case.rtt),
        min_rtt: milliseconds(case.least_rtt),
        send_mss: Some(Mss::new(1448)),
        send_window: bytes(case.send_window),
        congestion_window: bytes(case.congestion_window),
        not_sent: bytes(case.not_sent),
        delivery_rate_application_limited: Some(case.application_limited),
        max_pacing_rate: case.pace.map(BitRate::from_bits_per_second),
        backoff: Some(0),
        ..TcpInfo::default()
    };
    (sample(start), sample(end))
}

fn limit_of(first: &SocketSnapshot, last: &SocketSnapshot) -> FlowLimit {
    let change = FlowChange::between(first, last, SECOND);
    flow_state(first, last, &change, &BufferSettings::default()).limit
}

fn limit_in(case: &SenderCase) -> FlowLimit {
    let (first, last) = pair(case);
    limit_of(&first, &last)
}

#[test]
fn rows_1_to_6_the_receive_window() {
    // tcp_rmem: rate, window, round trip, share of the time.
    for (rate, window, rtt, share) in [
        (89e6, 232_960, 20.4, 759_u32),
        (176e6, 467_328, 20.4, 763),
        (228e6, 701_696, 24.2, 772),
        (278e6, 936_064, 24.5, 783),
        (285e6, 1_404_928, 38.1, 525),
        (1.37e6, 4344, 20.4, 902),
        (30.5e6, 81_120, 20.4, 787),
    ] {
        let case = SenderCase { rate, send_window: window, rtt, receive_window: share.into(), ..FULL_PATH };
        let FlowLimit::ReceiveWindow { share: Some(found), window: Some(shown) } = limit_in(&case) else {
            panic!("{rate}: {:?}", limit_in(&case))
        };
        assert_eq!((found, shown), (Ratio::new(f64::from(share) / 1000.0).expect("a share"), ByteCount::new(window)));
    }
    let case = SenderCase { rate: 282e6, receive_window: 2, ..FULL_PATH };
    assert!(matches!(limit_in(&case), FlowLimit::CongestionWindow { .. }), "3 BDP and more: the path's");
}

#[test]
fn a_window_per_round_trip_is_a_window_limit_without_a_chronograph() {
    let case = SenderCase { rate: 90e6, rtt: 20.4, send_window: 232_960, ..FULL_PATH };
    assert_eq!(limit_in(&case), FlowLimit::ReceiveWindow { share: None, window: bytes(232_960) });
    let lossy = SenderCase { again: 10, ..case };
    assert!(matches!(limit_in(&lossy), FlowLimit::Loss { .. }), "{:?}", limit_in(&lossy));
}

#[test]
fn rows_7_to_9_the_send_buffer() {
    for (rate, rtt, share) in [(112e6, 20.4, 825), (186e6, 20.4, 436), (286e6, 29.6, 535)] {
        let case = SenderCase { rate, rtt, send_buffer: share, application_limited: true, not_sent: 0, ..FULL_PATH };
        let (first, mut last) = pair(&case);
        last.memory = Some(SocketMemory { send_buffer: ByteCount::new(375_000), ..SocketMemory::default() });
        let FlowLimit::SendBuffer { buffer, .. } = limit_of(&first, &last) else { panic!("{rate}") };
        assert_eq!(buffer, bytes(375_000));
    }
}

#[test]
fn a_full_buffer_without_anything_left_to_send_is_the_buffers() {
    let case = SenderCase { rate: 205e6, rtt: 54.1, not_sent: 0, application_limited: true, ..FULL_PATH };
    let (first, mut last) = pair(&case);
    let memory = |queued| SocketMemory {
        send_buffer: ByteCount::new(375_000),
        send_queued: ByteCount::new(queued),
        ..SocketMemory::default()
    };
    last.memory = Some(memory(1_151_608));
    assert_eq!(limit_of(&first, &last), FlowLimit::SendBuffer { share: None, buffer: bytes(375_000) });
    last.memory = Some(memory(300_000));
    assert_eq!(limit_of(&first, &last), FlowLimit::Application { share: None });
}

#[test]
fn row_13_the_application_and_row_14_its_pace() {
    let paced = SenderCase { rate: 49.9e6, rtt: 20.3, busy: 990, not_sent: 0, application_limited: true, ..FULL_PATH };
    assert_eq!(limit_in(&paced), FlowLimit::Application { share: None });
    let idle = SenderCase { busy: 400, ..paced };
    assert_eq!(limit_in(&idle), FlowLimit::Application { share: Ratio::new(0.6) });
    let mut unused = pair(&SenderCase { application_limited: false, not_sent: 2896, ..paced });
    let count = |number| Some(SegmentCount::new(number));
    unused.1.moment =
        InstantTcpState { selectively_acknowledged: count(0), retransmitted: count(0), ..InstantTcpState::default() };
    if let Some(info) = &mut unused.1.info {
        (info.unacknowledged, info.lost) = (count(86), count(0));
    }
    assert_eq!(limit_of(&unused.0, &unused.1), FlowLimit::Application { share: None }, "125 kB of 1.5 MB are used");
    let capped = SenderCase { rate: 100e6, rtt: 20.3, pace: Some(100e6), ..FULL_PATH };
    assert_eq!(limit_in(&capped), FlowLimit::Pacing { rate: BitRate::from_bits_per_second(100e6) });
}

#[test]
fn rows_15_to_21_the_path() {
    assert_eq!(limit_in(&FULL_PATH), FlowLimit::CongestionWindow { window: bytes(1_500_000) });
    let queue_overflows = SenderCase { again: 24, rtt: 56.0, ..FULL_PATH };
    assert!(matches!(limit_in(&queue_overflows), FlowLimit::CongestionWindow { .. }));
    let random_loss = SenderCase { rate: 25e6, again: 3, rtt: 20.3, congestion_window: 70_000, ..FULL_PATH };
    assert!(matches!(limit_in(&random_loss), FlowLimit::Loss { share: Some(_) }));
    let policed = SenderCase { rate: 80e6, again: 198, rtt: 20.45, congestion_window: 300_000, ..FULL_PATH };
    assert!(matches!(limit_in(&policed), FlowLimit::Loss { .. }));
}

fn backed_off(sample: &mut SocketSnapshot, times: u8) {
    sample.info.as_mut().expect("connected").backoff = Some(times);
}

#[test]
fn row_22_a_path_that_drops_large_packets() {
    let (first, mut last) = pair(&SenderCase { rate: 0.0, rtt: 20.4, congestion_window: 1448, ..FULL_PATH });
    last.moment = InstantTcpState {
        congestion_window: Some(SegmentCount::new(1)),
        since_data_sent: Some(Duration::from_secs(12)),
        ..InstantTcpState::default()
    };
    backed_off(&mut last, 6);
    let silent = Some(Duration::from_secs(12));
    assert_eq!(limit_of(&first, &last), FlowLimit::NotMoving { backoff: 6, silent, black_hole: true });
    last.send_queue = ByteCount::new(100);
    assert_eq!(limit_of(&first, &last), FlowLimit::NotMoving { backoff: 6, silent, black_hole: false });
    backed_off(&mut last, 1);
    assert!(!matches!(limit_of(&first, &last), FlowLimit::NotMoving { .. }), "one timeout is a loss");
}

#[test]
fn row_23_a_slow_reader_at_both_ends() {
    let slow = SenderCase { rate: 40e6, receive_window: 978, rtt: 20.4, send_window: 100_000, ..FULL_PATH };
    assert!(matches!(limit_in(&slow), FlowLimit::ReceiveWindow { share: Some(_), .. }));
    // A briefly closed window is still a window limit.
    let (first, mut last) = pair(&SenderCase { send_window: 0, ..slow });
    assert!(matches!(limit_of(&first, &last), FlowLimit::ReceiveWindow { share: Some(_), .. }));
    if let Some(info) = &mut last.info {
        info.bytes_acknowledged = bytes(0);
    }
    last.timer = Some(SocketTimer { kind: TimerKind::Probe, due_in: SECOND, repeats: SegmentCount::ZERO });
    last.moment.probes = Some(2);
    assert_eq!(limit_of(&first, &last), FlowLimit::ZeroWindow { probes: Some(2) });
}

fn receiving(rate: f64, window: u64, rtt: f64) -> (SocketSnapshot, SocketSnapshot) {
    let info = |received| TcpInfo {
        bytes_received: bytes(received),
        bytes_acknowledged: bytes(0),
        receive_window: bytes(window),
        receive_rtt: milliseconds(rtt),
        ..TcpInfo::default()
    };
    let received = (BitRate::from_bits_per_second(rate) * SECOND).get();
    let still = |info| SocketSnapshot { send_queue: ByteCount::ZERO, ..sample(info) };
    (still(info(0)), still(info(received)))
}

#[test]
fn a_receiver_sees_its_own_application_and_window() {
    let (first, mut last) = receiving(40e6, 900_000, 20.4);
    assert_eq!(limit_of(&first, &last), FlowLimit::FarEnd);
    let memory = SocketMemory {
        receive_allocated: ByteCount::new(1_260_000),
        receive_buffer: ByteCount::new(2_100_000),
        ..SocketMemory::default()
    };
    last.memory = Some(memory);
    assert_eq!(limit_of(&first, &last), FlowLimit::SlowReader { fill: Ratio::new(0.6).expect("a share") });
    let (first, last) = receiving(89e6, 232_960, 20.4);
    assert_eq!(limit_of(&first, &last), FlowLimit::OwnWindow { window: ByteCount::new(232_960) });
}

#[test]
fn nothing_to_do_is_idle_and_nothing_known_is_unknown() {
    let (first, mut last) = receiving(0.0, 65_536, 20.4);
    assert_eq!(limit_of(&first, &last), FlowLimit::Idle);
    last.info = None;
    assert_eq!(limit_of(&first, &last), FlowLimit::Unknown);
    last.state = TcpState::SynSent;
    assert_eq!(limit_of(&first, &last), FlowLimit::Handshake);
    last.state = TcpState::Listen;
    last.receive_queue = ByteCount::new(3);
    last.send_queue = ByteCount::new(128);
    assert_eq!(limit_of(&first, &last), FlowLimit::Accepting { waiting: 3, room: 128 });
}

#[test]
fn buffers_that_were_set_are_distinguished_from_adapted_ones() {
    let settings = BufferSettings { send: Some((ByteCount::new(16_384), ByteCount::new(4_194_304))), receive: None };
    let origin_of = |before: u64, after: u64, rate: f64| {
        let (mut first, mut last) = pair(&SenderCase { rate, ..FULL_PATH });
        for (sample, size) in [(&mut first, before), (&mut last, after)] {
            sample.memory = Some(SocketMemory { send_buffer: ByteCount::new(size), ..SocketMemory::default() });
        }
        let change = FlowChange::between(&first, &last, SECOND);
        flow_state(&first, &last, &change, &settings).send_buffer
    };
    assert_eq!(origin_of(16_384, 16_384, 1e6), Some(BufferOrigin::Initial));
    assert_eq!(origin_of(4_194_304, 4_194_304, 1e6), Some(BufferOrigin::Largest));
    assert_eq!(origin_of(87_040, 332_800, 1e6), Some(BufferOrigin::Adapted));
    assert_eq!(origin_of(131_072, 131_072, 1e6), Some(BufferOrigin::SetByApplication), "-w 64K");
    assert_eq!(origin_of(8_388_608, 8_388_608, 1e6), Some(BufferOrigin::SetByApplication), "beyond the largest");
    assert_eq!(origin_of(131_072, 131_072, 0.0), None, "no data moved, so it was not adapted");
    assert_eq!(origin_of(332_544, 332_544, 1e6), None);
}

proptest! {
    #[test]
    fn every_pair_of_samples_has_a_state(
        (busy, window, buffer) in (0_u64..2000, 0_u64..2000, 0_u64..2000),
        rate in 0.0_f64..1e11,
        (again, rtt, least_rtt) in (0_u64..1_000_000, 0.0_f64..5000.0, 0.0_f64..5000.0),
        send_window in 0_u64..1_000_000_000,
    ) {
        let case = SenderCase { rate, busy, receive_window: window, send_buffer: buffer, again, rtt, least_rtt, send_window, ..FULL_PATH };
        let limit = limit_in(&case);
        if let FlowLimit::ReceiveWindow { share: Some(share), .. } | FlowLimit::SendBuffer { share: Some(share), .. } = limit {
            prop_assert!((0.2..=1.0 + 1e-9).contains(&share.get()), "{limit:?}");
        }
    }
}
