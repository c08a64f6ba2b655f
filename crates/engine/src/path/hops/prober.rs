//! Rounds of probes over all flows.

use core::time::Duration;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use linerate_analysis::route_loss::ProbeCount;
use linerate_model::route::{MtuDrop, RouteChange};
use linerate_sys::error_queue::PathErrorKind;
use linerate_sys::icmp::{EchoEvent, EchoOptions, EchoSocket};
use linerate_sys::{clock, host, net};
use linerate_units::serde::nanoseconds;
use linerate_units::{MonotonicTime, PacketCount, Port};

use super::flow::{self, HopAnswer, HopFlow};
use super::labels::LabelThread;
use super::rounds::RecentRounds;
use super::tally::HopTally;
use super::{HopsSnapshot, mtu, report};
use crate::path::PathEvent;
use crate::path::record::PathRecord;
use crate::phases::AbortReason;

/// Longest path probed.
pub(super) const MOST: u8 = 30;

/// Distances probed at once while the length of the path is unknown: each beyond the destination costs it an answer.
const WINDOW: u8 = 4;

/// Silent distances in a row after which the far host itself is assumed not to answer.
const MAX_SILENT_HOPS: u8 = 5;

/// Longest wait for an answer.
pub(super) const PATIENCE: Duration = Duration::from_millis(800);

/// Time between two looks at the sockets.
const TICK: Duration = Duration::from_millis(5);

/// Hop limit of packets to the destination, as most systems have it.
pub(super) const WHOLE_PATH: u8 = 64;

/// Payload of an echo, as sent by `ping`.
const ECHO_PAYLOAD: usize = 56;

/// Changes of one hop from which on it answers from alternating addresses.
const MAX_CHANGES_PER_HOP: usize = 8;

/// State of a measurement.
pub(super) struct HopProber {
    pub(super) peer: SocketAddr,
    pub(super) run: u32,
    pub(super) flows: Vec<HopFlow>,
    /// By distance, from 1.
    pub(super) tallies: Vec<HopTally>,
    /// Probes that could reach the destination, by UDP.
    pub(super) destination: ProbeCount,
    echo: Option<EchoSocket>,
    /// Echo requests to the destination, which do not count against its limit of ICMP errors.
    pub(super) echoes: ProbeCount,
    pub(super) echo_times: Vec<Duration>,
    pub(super) echo_rounds: RecentRounds,
    /// Echo requests with hop limits, by number, and the smallest limit that was answered: the distance of a destination that
    /// answers no datagram.
    limited_echoes: BTreeMap<u64, u8>,
    pub(super) echo_end: Option<u8>,
    /// Number of routers, where it is known.
    pub(super) routers: Option<u8>,
    pub(super) rounds: u64,
    pub(super) changes: Vec<RouteChange>,
    pub(super) mtu_drops: Vec<MtuDrop>,
    /// Largest packet that leaves this host, and the largest distance up to which sizes are known.
    pub(super) mtu_known: Option<(u64, u8)>,
    pub(super) labels: Option<LabelThread>,
    /// Router that rejects packets to the destination, and its distance.
    pub(super) rejected: Option<(IpAddr, u8)>,
    failure: Option<std::io::Error>,
}

impl HopProber {
    pub(super) fn open(record: &PathRecord<'_>, peer: SocketAddr, routers: Option<u8>) -> Result<Self, String> {
        let target = &record.options.target;
        if let Some(reason) = target.unreachable_reason() {
            return Err(reason.to_owned());
        }
        let mut random = [0; 4];
        host::random_bytes(&mut random).map_err(|error| error.to_string())?;
        let run = u32::from_ne_bytes(random);
        let to = net::with_port(peer, Port::TRACEROUTE);
        let flow = |index| Ok(HopFlow::new(flow::open(record, to, index)?, run, index));
        let flows = (0..record.options.route.flows.max(1)).map(flow).collect::<Result<_, String>>()?;
        let options = EchoOptions { source: target.bind, device: target.device.clone(), ..EchoOptions::default() };
        Ok(Self {
            peer: to,
            run,
            flows,
            tallies: Vec::new(),
            destination: ProbeCount::default(),
            echo: EchoSocket::open(peer, &options).ok(),
            echoes: ProbeCount::default(),
            echo_times: Vec::new(),
            echo_rounds: RecentRounds::default(),
            limited_echoes: BTreeMap::new(),
            echo_end: None,
            routers,
            rounds: 0,
            changes: Vec::new(),
            mtu_drops: Vec::new(),
            mtu_known: None,
            labels: LabelThread::start(&record.options.route.labels),
            rejected: None,
            failure: None,
        })
    }

    /// Distance of the destination; the largest, where flows differ. `None` where it has not answered.
    pub(super) fn end(&self) -> Option<u8> {
        self.flows.iter().filter_map(|flow| flow.end).max()
    }

    pub(super) fn run(&mut self, record: &mut PathRecord<'_>) -> Result<(), AbortReason> {
        self.discover(record)?;
        if record.options.path_mtu && !self.tallies.is_empty() {
            mtu::search(self, record)?;
        }
        let (rounds, interval) = (record.options.route.rounds, record.options.route.interval);
        self.publish(record);
        let mut next = clock::monotonic_now() + interval;
        while rounds.is_none_or(|rounds| self.rounds < rounds) && !self.tallies.is_empty() {
            if self.wait(record, next, |_| false)? {
                return Ok(());
            }
            next = next + interval;
            self.round();
            self.publish(record);
        }
        let end = clock::monotonic_now() + PATIENCE;
        self.wait(record, end, |prober| !prober.flows.iter().any(|flow| flow.is_waiting(PATIENCE))).map(drop)
    }

    /// Finds the length of the path over the first flow, which is its first round.
    fn discover(&mut self, record: &PathRecord<'_>) -> Result<(), AbortReason> {
        let most = self.routers.map_or(MOST, |routers| routers.saturating_add(1).min(MOST));
        let (mut first, mut farthest) = (1, 0);
        self.send_echo();
        while first <= most && self.flows[0].end.is_none() {
            let last = most.min(first + WINDOW - 1);
            (first..=last).for_each(|distance| self.flows[0].enqueue(0, distance));
            let end = clock::monotonic_now() + PATIENCE;
            let answered = |prober: &Self| {
                let flow = &prober.flows[0];
                let last = flow.end.unwrap_or(last).min(last);
                !(first..=last).any(|distance| flow.is_in_flight(0, distance))
            };
            if self.wait(record, end, answered)? {
                break;
            }
            farthest = self.flows[0].latest.keys().max().copied().unwrap_or(0);
            if last >= farthest.saturating_add(MAX_SILENT_HOPS) && self.routers.is_none() {
                break;
            }
            first = last + 1;
        }
        self.rounds = 1;
        let end = self.flows[0].end;
        let answered = PacketCount::new(u64::from(end.is_some()));
        self.destination = ProbeCount { sent: answered, answered };
        if end.is_none() && !self.echoes.answered.is_zero() {
            self.find_by_echoes(record, farthest)?;
        }
        let length = end.unwrap_or_else(|| self.routers.map_or(farthest, |_| most.max(farthest)));
        self.tallies.truncate(length.into());
        self.tallies.resize_with(length.into(), HopTally::default);
        Ok(())
    }

    /// Finds the distance of a destination that answers echoes only.
    fn find_by_echoes(&mut self, record: &PathRecord<'_>, farthest: u8) -> Result<(), AbortReason> {
        let Some(echo) = &mut self.echo else { return Ok(()) };
        let last = farthest.saturating_add(MAX_SILENT_HOPS).saturating_add(WINDOW).min(MOST);
        for limit in farthest.saturating_add(1)..=last {
            if echo.set_hop_limit(limit).is_ok()
                && let Ok(number) = echo.send(&[0; ECHO_PAYLOAD])
            {
                self.limited_echoes.insert(number, limit);
            }
        }
        let _ = echo.set_hop_limit(WHOLE_PATH);
        self.wait(record, clock::monotonic_now() + PATIENCE, |_| false).map(drop)
    }

    /// Distance of the destination over a flow, or over another one where this one has not found it.
    fn end_of(&self, index: usize) -> Option<u8> {
        self.flows[index].end.or_else(|| self.end())
    }

    /// One probe for each hop, over the next flow.
    fn round(&mut self) {
        let round = u32::try_from(self.rounds).unwrap_or(u32::MAX);
        let count = u64::try_from(self.flows.len()).unwrap_or(1);
        let index = usize::try_from(self.rounds % count).unwrap_or(0);
        let length = u8::try_from(self.tallies.len()).unwrap_or(MOST);
        let flow = &mut self.flows[index];
        // Over this flow the path may be longer.
        let farthest = flow.latest.keys().max().map_or(0, |farthest| farthest.saturating_add(1));
        let last = flow.end.unwrap_or(length.max(farthest)).min(MOST);
        (1..=last).for_each(|distance| flow.enqueue(round, distance));
        self.send_echo();
        self.rounds += 1;
    }

    fn send_echo(&mut self) {
        if let Some(Ok(number)) = self.echo.as_mut().map(|echo| echo.send(&[0; ECHO_PAYLOAD])) {
            self.echoes.sent += PacketCount::new(1);
            self.echo_rounds.sent(number, self.rounds, clock::monotonic_now());
        }
    }

    /// Sends and takes answers until `end`, or until `done`; returns true when the user ends the phase.
    pub(super) fn wait(
        &mut self,
        record: &PathRecord<'_>,
        end: MonotonicTime,
        done: impl Fn(&Self) -> bool,
    ) -> Result<bool, AbortReason> {
        loop {
            self.look();
            let left = end.since(clock::monotonic_now());
            if left.is_zero() || done(self) {
                return record.check().map(|()| false);
            }
            record.wait(left.min(TICK))?;
            if record.is_phase_ended() {
                return Ok(true);
            }
        }
    }

    fn look(&mut self) {
        for index in 0..self.flows.len() {
            let (end, (sent, failure)) = (self.end_of(index), self.flows[index].send());
            self.failure = self.failure.take().or(failure);
            for (round, distance) in sent {
                self.tally(distance).sent(round, clock::monotonic_now());
                if end == Some(distance) {
                    self.destination.sent += PacketCount::new(1);
                }
            }
            for answer in self.flows[index].answers() {
                self.accept(index, &answer);
            }
        }
        let Some(echo) = &mut self.echo else { return };
        while let Ok(Some(event)) = echo.next_event(Some(Duration::ZERO)) {
            let EchoEvent::Reply(reply) = event else { continue };
            if let Some(limit) = self.limited_echoes.remove(&reply.number) {
                self.echo_end = Some(self.echo_end.map_or(limit, |end| end.min(limit)));
            } else if let Some(time) = reply.round_trip() {
                self.echoes.answered += PacketCount::new(1);
                self.echo_times.push(time);
                self.echo_rounds.answered(reply.number, time);
            }
        }
    }

    fn tally(&mut self, distance: u8) -> &mut HopTally {
        let place = usize::from(distance.saturating_sub(1));
        if self.tallies.len() <= place {
            self.tallies.resize_with(place + 1, HopTally::default);
        }
        &mut self.tallies[place]
    }

    fn accept(&mut self, index: usize, answer: &HopAnswer) {
        if matches!(answer.kind, PathErrorKind::TooBig { .. } | PathErrorKind::ReassemblyTimeExceeded) {
            return;
        }
        let is_destination = answer.from == self.peer.ip();
        if answer.kind != PathErrorKind::TimeExceeded || is_destination {
            self.note_end(index, answer);
            if self.flows[index].end.is_some_and(|end| answer.distance > end) {
                return;
            }
        }
        if let Some(labels) = &self.labels {
            labels.request(answer.from);
        }
        let number = u16::try_from(index).unwrap_or(u16::MAX);
        self.tally(answer.distance).answered(answer, number);
        let before = self.flows[index].latest.insert(answer.distance, answer.from);
        if let Some(before) = before.filter(|before| *before != answer.from) {
            self.changed(number, answer, before);
        }
        if self.flows[index].end == Some(answer.distance) {
            self.destination.answered += PacketCount::new(1);
        }
    }

    /// Notes the end of a flow's path: the destination, or a router that rejects the packets.
    fn note_end(&mut self, index: usize, answer: &HopAnswer) {
        let assumed = self.end_of(index);
        let flow = &mut self.flows[index];
        if flow.end.is_none_or(|end| answer.distance < end) {
            if flow.end.is_none() && assumed != Some(answer.distance) {
                // This probe was one to the destination, too.
                self.destination.sent += PacketCount::new(1);
            }
            flow.end = Some(answer.distance);
        }
        let is_host = matches!(answer.kind, PathErrorKind::PortUnreachable | PathErrorKind::ProtocolUnreachable);
        if answer.from != self.peer.ip() && !is_host {
            self.rejected = Some((answer.from, answer.distance));
        }
    }

    fn changed(&mut self, flow: u16, answer: &HopAnswer, before: IpAddr) {
        let of_hop = self.changes.iter().filter(|change| change.distance == answer.distance).count();
        if of_hop < MAX_CHANGES_PER_HOP {
            self.changes.push(RouteChange {
                at_unix_ns: nanoseconds(clock::realtime_now().since_unix_epoch()),
                distance: answer.distance,
                flow: flow.saturating_add(1),
                before: before.to_string(),
                after: answer.from.to_string(),
            });
        }
    }

    fn publish(&self, record: &mut PathRecord<'_>) {
        if record.options.only_hops {
            let (hops, route) = report::report(self, record);
            let rounds = report::rounds(self, &hops);
            record.tell(&PathEvent::Hops(Box::new(HopsSnapshot { hops, route, rounds })));
        }
    }

    /// Writes the document.
    pub(super) fn finish(&mut self, record: &mut PathRecord<'_>) {
        if let Some(labels) = &self.labels {
            labels.wait();
        }
        if self.tallies.iter().all(|tally| tally.addresses.is_empty()) {
            let silence = || "no router and not the host answers".to_owned();
            let reason = self.failure.as_ref().map_or_else(silence, |error| {
                format!("sending a probe to {}: {}", self.peer.ip(), linerate_sys::describe_os_error(error))
            });
            record.unknown("hops", reason);
            return;
        }
        self.drop_alternations(record);
        report::write(self, record);
    }

    /// Replaces the changes of hops that answer from alternating addresses by a note.
    fn drop_alternations(&mut self, record: &mut PathRecord<'_>) {
        let mut counts: BTreeMap<u8, usize> = BTreeMap::new();
        for change in &self.changes {
            *counts.entry(change.distance).or_default() += 1;
        }
        for (distance, _) in counts.into_iter().filter(|(_, count)| *count >= MAX_CHANGES_PER_HOP) {
            self.changes.retain(|change| change.distance != distance);
            record.note(format!(
                "Hop {distance} answers one flow from alternating addresses: packets are balanced one by one."
            ));
        }
    }
}
