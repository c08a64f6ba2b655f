//! Tables of a measured path.

use linerate_model::schema::path::{
    Capacity, IdleRtt, MarkFate, PacketMetrics, PathDirection, PathDocument, PathMtu, Peer, TcpFeatures,
    TimeStampSource,
};
use linerate_model::schema::throughput::TimeDistribution;

use super::yes_or_no;
use crate::presentation::reasons::Reasons;
use crate::presentation::{Cell, Presentation, Quantity, Table};

/// Over the cells of [`distribution`].
pub(crate) const DISTRIBUTION_COLUMNS: [&str; 8] = ["How", "min", "median", "mean", "p95", "p99", "max", "Readings"];

pub(super) fn complete(presentation: &mut Presentation<'_>, document: &PathDocument) {
    presentation.tables.extend(tables(document));
    presentation.notes.extend(document.notes.iter().cloned());
    presentation.notes.extend(peer_note(document.peer));
}

/// All tables of a path; the procedure of RFC 6349 begins with the same ones.
pub(super) fn tables(document: &PathDocument) -> Vec<Table> {
    let reasons = Reasons::of(&document.unknown);
    let tables = [
        Some(directions(document, reasons)),
        Some(packets(document, reasons)),
        idle(&document.rtt),
        marks(document),
        clock(document),
        document.tcp.as_ref().map(tcp),
        hops(document),
    ];
    tables.into_iter().flatten().collect()
}

/// What of the path's own tables belongs beside other measurements; the document has all of it.
pub(super) fn of_directions(document: &PathDocument) -> Option<Table> {
    directions(document, Reasons::of(&document.unknown)).filled()
}

fn peer_note(peer: Peer) -> Option<String> {
    let note = match peer {
        Peer::Linerate => return None,
        Peer::Iperf3 => "The far end is an iperf3 server: what needs a linerate there is unknown.",
        Peer::Stamp => "The far end is a STAMP reflector: what needs a linerate there is unknown.",
        Peer::Bare => "The far end answers no measurement protocol: only what any host tells is known.",
    };
    Some(note.to_owned())
}

/// The cells of one distribution of times.
pub(crate) fn distribution(times: &TimeDistribution) -> Vec<Cell> {
    let [min, median, mean, p95, p99, max] =
        [times.min_ns, times.median_ns, times.mean_ns, times.p95_ns, times.p99_ns, times.max_ns]
            .map(|time| Cell::Value(Quantity::nanoseconds(time)));
    vec![min, median, mean, p95, p99, max, Cell::Value(Quantity::count(times.count))]
}

/// A table with one row for each metric and one column for each direction.
struct BothWays<'a> {
    table: Table,
    document: &'a PathDocument,
    reasons: Reasons<'a>,
}

impl<'a> BothWays<'a> {
    fn new(name: &str, title: &str, document: &'a PathDocument, reasons: Reasons<'a>) -> Self {
        Self { table: Table::new(name, title, &["Metric", "Up", "Down"]), document, reasons }
    }

    fn cells(&mut self, label: &str, key: &str, of: impl Fn(&PathDirection) -> Option<Cell>) {
        let ends = [("up", &self.document.up), ("down", &self.document.down)];
        let cells = ends.map(|(name, end)| of(end).unwrap_or_else(|| self.reasons.unknown(&format!("{name}.{key}"))));
        self.table.row(label, cells.into());
    }

    fn quantity(&mut self, label: &str, key: &str, of: impl Fn(&PathDirection) -> Option<Quantity>) {
        self.cells(label, key, |end| of(end).map(Cell::Value));
    }

    fn packet(&mut self, label: &str, key: &str, of: impl Fn(&PacketMetrics) -> Option<Quantity>) {
        self.quantity(label, &format!("packets.{key}"), |end| end.packets.as_ref().and_then(&of));
    }
}

fn directions(document: &PathDocument, reasons: Reasons<'_>) -> Table {
    let mut both = BothWays::new("directions", "The path in each direction", document, reasons);
    both.cells("Path MTU", "mtu", |end| end.mtu.as_ref().map(mtu));
    both.cells("Capacity", "capacity", |end| end.capacity.as_ref().map(capacity));
    both.cells("Measured by", "capacity", |end| {
        end.capacity.as_ref().map(|capacity| Cell::text(method(&capacity.method)))
    });
    both.quantity("Queueing during the search", "capacity.queueing_ns", |end| {
        end.capacity.as_ref()?.queueing_ns.map(Quantity::nanoseconds)
    });
    both.cells("Policer", "policer", |end| end.policer.as_ref().map(policer));
    let product = |key: &str, bytes: Option<u64>| reasons.cell(key, bytes.map(Quantity::bytes));
    let products = [("bdp_up_bytes", document.bdp_up_bytes), ("bdp_down_bytes", document.bdp_down_bytes)];
    both.table.row("Bandwidth-delay product", products.map(|(key, bytes)| product(key, bytes)).into());
    both.table.note = document.traffic_bytes.map(|bytes| {
        format!("The measurement itself put {} on the path, both ways together.", Quantity::bytes(bytes).shown())
    });
    both.table
}

fn mtu(mtu: &PathMtu) -> Cell {
    let size = Quantity::bytes(mtu.bytes);
    let mut text = format!("{} B", mtu.bytes);
    if mtu.limited_by_interface {
        text.push_str(" at least: the sender's interface takes no larger packet");
    }
    if let Some(vanishes) = mtu.black_hole_bytes {
        text = format!("{text}; black hole: {vanishes} B vanish without a word");
    }
    if let Some(icmp) = mtu.icmp_bytes.filter(|icmp| *icmp != mtu.bytes) {
        text = format!("{text}; ICMP says {icmp} B");
    }
    Cell::Qualified(size, text)
}

fn capacity(capacity: &Capacity) -> Cell {
    let rate = Quantity::bits_per_second(capacity.bits_per_second);
    let shown = |rate| Quantity::bits_per_second(rate).shown();
    let mut text = if capacity.at_least { format!("at least {}", rate.shown()) } else { rate.shown() };
    if let Some(limited) = capacity.limited_by.as_ref().filter(|_| capacity.at_least) {
        text = format!("{text} (limited by {limited})");
    }
    if let Some((low, high)) = capacity.low_bits_per_second.zip(capacity.high_bits_per_second) {
        text = format!("{text}; 95 % interval {} to {}", shown(low), shown(high));
    }
    Cell::Qualified(rate, text)
}

/// The words for a method of measuring the capacity.
fn method(name: &str) -> &str {
    match name {
        "udp_search" => "search with UDP (RFC 9097)",
        "tcp" => "TCP",
        other => other,
    }
}

fn policer(policer: &linerate_model::schema::path::Policer) -> Cell {
    if !policer.present {
        return Cell::text(format!("none found: {}", policer.evidence));
    }
    let rate = policer.bits_per_second.map(Quantity::bits_per_second);
    let shown = rate.map_or_else(|| "unknown rate".to_owned(), Quantity::shown);
    let burst = policer.burst_bytes.map_or_else(|| "unknown burst".to_owned(), |bytes| Quantity::bytes(bytes).shown());
    let text = format!("{shown}, bucket {burst}: {}", policer.evidence);
    rate.map_or_else(|| Cell::Text(text.clone()), |rate| Cell::Qualified(rate, text.clone()))
}

fn packets(document: &PathDocument, reasons: Reasons<'_>) -> Table {
    let mut both = BothWays::new("packets", "What became of the probes", document, reasons);
    both.packet("Sent", "sent", |packets| Some(Quantity::packets(packets.sent)));
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
    let variation = |packets: &PacketMetrics, of: fn(&TimeDistribution) -> u64| {
        packets.delay_variation.as_ref().map(of).map(Quantity::nanoseconds)
    };
    both.packet("Delay variation, median", "delay_variation", |packets| variation(packets, |times| times.median_ns));
    both.packet("Delay variation, p95", "delay_variation", |packets| variation(packets, |times| times.p95_ns));
    both.packet("Delay variation, p99", "delay_variation", |packets| variation(packets, |times| times.p99_ns));
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

fn loss(packets: &PacketMetrics) -> Option<Cell> {
    let share = Quantity::share(packets.loss?);
    let Some((low, high)) = packets.loss_low.zip(packets.loss_high) else { return Some(Cell::Value(share)) };
    let shown = |share| Quantity::share(share).shown();
    Some(Cell::Qualified(share, format!("{}; 95 % interval {} to {}", share.shown(), shown(low), shown(high))))
}

fn one_way_delay(packets: &PacketMetrics) -> Option<Cell> {
    let median = Quantity::nanoseconds(packets.one_way_delay?.median_ns);
    let error = packets.one_way_delay_error_ns.map(Quantity::nanoseconds);
    let error = error.map_or_else(|| "error unknown".to_owned(), |error| format!("± {}", error.shown()));
    Some(Cell::Qualified(median, format!("{} {error}", median.shown())))
}

fn idle(rtt: &IdleRtt) -> Option<Table> {
    let mut table = Table::new("idle_rtt", "Round-trip time without load", &DISTRIBUTION_COLUMNS);
    let ways = [
        ("UDP (STAMP)", &rtt.udp),
        ("TCP, in-band", &rtt.tcp),
        ("ICMP echo", &rtt.icmp),
        ("TCP handshake", &rtt.handshake),
    ];
    for (label, times) in ways {
        if let Some(times) = times {
            table.row(label, distribution(times));
        }
    }
    table.note = rtt.method.as_ref().map(|method| format!("Used in all that follows: {method}."));
    table.filled()
}

fn marks(document: &PathDocument) -> Option<Table> {
    let mut table = Table::new("marks", "What becomes of marks", &["Mark", "Up", "Down"]);
    let of = |end: &PathDirection| -> Vec<MarkFate> {
        end.marks.iter().flat_map(|marks| marks.ecn.iter().chain(&marks.dscp)).cloned().collect()
    };
    let (up, down) = (of(&document.up), of(&document.down));
    let mut names: Vec<&str> = Vec::new();
    for fate in up.iter().chain(&down) {
        if !names.contains(&fate.name.as_str()) {
            names.push(&fate.name);
        }
    }
    let reasons = Reasons::of(&document.unknown);
    let cell = |fates: &[MarkFate], name: &str, key: &str| {
        fates.iter().find(|fate| fate.name == name).map_or_else(|| reasons.unknown(key), fate)
    };
    for name in names {
        table.row(name, vec![cell(&up, name, "up.marks"), cell(&down, name, "down.marks")]);
    }
    table.filled()
}

fn fate(fate: &MarkFate) -> Cell {
    Cell::text(match fate.arrived {
        Some(arrived) if arrived == fate.sent => "arrives".to_owned(),
        Some(0) => "is cleared".to_owned(),
        Some(arrived) => format!("arrives as {arrived:#04x} instead of {:#04x}", fate.sent),
        None => "no packet with it arrives".to_owned(),
    })
}

fn clock(document: &PathDocument) -> Option<Table> {
    let clock = document.clock?;
    let mut table = Table::new("clock", "The clocks of both ends", &["Fact", "Value"]);
    table.row("Far clock minus this one", vec![Cell::Value(Quantity::signed_nanoseconds(clock.offset_ns))]);
    table.row("At most wrong by", vec![Cell::Value(Quantity::nanoseconds(clock.error_ns))]);
    let drift = clock.drift_ppm.map(|drift| format!("{drift:.2} parts per million"));
    table.row("Drift of the far clock", vec![Reasons::of(&document.unknown).text("clock.drift_ppm", drift)]);
    let stamps = match clock.time_stamps {
        TimeStampSource::Hardware => "network card",
        TimeStampSource::Kernel => "kernel",
        TimeStampSource::Program => "program",
    };
    table.row("Time stamps by", vec![Cell::text(stamps)]);
    Some(table)
}

fn tcp(tcp: &TcpFeatures) -> Table {
    const REASON: &str = "the kernel does not tell";
    let mut table = Table::new("tcp", "What TCP agrees on", &["Feature", "Value"]);
    let text = |value: Option<String>| value.map_or_else(|| Cell::Unknown(REASON.to_owned()), Cell::Text);
    let mss = tcp.send_mss_bytes.map(|bytes| format!("{bytes} B"));
    table.row("Largest segment sent", vec![text(mss)]);
    table.row("Timestamps", vec![text(tcp.timestamps.map(yes_or_no))]);
    table.row("Selective acknowledgements", vec![text(tcp.selective_acknowledgements.map(yes_or_no))]);
    let scale = tcp.window_scale_own.zip(tcp.window_scale_peer);
    let scale = scale.map_or_else(|| "not agreed".to_owned(), |(own, peer)| format!("{own} here, {peer} there"));
    table.row("Window scale", vec![Cell::Text(scale)]);
    table.row("Explicit congestion notification", vec![text(tcp.explicit_congestion_notification.map(yes_or_no))]);
    let arrived = tcp.syn_options_arrived.as_ref().map(|options| options.join(", "));
    let arrived = arrived.map_or_else(|| Cell::Unknown("the far end does not tell".to_owned()), Cell::Text);
    table.row("Options of the SYN that arrived", vec![arrived]);
    for missing in &tcp.missing {
        table.row("Asked for and not got", vec![Cell::text(missing)]);
    }
    table
}

fn hops(document: &PathDocument) -> Option<Table> {
    let mut table = Table::new("hops", "Hops", &["Distance", "Address", "min", "median", "p95"]);
    for hop in &document.hops {
        let rtt = |of: fn(&TimeDistribution) -> u64| {
            let reason = || Cell::Unknown("nobody answered from there".to_owned());
            hop.rtt.as_ref().map_or_else(reason, |rtt| Cell::Value(Quantity::nanoseconds(of(rtt))))
        };
        let address = hop.address.clone();
        let address = address.map_or_else(|| Cell::Unknown("nobody answered from there".to_owned()), Cell::Text);
        let times = vec![address, rtt(|rtt| rtt.min_ns), rtt(|rtt| rtt.median_ns), rtt(|rtt| rtt.p95_ns)];
        table.row(hop.distance.to_string(), times);
    }
    table.filled()
}
