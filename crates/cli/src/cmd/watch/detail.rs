//! One flow by itself: its history, what limits it and why, and what the kernel says of it.

use linerate_model::flow::BufferOrigin;
use linerate_model::socket::{CongestionState, SocketReading};
use linerate_units::{ByteCount, display};

use super::columns;
use super::flows::Row;
use super::history::READINGS;
use super::limit;
use super::table::Look;
use crate::spark::spark;

/// Room for the name of a figure.
const NAME: usize = 15;

/// The view's lines, as wide as `look` says.
pub(crate) fn lines(row: &Row<'_>, look: &Look) -> Vec<String> {
    let flow = row.flow;
    let key = &flow.reading.key;
    let arrow = if look.style.unicode { "→" } else { "->" };
    let mut lines = vec![look.bold(&format!("{} {arrow} {}", key.local, columns::peer(&key.remote)))];
    lines.extend(wrapped(&format!("{}, {}", flow.reading.state.name(), process(row)), look.width));
    lines.push(String::new());
    lines.extend(plots(row, look));
    lines.push(String::new());
    if let Some(state) = &flow.state {
        lines.push(look.bold(&format!("Limited by: {}", limit::short(&state.limit))));
        lines.extend(wrapped(&limit::explanation(flow, state), look.width));
        lines.push(String::new());
    }
    lines.extend(
        figures(row)
            .into_iter()
            .flat_map(|(name, value)| {
                let room = look.width.saturating_sub(NAME).max(20);
                let parts = wrapped(&value, room);
                parts.into_iter().enumerate().map(move |(index, part)| {
                    let name = if index == 0 { name } else { "" };
                    format!("{name:<NAME$}{part}")
                })
            })
            .map(|line| if look.style.unicode { line } else { line.replace('µ', "u") }),
    );
    lines
}

fn process(row: &Row<'_>) -> String {
    match row.owner.known() {
        Some(owner) => format!("{} (process {})", owner.name, owner.process),
        None => row.owner.unread().map(|unread| format!("process unknown: {}", unread.reason)).unwrap_or_default(),
    }
}

fn plots(row: &Row<'_>, look: &Look) -> Vec<String> {
    let Some(history) = &row.flow.history else {
        return vec!["Nothing has moved yet: there is no history.".to_owned()];
    };
    let change = row.flow.change.unwrap_or_default();
    let rate = display::rate(change.total_rate());
    let time = change.rtt.map(display::duration);
    let window = change.congestion_window.map(display::size);
    let unknown = || "unknown".to_owned();
    let plot = |name: &str, readings: &[f64], now: String| {
        let now = if look.style.unicode { now } else { now.replace('µ', "u") };
        let room = look.width.saturating_sub(NAME + 14).min(READINGS);
        format!("{name:<NAME$}{now:<14}{}", spark(readings, room, look.style.unicode))
    };
    vec![
        plot("Rate", &history.rates(), rate),
        plot("Round trip", &history.round_trips(), time.unwrap_or_else(unknown)),
        plot("Window", &history.windows(), window.unwrap_or_else(unknown)),
    ]
}

/// Names and values; what is not known is left out.
fn figures(row: &Row<'_>) -> Vec<(&'static str, String)> {
    let flow = row.flow;
    let change = flow.change.unwrap_or_default();
    let reading = &flow.reading;
    let info = reading.info.clone().unwrap_or_default();
    let both = |one: Option<String>, other: Option<String>| -> Option<String> {
        let parts: Vec<String> = [one, other].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    };
    let queueing = change.queueing.map(|time| format!("{} of it in queues", display::duration(time)));
    let least = info.min_rtt.map(|time| format!("least {}", display::duration(time)));
    let again = info.retransmits.map(|count| format!("{count} segments in all"));
    let now = change.retransmission_share.map(|share| format!("{} now", display::percent(share)));
    let flight = change.in_flight.map(|size| format!("{} in flight", display::size(size)));
    let far_window = info.send_window.map(|size| format!("the far end's {}", display::size(size)));
    let own_window = info.receive_window.map(|size| format!("this end's {}", display::size(size)));
    let unread =
        (!reading.receive_queue.is_zero()).then(|| format!("{} not read", display::size(reading.receive_queue)));
    let unsent =
        (!reading.send_queue.is_zero()).then(|| format!("{} not acknowledged", display::size(reading.send_queue)));
    let named = reading.congestion_control.map(|name| name.to_string());
    [
        ("Round trip", both(info.rtt.map(display::duration), both(queueing, least))),
        ("Up, down", both(change.send_rate.map(display::rate), change.receive_rate.map(display::rate))),
        ("Sent again", both(again, now)),
        ("Congestion", both(named, both(info.congestion_window.map(display::size), flight))),
        ("", reading.congestion_state.map(congestion_state)),
        ("Windows", both(far_window, own_window)),
        ("Queues", both(unread, unsent)),
        ("Send buffer", buffer(reading, |memory| memory.send_buffer, flow.state.and_then(|state| state.send_buffer))),
        (
            "Receive buffer",
            buffer(reading, |memory| memory.receive_buffer, flow.state.and_then(|state| state.receive_buffer)),
        ),
        ("Pace", info.pacing_rate.map(display::rate)),
        (
            "Segment",
            both(info.send_mss.map(|size| format!("{size} B")), info.path_mtu.map(|size| format!("path MTU {size} B"))),
        ),
        ("Time limited", change.limits.as_ref().map(shares)),
        (
            "Moved in all",
            both(
                info.bytes_acknowledged.map(|size| format!("{} up", display::size(size))),
                info.bytes_received.map(|size| format!("{} down", display::size(size))),
            ),
        ),
    ]
    .into_iter()
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
    reading: &SocketReading,
    which: fn(&linerate_model::socket::SocketMemory) -> ByteCount,
    origin: Option<BufferOrigin>,
) -> Option<String> {
    let size = display::size(which(reading.memory.as_ref()?));
    Some(match origin {
        Some(BufferOrigin::Initial) => format!("{size}, as every socket begins"),
        Some(BufferOrigin::Largest) => format!("{size}, the largest that the host's settings allow"),
        Some(BufferOrigin::Adapted) => format!("{size}, adapted by the kernel"),
        Some(BufferOrigin::SetByApplication) => format!("{size}, set by the application as it seems"),
        None => size,
    })
}

fn congestion_state(state: CongestionState) -> String {
    let time = |time: Option<std::time::Duration>| time.map_or_else(|| "unknown".to_owned(), display::duration);
    match state {
        CongestionState::Bbr { bandwidth, min_rtt, pacing_gain, window_gain } => format!(
            "believes in {}, {}; gains {pacing_gain:.2} (pace), {window_gain:.2} (window)",
            display::rate(bandwidth),
            time(min_rtt)
        ),
        CongestionState::Vegas { enabled, rtt, min_rtt } => {
            format!("by delay {}: {}, least {}", if enabled { "on" } else { "off" }, time(rtt), time(min_rtt))
        }
        CongestionState::Dctcp { enabled, marked } => {
            format!("marks {}: {} marked", if enabled { "on" } else { "off" }, display::percent(marked))
        }
    }
}

/// Words in lines of at most `width`.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().map(|line| (line.chars().count(), line));
        match line {
            Some((0, line)) => line.push_str(word),
            Some((length, line)) if length + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
