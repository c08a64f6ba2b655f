//! What limits a flow, in words.

use linerate_model::flow::{BufferOrigin, FlowLimit, FlowState};
use linerate_units::{ByteCount, Ratio, display};

use super::flows::Flow;

/// Its name in documents and metrics.
pub(crate) const fn slug(limit: &FlowLimit) -> &'static str {
    match limit {
        FlowLimit::Idle => "idle",
        FlowLimit::Handshake => "handshake",
        FlowLimit::Accepting { .. } => "accepting",
        FlowLimit::Application { .. } => "application",
        FlowLimit::SendBuffer { .. } => "send-buffer",
        FlowLimit::ReceiveWindow { .. } => "receive-window",
        FlowLimit::ZeroWindow { .. } => "zero-window",
        FlowLimit::Pacing { .. } => "pacing",
        FlowLimit::Loss { .. } => "loss",
        FlowLimit::CongestionWindow { .. } => "congestion-window",
        FlowLimit::NotMoving { .. } => "not-moving",
        FlowLimit::SlowReader { .. } => "slow-reader",
        FlowLimit::OwnWindow { .. } => "own-window",
        FlowLimit::FarEnd => "far-end",
        FlowLimit::Unknown => "unknown",
    }
}

/// A word or two, with the figure that says so.
pub(crate) fn short(limit: &FlowLimit) -> String {
    let with = |word: &str, share: Option<Ratio>| {
        share.map_or_else(|| word.to_owned(), |share| format!("{word} {}", percent(share)))
    };
    let size = |word: &str, size: Option<ByteCount>| {
        size.map_or_else(|| word.to_owned(), |size| format!("{word} {}", super::figures::size(Some(size))))
    };
    match limit {
        FlowLimit::Idle => "idle".to_owned(),
        FlowLimit::Handshake => "handshake".to_owned(),
        FlowLimit::Accepting { waiting, room } => format!("{waiting} of {room} waiting"),
        FlowLimit::Application { share } => with("application", *share),
        FlowLimit::SendBuffer { share, .. } => with("send buffer", *share),
        FlowLimit::ReceiveWindow { share, .. } => with("receive window", *share),
        FlowLimit::ZeroWindow { .. } => "window closed".to_owned(),
        FlowLimit::Pacing { rate } => format!("pacing {}", super::figures::rate(Some(*rate))),
        FlowLimit::Loss { share } => with("loss", *share),
        FlowLimit::CongestionWindow { window } => size("network", *window),
        FlowLimit::NotMoving { black_hole: true, .. } => "black hole?".to_owned(),
        FlowLimit::NotMoving { silent, .. } => {
            format!("not moving {}", silent.map(|time| super::figures::time(Some(time), false)).unwrap_or_default())
        }
        FlowLimit::SlowReader { fill } => with("reads slowly", Some(*fill)),
        FlowLimit::OwnWindow { window } => size("own window", Some(*window)),
        FlowLimit::FarEnd => "far end".to_owned(),
        FlowLimit::Unknown => "-".to_owned(),
    }
}

fn percent(share: Ratio) -> String {
    if share.get() >= 0.01 { format!("{:.0}%", share.percent()) } else { display::percent(share).replace(' ', "") }
}

/// A sentence or three: what it means, by which figures, and where to look.
pub(crate) fn explanation(flow: &Flow, state: &FlowState) -> String {
    let info = flow.reading.info.as_ref();
    match state.limit {
        FlowLimit::Idle => "Nothing was sent or received, and nothing waits to be.".to_owned(),
        FlowLimit::Handshake => "The connection is being set up: the far end has not answered yet.".to_owned(),
        FlowLimit::Accepting { waiting, room } => format!(
            "{waiting} connections wait for the application to accept them, of {room} that may. When that is full, new \
             ones are refused or wait: the application accepts too slowly, or net.core.somaxconn is small."
        ),
        FlowLimit::Application { share: Some(share) } => format!(
            "The sending application had nothing to send for {} of the time: its disk, its processor or its protocol is \
             what limits.",
            display::percent(share)
        ),
        FlowLimit::Application { share: None } => "The sending application hands over less than the connection could \
            carry: whatever is written is sent at once."
            .to_owned(),
        FlowLimit::SendBuffer { share, buffer } => send_buffer(share, buffer, state.send_buffer),
        FlowLimit::ReceiveWindow { share, window } => receive_window(share, window),
        FlowLimit::ZeroWindow { .. } => "The far end has closed its window: its application does not read what has \
            arrived. This host may only ask from time to time."
            .to_owned(),
        FlowLimit::Pacing { rate } => {
            format!("The application has limited its own rate to {} (SO_MAX_PACING_RATE).", display::rate(rate))
        }
        FlowLimit::Loss { share } => format!(
            "Packets are lost{} without a queue before: not this flow's own load, but errors on the way or a policer keep \
             the congestion window small.",
            share
                .map(|share| format!(" ({} of the bytes were sent again)", display::percent(share)))
                .unwrap_or_default()
        ),
        FlowLimit::CongestionWindow { window } => network(flow, window),
        FlowLimit::NotMoving { backoff, black_hole, .. } => {
            not_moving(backoff, black_hole, info.and_then(|info| info.send_mss))
        }
        FlowLimit::SlowReader { fill } => format!(
            "The application on this host reads too slowly: {} of the receive buffer is full of what it has not read.",
            display::percent(fill)
        ),
        FlowLimit::OwnWindow { window } => format!(
            "This host's receive window lets {} be on their way at most, and that arrives in every round trip: a larger \
             net.ipv4.tcp_rmem (or receive buffer of the application) lets the far end send faster.",
            display::size(window)
        ),
        FlowLimit::FarEnd => {
            "Data comes in, and what holds it back is at the far end or on the way: this end's window and \
            application are not it. Watch there to see more."
                .to_owned()
        }
        FlowLimit::Unknown => "The kernel says too little about this socket.".to_owned(),
    }
}

fn send_buffer(share: Option<Ratio>, buffer: Option<ByteCount>, origin: Option<BufferOrigin>) -> String {
    let size = buffer.map(|size| format!(" of {}", display::size(size))).unwrap_or_default();
    let advice = match origin {
        Some(BufferOrigin::SetByApplication) => {
            "The application seems to have set its size, which ends the kernel's own adapting: that is the place to \
             change it."
        }
        Some(BufferOrigin::Largest) => "It is as large as net.ipv4.tcp_wmem lets it become.",
        _ => "The kernel adapts it, up to net.ipv4.tcp_wmem.",
    };
    let by = share.map_or_else(
        || "is full, and all of it is on its way".to_owned(),
        |share| format!("was full for {} of the time in which data was on its way", display::percent(share)),
    );
    format!("The send buffer{size} {by}: it is smaller than what the path can hold. {advice}")
}

fn receive_window(share: Option<Ratio>, window: Option<ByteCount>) -> String {
    let size = window.map(|size| format!(" of {}", display::size(size))).unwrap_or_default();
    let by = share.map_or_else(
        || "the rate is one window per round trip".to_owned(),
        |share| format!("it was used up for {} of the time in which data was on its way", display::percent(share)),
    );
    format!(
        "The far end's receive window{size} limits: {by}. Either its buffer is too small for this path \
         (net.ipv4.tcp_rmem there, or a size that its application set), or its application reads too slowly."
    )
}

fn network(flow: &Flow, window: Option<ByteCount>) -> String {
    let size = window.map(|size| format!(" of {}", display::size(size))).unwrap_or_default();
    let queue = flow
        .change
        .and_then(|change| change.queueing)
        .map_or_else(String::new, |time| format!(" Packets wait {} in queues on the way.", display::duration(time)));
    format!(
        "The congestion window{size} limits: the network gives no more now, to this flow and its neighbours.{queue}"
    )
}

fn not_moving(backoff: u8, black_hole: bool, segment: Option<linerate_units::Mss>) -> String {
    let start = format!("Nothing is acknowledged; the retransmission timeout was doubled {backoff} times.");
    match segment.filter(|_| black_hole) {
        Some(segment) => format!(
            "{start} Segments of {segment} bytes do not get through although smaller ones did: a path that swallows large \
             packets looks like this (`linerate path` finds the size; net.ipv4.tcp_mtu_probing=1 works around it)."
        ),
        None => format!("{start} The path or the far end is dead, or filtered."),
    }
}
