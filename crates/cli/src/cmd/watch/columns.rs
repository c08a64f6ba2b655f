//! The table's columns: what they show, how they sort, how wide they are.

use std::cmp::Ordering;
use std::net::{IpAddr, SocketAddr};

use linerate_model::fact::Fact;
use linerate_model::flow::FlowLimit;
use linerate_model::socket::Owner;

use super::figures;
use super::flows::Row;
use super::limit;

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Process,
    Local,
    Peer,
    Up,
    Down,
    RoundTrip,
    Queueing,
    Retransmitted,
    Window,
    Limit,
}

/// All, from left to right.
pub(crate) const ALL: [Column; 10] = [
    Column::Process,
    Column::Local,
    Column::Peer,
    Column::Up,
    Column::Down,
    Column::RoundTrip,
    Column::Queueing,
    Column::Retransmitted,
    Column::Window,
    Column::Limit,
];

/// Those that are left out where there is no room, the first one first.
const LEFT_OUT: [Column; 3] = [Column::Local, Column::Window, Column::Queueing];

impl Column {
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Process => "PROCESS",
            Self::Local => "LOCAL",
            Self::Peer => "PEER",
            Self::Up => "UP",
            Self::Down => "DOWN",
            Self::RoundTrip => "RTT",
            Self::Queueing => "QUEUE",
            Self::Retransmitted => "AGAIN",
            Self::Window => "CWND",
            Self::Limit => "LIMITED BY",
        }
    }

    /// Figures stand at the right edge.
    pub(crate) const fn is_figure(self) -> bool {
        matches!(self, Self::Up | Self::Down | Self::RoundTrip | Self::Queueing | Self::Retransmitted | Self::Window)
    }

    /// Least and most columns of the terminal that it takes.
    const fn widths(self) -> (usize, usize) {
        match self {
            Self::Process => (10, 24),
            Self::Local | Self::Peer => (15, 47),
            Self::Up | Self::Down | Self::Queueing | Self::Retransmitted | Self::Window => (6, 6),
            Self::RoundTrip => (7, 7),
            Self::Limit => (19, 28),
        }
    }

    /// What stands in a row.
    pub(crate) fn text(self, row: &Row<'_>, unicode: bool) -> String {
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
            Self::Limit => flow.state.map_or_else(|| "-".to_owned(), |state| limit::short(&state.limit)),
        }
    }

    /// Large figures and early names come first.
    pub(crate) fn compare(self, one: &Row<'_>, other: &Row<'_>) -> Ordering {
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
            Self::Limit => limit_key(one).cmp(limit_key(other)),
        };
        order
            .then_with(|| change_b.total_rate().cmp(&change_a.total_rate()))
            .then_with(|| a.reading.key.cmp(&b.reading.key))
    }
}

/// The fastest first, both ways together.
pub(crate) fn by_rate(one: &Row<'_>, other: &Row<'_>) -> Ordering {
    let rate = |row: &Row<'_>| row.flow.change.map(|change| change.total_rate());
    rate(other).cmp(&rate(one)).then_with(|| one.flow.reading.key.cmp(&other.flow.reading.key))
}

fn limit_key(row: &Row<'_>) -> &'static str {
    row.flow.state.as_ref().map_or("", |state| limit::slug(&state.limit))
}

fn process_key(owner: &Fact<Owner>) -> (bool, Option<(&str, u32)>) {
    let known = owner.known().map(|owner| (owner.name.as_str(), owner.process.0));
    (known.is_none(), known)
}

/// `rsync/1234`.
pub(crate) fn process(owner: &Fact<Owner>) -> String {
    owner.known().map_or_else(|| "-".to_owned(), |owner| format!("{}/{}", owner.name, owner.process))
}

/// The far end; a listener has none.
pub(crate) fn peer(address: &SocketAddr) -> String {
    let nobody = match address.ip() {
        IpAddr::V4(address) => address.is_unspecified(),
        IpAddr::V6(address) => address.is_unspecified(),
    };
    if nobody && address.port() == 0 { "*".to_owned() } else { address.to_string() }
}

/// Whether it is something that the far end, or the network, does wrong, by which it is coloured.
pub(crate) const fn is_grave(limit: &FlowLimit) -> bool {
    matches!(limit, FlowLimit::Loss { .. } | FlowLimit::NotMoving { .. } | FlowLimit::ZeroWindow { .. })
}

/// The columns that fit, each with its width. `longest` says how long the longest text of a column is; a `listing` is of
/// listeners, which have no far end and no rates.
pub(crate) fn layout(width: usize, listing: bool, longest: impl Fn(Column) -> usize) -> Vec<(Column, usize)> {
    let listed = [Column::Process, Column::Local, Column::Limit];
    let mut columns: Vec<(Column, usize)> = ALL
        .into_iter()
        .filter(|column| !listing || listed.contains(column))
        .map(|column| (column, column.widths().0))
        .collect();
    let total = |columns: &[(Column, usize)]| columns.iter().map(|(_, width)| width + 1).sum::<usize>() - 1;
    for left_out in LEFT_OUT.into_iter().filter(|_| !listing) {
        if total(&columns) > width {
            columns.retain(|(column, _)| *column != left_out);
        }
    }
    // What is left over goes to those whose texts are longer, one by one from the left.
    let mut spare = width.saturating_sub(total(&columns));
    for wanted in [Column::Peer, Column::Process, Column::Local, Column::Limit] {
        for (column, width) in columns.iter_mut().filter(|(column, _)| *column == wanted) {
            let more = longest(*column).min(column.widths().1).saturating_sub(*width).min(spare);
            *width += more;
            spare -= more;
        }
    }
    columns
}

/// `text` in so many columns: addresses keep their end, which has the port; everything else its beginning.
pub(crate) fn fitted(text: &str, column: Column, width: usize, unicode: bool) -> String {
    let length = text.chars().count();
    let sign = if unicode { '…' } else { '~' };
    let shown: String = if length <= width {
        text.to_owned()
    } else if matches!(column, Column::Peer | Column::Local) {
        core::iter::once(sign).chain(text.chars().skip(length + 1 - width)).collect()
    } else {
        text.chars().take(width.saturating_sub(1)).chain(core::iter::once(sign)).collect()
    };
    if column.is_figure() { format!("{shown:>width$}") } else { format!("{shown:<width$}") }
}
