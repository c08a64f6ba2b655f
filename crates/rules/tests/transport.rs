//! Verdicts of the comparison of TCP and QUIC: for each, a case in which it applies and one next to it.

use core::time::Duration;

use linerate_model::direction::Direction;
use linerate_model::quic::{QuicCongestionControl, QuicEnd, QuicRun, TransportCause};
use linerate_model::summary::DurationDistribution;
use linerate_rules::transport::{self, TcpFigures, TransportObservation, verdict};
use linerate_units::{BitRate, Port, Ratio};

/// QUIC that carries that share of TCP's 1 Gbit/s, and nothing that explains it.
fn case(share: f64) -> TransportObservation {
    let bits = 1e9 * share;
    let bytes = BitRate::from_bits_per_second(bits) * Duration::from_secs(8);
    let end = QuicEnd {
        bytes: bytes.get(),
        duration: Duration::from_secs(8),
        sent_packets: 1_000_000,
        thread_cpu: Duration::from_secs(1),
        thread_wait: Some(Duration::ZERO),
        receive_buffer_bytes: Some(425_984),
        buffer_drops: Some(0),
        ..QuicEnd::default()
    };
    let sender = QuicEnd {
        lost_packets: Some(0),
        congestion_control: Some(QuicCongestionControl::Cubic),
        rtt: DurationDistribution::of(&mut [Duration::from_millis(20)]),
        ..end.clone()
    };
    TransportObservation {
        direction: Some(Direction::Up),
        port: Port::new(4433).expect("not zero"),
        tcp: Some(TcpFigures {
            rate: BitRate::from_bits_per_second(1e9),
            retransmitted: Ratio::new(0.0001),
            loaded_rtt: Some(Duration::from_millis(20)),
            congestion_control: Some("cubic".to_owned()),
        }),
        quic: Some(QuicRun {
            interrupted: false,
            direction: Direction::Up,
            streams: 1,
            started_at_unix_ns: 0,
            client: sender,
            server: end,
        }),
        unanswered: false,
    }
}

fn changed(share: f64, change: impl FnOnce(&mut QuicRun, &mut TcpFigures)) -> TransportObservation {
    let mut observation = case(share);
    change(observation.quic.as_mut().expect("a run"), observation.tcp.as_mut().expect("a run"));
    observation
}

/// For each rule, a case in which it decides and one next to it in which it does not apply.
fn cases() -> Vec<(TransportCause, TransportObservation, TransportObservation)> {
    let unanswered = TransportObservation { unanswered: true, quic: None, direction: None, ..case(1.0) };
    let away = TransportObservation { tcp: None, ..unanswered.clone() };
    let drops = |drops: u64, lost: u64| {
        changed(0.5, |quic, _| {
            quic.server.buffer_drops = Some(drops);
            quic.client.lost_packets = Some(lost);
        })
    };
    let busy =
        |share: f64, seconds: f64| changed(share, |quic, _| quic.server.thread_cpu = Duration::from_secs_f64(seconds));
    let lost = |share: f64, lost: u64| changed(share, |quic, _| quic.client.lost_packets = Some(lost));
    vec![
        (TransportCause::UdpBlocked, unanswered, away),
        (TransportCause::UdpBufferSmall, drops(900, 1000), drops(10, 1000)),
        (TransportCause::ProcessorBound, busy(0.5, 7.9), busy(0.95, 7.9)),
        (TransportCause::UdpThrottled, lost(0.5, 20_000), lost(0.5, 100)),
        (TransportCause::SlowerUnexplained, case(0.8), case(0.95)),
        (TransportCause::QuicFaster, case(1.5), case(1.05)),
        (TransportCause::Same, case(0.95), case(1.5)),
    ]
}

#[test]
fn each_rule_has_a_case_that_fires_and_one_that_does_not() {
    for (cause, fires, silent) in cases() {
        let verdict = verdict(&fires).expect("a verdict");
        assert_eq!(verdict.cause, cause, "{verdict:?}");
        assert!(verdict.text.len() > 30 && !verdict.text.ends_with('.'), "{verdict:?}");
        let other = transport::verdict(&silent).map(|verdict| verdict.cause);
        assert_ne!(other, Some(cause), "{silent:?}");
    }
}

#[test]
fn a_queue_of_its_own_is_a_limit_of_udp() {
    let observation = changed(0.5, |quic, _| {
        quic.client.rtt = DurationDistribution::of(&mut [Duration::from_millis(120)]);
    });
    let verdict = verdict(&observation).expect("a verdict");
    assert_eq!(verdict.cause, TransportCause::UdpThrottled);
    assert!(verdict.text.contains("a round trip of 120 ms instead of 20.0 ms"), "{}", verdict.text);
}

#[test]
fn a_thread_that_waits_for_its_processor_is_no_limit_of_udp() {
    let observation = changed(0.3, |quic, _| {
        quic.client.rtt = DurationDistribution::of(&mut [Duration::from_millis(120)]);
        quic.client.lost_packets = Some(20_000);
        quic.server.thread_wait = Some(Duration::from_millis(6500));
    });
    let verdict = verdict(&observation).expect("a verdict");
    assert_eq!(verdict.cause, TransportCause::ProcessorBound);
    assert!(verdict.text.ends_with("the receiving host waits for a processor 81 % of the time"), "{}", verdict.text);
    assert!(verdict.remedy.is_some_and(|remedy| remedy.starts_with("stop other programs on the receiving host")));
}

#[test]
fn round_trips_through_waiting_threads_are_no_queue_of_the_path() {
    // Both threads wait for a part of each round trip, and neither for all of it.
    for (wait, cause) in [(3, TransportCause::SlowerUnexplained), (0, TransportCause::UdpThrottled)] {
        let observation = changed(0.5, |quic, _| {
            quic.client.rtt = DurationDistribution::of(&mut [Duration::from_millis(80)]);
            quic.client.thread_wait = Some(Duration::from_secs(wait));
            quic.server.thread_wait = Some(Duration::from_secs(wait));
        });
        assert_eq!(verdict(&observation).map(|verdict| verdict.cause), Some(cause), "{wait} s");
    }
}

#[test]
fn drops_at_the_receiving_host_are_not_those_of_the_path() {
    for (drops, cause) in [(9_000, TransportCause::UdpThrottled), (19_900, TransportCause::UdpBufferSmall)] {
        let observation = changed(0.5, |quic, _| {
            quic.client.lost_packets = Some(20_000);
            quic.server.buffer_drops = Some(drops);
        });
        assert_eq!(verdict(&observation).map(|verdict| verdict.cause), Some(cause), "{drops}");
    }
}

#[test]
fn losses_that_tcp_has_too_are_no_limit_of_udp() {
    let observation = changed(0.5, |quic, tcp| {
        quic.client.lost_packets = Some(20_000);
        tcp.retransmitted = Ratio::new(0.018);
    });
    assert_eq!(verdict(&observation).map(|verdict| verdict.cause), Some(TransportCause::SlowerUnexplained));
}

#[test]
fn the_text_has_both_rates() {
    let verdict = verdict(&case(0.8)).expect("a verdict");
    assert!(verdict.text.starts_with("QUIC carries 800 Mbit/s up, TCP 1.00 Gbit/s"), "{}", verdict.text);
    let other = changed(0.8, |_, tcp| tcp.congestion_control = Some("bbr".to_owned()));
    let verdict = transport::verdict(&other).expect("a verdict");
    assert!(verdict.text.contains("cubic instead of bbr"), "{}", verdict.text);
    assert_eq!(verdict.remedy.as_deref(), Some("repeat with the same one for both (-C cubic), and longer (-t 30s)"));
}

#[test]
fn one_transport_alone_has_no_verdict() {
    assert_eq!(verdict(&TransportObservation { quic: None, ..case(1.0) }), None);
    assert_eq!(verdict(&TransportObservation { tcp: None, ..case(1.0) }), None);
}
