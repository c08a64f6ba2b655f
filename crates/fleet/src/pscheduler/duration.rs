//! Time that a run takes, by which pScheduler reserves its slot.

use core::time::Duration;

use super::probes::{
    DEFAULT_COUNT, DEFAULT_HOPS, DEFAULT_PACKETS, HOPS_AT_ONCE, packet_interval, packet_timeout, probe_wait,
};
use super::specification::{SpecValues, Specification, TestKind};

/// Transfer of a specification that names no duration.
pub const DEFAULT_TRANSFER: Duration = Duration::from_secs(10);

/// Time for the server's start, within which a client finds no server yet.
pub const SERVER_WAIT: Duration = Duration::from_secs(3);

/// Time for the server's end.
const SERVER_SHUTDOWN: Duration = Duration::from_secs(2);

/// Set-up time without a known round trip.
const DEFAULT_SETUP: Duration = Duration::from_secs(4);

/// Time of the measurements of the path in `diagnose`.
const PATH_MEASUREMENT: Duration = Duration::from_secs(40);

/// Time of the search for the path MTU, where nothing answers but the search itself.
const MTU_SEARCH: Duration = Duration::from_secs(25);

/// Allowance for starting a program.
const START: Duration = Duration::from_secs(2);

/// Whole seconds that a run takes from its scheduled start.
#[must_use]
pub fn run_duration(test: &Specification) -> Duration {
    let spec = &test.values;
    let exact = match test.kind {
        TestKind::Throughput => transfer_time(spec),
        TestKind::Diagnose => PATH_MEASUREMENT.saturating_add(transfer_time(spec)),
        TestKind::Rtt => rtt_time(spec),
        TestKind::Latency => {
            let packets = spec.packet_count.unwrap_or(DEFAULT_PACKETS);
            packet_interval(spec).saturating_mul(packets) + packet_timeout(spec) + START
        }
        TestKind::Mtu => MTU_SEARCH,
        TestKind::Trace => {
            let hops = spec.hops.unwrap_or(DEFAULT_HOPS);
            let rounds = u32::from(hops).div_ceil(HOPS_AT_ONCE);
            let sends = spec.sendwait.unwrap_or_default().saturating_mul(u32::from(hops));
            sends.saturating_add(probe_wait(spec).saturating_mul(rounds)).saturating_add(START)
        }
    };
    Duration::from_secs(exact.as_secs().saturating_add(u64::from(exact.subsec_nanos() > 0)))
}

/// As of the stock tool for iperf3, so that either fits the slot of the other: a second of set-up per 50 ms of round trip.
fn transfer_time(spec: &SpecValues) -> Duration {
    let setup =
        spec.link_rtt.map_or(DEFAULT_SETUP, |round_trip| round_trip.saturating_mul(20).max(Duration::from_secs(1)));
    let transfer = spec.duration.unwrap_or(DEFAULT_TRANSFER);
    [spec.omit.unwrap_or_default(), transfer, SERVER_WAIT, SERVER_SHUTDOWN]
        .into_iter()
        .fold(setup, Duration::saturating_add)
}

fn rtt_time(spec: &SpecValues) -> Duration {
    let interval = spec.interval.unwrap_or(Duration::from_secs(1));
    let last = spec.timeout.unwrap_or(Duration::from_secs(2));
    let between = interval.saturating_mul(spec.count.unwrap_or(DEFAULT_COUNT).saturating_sub(1));
    spec.deadline.unwrap_or(between.saturating_add(last)).saturating_add(START)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn durations_are_whole_seconds_that_suffice() {
        for (kind, spec, seconds) in [
            ("throughput", json!({}), 19),
            ("throughput", json!({ "duration": "PT30S" }), 39),
            ("throughput", json!({ "duration": "PT30S", "omit": "PT5S", "link-rtt": "PT0.3S" }), 46),
            ("throughput", json!({ "link-rtt": "PT0.001S" }), 16),
            ("throughput", json!({ "link-rtt": "PT0.0512S" }), 17),
            ("diagnose", json!({}), 59),
            ("rtt", json!({ "hostnames": false }), 8),
            ("rtt", json!({ "hostnames": false, "count": 100, "interval": "PT0.1S" }), 14),
            ("rtt", json!({ "hostnames": false, "deadline": "PT3S" }), 5),
            ("latency", json!({ "protocol": "stamp" }), 15),
            ("mtu", json!({}), 25),
            ("trace", json!({ "hostnames": false, "as": false }), 10),
        ] {
            let Value::Object(mut spec) = spec else { unreachable!("an object") };
            spec.insert("dest".to_owned(), json!("a"));
            let test = Specification::parse(&json!({ "type": kind, "spec": spec })).expect("it can run");
            assert_eq!(run_duration(&test).as_secs(), seconds, "{kind} {spec:?}");
        }
    }
}
