//! Marks of the IP header on arrival: the four ECN codepoints (RFC 3168) and differentiated services (RFC 2474).

use linerate_model::direction::Direction;
use linerate_model::header_mark::HeaderMark;
use linerate_model::path::{MarkFate, PathMarks};
use linerate_units::TypeOfService;

use super::linerate::{BOTH_DIRECTIONS, PathKnowledge, index, name};
use super::mtu::{far_send_all, order, send_one};
use super::record::PathRecord;
use crate::phases::AbortReason;
use crate::probe::ProbeError;
use crate::probe::messages::{RecordDetail, SendOrder};

/// Number of ECN codepoints, which are the first of all marks.
const ECN_CODEPOINTS: usize = 4;

/// Packets of each mark, back to back, and the number of repetitions while none has arrived.
const PACKETS_PER_MARK: u64 = 2;
const MAX_ROUNDS: usize = 3;

/// Marks tested at once: their packets fit a short queue.
const MAX_CONCURRENT_MARKS: usize = 10;

/// A mark and its value on arrival.
#[derive(Clone)]
struct MarkTest {
    mark: HeaderMark,
    arrived: Option<TypeOfService>,
}

fn all() -> Vec<MarkTest> {
    HeaderMark::ALL.into_iter().map(|mark| MarkTest { mark, arrived: None }).collect()
}

pub(super) fn measure(record: &mut PathRecord<'_>, way: &PathKnowledge<'_>) -> Result<(), AbortReason> {
    for direction in BOTH_DIRECTIONS {
        let mut marks = all();
        for _ in 0..MAX_ROUNDS {
            let missing: Vec<usize> = (0..marks.len()).filter(|place| marks[*place].arrived.is_none()).collect();
            for some in missing.chunks(MAX_CONCURRENT_MARKS) {
                record.check()?;
                let tried = match direction {
                    Direction::Up => up(record, way, &mut marks, some),
                    Direction::Down => down(record, way, &mut marks, some),
                };
                if let Err(error) = tried {
                    return record.without(&[&format!("{}.marks", name(direction))], error);
                }
            }
        }
        let fates = |marks: &[MarkTest], shift: u32, mask: u8| -> Vec<MarkFate> {
            let bits = |octet: TypeOfService| octet.get() >> shift & mask;
            let fate = |mark: &MarkTest| MarkFate {
                name: mark.mark,
                sent: bits(mark.mark.octet()),
                arrived: mark.arrived.map(bits),
            };
            marks.iter().map(fate).collect()
        };
        let (ecn, classes) = marks.split_at(ECN_CODEPOINTS);
        record.direction(direction).marks = Some(PathMarks { ecn: fates(ecn, 0, 3), dscp: fates(classes, 2, 63) });
    }
    Ok(())
}

fn up(
    record: &mut PathRecord<'_>,
    way: &PathKnowledge<'_>,
    marks: &mut [MarkTest],
    some: &[usize],
) -> Result<(), ProbeError> {
    let session = way.session;
    let stream = session.new_stream();
    session.far_receive(stream, RecordDetail::Arrivals)?;
    let socket = session.socket()?;
    for place in some {
        for _ in 0..PACKETS_PER_MARK {
            send_one(session, socket, stream, *place, SendOrder::MIN_PACKET_SIZE, marks[*place].mark.octet())?;
            record.count_traffic(Direction::Up, SendOrder::MIN_PACKET_SIZE + way.headers);
        }
    }
    let _ = record.wait(drain(way, Direction::Up, some.len()));
    for packet in session.far_collect(stream)?.packets {
        if let Some(mark) = marks.get_mut(packet.sequence as usize) {
            mark.arrived = mark.arrived.or(packet.type_of_service);
        }
    }
    Ok(())
}

fn down(
    record: &mut PathRecord<'_>,
    way: &PathKnowledge<'_>,
    marks: &mut [MarkTest],
    some: &[usize],
) -> Result<(), ProbeError> {
    let orders: Vec<SendOrder> = some
        .iter()
        .map(|place| {
            order(
                way.session.new_stream(),
                SendOrder::MIN_PACKET_SIZE,
                PACKETS_PER_MARK,
                marks[*place].mark.octet(),
                false,
            )
        })
        .collect();
    let came = far_send_all(way, &orders)?;
    for (place, came) in some.iter().zip(came) {
        marks[*place].arrived = came.octet;
    }
    for _ in 0..orders.len() as u64 * PACKETS_PER_MARK {
        record.count_traffic(Direction::Down, SendOrder::MIN_PACKET_SIZE + way.headers);
    }
    Ok(())
}

/// Time after which these packets have arrived or are lost.
fn drain(way: &PathKnowledge<'_>, direction: Direction, marks: usize) -> core::time::Duration {
    let slow = linerate_units::BitRate::from_bits_per_second(200e3);
    let rate = way.train_rate[index(direction)].unwrap_or(slow);
    let bytes = (SendOrder::MIN_PACKET_SIZE + way.headers).get() * PACKETS_PER_MARK * marks as u64;
    let time = rate.time_to_send(linerate_units::ByteCount::new(bytes)).unwrap_or_default();
    time + way.round_trip / 2 + core::time::Duration::from_millis(20)
}
