//! Path MTU in both directions, by packets that the far end records and packets that it sends.

use core::time::Duration;
use linerate_model::direction::Direction;
use std::net::UdpSocket;

use linerate_analysis::path_mtu::{FoundPathMtu, PathMtuSearch, PathMtuStep, RoundOutcome};
use linerate_model::path::PathMtu;
use linerate_sys::data::train::{self, DatagramMarking, SendFailure};
use linerate_sys::options;
use linerate_sys::poll::{self, PollInterest};
use linerate_units::{BitRate, ByteCount, Mtu, PacketCount, TypeOfService};
use linerate_wire::stamp::{ErrorEstimate, SenderPacket, SessionIdentifier, StampTimestamp, TimestampFormat};

use super::linerate::{BOTH_DIRECTIONS, PathKnowledge, index, interface_mtu, name};
use super::record::PathRecord;
use super::{convert, search};
use crate::phases::AbortReason;
use crate::probe::messages::{PacketSpacing, RecordDetail, SendLimit, SendOrder, StreamNumber};
use crate::probe::{ProbeError, ProbeSession};

/// UDP payload of control packets.
const CONTROL_PACKET_SIZE: ByteCount = SendOrder::MIN_PACKET_SIZE;

/// Packets of the burst by which the rate of the path is estimated.
const TRAIN: u32 = 8;

/// Longest duration of a burst on any link that it is sent to.
const BURST_TIMEOUT: Duration = Duration::from_millis(400);

/// Largest UDP payload.
const LARGEST: u32 = 65_507;

/// Reason why there is no path MTU.
pub(super) const SWITCHED_OFF: &str = "switched off (--no-mtu)";

pub(super) fn measure(record: &mut PathRecord<'_>, way: &mut PathKnowledge<'_>) -> Result<(), AbortReason> {
    if !record.options.path_mtu {
        record.add_unknown_both("mtu", SWITCHED_OFF);
        return Ok(());
    }
    let socket = way.session.socket()?;
    options::set_path_mtu_probing(socket).map_err(ProbeError::from)?;
    let found = both(record, way);
    options::unset_path_mtu_probing(socket).map_err(ProbeError::from)?;
    found?;
    for direction in BOTH_DIRECTIONS {
        match train(record, way, direction) {
            Ok(rate) => way.train_rate[index(direction)] = rate,
            Err(error) => record.without(&[], error)?,
        }
    }
    Ok(())
}

fn both(record: &mut PathRecord<'_>, way: &PathKnowledge<'_>) -> Result<(), AbortReason> {
    for direction in BOTH_DIRECTIONS {
        match search(record, way, direction) {
            Ok(found) => record.direction(direction).mtu = found,
            Err(AbortReason::Failed(error)) => record.without(&[&format!("{}.mtu", name(direction))], error)?,
            Err(halt) => return Err(halt),
        }
    }
    Ok(())
}

fn search(
    record: &mut PathRecord<'_>,
    way: &PathKnowledge<'_>,
    direction: Direction,
) -> Result<Option<PathMtu>, AbortReason> {
    let peer = way.session.peer();
    let interface = match direction {
        Direction::Up => interface_mtu(peer).0,
        Direction::Down => record.far.as_ref().and_then(|far| far.mtu),
    };
    let headers = u32::try_from(way.headers.get()).unwrap_or(u32::MAX);
    let most = Mtu::new(interface.unwrap_or(Mtu::new(1500)).get().min(LARGEST + headers));
    let control = Mtu::new(u32::try_from(CONTROL_PACKET_SIZE.get()).unwrap_or(0) + headers);
    let mut search = PathMtuSearch::new(control, most);
    if direction == Direction::Up
        && let Some(known) = known_mtu(way.session, peer, most)
    {
        search.record_hint(known);
    }
    loop {
        match search.next() {
            PathMtuStep::Found(found) => return Ok(Some(document(found, interface, most))),
            PathMtuStep::NothingArrives => {
                record.unknown(&format!("{}.mtu", name(direction)), "no packet arrived in this direction");
                return Ok(None);
            }
            PathMtuStep::Send(sizes) => {
                record.check()?;
                let outcome = match direction {
                    Direction::Up => up_round(record, way, &sizes, &mut search, most)?,
                    Direction::Down => down_round(record, way, &sizes, &mut search)?,
                };
                search.finish_round(&outcome);
            }
        }
    }
}

fn document(found: FoundPathMtu, interface: Option<Mtu>, most: Mtu) -> PathMtu {
    PathMtu {
        bytes: found.mtu.get().into(),
        black_hole_bytes: found.black_hole().map(|size| size.get().into()),
        icmp_bytes: found.icmp_mtu.map(|mtu| mtu.get().into()),
        interface_bytes: interface.map(|mtu| mtu.get().into()),
        limited_by_interface: found.mtu == most,
    }
}

/// Path MTU that this host's kernel has learnt from routers.
fn known_mtu(session: &ProbeSession, peer: std::net::SocketAddr, interface: Mtu) -> Option<Mtu> {
    let of_route = interface_mtu(peer).1;
    let of_socket = session.socket().ok().and_then(|socket| options::path_mtu(socket).ok());
    of_socket.into_iter().chain(of_route).min().filter(|mtu| *mtu < interface)
}

fn sizes_of(way: &PathKnowledge<'_>, sizes: &[Mtu]) -> Vec<ByteCount> {
    let with_controls = sizes.iter().map(|size| size.byte_count() - way.headers);
    [CONTROL_PACKET_SIZE].into_iter().chain(with_controls).chain([CONTROL_PACKET_SIZE]).collect()
}

/// Wait for packets of these sizes when the link is as slow as a modem.
pub(super) fn drain_time(way: &PathKnowledge<'_>, direction: Direction, payloads: &[ByteCount]) -> Duration {
    let total: ByteCount = payloads.iter().map(|size| *size + way.headers).sum();
    let rate = way.train_rate[index(direction)].unwrap_or(BitRate::from_bits_per_second(200e3));
    rate.time_to_send(total).unwrap_or_default() + way.round_trip / 2 + Duration::from_millis(20)
}

fn up_round(
    record: &mut PathRecord<'_>,
    way: &PathKnowledge<'_>,
    sizes: &[Mtu],
    search: &mut PathMtuSearch,
    interface: Mtu,
) -> Result<RoundOutcome, AbortReason> {
    let session = way.session;
    let stream = session.new_stream();
    session.far_receive(stream, RecordDetail::Arrivals)?;
    let socket = session.socket()?;
    let payloads = sizes_of(way, sizes);
    let mut sent = Vec::new();
    for (number, payload) in payloads.iter().enumerate() {
        if send_one(session, socket, stream, number, *payload, TypeOfService::default())? {
            record.count_traffic(Direction::Up, *payload + way.headers);
            sent.push(number);
        } else {
            search.record_refusal();
        }
    }
    record.wait(drain_time(way, Direction::Up, &payloads))?;
    let arrivals = session.far_collect(stream)?;
    if let Some(known) = known_mtu(session, session.peer(), interface) {
        search.record_hint(known);
    }
    let came = |number: usize| arrivals.packets.iter().any(|packet| packet.sequence as usize == number);
    let tried = |number: usize| sent.contains(&number);
    let of_sizes = || sizes.iter().enumerate().map(|(place, size)| (place + 1, *size));
    let controls = [0, payloads.len() - 1];
    Ok(RoundOutcome {
        sent: of_sizes().filter(|(number, _)| tried(*number)).map(|(_, size)| size).collect(),
        arrived: of_sizes().filter(|(number, _)| came(*number)).map(|(_, size)| size).collect(),
        controls_sent: PacketCount::new(2),
        controls_arrived: controls.into_iter().filter(|number| came(*number)).map(|_| PacketCount::new(1)).sum(),
    })
}

/// Sends one packet of a recorded stream from this thread; returns `true` when the kernel accepted it.
pub(super) fn send_one(
    session: &ProbeSession,
    socket: &UdpSocket,
    stream: StreamNumber,
    number: usize,
    payload: ByteCount,
    octet: TypeOfService,
) -> Result<bool, ProbeError> {
    let packet = SenderPacket {
        sequence: u32::try_from(number).unwrap_or(u32::MAX),
        timestamp: StampTimestamp::from_wall(session.clocks().now().wall, TimestampFormat::Ntp),
        error_estimate: ErrorEstimate::unknown(TimestampFormat::Ntp),
        session: SessionIdentifier::new(stream.get()),
    };
    let (datagram, mark) = (packet.encode(payload), DatagramMarking::of(socket, Some(octet)));
    let mut last = Ok(true);
    for _ in 0..4 {
        let Err(error) = train::send_datagram(socket, &datagram, mark) else { return Ok(true) };
        match SendFailure::of(&error) {
            // The error of an earlier datagram, which is reported only once.
            SendFailure::Earlier => {}
            SendFailure::TooLarge => last = Ok(false),
            SendFailure::Full | SendFailure::NoRoom => {
                poll::wait_for(socket, PollInterest::WRITE, Some(Duration::from_millis(10)))?;
            }
            SendFailure::Broken => return Err(ProbeError::io("sending a probe", &error)),
        }
    }
    last
}

fn down_round(
    record: &mut PathRecord<'_>,
    way: &PathKnowledge<'_>,
    sizes: &[Mtu],
    search: &mut PathMtuSearch,
) -> Result<RoundOutcome, AbortReason> {
    let payloads: Vec<(ByteCount, u64)> =
        sizes.iter().map(|size| (size.byte_count() - way.headers, 1)).chain([(CONTROL_PACKET_SIZE, 2)]).collect();
    let came = far_sends(way, &payloads, TypeOfService::default(), true)?;
    let all: Vec<ByteCount> = payloads.iter().map(|(size, _)| *size).collect();
    record.count_traffic(Direction::Down, all.iter().map(|size| *size + way.headers).sum());
    let (control, of_sizes) =
        came.split_last().map_or((ProbeArrival::default(), &came[..]), |(last, rest)| (*last, rest));
    if of_sizes.iter().any(|came| came.refused) {
        search.record_refusal();
    }
    if of_sizes.iter().any(|came| came.packets == 0)
        && let Some(told) = far_kernel_mtu(record, way)?
    {
        search.record_hint(told);
    }
    let tried = || sizes.iter().copied().zip(of_sizes);
    Ok(RoundOutcome {
        // A size that the far kernel refuses counts as tried: a router has reported that it does not fit.
        sent: sizes.to_vec(),
        arrived: tried().filter(|(_, came)| came.packets > 0).map(|(size, _)| size).collect(),
        controls_sent: PacketCount::new(2),
        controls_arrived: PacketCount::new(control.packets),
    })
}

/// Path MTU that the far kernel has learnt from routers, by the control connection over the same path. The kernel
/// updates it when it sends there, so the second answer is used.
fn far_kernel_mtu(record: &PathRecord<'_>, way: &PathKnowledge<'_>) -> Result<Option<Mtu>, ProbeError> {
    way.session.facts()?;
    let facts = way.session.facts()?;
    let of_path = facts.control.and_then(|info| info.path_mtu);
    let interface = record.far.as_ref().and_then(|far| far.mtu);
    Ok(of_path.filter(|mtu| interface.is_some_and(|interface| *mtu < interface)))
}

/// Result of a small stream from the far end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeArrival {
    /// Number of packets.
    pub(super) packets: u64,
    /// The octet of the first.
    pub(super) octet: Option<TypeOfService>,
    /// True when the far kernel refused a packet as too large.
    pub(super) refused: bool,
}

/// Has the far end send packets of each of these sizes at once.
fn far_sends(
    way: &PathKnowledge<'_>,
    payloads: &[(ByteCount, u64)],
    octet: TypeOfService,
    dont_fragment: bool,
) -> Result<Vec<ProbeArrival>, ProbeError> {
    let orders: Vec<SendOrder> = payloads
        .iter()
        .map(|(size, count)| order(way.session.new_stream(), *size, *count, octet, dont_fragment))
        .collect();
    far_send_all(way, &orders)
}

pub(super) fn order(
    stream: StreamNumber,
    size: ByteCount,
    count: u64,
    octet: TypeOfService,
    dont_fragment: bool,
) -> SendOrder {
    SendOrder {
        stream,
        size,
        // The gap between two control packets fits a large packet on a fast link.
        rate: BitRate::from_bits_per_second(size.as_f64() * 8.0 / 0.002),
        spacing: PacketSpacing::Periodic,
        limit: SendLimit { count: Some(PacketCount::new(count)), duration: None },
        type_of_service: octet,
        dont_fragment,
    }
}

/// Carries out several orders at the far end concurrently; returns the result of each.
pub(super) fn far_send_all(way: &PathKnowledge<'_>, orders: &[SendOrder]) -> Result<Vec<ProbeArrival>, ProbeError> {
    let session = way.session;
    let payloads: Vec<ByteCount> = orders.iter().map(|order| order.size).collect();
    let patience = drain_time(way, Direction::Down, &payloads) + way.round_trip;
    let one = |order: &SendOrder| -> Result<ProbeArrival, ProbeError> {
        let reception = session.receive(order.stream, RecordDetail::Arrivals)?;
        session.far_send(*order)?;
        let sent = session.far_wait_sent(order.stream, patience.max(Duration::from_secs(1)))?;
        linerate_sys::clock::sleep_until(linerate_sys::clock::monotonic_now() + patience);
        let (_, arrivals) = reception.finish();
        Ok(ProbeArrival {
            packets: arrivals.packets.len() as u64,
            octet: arrivals.packets.first().and_then(|packet| packet.type_of_service),
            refused: sent.is_some_and(|sent| !sent.refused_too_large.is_zero()),
        })
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = orders.iter().map(|order| scope.spawn(move || one(order))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(Err(ProbeError::Interrupted))).collect()
    })
}

/// Receive rate of a short burst of full packets: an upper bound of the capacity where a token bucket lets a burst
/// pass. `None` when too few arrive.
fn train(
    record: &mut PathRecord<'_>,
    way: &PathKnowledge<'_>,
    direction: Direction,
) -> Result<Option<BitRate>, ProbeError> {
    let session = way.session;
    let size = way.mtu(record, direction).byte_count().min(search::LARGEST) - way.headers;
    let stream = session.new_stream();
    let order = SendOrder {
        stream,
        size,
        rate: BitRate::from_bits_per_second(SendOrder::MAX_BITS_PER_SECOND / 10.0),
        spacing: PacketSpacing::Periodic,
        limit: SendLimit { count: Some(PacketCount::new(TRAIN.into())), duration: None },
        type_of_service: TypeOfService::default(),
        dont_fragment: true,
    };
    record.count_traffic(direction, ByteCount::new((size + way.headers).get() * u64::from(TRAIN)));
    let patience = way.round_trip + BURST_TIMEOUT;
    let packets = match direction {
        Direction::Up => {
            session.far_receive(stream, RecordDetail::Arrivals)?;
            let _ = session.send(order)?.wait();
            linerate_sys::clock::sleep_until(linerate_sys::clock::monotonic_now() + patience);
            session.far_collect(stream)?.packets
        }
        Direction::Down => {
            let reception = session.receive(stream, RecordDetail::Arrivals)?;
            session.far_send(order)?;
            linerate_sys::clock::sleep_until(linerate_sys::clock::monotonic_now() + patience);
            session.far_stop_sending(stream)?;
            reception.finish().1.packets
        }
    };
    let (Some(first), Some(last)) = (packets.first(), packets.last()) else { return Ok(None) };
    let time = convert::to_monotonic(last.arrived).since(convert::to_monotonic(first.arrived));
    let bytes = ByteCount::new((size + way.headers).get() * (packets.len() as u64 - 1));
    Ok(Some(bytes.rate_over(time)).filter(|rate| !rate.is_zero()))
}
