//! Document of the hops.

use core::time::Duration;

use linerate_analysis::route_loss::{HopLossKind, ProbeCount, locate_loss};
use linerate_documents::run::{ChartPanel, FigureUnit, SampleSeries};
use linerate_model::route::{HopAddress, HopReplies, PathHop, RouteReport};
use linerate_sys::clock;
use linerate_units::serde::nanoseconds;
use linerate_units::{CompactSort, PacketCount, Ratio};

use super::prober::{HopProber, PATIENCE};
use super::rounds::HopRound;
use super::tally::HopTally;
use crate::path::convert;
use crate::path::record::PathRecord;

/// Writes hops, route and notes.
pub(super) fn write(prober: &HopProber, record: &mut PathRecord<'_>) {
    let (mut hops, route) = report(prober, record);
    if prober.end().or(prober.echo_end).is_none() {
        beyond(prober, record, &mut hops);
    }
    if let Some((router, distance)) = prober.rejected {
        record.note(format!("Hop {distance} ({router}) rejects packets to the host: the path ends there."));
    }
    if record.options.only_hops {
        record.document.rtt.icmp = convert::distribution(&prober.echo_times);
        series(prober, record);
    }
    record.document.hops = hops;
    record.document.route = Some(route);
}

/// The destination that does not answer.
fn beyond(prober: &HopProber, record: &mut PathRecord<'_>, hops: &mut Vec<PathHop>) {
    let Some(routers) = prober.routers else {
        record.note("Beyond the last hop shown no answer arrived, not even from the host.");
        return;
    };
    hops.truncate(routers.into());
    hops.push(PathHop {
        distance: routers.saturating_add(1),
        address: Some(prober.peer.ip().to_string()),
        rtt: record.document.rtt.best,
        ..PathHop::default()
    });
}

/// Hops and route so far.
pub(super) fn report(prober: &HopProber, record: &PathRecord<'_>) -> (Vec<PathHop>, RouteReport) {
    let end = prober.end();
    let farthest = prober.tallies.iter().rposition(|tally| !tally.addresses.is_empty()).map_or(0, |last| last + 1);
    let length = end.map_or(farthest, usize::from).min(prober.tallies.len());
    let destination = destination(prober);
    let mut counts: Vec<ProbeCount> = (0..length).map(|index| settled(prober, index)).collect();
    let by_echo = prober.echo_end.filter(|_| end.is_none());
    // Between the last router that answers and a destination that answers echoes only there may be silent ones.
    let routers = by_echo.map_or(length - usize::from(end.is_some()).min(length), |end| usize::from(end) - 1);
    counts.resize(routers.max(length), ProbeCount::default());
    let loss = locate_loss(&counts[..routers], destination);
    let silent = HopTally::default();
    let mut hops = Vec::new();
    for (index, count) in counts.iter().enumerate() {
        let kind = loss.hops.get(index).copied();
        let replies = kind.map_or_else(|| of_destination(*count, destination), replies);
        hops.push(hop(prober, index, prober.tallies.get(index).unwrap_or(&silent), *count, replies));
    }
    hops.extend(by_echo.map(|distance| echoing_destination(prober, distance)));
    let interval = destination.and_then(ProbeCount::interval);
    let route = RouteReport {
        flows: record.options.route.flows.max(1),
        rounds: prober.rounds,
        interval_ns: nanoseconds(record.options.route.interval),
        is_reached: by_echo.is_some() || end.is_some() && prober.rejected.is_none(),
        loss: destination.and_then(ProbeCount::unanswered).map(Ratio::get),
        loss_low: interval.map(|interval| interval.low.get()),
        loss_high: interval.map(|interval| interval.high.get()),
        loss_from: loss.begins_at.and_then(|index| u8::try_from(index + 1).ok()),
        mtu_drops: prober.mtu_drops.clone(),
        changes: prober.changes.clone(),
    };
    (hops, route)
}

/// Latest results of each hop.
pub(super) fn rounds(prober: &HopProber, hops: &[PathHop]) -> Vec<Vec<HopRound>> {
    let by_echo = prober.echo_end.filter(|_| prober.end().is_none());
    let now = clock::monotonic_now();
    let of = |hop: &PathHop| match prober.tallies.get(usize::from(hop.distance).saturating_sub(1)) {
        _ if by_echo == Some(hop.distance) => prober.echo_rounds.settled(now),
        tally => tally.map(|tally| tally.rounds.settled(now)).unwrap_or_default(),
    };
    hops.iter().map(of).collect()
}

/// Destination that answers echoes only.
fn echoing_destination(prober: &HopProber, distance: u8) -> PathHop {
    let count = settle(prober.echoes, 1);
    let address = prober.peer.ip();
    let label = prober.labels.as_ref().and_then(|labels| labels.of(address)).unwrap_or_default();
    PathHop {
        distance,
        address: Some(address.to_string()),
        rtt: convert::distribution(&prober.echo_times),
        sent: Some(count.sent.get()),
        answered: Some(count.answered.get()),
        unanswered: count.unanswered().map(Ratio::get),
        replies: Some(if count.answered >= count.sent { HopReplies::Complete } else { HopReplies::Lossy }),
        last_ns: prober.echo_times.last().copied().map(nanoseconds),
        jitter_ns: None,
        mtu_bytes: mtu(prober, distance),
        addresses: vec![HopAddress {
            address: address.to_string(),
            name: label.name,
            autonomous_system: label.autonomous_system,
            answers: count.answered.get(),
            ..HopAddress::default()
        }],
    }
}

/// Probes of a hop without those whose answers may still come.
fn settled(prober: &HopProber, index: usize) -> ProbeCount {
    let pending: usize = prober
        .flows
        .iter()
        .map(|flow| flow.pending(PATIENCE).filter(|distance| usize::from(*distance) == index + 1).count())
        .sum();
    settle(prober.tallies[index].count, u64::try_from(pending).unwrap_or(0))
}

/// Probes without those whose answers may still come.
fn settle(count: ProbeCount, pending: u64) -> ProbeCount {
    let open = count.sent - count.answered.min(count.sent);
    ProbeCount { sent: count.sent - PacketCount::new(pending).min(open), ..count }
}

/// Probes to the destination and back: the method with less loss, as each answer shows that the path passes packets. `None`
/// without any.
fn destination(prober: &HopProber) -> Option<ProbeCount> {
    let in_flight: usize = prober
        .flows
        .iter()
        .map(|flow| flow.pending(PATIENCE).filter(|distance| flow.end == Some(*distance)).count())
        .sum();
    let datagrams = settle(prober.destination, u64::try_from(in_flight).unwrap_or(0));
    // The last echo may still be answered.
    let echoes = settle(prober.echoes, 1);
    let loss = |count: &ProbeCount| count.unanswered().map_or(1.0, Ratio::get);
    // A router that rejects datagrams answers in the destination's place.
    let datagrams = Some(datagrams).filter(|_| prober.rejected.is_none());
    let known = datagrams.into_iter().chain([echoes]).filter(|count| !count.answered.is_zero());
    known.min_by(|one, other| loss(one).total_cmp(&loss(other)))
}

/// Meaning of the destination's own unanswered probes.
fn of_destination(count: ProbeCount, destination: Option<ProbeCount>) -> HopReplies {
    let lost = |count: ProbeCount| count.unanswered().map_or(0.0, Ratio::get);
    match destination {
        _ if count.answered.is_zero() => HopReplies::Silent,
        _ if count.answered >= count.sent => HopReplies::Complete,
        Some(destination) if lost(destination) > 0.0 && lost(count) <= 2.0 * lost(destination) => HopReplies::Lossy,
        _ => HopReplies::Limited,
    }
}

const fn replies(kind: HopLossKind) -> HopReplies {
    match kind {
        HopLossKind::None => HopReplies::Complete,
        HopLossKind::OwnLimit => HopReplies::Limited,
        HopLossKind::Persistent => HopReplies::Lossy,
        HopLossKind::Undecided => HopReplies::Undecided,
        HopLossKind::Silent => HopReplies::Silent,
    }
}

fn hop(prober: &HopProber, index: usize, tally: &HopTally, count: ProbeCount, replies: HopReplies) -> PathHop {
    let distance = u8::try_from(index + 1).unwrap_or(u8::MAX);
    let sent = (!count.sent.is_zero()).then(|| count.sent.get());
    let mut addresses: Vec<HopAddress> = tally
        .addresses
        .iter()
        .map(|one| {
            let label = prober.labels.as_ref().and_then(|labels| labels.of(one.address)).unwrap_or_default();
            HopAddress {
                address: one.address.to_string(),
                name: label.name,
                autonomous_system: label.autonomous_system,
                flows: one.flows.iter().map(|flow| flow + 1).collect(),
                answers: one.answers,
                mpls: one.labels.clone(),
            }
        })
        .collect();
    addresses.sort_by(|one, other| other.answers.cmp(&one.answers).then_with(|| one.address.cmp(&other.address)));
    PathHop {
        distance,
        address: addresses.first().map(|one| one.address.clone()),
        rtt: convert::distribution(&tally.round_trips()),
        sent,
        answered: sent.map(|_| count.answered.get()),
        unanswered: count.unanswered().map(Ratio::get),
        replies: Some(replies),
        last_ns: tally.last_ns(),
        jitter_ns: tally.jitter_ns(),
        mtu_bytes: mtu(prober, distance),
        addresses,
    }
}

/// Largest packet that reaches a distance.
fn mtu(prober: &HopProber, distance: u8) -> Option<u64> {
    let (largest, known) = prober.mtu_known?;
    let last = prober.mtu_drops.iter().rfind(|drop| drop.after < distance);
    (distance <= known).then_some(())?;
    last.map_or(Some(largest), |drop| drop.to_bytes)
}

/// Round trips of each hop over time.
fn series(prober: &HopProber, record: &mut PathRecord<'_>) {
    for (index, tally) in prober.tallies.iter().enumerate().filter(|(_, tally)| !tally.samples.is_empty()) {
        let address = tally.addresses.first().map(|one| one.address.to_string()).unwrap_or_default();
        let started = record.started;
        let mut samples: Vec<(u64, Duration)> =
            tally.samples.iter().map(|(at, time)| (nanoseconds(at.since(started)), *time)).collect();
        samples.sort_compactly_by_key(|(at, _)| *at);
        record.series.push(SampleSeries {
            panel: ChartPanel::Latency,
            name: format!("hop {} {address}", index + 1),
            direction: None,
            stream: None,
            unit: FigureUnit::Nanoseconds,
            times_ns: samples.iter().map(|(at, _)| *at).collect(),
            values: samples.iter().map(|(_, time)| Some(time.as_secs_f64() * 1e9)).collect(),
        });
    }
}
