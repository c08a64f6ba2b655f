//! One element of `intervals`.

use core::time::Duration;

use linerate_model::parameters::TestProtocol;
use linerate_model::sample::{IntervalReport, StreamInterval, TcpInterval, UdpInterval};
use linerate_model::stream::StreamRole;
use linerate_units::{ByteCount, Mtu};

use super::value::{OrderedObject, OrderedValue};
use crate::figures::{
    IntervalSum, TestContext, bits_per_second, interval_seconds, intervals_of, milliseconds, percent, seconds,
};

pub(super) fn object(context: &TestContext, interval: &IntervalReport) -> OrderedObject {
    let mut streams = Vec::new();
    let mut sums = OrderedObject::new();
    for (&role, key) in context.roles().iter().zip(["sum", "sum_bidir_reverse"]) {
        let group = intervals_of(interval, role);
        streams.extend(group.iter().map(|stream| OrderedValue::from(stream_object(context, interval, stream))));
        let sum = IntervalSum::of(&group, context.parallel);
        sums.push(key, sum_object(context, interval, role, &sum));
    }
    let mut object = OrderedObject::new().with("streams", streams);
    object.append(sums);
    object
}

/// Keys that streams and sums share.
fn with_figures(object: OrderedObject, interval: &IntervalReport, bytes: ByteCount) -> OrderedObject {
    let seconds_long = interval_seconds(interval);
    object
        .with("start", seconds(interval.start))
        .with("end", seconds(interval.end))
        .with("seconds", seconds_long)
        .with("bytes", bytes)
        .with("bits_per_second", bits_per_second(bytes, seconds_long))
}

fn stream_object(context: &TestContext, interval: &IntervalReport, stream: &StreamInterval) -> OrderedObject {
    let object = OrderedObject::new().with("socket", context.socket(stream.stream));
    let mut object = with_figures(object, interval, stream.bytes);
    if let Some(tcp) = stream.tcp.as_ref().filter(|tcp| tcp.retransmits.is_some()) {
        push_tcp(&mut object, tcp);
    }
    if let Some(udp) = &stream.udp {
        push_udp(&mut object, udp, stream.role);
    }
    object.with("omitted", interval.omitted).with("sender", stream.role == StreamRole::Sender)
}

/// In iperf3's keys a figure that the kernel did not give is 0.
fn push_tcp(object: &mut OrderedObject, tcp: &TcpInterval) {
    object.push("retransmits", tcp.retransmits.unwrap_or_default());
    object.push("snd_cwnd", tcp.congestion_window.unwrap_or_default());
    object.push("snd_wnd", tcp.send_window.unwrap_or_default());
    object.push("rtt", microseconds(tcp.rtt));
    object.push("rttvar", microseconds(tcp.rttvar));
    object.push("pmtu", tcp.path_mtu.map_or(0, Mtu::get));
    object.push("reorder", tcp.reordering_seen.unwrap_or_default());
}

fn push_udp(object: &mut OrderedObject, udp: &UdpInterval, role: StreamRole) {
    if role == StreamRole::Sender {
        object.push("packets", udp.packets);
        return;
    }
    let lost = udp.lost.unwrap_or_default();
    object.push("jitter_ms", udp.jitter.map_or(0.0, milliseconds));
    object.push("lost_packets", lost);
    object.push("packets", udp.packets);
    object.push("lost_percent", percent(lost, udp.packets));
}

fn sum_object(context: &TestContext, interval: &IntervalReport, role: StreamRole, sum: &IntervalSum) -> OrderedObject {
    let mut object = with_figures(OrderedObject::new(), interval, sum.bytes);
    match (context.protocol, role) {
        (TestProtocol::Tcp, _) => {
            if let Some(retransmits) = sum.retransmits {
                object.push("retransmits", retransmits);
            }
        }
        (TestProtocol::Udp, StreamRole::Sender) => object.push("packets", sum.packets),
        (TestProtocol::Udp, StreamRole::Receiver) => {
            object.push("jitter_ms", sum.jitter_ms);
            object.push("lost_packets", sum.lost);
            object.push("packets", sum.packets);
            object.push("lost_percent", percent(sum.lost, sum.packets));
        }
    }
    object.with("omitted", interval.omitted).with("sender", role == StreamRole::Sender)
}

/// Whole microseconds, as `struct tcp_info` has them; 0 when unknown.
pub(super) fn microseconds(time: Option<Duration>) -> u64 {
    time.map_or(0, |time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}
