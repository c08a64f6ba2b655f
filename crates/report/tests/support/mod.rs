//! Building blocks of events, shared by the capture tests.

pub(crate) mod captured;

use core::time::Duration;

use linerate_model::event::{ConnectionEstablished, TestEvent, TestStart};
use linerate_model::parameters::TestParameters;
use linerate_model::report::{CpuUtilization, SideReport, StreamReport, TestReport, TestTermination};
use linerate_model::stream::{EndpointRole, StreamDescription, StreamId, StreamRole};
use linerate_units::{BitRate, ByteCount, Mss, Port, Ratio, WallTime};

/// `seconds` rounded to whole microseconds, iperf3's resolution.
pub(crate) fn micros(seconds: f64) -> Duration {
    Duration::from_secs_f64((seconds * 1e6).round() / 1e6)
}

/// A time, rounded to whole nanoseconds.
pub(crate) fn milliseconds(milliseconds: f64) -> Duration {
    Duration::from_secs_f64(milliseconds / 1e3)
}

/// The system that the captures were made on.
pub(crate) const SYSTEM: &str = "Linux vm 6.18.44-fc-v595 #1 SMP PREEMPT_DYNAMIC @0 x86_64";

pub(crate) fn stream(number: usize, socket: i32, local_port: u16, role: StreamRole) -> StreamDescription {
    StreamDescription {
        id: StreamId::nth(number),
        socket,
        local: ([127, 0, 0, 1], local_port).into(),
        remote: ([127, 0, 0, 1], 5299).into(),
        role,
    }
}

pub(crate) fn connected(side: EndpointRole, port: u16) -> TestEvent {
    TestEvent::Connected(ConnectionEstablished {
        side,
        host: "127.0.0.1".to_owned(),
        port: Port::new(port).expect("a port"),
        control_mss: Some(Mss::new(32768)),
        session: (side == EndpointRole::Server).then_some(1),
        request: None,
    })
}

pub(crate) fn start(side: EndpointRole, parameters: TestParameters, streams: Vec<StreamDescription>) -> TestStart {
    TestStart {
        side,
        target_rate: parameters.rate.unwrap_or(BitRate::ZERO),
        parameters,
        cookie: "uosn7ky5taj2425omscae2cwzsrs5wz2ga3w".to_owned(),
        at: WallTime::from_unix(Duration::from_secs(1_795_161_262)),
        streams,
        interval: Some(Duration::from_secs(1)),
        send_buffer: Some(ByteCount::new(16384)),
        receive_buffer: Some(ByteCount::new(131_072)),
        derived_block_size: None,
        tls_data: None,
        peer: None,
        peer_is_linerate: false,
    }
}

pub(crate) fn side(bytes: ByteCount, duration: Duration) -> SideReport {
    SideReport { bytes, duration }
}

pub(crate) fn stream_report(description: StreamDescription) -> StreamReport {
    StreamReport { description, sent: None, received: None, tcp: None, udp: None, thread_cpu: None }
}

pub(crate) fn report(streams: Vec<StreamReport>) -> TestReport {
    TestReport {
        streams,
        local_cpu: None,
        remote_cpu: None,
        local_congestion: None,
        remote_congestion: None,
        server_output: None,
        file: None,
        overlapping_tests: None,
        far: None,
        host: None,
        termination: TestTermination::Complete,
    }
}

/// The ratio whose percentage is exactly `percent`, or the closest one that exists.
pub(crate) fn percent(percent: f64) -> Ratio {
    let near = percent / 100.0;
    let bits = near.to_bits();
    let candidates = (bits.saturating_sub(4)..=bits + 4).map(f64::from_bits).filter_map(Ratio::new);
    let closest = candidates.min_by(|a, b| {
        let distance = |ratio: &Ratio| (ratio.percent() - percent).abs();
        distance(a).total_cmp(&distance(b))
    });
    closest.expect("a ratio")
}

pub(crate) fn cpu(total: f64, user: f64, system: f64) -> CpuUtilization {
    CpuUtilization { total: percent(total), user: percent(user), system: percent(system) }
}

/// Shows where two texts first differ.
pub(crate) fn assert_same(actual: &str, expected: &str, what: &str) {
    for (number, (ours, theirs)) in actual.lines().zip(expected.lines()).enumerate() {
        assert_eq!(ours, theirs, "{what}, line {}", number + 1);
    }
    assert_eq!(actual.lines().count(), expected.lines().count(), "{what}: number of lines\n{actual}");
    assert_eq!(actual, expected, "{what}");
}
