//! The object `start`.

use linerate_documents::civil_time;
use linerate_model::event::{ConnectionEstablished, TestStart};
use linerate_model::parameters::{EndCondition, TestDirection, TestParameters, TestProtocol};
use linerate_model::stream::{EndpointRole, StreamDescription};
use linerate_units::{BitRate, ByteCount, Mss, WallTime};

use super::value::{OrderedObject, OrderedValue};

/// All known members: before the test starts those of the program, then of the peer, then everything.
pub(super) fn object(
    version: &str,
    system_information: &str,
    connected: Option<&ConnectionEstablished>,
    start: Option<&TestStart>,
) -> OrderedObject {
    let streams = start.map_or_else(Vec::new, |start| start.streams.iter().map(stream).collect());
    let mut object = OrderedObject::new()
        .with("connected", streams)
        .with("version", version)
        .with("system_info", system_information);
    let agreed = start.map(|start| (start.at, start.cookie.as_str(), &start.parameters));
    let requested = connected.and_then(|connected| connected.request.as_deref());
    let requested = requested.map(|request| (request.at, request.cookie.as_str(), &request.parameters));
    let test = agreed.or(requested);
    if let Some((at, ..)) = test {
        object.push("timestamp", timestamp(at));
    }
    if let Some(connected) = connected {
        let key = if connected.side == EndpointRole::Client { "connecting_to" } else { "accepted_connection" };
        object.push(key, OrderedObject::new().with("host", connected.host.as_str()).with("port", connected.port.get()));
    }
    if let Some((_, cookie, parameters)) = test {
        push_request(&mut object, connected, cookie, parameters);
    }
    if let Some(start) = start {
        object.push("sock_bufsize", start.parameters.window.unwrap_or_default());
        object.push("sndbuf_actual", start.send_buffer.unwrap_or_default());
        object.push("rcvbuf_actual", start.receive_buffer.unwrap_or_default());
        object.push("test_start", test_start(start));
    }
    object
}

fn stream(stream: &StreamDescription) -> OrderedValue {
    OrderedObject::new()
        .with("socket", stream.socket)
        .with("local_host", stream.local.ip().to_string())
        .with("local_port", stream.local.port())
        .with("remote_host", stream.remote.ip().to_string())
        .with("remote_port", stream.remote.port())
        .into()
}

fn timestamp(at: WallTime) -> OrderedObject {
    let since = at.since_unix_epoch();
    let milliseconds = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    OrderedObject::new()
        .with("time", civil_time::rfc1123(at))
        .with("timesecs", since.as_secs())
        .with("timemillisecs", milliseconds)
}

/// Members that a test has from the time when the server admits the client, whether or not it then refuses the test.
fn push_request(
    object: &mut OrderedObject,
    connected: Option<&ConnectionEstablished>,
    cookie: &str,
    parameters: &TestParameters,
) {
    object.push("cookie", cookie);
    if parameters.protocol == TestProtocol::Tcp {
        let default = connected.and_then(|connected| connected.control_mss);
        match (parameters.mss, default) {
            (Some(mss), _) => object.push("tcp_mss", mss.get()),
            (None, default) => object.push("tcp_mss_default", default.map_or(0, Mss::get)),
        }
    }
    object.push("target_bitrate", parameters.rate.map_or(0, BitRate::whole_bits_per_second));
    object.push("fq_rate", fq_rate(parameters));
}

fn test_start(start: &TestStart) -> OrderedObject {
    let parameters = &start.parameters;
    let (mut duration, mut bytes, mut blocks) = (0, ByteCount::ZERO, 0);
    match parameters.end {
        EndCondition::Time(time) => duration = time.as_secs(),
        EndCondition::Bytes(limit) => bytes = limit,
        EndCondition::Blocks(limit) => blocks = limit.get(),
    }
    let is = |direction: TestDirection| i32::from(parameters.direction == direction);
    let offload = i32::from(parameters.segmentation_offload);
    let protocol = if parameters.protocol == TestProtocol::Tcp { "TCP" } else { "UDP" };
    OrderedObject::new()
        .with("protocol", protocol)
        .with("num_streams", parameters.parallel)
        .with("blksize", parameters.block_size)
        .with("omit", parameters.omit.as_secs())
        .with("duration", duration)
        .with("bytes", bytes)
        .with("blocks", blocks)
        .with("reverse", is(TestDirection::Reverse))
        .with("tos", parameters.type_of_service.get())
        .with("target_bitrate", start.target_rate.whole_bits_per_second())
        .with("bidir", is(TestDirection::Bidirectional))
        .with("fqrate", fq_rate(parameters))
        .with("interval", start.interval.unwrap_or_default().as_secs_f64())
        .with("gso", offload)
        .with("gro", offload)
}

fn fq_rate(parameters: &TestParameters) -> u64 {
    parameters.fq_rate.map_or(0, BitRate::whole_bits_per_second)
}
