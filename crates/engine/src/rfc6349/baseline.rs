//! Steps 1 and 2: the path itself, and what follows from it.

use core::time::Duration;

use linerate_model::formulas::{Framing, InternetProtocol};
use linerate_model::rfc6349::Bottleneck;
use linerate_model::schema::path::{PathDirection, PathDocument};
use linerate_model::schema::rfc6349::Baseline;
use linerate_model::schema::throughput::{Direction, Outcome};
use linerate_units::{BitRate, ByteCount, Mtu};

use super::Rfc6349Event;
use super::record::Record;
use crate::course::Halt;
use crate::path;

pub(super) fn measure(record: &mut Record<'_>) -> Result<(), Halt> {
    let start = record.elapsed();
    let (options, stop) = (record.options, record.stop);
    let outcome = {
        let observer = record.observer();
        path::run(&options.path, stop, &mut |event| observer(&Rfc6349Event::Path(event.clone())))
    };
    record.phase("path".to_owned(), start);
    record.baseline = baseline(&outcome.document);
    let ended = outcome.document.termination.outcome;
    record.path = Some(outcome.document);
    record.series = outcome.series;
    record.far = outcome.far;
    (record.sent, record.received) = (outcome.sent, outcome.received);
    if let Some(error) = outcome.error {
        return Err(Halt::Failed(error));
    }
    if ended == Outcome::Interrupted {
        return Err(Halt::Interrupted);
    }
    explain_gaps(record);
    Ok(())
}

fn baseline(path: &PathDocument) -> Baseline {
    let rtt_ns = path.rtt.best.as_ref().map(|best| best.min_ns);
    let mut baseline = Baseline {
        rtt_ns,
        bandwidth_up_bits_per_second: path.up.capacity.as_ref().map(|capacity| capacity.bits_per_second),
        bandwidth_down_bits_per_second: path.down.capacity.as_ref().map(|capacity| capacity.bits_per_second),
        mtu_up_bytes: path.up.mtu.as_ref().map(|mtu| mtu.bytes),
        mtu_down_bytes: path.down.mtu.as_ref().map(|mtu| mtu.bytes),
        ..Baseline::default()
    };
    let of = |direction| bottleneck_of(path, direction, rtt_ns);
    let (up, down) = (of(Direction::Up), of(Direction::Down));
    baseline.bdp_up_bytes = up.map(|up| up.least_window().get());
    baseline.bdp_down_bytes = down.map(|down| down.least_window().get());
    baseline.achievable_up_bits_per_second = up.and_then(|up| up.achievable()).map(BitRate::bits_per_second);
    baseline.achievable_down_bits_per_second = down.and_then(|down| down.achievable()).map(BitRate::bits_per_second);
    baseline
}

/// The bottleneck of one direction, as far as the path is known.
pub(super) fn bottleneck(record: &Record<'_>, direction: Direction) -> Option<Bottleneck> {
    bottleneck_of(record.path.as_ref()?, direction, record.baseline.rtt_ns)
}

fn bottleneck_of(path: &PathDocument, direction: Direction, rtt_ns: Option<u64>) -> Option<Bottleneck> {
    let side: &PathDirection = match direction {
        Direction::Up => &path.up,
        Direction::Down => &path.down,
    };
    let mtu = side.mtu.as_ref().and_then(|mtu| u32::try_from(mtu.bytes).ok()).unwrap_or(1500);
    let is_ipv6 = path.address.as_ref().is_some_and(|address| address.contains(':'));
    Some(Bottleneck {
        rate: BitRate::from_bits_per_second(side.capacity.as_ref()?.bits_per_second),
        round_trip: Duration::from_nanos(rtt_ns?),
        framing: Framing {
            mtu: Mtu::new(mtu),
            protocol: if is_ipv6 { InternetProtocol::V6 } else { InternetProtocol::V4 },
            timestamps: path.tcp.as_ref().and_then(|tcp| tcp.timestamps).unwrap_or(true),
            // The search counts IP packets.
            link: ByteCount::ZERO,
        },
    })
}

/// Expectations need all three figures.
fn explain_gaps(record: &mut Record<'_>) {
    for (direction, name) in [(Direction::Up, "up"), (Direction::Down, "down")] {
        if bottleneck(record, direction).is_none() {
            let missing = if record.baseline.rtt_ns.is_none() { "round trip" } else { "bottleneck bandwidth" };
            record.unknown(
                &format!("baseline.achievable_{name}_bits_per_second"),
                format!("the {missing} of the path is not known (see path.unknown)"),
            );
        }
        let side = record.path.as_ref().map(|path| if name == "up" { &path.up } else { &path.down });
        let lower_bound = side.and_then(|side| side.capacity.as_ref()).is_some_and(|capacity| capacity.at_least);
        if lower_bound {
            record.note(format!(
                "The bottleneck bandwidth {name} is a lower bound: transfers may be faster than what counts as ideal."
            ));
        }
    }
}
