//! Paths.

use linerate_documents::run::{
    ChartPanel, FigureUnit, ImprovementDirection, RunDocument, RunKind, RunResult, SampleSeries,
};
use linerate_model::direction::Direction;
use linerate_model::header_mark::HeaderMark;
use linerate_model::path::{
    CapacityMeasurement, CapacityMethod, IdleRtt, MarkFate, PacketMetrics, PathClock, PathDirection, PathDocument,
    PathHop, PathMarks, PathMtu, PeerKind, PolicerDetection, RttMethod, TcpFeature, TcpFeatures, TimeStampSource,
    UnknownValue,
};

use super::{MILLISECOND, Noise, SECOND, STARTED, complete, figure, run, span, times, unknown_figure};

fn direction(rate: f64, loss: f64) -> PathDirection {
    let fate = |name, sent, arrived| MarkFate { name, sent, arrived };
    PathDirection {
        mtu: Some(PathMtu {
            bytes: 1492,
            black_hole_bytes: Some(1493),
            icmp_bytes: None,
            interface_bytes: Some(1500),
            limited_by_interface: false,
        }),
        capacity: Some(CapacityMeasurement {
            bits_per_second: rate,
            low_bits_per_second: Some(rate * 0.99),
            high_bits_per_second: Some(rate * 1.01),
            at_least: false,
            limited_by: None,
            shared: None,
            packet_bytes: 1250,
            loss: Some(0.002),
            loss_below: None,
            packets_below: None,
            queueing_ns: Some(21 * MILLISECOND),
            sent_bytes: 12_000_000,
            duration_ns: 10 * SECOND,
            method: CapacityMethod::UdpSearch,
        }),
        packets: Some(PacketMetrics {
            sent: 1000,
            received: Some(990),
            loss: Some(loss),
            loss_low: Some(loss * 0.5),
            loss_high: Some(loss * 1.8),
            loss_episodes: Some(8),
            longest_loss_packets: Some(2),
            duplicates: Some(0),
            duplication: Some(0.0),
            reordered: Some(3),
            reordering: Some(0.003),
            reordering_extent_packets: Some(4),
            three_reordering: Some(0.001),
            one_way_delay: Some(times(26.0, 26.4, 28.0, 31.0)),
            one_way_delay_error_ns: Some(800_000),
            delay_variation: Some(times(0.0, 0.4, 2.0, 5.0)),
            ipdv_mean_ns: Some(312_000),
            spread_ns: Some(410_000),
            rfc3550_jitter_ns: Some(298_000),
            packet_bytes: 100,
            interval_ns: 10 * MILLISECOND,
            sent_bits_per_second: None,
            received_bits_per_second: None,
        }),
        marks: Some(PathMarks {
            ecn: vec![fate(HeaderMark::Ect0, 2, Some(2)), fate(HeaderMark::Ce, 3, Some(3))],
            dscp: vec![
                fate(HeaderMark::Ef, 46, Some(0)),
                fate(HeaderMark::Cs1, 8, Some(8)),
                fate(HeaderMark::Af41, 34, None),
            ],
        }),
        policer: Some(PolicerDetection {
            present: false,
            bits_per_second: None,
            burst_bytes: None,
            evidence: "12 of 12 losses came with a queue".to_owned(),
        }),
    }
}

pub(super) fn document() -> PathDocument {
    let hop = |distance, address: Option<&str>| PathHop {
        distance,
        address: address.map(str::to_owned),
        rtt: address.map(|_| times(0.3 * f64::from(distance), 0.5 * f64::from(distance), 2.0, 4.0)),
        ..PathHop::default()
    };
    let mut up = direction(10.1e6, 0.0);
    up.policer = Some(PolicerDetection {
        present: true,
        bits_per_second: Some(10e6),
        burst_bytes: Some(1_250_000),
        evidence: "loss without delay above one rate in 4 of 4 trains".to_owned(),
    });
    PathDocument {
        schema: 1,
        linerate_version: "0.1.0".to_owned(),
        host: "fra.example.net".to_owned(),
        address: Some("192.0.2.7".to_owned()),
        port: 5201,
        peer: PeerKind::Linerate,
        peer_version: Some("0.1.0".to_owned()),
        started_at_unix_ns: STARTED,
        duration_ns: 41 * SECOND,
        termination: complete(),
        traffic_bytes: Some(180_000_000),
        rtt: IdleRtt {
            best: Some(times(52.6, 53.1, 55.0, 61.0)),
            method: Some(RttMethod::Udp),
            udp: Some(times(52.6, 53.1, 55.0, 61.0)),
            tcp: Some(times(52.9, 53.6, 56.0, 64.0)),
            icmp: Some(times(52.5, 53.0, 57.0, 90.0)),
            handshake: None,
        },
        up,
        down: direction(94.1e6, 0.01),
        clock: Some(PathClock {
            offset_ns: -1_204_000,
            error_ns: 800_000,
            drift_ppm: Some(-3.1),
            time_stamps: TimeStampSource::Kernel,
        }),
        bdp_up_bytes: Some(66_406),
        bdp_down_bytes: Some(618_707),
        tcp: Some(TcpFeatures {
            send_mss_bytes: Some(1440),
            timestamps: Some(true),
            selective_acknowledgements: Some(true),
            window_scale_peer: Some(7),
            window_scale_own: Some(10),
            explicit_congestion_notification: Some(false),
            accurate_ecn: Some(false),
            syn_options_arrived: Some(vec![
                TcpFeature::WindowScale,
                TcpFeature::SelectiveAcknowledgements,
                TcpFeature::Timestamps,
            ]),
            syn_window_scale: Some(10),
            missing: vec![TcpFeature::ExplicitCongestionNotification],
        }),
        hops: vec![hop(1, Some("198.51.100.1")), hop(2, None), hop(3, Some("192.0.2.7"))],
        route: None,
        unknown: Vec::new(),
        notes: vec![
            "Packets of 1493 B and more are dropped without an ICMP error: some device on the path drops them."
                .to_owned(),
        ],
    }
}

fn probes(name: &str, direction: Option<Direction>, base: f64, seed: u64) -> SampleSeries {
    let mut noise = Noise::new(seed);
    let times_ns: Vec<u64> = (0..400).map(|n| n * 50 * MILLISECOND).collect();
    let mut value = || {
        let (spread, lost) = (noise.next(), noise.next());
        (lost > 0.01).then(|| (base + 2e6 * spread * spread * spread).round())
    };
    let values = times_ns.iter().map(|_| value()).collect();
    let panel = if direction.is_some() { ChartPanel::OneWayDelay } else { ChartPanel::Latency };
    SampleSeries {
        panel,
        name: name.to_owned(),
        direction,
        stream: None,
        unit: FigureUnit::Nanoseconds,
        times_ns,
        values,
    }
}

/// Everything is known.
pub(crate) fn path() -> RunDocument {
    let verdict = "94.1 Mbit/s down and 10.1 Mbit/s up at 53.1 ms; packets above 1492 B vanish, and a policer holds up to \
                   10 Mbit/s.";
    let result = RunResult::Path(Box::new(document()));
    let mut run = run(RunKind::Path, 41, &["path", "fra.example.net"], verdict, result);
    run.figures = vec![
        figure("capacity_down", "Capacity down", FigureUnit::BitsPerSecond, Some(94.1e6), ImprovementDirection::Higher),
        figure("capacity_up", "Capacity up", FigureUnit::BitsPerSecond, Some(10.1e6), ImprovementDirection::Higher),
        figure("rtt_idle_median", "Idle RTT", FigureUnit::Nanoseconds, Some(53.1e6), ImprovementDirection::Lower),
        figure("mtu_down", "Path MTU down", FigureUnit::Bytes, Some(1492.0), ImprovementDirection::Higher),
        figure("loss_down", "Loss down", FigureUnit::Share, Some(0.01), ImprovementDirection::Lower),
    ];
    run.series = vec![
        probes("UDP", None, 52.6e6, 1),
        probes("TCP", None, 52.9e6, 2),
        probes("UDP", Some(Direction::Up), 0.0, 3),
        probes("UDP", Some(Direction::Down), 0.0, 4),
    ];
    run.phases = vec![span("idle", 0, 20), span("capacity down", 20, 30), span("capacity up", 30, 41)];
    run
}

/// Against a host that answers pings only.
pub(crate) fn path_to_bare_host() -> RunDocument {
    let unknown = |key: &str, reason: &str| UnknownValue { key: key.to_owned(), reason: reason.to_owned() };
    let reason = "the far end answers no measurement protocol: start `linerate serve` there";
    let document = PathDocument {
        peer: PeerKind::Bare,
        peer_version: None,
        up: PathDirection { mtu: document().up.mtu, ..PathDirection::default() },
        down: PathDirection::default(),
        clock: None,
        bdp_up_bytes: None,
        bdp_down_bytes: None,
        tcp: None,
        hops: Vec::new(),
        route: None,
        traffic_bytes: None,
        rtt: IdleRtt {
            best: Some(times(52.5, 53.0, 57.0, 90.0)),
            method: Some(RttMethod::Icmp),
            icmp: Some(times(52.5, 53.0, 57.0, 90.0)),
            ..IdleRtt::default()
        },
        unknown: vec![
            unknown("up", reason),
            unknown("down", reason),
            unknown("bdp_up_bytes", "it needs the capacity up"),
            unknown("bdp_down_bytes", "it needs the capacity down"),
            unknown("down.mtu", "only the far end can send large packets this way"),
        ],
        notes: Vec::new(),
        ..document()
    };
    let verdict = "Answers in 53.0 ms; nothing more can be measured against a host without linerate.";
    let mut run = run(RunKind::Path, 12, &["path", "192.0.2.7"], verdict, RunResult::Path(Box::new(document)));
    run.figures = vec![
        figure("rtt_idle_median", "Idle RTT", FigureUnit::Nanoseconds, Some(53.0e6), ImprovementDirection::Lower),
        unknown_figure("capacity_down", "Capacity down", FigureUnit::BitsPerSecond, reason),
    ];
    run.environment.far = None;
    run
}
