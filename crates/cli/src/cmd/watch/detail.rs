//! Detail view of one flow: its history, its limit with the reason, and the kernel's figures.

use linerate_model::flow::BufferOrigin;
use linerate_model::socket::{CongestionState, SocketSnapshot};
use linerate_report::text::wrap_text;
use linerate_units::{ByteCount, display};

use super::columns;
use super::flows::FlowRow;
use super::history::MAX_SAMPLES;
use super::limit;
use super::table::ViewStyle;
use crate::spark::spark;

/// Width of the figure names.
const NAME_WIDTH: usize = 15;

/// Lines of the view, as wide as `look` allows.
pub(crate) fn lines(row: &FlowRow<'_>, look: &ViewStyle) -> Vec<String> {
    let flow = row.flow;
    let key = &flow.reading.key;
    let arrow = if look.style.unicode { "→" } else { "->" };
    let mut lines = vec![look.bold(&format!("{} {arrow} {}", key.local, columns::peer(&key.remote)))];
    lines.extend(wrap_text(&format!("{}, {}", flow.reading.state.name(), process(row)), look.width));
    lines.push(String::new());
    lines.extend(plots(row, look));
    lines.push(String::new());
    if let Some(state) = &flow.state {
        lines.push(look.bold(&format!("Limited by: {}", limit::short(&state.limit))));
        lines.extend(wrap_text(&limit::explanation(flow, state), look.width));
        lines.push(String::new());
    }
    lines.extend(
        figures(row)
            .into_iter()
            .flat_map(|(name, value)| {
                let width = look.width.saturating_sub(NAME_WIDTH).max(20);
                let parts = wrap_text(&value, width);
                parts.into_iter().enumerate().map(move |(index, part)| {
                    let name = if index == 0 { name } else { "" };
                    format!("{name:<NAME_WIDTH$}{part}")
                })
            })
            .map(|line| if look.style.unicode { line } else { line.replace('µ', "u") }),
    );
    lines
}

fn process(row: &FlowRow<'_>) -> String {
    match row.owner.known() {
        Some(owner) => format!("{} (process {})", owner.name, owner.process),
        None => row.owner.unread().map(|unread| format!("process unknown: {}", unread.reason)).unwrap_or_default(),
    }
}

fn plots(row: &FlowRow<'_>, look: &ViewStyle) -> Vec<String> {
    let Some(history) = &row.flow.history else {
        return vec!["No data has moved yet: there is no history.".to_owned()];
    };
    let change = row.flow.change.unwrap_or_default();
    let rate = display::rate(change.total_rate());
    let time = change.rtt.map(display::duration);
    let window = change.congestion_window.map(display::size);
    let unknown = || "unknown".to_owned();
    let plot = |name: &str, samples: &[f64], now: String| {
        let now = if look.style.unicode { now } else { now.replace('µ', "u") };
        let width = look.width.saturating_sub(NAME_WIDTH + 14).min(MAX_SAMPLES);
        format!("{name:<NAME_WIDTH$}{now:<14}{}", spark(samples, width, look.style.unicode))
    };
    vec![
        plot("Rate", &history.rates(), rate),
        plot("Round trip", &history.round_trips(), time.unwrap_or_else(unknown)),
        plot("Window", &history.windows(), window.unwrap_or_else(unknown)),
    ]
}

/// Names and values of known figures.
fn figures(row: &FlowRow<'_>) -> Vec<(&'static str, String)> {
    let flow = row.flow;
    let change = flow.change.unwrap_or_default();
    let reading = &flow.reading;
    let info = reading.info.clone().unwrap_or_default();
    let both = |one: Option<String>, other: Option<String>| -> Option<String> {
        let parts: Vec<String> = [one, other].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    };
    let queueing = change.queueing.map(|time| format!("{} queueing", display::duration(time)));
    let least = info.min_rtt.map(|time| format!("least {}", display::duration(time)));
    let retransmitted = info.retransmits.map(|count| format!("{count} segments in total"));
    let now = change.retransmission_share.map(|share| format!("{} now", display::percent(share)));
    let flight = change.in_flight.map(|size| format!("{} in flight", display::size(size)));
    let far_window = info.send_window.map(|size| format!("remote {}", display::size(size)));
    let own_window = info.receive_window.map(|size| format!("local {}", display::size(size)));
    let unread = (!reading.receive_queue.is_zero()).then(|| format!("{} unread", display::size(reading.receive_queue)));
    let unsent =
        (!reading.send_queue.is_zero()).then(|| format!("{} unacknowledged", display::size(reading.send_queue)));
    let named = reading.congestion_control.map(|name| name.to_string());
    [
        ("Round trip", both(info.rtt.map(display::duration), both(queueing, least))),
        ("Up, down", both(change.send_rate.map(display::rate), change.receive_rate.map(display::rate))),
        ("Retransmitted", both(retransmitted, now)),
        ("Congestion", both(named, both(info.congestion_window.map(display::size), flight))),
        ("", reading.congestion_state.map(congestion_state)),
        ("Windows", both(far_window, own_window)),
        ("Queues", both(unread, unsent)),
        ("Send buffer", buffer(reading, |memory| memory.send_buffer, flow.state.and_then(|state| state.send_buffer))),
        (
            "Receive buffer",
            buffer(reading, |memory| memory.receive_buffer, flow.state.and_then(|state| state.receive_buffer)),
        ),
        ("Pacing rate", info.pacing_rate.map(display::rate)),
        (
            "Segment",
            both(info.send_mss.map(|size| format!("{size} B")), info.path_mtu.map(|size| format!("path MTU {size} B"))),
        ),
        ("Time limited", change.limits.as_ref().map(shares)),
        (
            "Total moved",
            both(
                info.bytes_acknowledged.map(|size| format!("{} up", display::size(size))),
                info.bytes_received.map(|size| format!("{} down", display::size(size))),
            ),
        ),
    ]
    .into_iter()
    .chain(row.event_figures())
    .filter_map(|(name, value)| Some((name, value?)))
    .collect()
}

fn shares(limits: &linerate_model::limit::LimitShares) -> String {
    format!(
        "application {}, send buffer {}, receive window {}, network {}",
        display::percent(limits.application),
        display::percent(limits.send_buffer),
        display::percent(limits.receive_window),
        display::percent(limits.network)
    )
}

fn buffer(
    reading: &SocketSnapshot,
    which: fn(&linerate_model::socket::SocketMemory) -> ByteCount,
    origin: Option<BufferOrigin>,
) -> Option<String> {
    let size = display::size(which(reading.memory.as_ref()?));
    Some(match origin {
        Some(BufferOrigin::Initial) => format!("{size}, the initial size of every socket"),
        Some(BufferOrigin::Largest) => format!("{size}, the maximum of the host's settings"),
        Some(BufferOrigin::Adapted) => format!("{size}, adapted by the kernel"),
        Some(BufferOrigin::SetByApplication) => format!("{size}, apparently set by the application"),
        None => size,
    })
}

fn congestion_state(state: CongestionState) -> String {
    let time = |time: Option<std::time::Duration>| time.map_or_else(|| "unknown".to_owned(), display::duration);
    match state {
        CongestionState::Bbr { bandwidth, min_rtt, pacing_gain, window_gain } => format!(
            "estimates {}, {}; gains {pacing_gain:.2} (pacing), {window_gain:.2} (window)",
            display::rate(bandwidth),
            time(min_rtt)
        ),
        CongestionState::Vegas { enabled, rtt, min_rtt } => {
            format!(
                "delay-based control {}: {}, least {}",
                if enabled { "on" } else { "off" },
                time(rtt),
                time(min_rtt)
            )
        }
        CongestionState::Dctcp { enabled, marked } => {
            format!("ECN {}: {} marked", if enabled { "on" } else { "off" }, display::percent(marked))
        }
    }
}
