//! Steps 1 and 2: the path and its derived figures.

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_analysis::formulas::{InternetProtocol, SegmentFraming};
use linerate_analysis::rfc6349::PathBottleneck;
use linerate_documents::rfc6349::Rfc6349Baseline;
use linerate_model::path::{PathDirection, PathDocument};
use linerate_model::report::Outcome;
use linerate_units::serde::nanoseconds;
use linerate_units::{BitRate, ByteCount, Mtu};

use super::Rfc6349Event;
use super::record::Rfc6349Record;
use crate::path;
use crate::phases::AbortReason;

pub(super) fn measure(record: &mut Rfc6349Record<'_>) -> Result<(), AbortReason> {
    let start = record.elapsed();
    let (options, stop) = (record.options, record.stop);
    let outcome = {
        let observer = record.observer();
        path::run(&options.path, stop, &mut |event| observer(&Rfc6349Event::Path(event.clone())))
    };
    record.phase("path".to_owned(), start);
    record.baseline = baseline(&outcome.document);
    let ended = outcome.document.termination.outcome();
    record.path = Some(outcome.document);
    record.series = outcome.series;
    record.far = outcome.far;
    (record.sent, record.received) = (outcome.sent, outcome.received);
    if let Some(error) = outcome.error {
        return Err(AbortReason::Failed(error));
    }
    if ended == Outcome::Interrupted {
        return Err(AbortReason::Interrupted);
    }
    explain_gaps(record);
    Ok(())
}

fn baseline(path: &PathDocument) -> Rfc6349Baseline {
    let rtt_ns = path.rtt.best.as_ref().map(|best| nanoseconds(best.min));
    let mut baseline = Rfc6349Baseline {
        rtt_ns,
        bandwidth_up_bits_per_second: path.up.capacity.as_ref().map(|capacity| capacity.bits_per_second),
        bandwidth_down_bits_per_second: path.down.capacity.as_ref().map(|capacity| capacity.bits_per_second),
        mtu_up_bytes: path.up.mtu.as_ref().map(|mtu| mtu.bytes),
        mtu_down_bytes: path.down.mtu.as_ref().map(|mtu| mtu.bytes),
        ..Rfc6349Baseline::default()
    };
    let of = |direction| bottleneck_of(path, direction, rtt_ns);
    let (up, down) = (of(Direction::Up), of(Direction::Down));
    baseline.bdp_up_bytes = up.map(|up| up.min_window().get());
    baseline.bdp_down_bytes = down.map(|down| down.min_window().get());
    baseline.achievable_up_bits_per_second = up.and_then(|up| up.achievable()).map(BitRate::bits_per_second);
    baseline.achievable_down_bits_per_second = down.and_then(|down| down.achievable()).map(BitRate::bits_per_second);
    baseline
}

/// Bottleneck of one direction, as far as the path is known.
pub(super) fn bottleneck(record: &Rfc6349Record<'_>, direction: Direction) -> Option<PathBottleneck> {
    bottleneck_of(record.path.as_ref()?, direction, record.baseline.rtt_ns)
}

fn bottleneck_of(path: &PathDocument, direction: Direction, rtt_ns: Option<u64>) -> Option<PathBottleneck> {
    let side: &PathDirection = match direction {
        Direction::Up => &path.up,
        Direction::Down => &path.down,
    };
    let mtu = side.mtu.as_ref().and_then(|mtu| u32::try_from(mtu.bytes).ok()).unwrap_or(1500);
    let is_ipv6 = path.address.as_ref().is_some_and(|address| address.contains(':'));
    Some(PathBottleneck {
        rate: BitRate::from_bits_per_second(side.capacity.as_ref()?.bits_per_second),
        round_trip: Duration::from_nanos(rtt_ns?),
        framing: SegmentFraming {
            mtu: Mtu::new(mtu),
            protocol: if is_ipv6 { InternetProtocol::V6 } else { InternetProtocol::V4 },
            timestamps: path.tcp.as_ref().and_then(|tcp| tcp.timestamps).unwrap_or(true),
            // The search counts IP packets.
            link: ByteCount::ZERO,
        },
    })
}

/// Explains missing expectations, which need all three figures.
fn explain_gaps(record: &mut Rfc6349Record<'_>) {
    for (direction, name) in [(Direction::Up, "up"), (Direction::Down, "down")] {
        if bottleneck(record, direction).is_none() {
            let missing = if record.baseline.rtt_ns.is_none() { "round trip" } else { "bottleneck bandwidth" };
            record.unknown(
                &format!("baseline.achievable_{name}_bits_per_second"),
                format!("the {missing} of the path is unknown (see path.unknown)"),
            );
        }
        let side = record.path.as_ref().map(|path| if name == "up" { &path.up } else { &path.down });
        let lower_bound = side.and_then(|side| side.capacity.as_ref()).is_some_and(|capacity| capacity.at_least);
        if lower_bound {
            record.note(format!(
                "The bottleneck bandwidth {name} is a lower bound: transfers may exceed the computed ideal."
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_support::{mtu, path, recorded, unknown_path, with_path};
    use super::*;

    /// Payload rate of a path: 20 bytes of TCP, 12 of time stamps, and the IP header.
    fn payload_rate(megabits: f64, mtu: f64, headers: f64) -> f64 {
        megabits * 1e6 * (mtu - headers) / mtu
    }

    #[track_caller]
    fn assert_near(found: Option<f64>, expected: f64) {
        let found = found.expect("known");
        assert!((found / expected - 1.0).abs() < 1e-9, "{found}, expected {expected}");
    }

    #[test]
    fn expectations_follow_from_rate_round_trip_and_packet_size() {
        let found = baseline(&path());
        assert_eq!(found.rtt_ns, Some(20_000_000));
        assert_eq!(
            (found.bandwidth_up_bits_per_second, found.bandwidth_down_bits_per_second),
            (Some(30e6), Some(150e6))
        );
        assert_eq!((found.mtu_up_bytes, found.mtu_down_bytes), (Some(1500), Some(1500)));
        // 30 Mbit/s for 20 ms are 75 kB.
        assert_eq!((found.bdp_up_bytes, found.bdp_down_bytes), (Some(75_000), Some(375_000)));
        assert_near(found.achievable_up_bits_per_second, payload_rate(30.0, 1500.0, 52.0));
        assert_near(found.achievable_down_bits_per_second, payload_rate(150.0, 1500.0, 52.0));
    }

    #[test]
    fn headers_are_those_of_the_family_and_of_the_agreed_options() {
        let mut six = path();
        six.address = Some("2001:db8::1".to_owned());
        assert_near(baseline(&six).achievable_up_bits_per_second, payload_rate(30.0, 1500.0, 72.0));
        let mut jumbo = path();
        jumbo.up.mtu = Some(mtu(9000));
        assert_near(baseline(&jumbo).achievable_up_bits_per_second, payload_rate(30.0, 9000.0, 52.0));
        let mut unknown = path();
        unknown.up.mtu = None;
        assert_near(baseline(&unknown).achievable_up_bits_per_second, payload_rate(30.0, 1500.0, 52.0));
        assert_eq!(baseline(&unknown).mtu_up_bytes, None, "an assumption is not a measurement");
        let mut without = path();
        without.tcp = Some(linerate_model::path::TcpFeatures {
            send_mss_bytes: None,
            timestamps: Some(false),
            selective_acknowledgements: None,
            window_scale_peer: None,
            window_scale_own: None,
            explicit_congestion_notification: None,
            accurate_ecn: None,
            syn_options_arrived: None,
            syn_window_scale: None,
            missing: Vec::new(),
        });
        assert_near(baseline(&without).achievable_up_bits_per_second, payload_rate(30.0, 1500.0, 40.0));
    }

    #[test]
    fn what_is_unknown_of_the_path_is_unknown_here() {
        assert_eq!(baseline(&unknown_path()), Rfc6349Baseline::default());
        let mut half = path();
        half.down.capacity = None;
        let found = baseline(&half);
        assert!(found.bdp_up_bytes.is_some() && found.achievable_up_bits_per_second.is_some());
        assert_eq!((found.bdp_down_bytes, found.achievable_down_bits_per_second), (None, None));
        let mut timeless = path();
        timeless.rtt.best = None;
        let found = baseline(&timeless);
        assert_eq!((found.rtt_ns, found.bdp_up_bytes, found.achievable_up_bits_per_second), (None, None, None));
        assert_eq!(found.bandwidth_up_bits_per_second, Some(30e6));
    }

    #[test]
    fn gaps_have_their_reasons_and_lower_bounds_a_note() {
        let options = super::super::test_support::options();
        let ((), outcome, _) = with_path(&options, |record| {
            let known = record.path.as_mut().expect("a path");
            known.down.capacity = None;
            known.up.capacity.as_mut().expect("known").at_least = true;
            explain_gaps(record);
        });
        let document = outcome.document;
        assert_eq!(document.unknown.len(), 1);
        assert_eq!(document.unknown[0].key, "baseline.achievable_down_bits_per_second");
        assert!(document.unknown[0].reason.starts_with("the bottleneck bandwidth of the path is unknown"));
        assert_eq!(
            document.notes,
            ["The bottleneck bandwidth up is a lower bound: transfers may exceed the computed ideal."]
        );
        let ((), outcome, _) = recorded(&options, |record| {
            record.path = Some(path());
            explain_gaps(record);
        });
        let reasons: Vec<String> = outcome.document.unknown.into_iter().map(|unknown| unknown.reason).collect();
        assert_eq!(reasons.len(), 2);
        assert!(
            reasons.iter().all(|reason| reason.starts_with("the round trip of the path is unknown")),
            "{reasons:?}"
        );
    }
}
