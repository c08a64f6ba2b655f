//! Links at which the path MTU falls: packets that must not be fragmented, with hop limits.
//!
//! A router that cannot forward a packet reports the MTU of its next link (RFC 1191, RFC 8201), and with it its own
//! distance. Where packets vanish instead, those whose hop limit ends on the path show how far they come.

use core::time::Duration;
use std::collections::BTreeSet;
use std::net::IpAddr;

use linerate_model::route::MtuDrop;
use linerate_sys::clock;
use linerate_sys::data::probe_socket::{OutgoingDatagram, ProbeSocket};
use linerate_sys::error_queue::PathErrorKind;
use linerate_sys::options;
use linerate_wire::hop_probe::HopProbe;

use super::flow::HopFlow;
use super::prober::{HopProber, MOST, PATIENCE, WHOLE_PATH};
use crate::path::convert;
use crate::path::linerate::interface_mtu;
use crate::path::record::PathRecord;
use crate::phases::AbortReason;

/// Packets of one size until one is answered: hosts answer one a second.
const TRIES: u32 = 3;

/// Links at which the MTU may fall.
const MAX_DROPS: usize = 8;

/// Index in the identity of these probes, although they have the addresses and ports of the first flow.
const FLOW: u16 = u16::MAX;

/// Answer to a packet of some size.
enum SizeAnswer {
    Arrived,
    TooBig { mtu: Option<u64>, reporter: Option<IpAddr> },
    Silence,
}

/// Probes of sizes over the first flow.
struct SizeProber<'p> {
    socket: &'p ProbeSocket,
    prober: &'p HopProber,
    headers: u64,
    round: u32,
}

/// Searches the links; without answers nothing is known.
pub(super) fn search(prober: &mut HopProber, record: &PathRecord<'_>) -> Result<(), AbortReason> {
    let Some(largest) = interface_mtu(prober.peer).0.map(|mtu| u64::from(mtu.get()).min(65_535)) else { return Ok(()) };
    let Some(socket) = prober.flows.first().map(HopFlow::socket) else { return Ok(()) };
    if options::set_path_mtu_probing(socket.socket()).is_err() {
        return Ok(());
    }
    let headers = convert::headers(prober.peer).get();
    let mut sizes = SizeProber { socket, prober, headers, round: 0 };
    let mut size = largest;
    let (mut drops, mut known) = (Vec::new(), 0);
    while drops.len() < MAX_DROPS {
        match sizes.ask(record, size)? {
            SizeAnswer::Arrived => {
                known = MOST;
                break;
            }
            SizeAnswer::TooBig { mtu, reporter } => {
                let known_distance = sizes.distance(reporter);
                let after = known_distance.map_or_else(|| sizes.locate(record, size), |distance| Ok(Some(distance)))?;
                let Some(after) = after else { break };
                let to = mtu.filter(|mtu| *mtu < size);
                let reporter = reporter.map(|address| address.to_string());
                drops.push(MtuDrop { after, from_bytes: size, to_bytes: to, reporter });
                known = after;
                let Some(to) = to else { break };
                size = to;
            }
            SizeAnswer::Silence => {
                let Some(after) = sizes.farthest(record, size)? else { break };
                let to = record.document.up.mtu.as_ref().map(|mtu| mtu.bytes).filter(|mtu| *mtu < size);
                drops.push(MtuDrop { after, from_bytes: size, to_bytes: to, reporter: None });
                known = to.map_or(after, |_| MOST);
                break;
            }
        }
    }
    (prober.mtu_drops, prober.mtu_known) = (drops, (known > 0).then_some((largest, known)));
    Ok(())
}

impl SizeProber<'_> {
    fn send(&self, size: u64, distance: u8) -> bool {
        let identity = HopProbe { run: self.prober.run, round: self.round, flow: FLOW, distance };
        let length = usize::try_from(size.saturating_sub(self.headers)).unwrap_or(0).max(HopProbe::LENGTH);
        let mut payload = vec![0; length];
        payload[..HopProbe::LENGTH].copy_from_slice(&identity.encode());
        let how = OutgoingDatagram { hop_limit: Some(distance), ..OutgoingDatagram::default() };
        self.socket.send(&payload, &how).is_ok()
    }

    /// Reports on packets of this round: distance with which they were sent, kind, reporter.
    fn reports(&self) -> Vec<(Option<u8>, PathErrorKind, Option<IpAddr>)> {
        let errors = self.socket.path_errors().unwrap_or_default();
        let of_round = |error: &linerate_sys::error_queue::PathError| {
            let identity = HopProbe::parse(&error.quoted);
            let is_other = identity.is_some_and(|one| one.run != self.prober.run || one.round != self.round);
            (!is_other).then_some((identity.map(|one| one.distance), error.kind, error.reporter))
        };
        errors.iter().filter_map(of_round).collect()
    }

    /// Sends packets of this size to the destination until one is answered.
    fn ask(&mut self, record: &PathRecord<'_>, size: u64) -> Result<SizeAnswer, AbortReason> {
        for _ in 0..TRIES {
            self.round += 1;
            self.send(size, WHOLE_PATH);
            let end = clock::monotonic_now() + PATIENCE;
            while clock::monotonic_now() < end {
                record.wait(Duration::from_millis(5))?;
                for (_, kind, reporter) in self.reports() {
                    match kind {
                        PathErrorKind::TooBig { mtu } => {
                            return Ok(SizeAnswer::TooBig { mtu: mtu.map(|mtu| mtu.get().into()), reporter });
                        }
                        PathErrorKind::TimeExceeded | PathErrorKind::ReassemblyTimeExceeded => {}
                        _ => return Ok(SizeAnswer::Arrived),
                    }
                }
            }
        }
        Ok(SizeAnswer::Silence)
    }

    /// Distance of a router that has answered before; 0 for this host.
    fn distance(&self, reporter: Option<IpAddr>) -> Option<u8> {
        let Some(reporter) = reporter else { return Some(0) };
        let tallies = self.prober.tallies.iter();
        let place = tallies.enumerate().find(|(_, tally)| tally.addresses.iter().any(|one| one.address == reporter));
        place.and_then(|(index, _)| u8::try_from(index + 1).ok())
    }

    /// Distance of the router behind which packets of this size do not fit, by the smallest hop limit with which it reports.
    fn locate(&mut self, record: &PathRecord<'_>, size: u64) -> Result<Option<u8>, AbortReason> {
        self.round += 1;
        for distance in 1..=self.length() {
            self.send(size, distance);
        }
        let end = clock::monotonic_now() + PATIENCE;
        let mut smallest: Option<u8> = None;
        while clock::monotonic_now() < end {
            record.wait(Duration::from_millis(20))?;
            let too_big = |(distance, kind, _): &(Option<u8>, PathErrorKind, Option<IpAddr>)| {
                distance.filter(|_| matches!(kind, PathErrorKind::TooBig { .. }))
            };
            let found = self.reports().iter().filter_map(too_big).min();
            smallest = smallest.into_iter().chain(found).min();
        }
        Ok(smallest.map(|distance| distance.saturating_sub(1)))
    }

    fn length(&self) -> u8 {
        u8::try_from(self.prober.tallies.len()).unwrap_or(MOST)
    }

    /// Distance of the farthest hop that packets of this size reach, where hops behind it answer only smaller ones; `None`
    /// without such hops, as then it is unknown whether the size matters.
    fn farthest(&mut self, record: &PathRecord<'_>, size: u64) -> Result<Option<u8>, AbortReason> {
        let length = self.length();
        let small = self.headers + 32;
        let (mut with_size, mut with_small) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..TRIES {
            for (bytes, answered) in [(size, &mut with_size), (small, &mut with_small)] {
                self.round += 1;
                (1..=length).for_each(|distance| {
                    self.send(bytes, distance);
                });
                let end = clock::monotonic_now() + PATIENCE;
                while clock::monotonic_now() < end {
                    record.wait(Duration::from_millis(20))?;
                    let reports = self.reports().into_iter();
                    answered.extend(reports.filter_map(|(distance, ..)| distance));
                }
            }
        }
        let reached = with_size.last().copied().unwrap_or(0);
        Ok(with_small.range(reached.saturating_add(1)..).next().map(|_| reached))
    }
}
