//! What becomes of the marks in the IP header: the four ECN codepoints (RFC 3168) and differentiated services (RFC 2474).

use linerate_model::schema::path::{MarkFate, Marks};
use linerate_model::schema::throughput::Direction;
use linerate_units::{Dscp, TypeOfService};

use super::linerate::{BOTH, Way, index, name};
use super::mtu::{far_sends_all, order, send_one};
use super::record::Record;
use crate::course::Halt;
use crate::probe::ProbeError;
use crate::probe::messages::{Detail, SendOrder};

/// The ECN codepoints by their names (RFC 3168 §5).
const ECN: [(&str, u8); 4] = [("Not-ECT", 0), ("ECT(1)", 1), ("ECT(0)", 2), ("CE", 3)];

/// The codepoints that are in use on the internet (RFC 4594, RFC 8622).
const CLASSES: [&str; 15] =
    ["cs0", "le", "cs1", "af11", "cs2", "af21", "cs3", "af31", "cs4", "af41", "cs5", "va", "ef", "cs6", "cs7"];

/// Packets with each mark, one after the other; as long as none has come, they are sent so often again.
const PACKETS: u64 = 2;
const ROUNDS: usize = 3;

/// So many marks are tried at once: a short queue holds their packets.
const AT_ONCE: usize = 10;

/// One mark and what came of it.
#[derive(Clone)]
struct Mark {
    name: String,
    octet: TypeOfService,
    arrived: Option<TypeOfService>,
}

fn all() -> Vec<Mark> {
    let ecn = ECN.into_iter().map(|(name, bits)| (name.to_owned(), TypeOfService::new(bits)));
    let classes =
        CLASSES.into_iter().filter_map(|name| Some((name.to_uppercase(), Dscp::from_name(name)?.type_of_service())));
    ecn.chain(classes).map(|(name, octet)| Mark { name, octet, arrived: None }).collect()
}

pub(super) fn measure(record: &mut Record<'_>, way: &Way<'_>) -> Result<(), Halt> {
    for direction in BOTH {
        let mut marks = all();
        for _ in 0..ROUNDS {
            let missing: Vec<usize> = (0..marks.len()).filter(|place| marks[*place].arrived.is_none()).collect();
            for some in missing.chunks(AT_ONCE) {
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
        let fates = |marks: &[Mark], shift: u32, mask: u8| -> Vec<MarkFate> {
            let bits = |octet: TypeOfService| octet.get() >> shift & mask;
            let fate = |mark: &Mark| MarkFate {
                name: mark.name.clone(),
                sent: bits(mark.octet),
                arrived: mark.arrived.map(bits),
            };
            marks.iter().map(fate).collect()
        };
        let (ecn, classes) = marks.split_at(ECN.len());
        record.direction(direction).marks = Some(Marks { ecn: fates(ecn, 0, 3), dscp: fates(classes, 2, 63) });
    }
    Ok(())
}

fn up(record: &mut Record<'_>, way: &Way<'_>, marks: &mut [Mark], some: &[usize]) -> Result<(), ProbeError> {
    let session = way.session;
    let stream = session.new_stream();
    session.far_receive(stream, Detail::Arrivals)?;
    let socket = session.socket()?;
    for place in some {
        for _ in 0..PACKETS {
            send_one(session, socket, stream, *place, SendOrder::SMALLEST, marks[*place].octet)?;
            record.count_traffic(Direction::Up, SendOrder::SMALLEST + way.headers);
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

fn down(record: &mut Record<'_>, way: &Way<'_>, marks: &mut [Mark], some: &[usize]) -> Result<(), ProbeError> {
    let orders: Vec<SendOrder> = some
        .iter()
        .map(|place| order(way.session.new_stream(), SendOrder::SMALLEST, PACKETS, marks[*place].octet, false))
        .collect();
    let came = far_sends_all(way, &orders)?;
    for (place, came) in some.iter().zip(came) {
        marks[*place].arrived = came.octet;
    }
    for _ in 0..orders.len() as u64 * PACKETS {
        record.count_traffic(Direction::Down, SendOrder::SMALLEST + way.headers);
    }
    Ok(())
}

/// The time in which these packets are over.
fn drain(way: &Way<'_>, direction: Direction, marks: usize) -> core::time::Duration {
    let slow = linerate_units::BitRate::from_bits_per_second(200e3);
    let rate = way.train_rate[index(direction)].unwrap_or(slow);
    let bytes = (SendOrder::SMALLEST + way.headers).get() * PACKETS * marks as u64;
    let time = rate.time_to_send(linerate_units::ByteCount::new(bytes)).unwrap_or_default();
    time + way.round_trip / 2 + core::time::Duration::from_millis(20)
}
