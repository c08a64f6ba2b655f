//! Descriptions of a flow's limit.

use linerate_model::flow::{BufferOrigin, FlowLimit, FlowState};
use linerate_units::{ByteCount, Ratio, display};

use super::flows::FlowEntry;

/// Short description with its figure.
pub(crate) fn short(limit: &FlowLimit) -> String {
    let with = |label: &str, share: Option<Ratio>| {
        share.map_or_else(|| label.to_owned(), |share| format!("{label} {}", percent(share)))
    };
    let size = |label: &str, size: Option<ByteCount>| {
        size.map_or_else(|| label.to_owned(), |size| format!("{label} {}", super::figures::size(Some(size))))
    };
    match limit {
        FlowLimit::Idle => "idle".to_owned(),
        FlowLimit::Handshake => "handshake".to_owned(),
        FlowLimit::Accepting { waiting, room: backlog } => format!("{waiting} of {backlog} waiting"),
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

/// Explanation in one to three sentences: meaning, figures, and advice.
pub(crate) fn explanation(flow: &FlowEntry, state: &FlowState) -> String {
    let info = flow.reading.info.as_ref();
    match state.limit {
        FlowLimit::Idle => "Nothing was sent or received, and no data is queued.".to_owned(),
        FlowLimit::Handshake => "The connection is being set up: the remote host has not answered yet.".to_owned(),
        FlowLimit::Accepting { waiting, room } => format!(
            "{waiting} connections wait for the application to accept them, of at most {room}. When that queue is \
            full, new ones are refused or wait: the application accepts too slowly, or net.core.somaxconn is too \
            small."
        ),
        FlowLimit::Application { share: Some(share) } => format!(
            "The sending application had nothing to send for {} of the time: its disk, its processor or its \
             protocol is the limit.",
            display::percent(share)
        ),
        FlowLimit::Application { share: None } => "The sending application writes less than the connection could \
            carry: all written data is sent at once."
            .to_owned(),
        FlowLimit::SendBuffer { share, buffer } => send_buffer(share, buffer, state.send_buffer),
        FlowLimit::ReceiveWindow { share, window } => receive_window(share, window),
        FlowLimit::ZeroWindow { .. } => "The remote host has closed its window: its application does not read the \
            data that has arrived. This host can only send window probes."
            .to_owned(),
        FlowLimit::Pacing { rate } => {
            format!("The application has limited its own rate to {} (SO_MAX_PACING_RATE).", display::rate(rate))
        }
        FlowLimit::Loss { share } => format!(
            "Packets are lost{} without queueing before: not this flow's own load, but errors on the path or a \
             policer keep the congestion window small.",
            share
                .map(|share| format!(" ({} of the bytes were retransmitted)", display::percent(share)))
                .unwrap_or_default()
        ),
        FlowLimit::CongestionWindow { window } => network(flow, window),
        FlowLimit::NotMoving { backoff, black_hole, .. } => {
            not_moving(backoff, black_hole, info.and_then(|info| info.send_mss))
        }
        FlowLimit::SlowReader { fill } => format!(
            "The application on this host reads too slowly: {} of the receive buffer is full of unread data.",
            display::percent(fill)
        ),
        FlowLimit::OwnWindow { window } => format!(
            "This host's receive window allows at most {} in flight, and it is used up in every round trip: a larger \
             net.ipv4.tcp_rmem (or receive buffer of the application) lets the remote host send faster.",
            display::size(window)
        ),
        FlowLimit::FarEnd => "Data arrives, limited by the remote host or the path: this host's window and \
            application are not the limit. Run `linerate watch` on the remote host for details."
            .to_owned(),
        FlowLimit::Unknown => "The kernel reports too little about this socket.".to_owned(),
    }
}

fn send_buffer(share: Option<Ratio>, buffer: Option<ByteCount>, origin: Option<BufferOrigin>) -> String {
    let size = buffer.map(|size| format!(" of {}", display::size(size))).unwrap_or_default();
    let advice = match origin {
        Some(BufferOrigin::SetByApplication) => {
            "The application seems to have set its size, which disables autotuning: change it \
             there."
        }
        Some(BufferOrigin::Largest) => "It has reached the maximum of net.ipv4.tcp_wmem.",
        _ => "The kernel autotunes it up to net.ipv4.tcp_wmem.",
    };
    let by = share.map_or_else(
        || "is full, and all of its data is in flight".to_owned(),
        |share| format!("was full for {} of the time with data in flight", display::percent(share)),
    );
    format!("The send buffer{size} {by}: it is smaller than the path can carry. {advice}")
}

fn receive_window(share: Option<Ratio>, window: Option<ByteCount>) -> String {
    let size = window.map(|size| format!(" of {}", display::size(size))).unwrap_or_default();
    let by = share.map_or_else(
        || "the rate is one window per round trip".to_owned(),
        |share| format!("it was used up for {} of the time with data in flight", display::percent(share)),
    );
    format!(
        "The remote receive window{size} is the limit: {by}. Either its buffer is too small for this path \
         (net.ipv4.tcp_rmem there, or a size that its application set), or its application reads too slowly."
    )
}

fn network(flow: &FlowEntry, window: Option<ByteCount>) -> String {
    let size = window.map(|size| format!(" of {}", display::size(size))).unwrap_or_default();
    let queue = flow
        .change
        .and_then(|change| change.queueing)
        .map_or_else(String::new, |time| format!(" Packets wait {} in queues on the path.", display::duration(time)));
    format!(
        "The congestion window{size} is the limit: the network has no capacity left for this flow and those that \
        share the path.{queue}"
    )
}

fn not_moving(backoff: u8, black_hole: bool, segment: Option<linerate_units::Mss>) -> String {
    let start = format!("Nothing is acknowledged; the retransmission timeout was doubled {backoff} times.");
    match segment.filter(|_| black_hole) {
        Some(segment) => format!(
            "{start} Segments of {segment} bytes do not arrive although smaller ones did: a path that drops large \
             packets looks like this (`linerate path` finds the size; net.ipv4.tcp_mtu_probing=1 works around it)."
        ),
        None => format!("{start} The path or the remote host is down, or a firewall drops the packets."),
    }
}
