//! The object `end`.

use linerate_model::parameters::TestProtocol;
use linerate_model::report::{FileReport, StreamReport, TestReport};
use linerate_model::stream::StreamRole;
use linerate_units::{ByteCount, PacketCount};

use super::interval::microseconds;
use super::value::{OrderedObject, OrderedValue};
use crate::figures::{
    DirectionEnd, EndTimes, TestContext, UdpEnd, bits_per_second, bytes_received, bytes_sent, percent,
    remote_congestion, retransmits, whole_percent,
};

pub(super) fn object(context: &TestContext, report: &TestReport) -> OrderedObject {
    let times = EndTimes::of(report);
    let mut streams = Vec::new();
    let mut sums = OrderedObject::new();
    for (&role, suffix) in context.roles().iter().zip(["", "_bidir_reverse"]) {
        let direction = DirectionEnd::of(report, context, role);
        for stream in &direction.streams {
            streams.push(OrderedValue::from(stream_object(context, report, &direction, times, stream)));
        }
        match context.protocol {
            TestProtocol::Tcp => push_tcp_sums(&mut sums, &direction, times, suffix),
            TestProtocol::Udp => push_udp_sums(&mut sums, context, &direction, times, suffix),
        }
    }
    let mut object = OrderedObject::new().with("streams", streams);
    object.append(sums);
    object.push("cpu_utilization_percent", cpu(report));
    if context.protocol == TestProtocol::Tcp {
        push_congestion(&mut object, context, report);
    }
    object
}

fn stream_object(
    context: &TestContext,
    report: &TestReport,
    direction: &DirectionEnd<'_>,
    times: EndTimes,
    stream: &StreamReport,
) -> OrderedObject {
    let (first, second) = match context.protocol {
        TestProtocol::Tcp => {
            (("sender", tcp_sender(direction, times, stream)), Some(tcp_receiver(direction, times, stream)))
        }
        TestProtocol::Udp => (("udp", udp(direction, times, stream)), None),
    };
    let mut object = OrderedObject::new().with(first.0, first.1);
    if let Some(file) = &report.file {
        object.push("diskfile", disk_file(file, stream));
    }
    if let Some(receiver) = second {
        object.push("receiver", receiver);
    }
    object
}

/// Start, end, seconds, bytes and rate, where the rate is over the time at the end.
fn with_figures(object: OrderedObject, end: f64, bytes: ByteCount) -> OrderedObject {
    object
        .with("start", 0)
        .with("end", end)
        .with("seconds", end)
        .with("bytes", bytes)
        .with("bits_per_second", bits_per_second(bytes, end))
}

fn tcp_sender(direction: &DirectionEnd<'_>, times: EndTimes, stream: &StreamReport) -> OrderedObject {
    let object = OrderedObject::new().with("socket", stream.description.socket);
    let mut object = with_figures(object, times.sender, bytes_sent(stream));
    if direction.has_retransmits {
        let tcp = stream.tcp.clone().unwrap_or_default();
        let rtt = tcp.interval_rtt;
        object.push("retransmits", retransmits(stream).unwrap_or_default());
        object.push("reorder", tcp.reordering_seen.unwrap_or_default());
        object.push("max_snd_cwnd", tcp.max_congestion_window.unwrap_or_default());
        object.push("max_snd_wnd", tcp.max_send_window.unwrap_or_default());
        object.push("max_rtt", microseconds(rtt.map(|rtt| rtt.max)));
        object.push("min_rtt", microseconds(rtt.map(|rtt| rtt.min)));
        object.push("mean_rtt", microseconds(rtt.map(|rtt| rtt.mean)));
    }
    object.with("sender", direction.role == StreamRole::Sender)
}

/// iperf3 reports this end's own time under "seconds" on both ends; the rate is over the receiver's.
fn tcp_receiver(direction: &DirectionEnd<'_>, times: EndTimes, stream: &StreamReport) -> OrderedObject {
    let bytes = bytes_received(stream);
    OrderedObject::new()
        .with("socket", stream.description.socket)
        .with("start", 0)
        .with("end", times.receiver)
        .with("seconds", times.local)
        .with("bytes", bytes)
        .with("bits_per_second", bits_per_second(bytes, times.receiver))
        .with("sender", direction.role == StreamRole::Sender)
}

fn push_tcp_sums(sums: &mut OrderedObject, direction: &DirectionEnd<'_>, times: EndTimes, suffix: &str) {
    let sends = direction.role == StreamRole::Sender;
    let mut sent = with_figures(OrderedObject::new(), times.sender, direction.bytes_sent());
    if direction.has_retransmits {
        sent.push("retransmits", direction.retransmits());
    }
    let received = with_figures(OrderedObject::new(), times.receiver, direction.bytes_received());
    sums.push(format!("sum_sent{suffix}"), sent.with("sender", sends));
    sums.push(format!("sum_received{suffix}"), received.with("sender", sends));
}

/// Both sides in one object: time and bytes are the sender's, jitter and loss the receiver's.
fn udp(direction: &DirectionEnd<'_>, times: EndTimes, stream: &StreamReport) -> OrderedObject {
    let udp = UdpEnd::of(stream);
    let object = OrderedObject::new().with("socket", stream.description.socket);
    let object = with_figures(object, times.sender, bytes_sent(stream));
    with_loss(object, udp.jitter_ms, udp.lost.unwrap_or_default(), udp.packets(), udp.packets())
        .with("out_of_order", udp.out_of_order)
        .with("sender", direction.role == StreamRole::Sender)
}

fn with_loss(
    object: OrderedObject,
    jitter_ms: f64,
    lost: PacketCount,
    packets: PacketCount,
    of: PacketCount,
) -> OrderedObject {
    object
        .with("jitter_ms", jitter_ms)
        .with("lost_packets", lost)
        .with("packets", packets)
        .with("lost_percent", percent(lost, of))
}

/// `sum` mixes what was sent with the receiver's time. "sender" is this end's role in `sum` only; in the other two it
/// marks whose figures they are.
fn push_udp_sums(
    sums: &mut OrderedObject,
    context: &TestContext,
    direction: &DirectionEnd<'_>,
    times: EndTimes,
    suffix: &str,
) {
    let (jitter_ms, lost) = (direction.jitter_ms(context.parallel), direction.lost().unwrap_or_default());
    let bytes = direction.bytes_sent();
    let sum = OrderedObject::new()
        .with("start", 0)
        .with("end", times.receiver)
        .with("seconds", times.receiver)
        .with("bytes", bytes)
        .with("bits_per_second", bits_per_second(bytes, times.sender));
    let sum = with_loss(sum, jitter_ms, lost, direction.packets(), direction.packets());
    let sent = with_figures(OrderedObject::new(), times.sender, bytes);
    let sent = with_loss(sent, 0.0, PacketCount::ZERO, direction.packets_sent(), PacketCount::ZERO);
    let received = with_figures(OrderedObject::new(), times.receiver, direction.bytes_received());
    let received = with_loss(received, jitter_ms, lost, direction.packets_expected(), direction.packets());
    let key = if suffix.is_empty() { "sum" } else { "sum_bidir_reverse" };
    sums.push(key, sum.with("sender", direction.role == StreamRole::Sender));
    sums.push(format!("sum_sent{suffix}"), sent.with("sender", true));
    sums.push(format!("sum_received{suffix}"), received.with("sender", false));
}

fn disk_file(file: &FileReport, stream: &StreamReport) -> OrderedObject {
    let (sent, received) = (bytes_sent(stream), bytes_received(stream));
    OrderedObject::new()
        .with("sent", sent)
        .with("received", received)
        .with("size", file.size)
        .with("percent_sent", whole_percent(sent, file.size))
        .with("percent_received", whole_percent(received, file.size))
        .with("filename", file.name.as_str())
}

fn cpu(report: &TestReport) -> OrderedObject {
    let (host, remote) = (report.local_cpu.unwrap_or_default(), report.remote_cpu.unwrap_or_default());
    OrderedObject::new()
        .with("host_total", host.total.percent())
        .with("host_user", host.user.percent())
        .with("host_system", host.system.percent())
        .with("remote_total", remote.total.percent())
        .with("remote_user", remote.user.percent())
        .with("remote_system", remote.system.percent())
}

/// The direction shown last determines which end's algorithm is the sender's.
fn push_congestion(object: &mut OrderedObject, context: &TestContext, report: &TestReport) {
    let (local, remote) = (report.local_congestion.as_ref(), remote_congestion(context, report));
    let sends = context.roles().last() == Some(&StreamRole::Sender);
    let (sender, receiver) = if sends { (local, remote) } else { (remote, local) };
    for (key, algorithm) in [("sender_tcp_congestion", sender), ("receiver_tcp_congestion", receiver)] {
        if let Some(algorithm) = algorithm {
            object.push(key, algorithm.as_str());
        }
    }
}
