//! Whether a policer is on the way: what passes of a stream that is half as fast again as the capacity that was found.

use core::time::Duration;

use linerate_model::capacity::{Bound, Outcome, Packet};
use linerate_model::policer::{Finding, Otherwise, detect};
use linerate_model::schema::path::Policer;
use linerate_model::schema::throughput::Direction;
use linerate_units::{BitRate, ByteCount, PacketCount, Ratio};

use super::convert;
use super::linerate::{Way, name};
use super::record::Record;
use super::search::{full_packets, packet};
use crate::course::Halt;
use crate::probe::ProbeError;
use crate::probe::messages::{Detail, PacketRecord, SendLimit, SendOrder};

/// The stream's rate over the capacity: no whole number, for which see [`linerate_model::policer`].
const ABOVE: f64 = 1.5;

/// How long the stream is, unless that is too many packets, or too few.
const TIME: f64 = 1.0;
const LONGEST: Duration = Duration::from_secs(4);
const FEWEST: f64 = 500.0;
const MOST: f64 = 30_000.0;

/// A queue that held packets back for longer than this, and for longer than so many packets take, is no policer's.
const QUEUE: Duration = Duration::from_millis(10);
const QUEUE_PACKETS: f64 = 30.0;

pub(super) fn measure(
    record: &mut Record<'_>,
    way: &Way<'_>,
    direction: Direction,
    outcome: &Outcome,
) -> Result<(), Halt> {
    let Some(capacity) = outcome.capacity else {
        record.unknown(&format!("{}.policer", name(direction)), "no packet of the search arrived");
        return Ok(());
    };
    let packet = packet(record, way, direction);
    let verdict = match without_a_test(outcome, capacity, &packet) {
        Some(evidence) => Ok(Policer { present: false, bits_per_second: None, burst_bytes: None, evidence }),
        None => test(record, way, direction, capacity, &packet),
    };
    match verdict {
        Ok(policer) => record.direction(direction).policer = Some(policer),
        Err(error) => record.without(&[&format!("{}.policer", name(direction))], error)?,
    }
    Ok(())
}

/// What the search for the capacity says already.
fn without_a_test(outcome: &Outcome, capacity: BitRate, packet: &Packet) -> Option<String> {
    if let Bound::AtLeast(_) = outcome.bound {
        let rate = linerate_units::display::rate(capacity);
        return Some(format!("nothing held packets back up to {rate}, the highest rate that was reached"));
    }
    if outcome.loss.is_none_or(|loss| loss == Ratio::ZERO) {
        return Some("nothing was lost while more was sent than the path carries: a queue held it".to_owned());
    }
    let waited = outcome.delay_growth.map_or(Duration::ZERO, |(_, most)| most);
    let packets = packet.gap(capacity).unwrap_or_default().mul_f64(QUEUE_PACKETS);
    (waited > QUEUE.max(packets)).then(|| {
        let shown = linerate_units::display::duration(waited);
        format!("packets waited up to {shown} before any was lost: a queue, not a policer")
    })
}

fn test(
    record: &mut Record<'_>,
    way: &Way<'_>,
    direction: Direction,
    capacity: BitRate,
    packet: &Packet,
) -> Result<Policer, ProbeError> {
    let rate = capacity * ABOVE;
    let gap = packet.gap(rate).unwrap_or(LONGEST);
    let count = (TIME / gap.as_secs_f64()).clamp(FEWEST, MOST).min(LONGEST.as_secs_f64() / gap.as_secs_f64());
    let order = SendOrder {
        limit: SendLimit { count: Some(PacketCount::new(ByteCount::from_f64(count).get().max(1))), duration: None },
        ..full_packets(way.session.new_stream(), packet, rate, LONGEST)
    };
    let time = Duration::from_secs_f64(gap.as_secs_f64() * count);
    let (sent, packets, dropped) = stream(record, way, direction, order, time)?;
    record.count_traffic(direction, packet.bytes(sent));
    let found = detect(&convert::stream(sent, &packets), packet.size(), gap, dropped);
    Ok(describe(found))
}

type Streamed = (PacketCount, Vec<PacketRecord>, Option<PacketCount>);

fn stream(
    record: &Record<'_>,
    way: &Way<'_>,
    direction: Direction,
    order: SendOrder,
    time: Duration,
) -> Result<Streamed, ProbeError> {
    let session = way.session;
    let interrupted = |_: Halt| ProbeError::Interrupted;
    Ok(match direction {
        Direction::Up => {
            session.far_receive(order.stream, Detail::Arrivals)?;
            let sending = session.send(order)?;
            record.wait(time + way.patience()).map_err(interrupted)?;
            let sent = sending.stop().packets;
            let far = session.far_collect(order.stream)?;
            (sent, far.packets, far.dropped_in_host)
        }
        Direction::Down => {
            let reception = session.receive(order.stream, Detail::Arrivals)?;
            session.far_send(order)?;
            record.wait(time + way.patience()).map_err(interrupted)?;
            let sent = session.far_stop_sending(order.stream)?.packets;
            let (_, near) = reception.finish();
            (sent, near.packets, near.dropped_in_host)
        }
    })
}

fn describe(found: Finding) -> Policer {
    let none = |evidence: &str| Policer {
        present: false,
        bits_per_second: None,
        burst_bytes: None,
        evidence: evidence.to_owned(),
    };
    match found {
        Finding::Policer(policer) => Policer {
            present: true,
            bits_per_second: Some(policer.rate.bits_per_second()),
            burst_bytes: Some(policer.burst.get()),
            evidence: format!(
                "a token bucket explains which packets passed and which were lost, but for {:.1} %, and none waited",
                policer.misfits.get() * 100.0
            ),
        },
        Finding::None(Otherwise::LittleLoss) => none("too little was lost of a stream above the capacity"),
        Finding::None(Otherwise::Queue) => none("packets waited before any was lost: a queue, not a policer"),
        Finding::None(Otherwise::Irregular) => none("losses do not follow a bucket that fills at a rate"),
        Finding::None(Otherwise::Receiver) => none("the receiving host itself dropped what had arrived"),
        Finding::None(Otherwise::Unclear) => {
            none("delays vary so much that a policer could not be told from other causes")
        }
    }
}
