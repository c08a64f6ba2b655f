//! Tables of a measured path.

use core::time::Duration;

use linerate_model::header_mark::HeaderMark;
use linerate_model::path::{
    CapacityMeasurement, IdleRtt, MarkFate, PacketMetrics, PathDirection, PathDocument, PathMtu, PeerKind, TcpFeature,
    TcpFeatures, TimeStampSource,
};
use linerate_model::summary::DurationDistribution;

use super::{route, yes_or_no};
use crate::presentation::reasons::UnknownReasons;
use crate::presentation::{Presentation, Quantity, ReportTable, TableCell};
use crate::sentence::path::codepoint;

/// Headings of the cells of [`distribution`].
pub(crate) const DISTRIBUTION_COLUMNS: [&str; 8] = ["Method", "min", "median", "mean", "p95", "p99", "max", "Samples"];

pub(super) fn complete(presentation: &mut Presentation<'_>, document: &PathDocument) {
    presentation.charts.extend(route::chart(document));
    presentation.tables.extend(tables(document));
    presentation.notes.extend(document.notes.iter().cloned());
    presentation.notes.extend(peer_note(document).filter(|_| !document.is_route_only()));
}

/// All tables of a path; the procedure of RFC 6349 begins with the same ones.
pub(super) fn tables(document: &PathDocument) -> Vec<ReportTable> {
    if document.is_route_only() {
        return [route::table(document), route::mtu_table(document)].into_iter().flatten().collect();
    }
    let reasons = UnknownReasons::of(&document.unknown);
    let tables = [
        Some(directions(document, reasons)).filter(|_| !document.is_stream_only()),
        Some(packets(document, reasons)),
        idle(&document.rtt),
        marks(document),
        clock(document),
        document.tcp.as_ref().map(tcp),
        route::table(document),
        route::mtu_table(document),
    ];
    tables.into_iter().flatten().collect()
}

/// Table of a path that belongs in other reports; the document has all of them.
pub(super) fn direction_table(document: &PathDocument) -> Option<ReportTable> {
    directions(document, UnknownReasons::of(&document.unknown)).non_empty()
}

fn peer_note(document: &PathDocument) -> Option<String> {
    let note = match document.peer {
        PeerKind::Stamp if document.is_stream_only() => {
            "The far end is a STAMP reflector, which returns each packet: as much came down as went up."
        }
        PeerKind::Bare if document.is_stream_only() => return None,
        PeerKind::Linerate => return None,
        PeerKind::Iperf3 => "The far end is an iperf3 server: figures that need linerate there are unknown.",
        PeerKind::Stamp => "The far end is a STAMP reflector: figures that need linerate there are unknown.",
        PeerKind::StampSender => "The far end only sent: figures of the other direction and round trips are unknown.",
        PeerKind::Bare | PeerKind::Http => {
            "The far end answers no measurement protocol: only figures available from any host are known."
        }
    };
    Some(note.to_owned())
}

/// The cells of one distribution of times.
pub(crate) fn distribution(times: &DurationDistribution) -> Vec<TableCell> {
    let [min, median, mean, p95, p99, max] = [times.min, times.median, times.mean, times.p95, times.p99, times.max]
        .map(|time| TableCell::Value(Quantity::duration(time)));
    vec![min, median, mean, p95, p99, max, TableCell::Value(Quantity::count(times.count))]
}

/// A table with one row for each metric and one column for each direction.
struct DirectionTable<'a> {
    table: ReportTable,
    document: &'a PathDocument,
    reasons: UnknownReasons<'a>,
}

impl<'a> DirectionTable<'a> {
    fn new(name: &str, title: &str, document: &'a PathDocument, reasons: UnknownReasons<'a>) -> Self {
        Self { table: ReportTable::new(name, title, &["Metric", "Up", "Down"]), document, reasons }
    }

    fn cells(&mut self, label: &str, key: &str, of: impl Fn(&PathDirection) -> Option<TableCell>) {
        let ends = [("up", &self.document.up), ("down", &self.document.down)];
        let cells = ends.map(|(name, end)| of(end).unwrap_or_else(|| self.reasons.unknown(&format!("{name}.{key}"))));
        self.table.push_row(label, cells.into());
    }

    fn quantity(&mut self, label: &str, key: &str, of: impl Fn(&PathDirection) -> Option<Quantity>) {
        self.cells(label, key, |end| of(end).map(TableCell::Value));
    }

    fn packet(&mut self, label: &str, key: &str, of: impl Fn(&PacketMetrics) -> Option<Quantity>) {
        self.quantity(label, &format!("packets.{key}"), |end| end.packets.as_ref().and_then(&of));
    }
}

fn directions(document: &PathDocument, reasons: UnknownReasons<'_>) -> ReportTable {
    let mut both = DirectionTable::new("directions", "The path in each direction", document, reasons);
    both.cells("Path MTU", "mtu", |end| end.mtu.as_ref().map(mtu));
    both.cells("Capacity", "capacity", |end| end.capacity.as_ref().map(capacity));
    both.cells("Method", "capacity", |end| {
        end.capacity.as_ref().map(|capacity| TableCell::text(capacity.method.to_string()))
    });
    both.quantity("Queueing during the search", "capacity.queueing_ns", |end| {
        end.capacity.as_ref()?.queueing_ns.map(Quantity::nanoseconds)
    });
    both.cells("Policer", "policer", |end| end.policer.as_ref().map(policer));
    let product = |key: &str, bytes: Option<u64>| reasons.cell(key, bytes.map(Quantity::bytes));
    let products = [("bdp_up_bytes", document.bdp_up_bytes), ("bdp_down_bytes", document.bdp_down_bytes)];
    both.table.push_row("Bandwidth-delay product", products.map(|(key, bytes)| product(key, bytes)).into());
    both.table.note = document.traffic_bytes.map(|bytes| {
        format!(
            "The measurement itself sent {} over the path, both directions together.",
            Quantity::bytes(bytes).display_text()
        )
    });
    both.table
}

fn mtu(mtu: &PathMtu) -> TableCell {
    let size = Quantity::bytes(mtu.bytes);
    let mut text = format!("{} B", mtu.bytes);
    if mtu.limited_by_interface {
        text.push_str(" at least: limited by the MTU of the sender's interface");
    }
    if let Some(vanishes) = mtu.black_hole_bytes {
        text = format!("{text}; black hole: {vanishes} B are dropped without an ICMP error");
    }
    if let Some(icmp) = mtu.icmp_bytes.filter(|icmp| *icmp != mtu.bytes) {
        text = format!("{text}; ICMP reports {icmp} B");
    }
    TableCell::Qualified(size, text)
}

fn capacity(capacity: &CapacityMeasurement) -> TableCell {
    let rate = Quantity::bits_per_second(capacity.bits_per_second);
    let shown = |rate| Quantity::bits_per_second(rate).display_text();
    let mut text = if capacity.at_least { format!("at least {}", rate.display_text()) } else { rate.display_text() };
    if let Some(limited) = capacity.limited_by.filter(|_| capacity.at_least) {
        text = format!("{text} (limited by {})", limited.title());
    }
    if let Some((low, high)) = capacity.low_bits_per_second.zip(capacity.high_bits_per_second) {
        text = format!("{text}; 95 % interval {} to {}", shown(low), shown(high));
    }
    TableCell::Qualified(rate, text)
}

fn policer(policer: &linerate_model::path::PolicerDetection) -> TableCell {
    if !policer.present {
        return TableCell::text(format!("none found: {}", policer.evidence));
    }
    let rate = policer.bits_per_second.map(Quantity::bits_per_second);
    let shown = rate.map_or_else(|| "unknown rate".to_owned(), Quantity::display_text);
    let burst =
        policer.burst_bytes.map_or_else(|| "unknown burst".to_owned(), |bytes| Quantity::bytes(bytes).display_text());
    let text = format!("{shown}, bucket {burst}: {}", policer.evidence);
    rate.map_or_else(|| TableCell::Text(text.clone()), |rate| TableCell::Qualified(rate, text.clone()))
}

fn packets(document: &PathDocument, reasons: UnknownReasons<'_>) -> ReportTable {
    let mut both = DirectionTable::new("packets", "Probe packets", document, reasons);
    both.packet("Sent", "sent", |packets| Some(Quantity::packets(packets.sent)));
    if document.is_stream_only() {
        let rate = |rate: Option<f64>| rate.map(Quantity::bits_per_second);
        both.packet("Rate sent", "sent_bits_per_second", |packets| rate(packets.sent_bits_per_second));
        both.packet("Rate arrived", "received_bits_per_second", |packets| rate(packets.received_bits_per_second));
    }
    both.cells("Loss", "packets.loss", |end| end.packets.as_ref().and_then(loss));
    both.packet("Longest run of losses", "longest_loss_packets", |packets| {
        packets.longest_loss_packets.map(Quantity::packets)
    });
    both.packet("Duplicates", "duplication", |packets| packets.duplication.map(Quantity::share));
    both.packet("Reordered", "reordering", |packets| packets.reordering.map(Quantity::share));
    both.packet("Largest extent of reordering", "reordering_extent_packets", |packets| {
        packets.reordering_extent_packets.map(Quantity::packets)
    });
    both.packet("3-reordered", "three_reordering", |packets| packets.three_reordering.map(Quantity::share));
    both.cells("One-way delay, median", "packets.one_way_delay", |end| end.packets.as_ref().and_then(one_way_delay));
    let variation = |packets: &PacketMetrics, of: fn(&DurationDistribution) -> Duration| {
        packets.delay_variation.as_ref().map(of).map(Quantity::duration)
    };
    both.packet("Delay variation, median", "delay_variation", |packets| variation(packets, |times| times.median));
    both.packet("Delay variation, p95", "delay_variation", |packets| variation(packets, |times| times.p95));
    both.packet("Delay variation, p99", "delay_variation", |packets| variation(packets, |times| times.p99));
    both.packet("Spread (third minus first quartile)", "spread_ns", |packets| {
        packets.spread_ns.map(Quantity::nanoseconds)
    });
    both.packet("Mean difference of neighbours (IPDV)", "ipdv_mean_ns", |packets| {
        packets.ipdv_mean_ns.map(Quantity::nanoseconds)
    });
    both.packet("Smoothed jitter (RFC 3550)", "rfc3550_jitter_ns", |packets| {
        packets.rfc3550_jitter_ns.map(Quantity::nanoseconds)
    });
    both.table
}

fn loss(packets: &PacketMetrics) -> Option<TableCell> {
    let share = Quantity::share(packets.loss?);
    let Some((low, high)) = packets.loss_low.zip(packets.loss_high) else { return Some(TableCell::Value(share)) };
    let shown = |share| Quantity::share(share).display_text();
    Some(TableCell::Qualified(
        share,
        format!("{}; 95 % interval {} to {}", share.display_text(), shown(low), shown(high)),
    ))
}

fn one_way_delay(packets: &PacketMetrics) -> Option<TableCell> {
    let median = Quantity::duration(packets.one_way_delay?.median);
    let error = packets.one_way_delay_error_ns.map(Quantity::nanoseconds);
    let error = error.map_or_else(|| "error unknown".to_owned(), |error| format!("± {}", error.display_text()));
    Some(TableCell::Qualified(median, format!("{} {error}", median.display_text())))
}

fn idle(rtt: &IdleRtt) -> Option<ReportTable> {
    let mut table = ReportTable::new("idle_rtt", "Round-trip time without load", &DISTRIBUTION_COLUMNS);
    let ways = [
        ("UDP (STAMP)", &rtt.udp),
        ("TCP, in-band", &rtt.tcp),
        ("ICMP echo", &rtt.icmp),
        ("TCP handshake", &rtt.handshake),
    ];
    for (label, times) in ways {
        if let Some(times) = times {
            table.push_row(label, distribution(times));
        }
    }
    table.note = rtt.method.as_ref().map(|method| format!("Method used below: {method}."));
    table.non_empty()
}

fn marks(document: &PathDocument) -> Option<ReportTable> {
    let mut table = ReportTable::new("marks", "ECN and DSCP marks", &["Mark", "Up", "Down"]);
    let of = |end: &PathDirection| -> Vec<MarkFate> {
        end.marks.iter().flat_map(|marks| marks.ecn.iter().chain(&marks.dscp)).cloned().collect()
    };
    let (up, down) = (of(&document.up), of(&document.down));
    let mut names: Vec<HeaderMark> = Vec::new();
    for fate in up.iter().chain(&down) {
        if !names.contains(&fate.name) {
            names.push(fate.name);
        }
    }
    let reasons = UnknownReasons::of(&document.unknown);
    let cell = |fates: &[MarkFate], name: HeaderMark, key: &str| {
        fates.iter().find(|fate| fate.name == name).map_or_else(|| reasons.unknown(key), fate)
    };
    for name in names {
        table.push_row(name.name(), vec![cell(&up, name, "up.marks"), cell(&down, name, "down.marks")]);
    }
    table.non_empty()
}

fn fate(fate: &MarkFate) -> TableCell {
    let is_ecn = HeaderMark::ALL.iter().take(4).any(|mark| *mark == fate.name);
    TableCell::text(match fate.arrived {
        Some(arrived) if arrived == fate.sent => "arrives".to_owned(),
        Some(0) => "is cleared".to_owned(),
        Some(arrived) if is_ecn => format!("arrives as {}", codepoint(arrived)),
        Some(arrived) => format!("arrives as {arrived:#04x} instead of {:#04x}", fate.sent),
        None => "no packet with it arrives".to_owned(),
    })
}

fn clock(document: &PathDocument) -> Option<ReportTable> {
    let clock = document.clock?;
    let mut table = ReportTable::new("clock", "The clocks of both ends", &["Fact", "Value"]);
    table.push_row("Far clock minus this clock", vec![TableCell::Value(Quantity::signed_nanoseconds(clock.offset_ns))]);
    table.push_row("Error bound", vec![TableCell::Value(Quantity::nanoseconds(clock.error_ns))]);
    let drift = clock.drift_ppm.map(|drift| format!("{drift:.2} parts per million"));
    table
        .push_row("Drift of the far clock", vec![UnknownReasons::of(&document.unknown).text("clock.drift_ppm", drift)]);
    let stamps = match clock.time_stamps {
        TimeStampSource::Hardware => "network card",
        TimeStampSource::Kernel => "kernel",
        TimeStampSource::Program => "program",
    };
    table.push_row("Timestamp source", vec![TableCell::text(stamps)]);
    Some(table)
}

fn tcp(tcp: &TcpFeatures) -> ReportTable {
    const REASON: &str = "not reported by the kernel";
    let mut table = ReportTable::new("tcp", "Negotiated TCP options", &["Feature", "Value"]);
    let text = |value: Option<String>| value.map_or_else(|| TableCell::Unknown(REASON.to_owned()), TableCell::Text);
    let mss = tcp.send_mss_bytes.map(|bytes| format!("{bytes} B"));
    table.push_row("Largest segment sent", vec![text(mss)]);
    table.push_row("Timestamps", vec![text(tcp.timestamps.map(yes_or_no))]);
    table.push_row("Selective acknowledgements", vec![text(tcp.selective_acknowledgements.map(yes_or_no))]);
    let scale = tcp.window_scale_own.zip(tcp.window_scale_peer);
    let scale = scale.map_or_else(|| "not agreed".to_owned(), |(own, peer)| format!("{own} here, {peer} there"));
    table.push_row("Window scale", vec![TableCell::Text(scale)]);
    table.push_row("Explicit congestion notification", vec![text(tcp.explicit_congestion_notification.map(yes_or_no))]);
    table.push_row("Accurate ECN", vec![text(tcp.accurate_ecn.map(yes_or_no))]);
    let option = |feature: &TcpFeature| match (feature, tcp.syn_window_scale) {
        (TcpFeature::WindowScale, Some(scale)) => format!("{} {scale}", feature.title()),
        _ => feature.title().to_owned(),
    };
    let arrived = tcp.syn_options_arrived.as_ref();
    let arrived = arrived.map(|options| options.iter().map(option).collect::<Vec<_>>().join(", "));
    let arrived = arrived.map_or_else(|| TableCell::Unknown("not reported by the far end".to_owned()), TableCell::Text);
    table.push_row("Received SYN options", vec![arrived]);
    for missing in &tcp.missing {
        let cause = match tcp.syn_options_arrived.as_ref().map(|options| options.contains(missing)) {
            Some(true) => format!("{} is off at the far end", missing.setting()),
            _ => format!("{} is off at the far end, or a middlebox removes the option", missing.setting()),
        };
        let text = format!("{}: {cause}", missing.title());
        table.push_row("Requested, not granted", vec![TableCell::text(text)]);
    }
    table
}
