//! Columns of the table: contents, order and widths.

use std::cmp::Ordering;
use std::net::{IpAddr, SocketAddr};

use linerate_model::fact::Fact;
use linerate_model::flow::FlowLimit;
use linerate_model::socket::SocketOwner;

use super::figures;
use super::flows::FlowRow;
use super::limit;

/// Column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableColumn {
    Process,
    Local,
    Peer,
    Up,
    Down,
    RoundTrip,
    Queueing,
    Retransmitted,
    Window,
    Wait,
    Drops,
    Timers,
    Limit,
}

/// All columns, from left to right.
pub(crate) const ALL: [TableColumn; 13] = [
    TableColumn::Process,
    TableColumn::Local,
    TableColumn::Peer,
    TableColumn::Up,
    TableColumn::Down,
    TableColumn::RoundTrip,
    TableColumn::Queueing,
    TableColumn::Retransmitted,
    TableColumn::Window,
    TableColumn::Wait,
    TableColumn::Drops,
    TableColumn::Timers,
    TableColumn::Limit,
];

/// Width of the process where only few columns fit.
const SHORT_PROCESS_WIDTH: usize = 8;

/// Columns omitted on narrow terminals, the first one first. The limit is never omitted or cut: it is what the table is for.
const DROP_ORDER: [TableColumn; 9] = [
    TableColumn::Local,
    TableColumn::Window,
    TableColumn::Queueing,
    TableColumn::Retransmitted,
    TableColumn::RoundTrip,
    TableColumn::Process,
    TableColumn::Down,
    TableColumn::Up,
    TableColumn::Peer,
];

/// The same with the kernel's events, which were asked for.
const DROP_ORDER_WITH_EVENTS: [TableColumn; 12] = [
    TableColumn::Local,
    TableColumn::Window,
    TableColumn::Queueing,
    TableColumn::Retransmitted,
    TableColumn::RoundTrip,
    TableColumn::Timers,
    TableColumn::Down,
    TableColumn::Drops,
    TableColumn::Process,
    TableColumn::Wait,
    TableColumn::Up,
    TableColumn::Peer,
];

impl TableColumn {
    /// True for the kernel's events.
    pub(crate) const fn is_event(self) -> bool {
        matches!(self, Self::Wait | Self::Drops | Self::Timers)
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Process => "PROCESS",
            Self::Local => "LOCAL",
            Self::Peer => "PEER",
            Self::Up => "UP",
            Self::Down => "DOWN",
            Self::RoundTrip => "RTT",
            Self::Queueing => "QUEUE",
            Self::Retransmitted => "RETR",
            Self::Window => "CWND",
            Self::Wait => "WAIT",
            Self::Drops => "DROPS",
            Self::Timers => "TIMERS",
            Self::Limit => "LIMITED BY",
        }
    }

    /// True for figures, which are right-aligned.
    pub(crate) const fn is_figure(self) -> bool {
        !matches!(self, Self::Process | Self::Local | Self::Peer | Self::Limit)
    }

    /// Smallest and largest width in characters.
    const fn widths(self) -> (usize, usize) {
        match self {
            Self::Process => (10, 24),
            Self::Local | Self::Peer => (15, 47),
            Self::RoundTrip => (7, 10),
            Self::Limit => (19, 28),
            _ => (6, 10),
        }
    }

    /// Text of the column in a row.
    pub(crate) fn text(self, row: &FlowRow<'_>, unicode: bool) -> String {
        let flow = row.flow;
        let change = flow.change.as_ref();
        match self {
            Self::Process => process(row.owner),
            Self::Local => flow.reading.key.local.to_string(),
            Self::Peer => peer(&flow.reading.key.remote),
            Self::Up => figures::rate(change.and_then(|change| change.send_rate)),
            Self::Down => figures::rate(change.and_then(|change| change.receive_rate)),
            Self::RoundTrip => figures::time(flow.reading.info.as_ref().and_then(|info| info.rtt), !unicode),
            Self::Queueing => figures::time(change.and_then(|change| change.queueing), !unicode),
            Self::Retransmitted => figures::percent(change.and_then(|change| change.retransmission_share)),
            Self::Window => figures::size(flow.reading.info.as_ref().and_then(|info| info.congestion_window)),
            Self::Wait => figures::percent(row.wait().map(|(_, share)| share)),
            Self::Drops => row.drop_text(),
            Self::Timers => row.timer_text(),
            Self::Limit => flow.state.map_or_else(|| "-".to_owned(), |state| limit::short(&state.limit)),
        }
    }

    /// Orders two rows: large figures and early names first.
    pub(crate) fn compare(self, one: &FlowRow<'_>, other: &FlowRow<'_>) -> Ordering {
        let (a, b) = (one.flow, other.flow);
        let (change_a, change_b) = (a.change.unwrap_or_default(), b.change.unwrap_or_default());
        let (info_a, info_b) = (a.reading.info.as_ref(), b.reading.info.as_ref());
        let order = match self {
            Self::Process => process_key(one.owner).cmp(&process_key(other.owner)),
            Self::Local => a.reading.key.local.cmp(&b.reading.key.local),
            Self::Peer => a.reading.key.remote.cmp(&b.reading.key.remote),
            Self::Up => change_b.send_rate.cmp(&change_a.send_rate),
            Self::Down => change_b.receive_rate.cmp(&change_a.receive_rate),
            Self::RoundTrip => info_b.and_then(|info| info.rtt).cmp(&info_a.and_then(|info| info.rtt)),
            Self::Queueing => change_b.queueing.cmp(&change_a.queueing),
            Self::Retransmitted => change_b
                .retransmission_share
                .cmp(&change_a.retransmission_share)
                .then(change_b.retransmitted.cmp(&change_a.retransmitted)),
            Self::Window => {
                info_b.and_then(|info| info.congestion_window).cmp(&info_a.and_then(|info| info.congestion_window))
            }
            Self::Wait => other.wait().cmp(&one.wait()),
            Self::Drops => drops(other).cmp(&drops(one)),
            Self::Timers => timers(other).cmp(&timers(one)),
            Self::Limit => limit_key(one).cmp(limit_key(other)),
        };
        order
            .then_with(|| change_b.total_rate().cmp(&change_a.total_rate()))
            .then_with(|| a.reading.key.cmp(&b.reading.key))
    }
}

/// Orders rows by total rate of both directions, the fastest first.
pub(crate) fn by_rate(one: &FlowRow<'_>, other: &FlowRow<'_>) -> Ordering {
    let rate = |row: &FlowRow<'_>| row.flow.change.map(|change| change.total_rate());
    rate(other).cmp(&rate(one)).then_with(|| one.flow.reading.key.cmp(&other.flow.reading.key))
}

fn drops(row: &FlowRow<'_>) -> Option<u64> {
    row.drops().map(|events| events.dropped())
}

fn timers(row: &FlowRow<'_>) -> Option<u64> {
    row.retransmissions().map(|events| events.by_timer)
}

fn limit_key(row: &FlowRow<'_>) -> &'static str {
    row.flow.state.as_ref().map_or("", |state| state.limit.kind().name())
}

fn process_key(owner: &Fact<SocketOwner>) -> (bool, Option<(&str, u32)>) {
    let known = owner.known().map(|owner| (owner.name.as_str(), owner.process.0));
    (known.is_none(), known)
}

/// Process such as `rsync/1234`.
pub(crate) fn process(owner: &Fact<SocketOwner>) -> String {
    owner.known().map_or_else(|| "-".to_owned(), |owner| format!("{}/{}", owner.name, owner.process))
}

/// Remote address; `*` for a listener.
pub(crate) fn peer(address: &SocketAddr) -> String {
    let is_wildcard = match address.ip() {
        IpAddr::V4(address) => address.is_unspecified(),
        IpAddr::V6(address) => address.is_unspecified(),
    };
    if is_wildcard && address.port() == 0 { "*".to_owned() } else { address.to_string() }
}

/// True for problems of the remote host or the network, which are highlighted.
pub(crate) const fn is_severe(limit: &FlowLimit) -> bool {
    matches!(limit, FlowLimit::Loss { .. } | FlowLimit::NotMoving { .. } | FlowLimit::ZeroWindow { .. })
}

/// Columns that fit, each with its width. `longest` returns the longest text of a column; a `listing` shows listeners,
/// which have no remote address and no rates; columns of the kernel's events are there where those are traced.
pub(crate) fn layout(
    width: usize,
    (listing, has_events): (bool, bool),
    longest: impl Fn(TableColumn) -> usize,
) -> Vec<(TableColumn, usize)> {
    let listed = [TableColumn::Process, TableColumn::Local, TableColumn::Limit];
    let mut columns: Vec<(TableColumn, usize)> = ALL
        .into_iter()
        .filter(|column| (!listing || listed.contains(column)) && (has_events || !column.is_event()))
        .map(|column| (column, column.widths().0))
        .collect();
    let total = |columns: &[(TableColumn, usize)]| columns.iter().map(|(_, width)| width + 1).sum::<usize>() - 1;
    let order = if has_events { &DROP_ORDER_WITH_EVENTS[..] } else { &DROP_ORDER };
    for left_out in order.iter().copied().filter(|column| !listing || *column != TableColumn::Local) {
        if left_out == TableColumn::Process && total(&columns) > width {
            let process = columns.iter_mut().filter(|(column, _)| *column == left_out);
            process.for_each(|(_, width)| *width = SHORT_PROCESS_WIDTH);
        }
        if total(&columns) > width {
            columns.retain(|(column, _)| *column != left_out);
        }
    }
    // The remaining width goes to columns with longer texts: figures first, which a cut falsifies.
    let mut spare = width.saturating_sub(total(&columns));
    let texts = [TableColumn::Peer, TableColumn::Process, TableColumn::Local, TableColumn::Limit];
    let figures = ALL.into_iter().filter(|column| column.is_figure());
    for wanted in figures.chain(texts) {
        for (column, width) in columns.iter_mut().filter(|(column, _)| *column == wanted) {
            let more = longest(*column).min(column.widths().1).saturating_sub(*width).min(spare);
            *width += more;
            spare -= more;
        }
    }
    columns
}

/// Fits `text` into `width` characters: addresses keep their end with the port, other texts their beginning.
pub(crate) fn fit_text(text: &str, column: TableColumn, width: usize, unicode: bool) -> String {
    let length = text.chars().count();
    let sign = if unicode { '…' } else { '~' };
    let shown: String = if length <= width {
        text.to_owned()
    } else if matches!(column, TableColumn::Peer | TableColumn::Local) {
        core::iter::once(sign).chain(text.chars().skip(length + 1 - width)).collect()
    } else {
        text.chars().take(width.saturating_sub(1)).chain(core::iter::once(sign)).collect()
    };
    if column.is_figure() { format!("{shown:>width$}") } else { format!("{shown:<width$}") }
}
