//! Specifications of tests: which of them the tool can run, and why not.

use core::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::iso_duration;

/// Tests that the tool runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TestKind {
    /// Throughput of TCP or UDP.
    Throughput,
    /// Round trips of ICMP echoes.
    Rtt,
    /// One-way delays by STAMP.
    Latency,
    /// Path MTU.
    Mtu,
    /// Routers of the path.
    Trace,
    /// Limit of a transfer: linerate's own test.
    Diagnose,
}

impl TestKind {
    /// All tests.
    pub const ALL: [Self; 6] = [Self::Throughput, Self::Rtt, Self::Latency, Self::Mtu, Self::Trace, Self::Diagnose];

    /// Name of the test in pScheduler.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Rtt => "rtt",
            Self::Latency => "latency",
            Self::Mtu => "mtu",
            Self::Trace => "trace",
            Self::Diagnose => "diagnose",
        }
    }

    /// Highest version of the specification's schema.
    #[must_use]
    pub const fn max_schema(self) -> u64 {
        match self {
            Self::Throughput => 7,
            Self::Rtt | Self::Latency => 4,
            Self::Mtu | Self::Trace => 2,
            Self::Diagnose => 1,
        }
    }

    /// Keys of the specification that the tool honours, besides `schema`, `source`, `source-node`, `dest` and `ip-version`.
    const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Throughput => &[
                "dest-node",
                "duration",
                "interval",
                "link-rtt",
                "parallel",
                "udp",
                "bandwidth",
                "bandwidth-strict",
                "burst-size",
                "fq-rate",
                "window-size",
                "mss",
                "buffer-length",
                "ip-tos",
                "local-address",
                "omit",
                "no-delay",
                "congestion",
                "zero-copy",
                "flow-label",
                "client-cpu-affinity",
                "server-cpu-affinity",
                "single-ended",
                "single-ended-port",
                "reverse",
                "loopback",
            ],
            Self::Rtt => &[
                "count",
                "interval",
                "length",
                "ttl",
                "ip-tos",
                "deadline",
                "timeout",
                "fragment",
                "hostnames",
                "protocol",
                "suppress-loopback",
            ],
            Self::Latency => &[
                "dest-node",
                "protocol",
                "packet-count",
                "packet-interval",
                "packet-timeout",
                "ctrl-port",
                "bucket-width",
                "reverse",
                "flip",
                "output-raw",
                "traverse-nat",
            ],
            Self::Mtu => &[],
            Self::Trace => &[
                "algorithm",
                "as",
                "first-ttl",
                "fragment",
                "hops",
                "hostnames",
                "ip-tos",
                "length",
                "probe-type",
                "queries",
                "sendwait",
                "wait",
            ],
            Self::Diagnose => super::diagnose_test::KEYS,
        }
    }
}

/// Keys of every specification.
const COMMON_KEYS: [&str; 5] = ["schema", "source", "source-node", "dest", "ip-version"];

/// Values of a specification; `None` where it leaves them to the tool. Tests share the meaning of a key.
#[expect(missing_docs, reason = "named and documented by pScheduler's specifications")]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct SpecValues {
    pub schema: Option<u64>,
    pub source: Option<String>,
    pub source_node: Option<String>,
    pub dest: Option<String>,
    pub dest_node: Option<String>,
    pub ip_version: Option<u8>,
    #[serde(deserialize_with = "iso_duration::deserialize")]
    pub duration: Option<Duration>,
    #[serde(deserialize_with = "iso_duration::deserialize")]
    pub interval: Option<Duration>,
    #[serde(deserialize_with = "iso_duration::deserialize")]
    pub link_rtt: Option<Duration>,
    #[serde(deserialize_with = "iso_duration::deserialize")]
    pub omit: Option<Duration>,
    pub parallel: Option<u64>,
    pub udp: bool,
    pub bandwidth: Option<u64>,
    pub burst_size: Option<u64>,
    pub fq_rate: Option<u64>,
    pub window_size: Option<u64>,
    pub mss: Option<u64>,
    pub buffer_length: Option<u64>,
    pub ip_tos: Option<u8>,
    pub local_address: Option<String>,
    pub no_delay: bool,
    pub congestion: Option<String>,
    pub zero_copy: bool,
    pub flow_label: Option<u32>,
    pub client_cpu_affinity: Option<u16>,
    pub server_cpu_affinity: Option<u16>,
    pub single_ended: bool,
    pub single_ended_port: Option<u16>,
    pub reverse: bool,
    pub loopback: bool,
    pub count: Option<u32>,
    pub length: Option<u16>,
    pub ttl: Option<u8>,
    #[serde(deserialize_with = "iso_duration::deserialize")]
    pub deadline: Option<Duration>,
    #[serde(deserialize_with = "iso_duration::deserialize")]
    pub timeout: Option<Duration>,
    pub fragment: Option<bool>,
    pub hostnames: Option<bool>,
    pub protocol: Option<String>,
    pub suppress_loopback: bool,
    pub packet_count: Option<u32>,
    pub packet_interval: Option<f64>,
    pub packet_timeout: Option<f64>,
    pub ctrl_port: Option<u16>,
    pub bucket_width: Option<f64>,
    pub flip: bool,
    pub output_raw: bool,
    pub traverse_nat: bool,
    #[serde(rename = "as")]
    pub systems: Option<bool>,
    pub algorithm: Option<String>,
    pub first_ttl: Option<u8>,
    pub hops: Option<u8>,
    pub probe_type: Option<String>,
    pub queries: Option<u32>,
    #[serde(deserialize_with = "iso_duration::deserialize")]
    pub sendwait: Option<Duration>,
    #[serde(deserialize_with = "iso_duration::deserialize")]
    pub wait: Option<Duration>,
    pub no_capacity: bool,
}

/// A test that the tool can run.
#[derive(Clone, Debug, PartialEq)]
pub struct Specification {
    /// Test.
    pub kind: TestKind,
    /// Values.
    pub values: SpecValues,
}

impl Specification {
    /// Reads `{"type": …, "spec": {…}}`; the error has one reason per obstacle.
    pub fn parse(test: &Value) -> Result<Self, Vec<String>> {
        let one = |reason: String| vec![reason];
        let name = test.get("type").and_then(Value::as_str).ok_or_else(|| one("the test has no type".to_owned()))?;
        let kind = TestKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            one(format!("linerate has no test {name:?}; it runs {}", TestKind::ALL.map(TestKind::name).join(", ")))
        })?;
        let spec = test.get("spec").and_then(Value::as_object);
        let spec = spec.ok_or_else(|| one("the test has no specification: \"spec\" is not an object".to_owned()))?;
        let unknown = unknown_keys(kind, spec);
        if !unknown.is_empty() {
            return Err(unknown);
        }
        let values = SpecValues::deserialize(Value::Object(spec.clone())).map_err(|error| one(error.to_string()))?;
        let obstacles = obstacles(kind, &values);
        if obstacles.is_empty() { Ok(Self { kind, values }) } else { Err(obstacles) }
    }

    /// Address of the other host.
    #[must_use]
    pub fn dest(&self) -> &str {
        self.values.dest.as_deref().unwrap_or_default()
    }

    /// True when one participant runs the test alone.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        let is_pair = matches!(self.kind, TestKind::Throughput | TestKind::Diagnose);
        !is_pair || self.values.single_ended || self.values.loopback
    }
}

fn unknown_keys(kind: TestKind, spec: &Map<String, Value>) -> Vec<String> {
    let is_known = |key: &str| COMMON_KEYS.contains(&key) || kind.keys().contains(&key) || key.starts_with('_');
    let unknown = spec.keys().filter(|key| !is_known(key));
    unknown.map(|key| format!("linerate does not support {key:?} in a test {}", kind.name())).collect()
}

/// Reasons for which a test of known keys cannot run.
fn obstacles(kind: TestKind, spec: &SpecValues) -> Vec<String> {
    let schema = spec.schema.unwrap_or(1);
    let mut found = Vec::new();
    let mut check = |is_obstacle: bool, reason: &str| {
        if is_obstacle {
            found.push(reason.to_owned());
        }
    };
    check(spec.dest.as_deref().is_none_or(str::is_empty), "the specification has no \"dest\"");
    check(
        schema > kind.max_schema(),
        &format!("schema {schema} is newer than {}, which linerate knows", kind.max_schema()),
    );
    check(spec.ip_version.is_some_and(|version| ![4, 6].contains(&version)), "\"ip-version\" is neither 4 nor 6");
    match kind {
        TestKind::Throughput | TestKind::Diagnose => transfer_obstacles(spec, &mut check),
        TestKind::Rtt => rtt_obstacles(spec, &mut check),
        TestKind::Latency => latency_obstacles(spec, &mut check),
        TestKind::Trace => trace_obstacles(spec, &mut check),
        TestKind::Mtu => {}
    }
    found
}

type Check<'a> = &'a mut dyn FnMut(bool, &str);

fn transfer_obstacles(spec: &SpecValues, check: Check<'_>) {
    check(spec.duration.is_some_and(|time| time < Duration::from_secs(1)), "\"duration\" is shorter than a second");
    check(spec.interval.is_some_and(|time| time < Duration::from_secs(1)), "\"interval\" is shorter than a second");
    check(spec.bandwidth.is_some() && spec.fq_rate.is_some(), "\"bandwidth\" and \"fq-rate\" exclude each other");
    check(spec.burst_size.is_some() && spec.bandwidth.is_none(), "\"burst-size\" needs a \"bandwidth\"");
    check(spec.flow_label.is_some() && spec.ip_version == Some(4), "\"flow-label\" needs IPv6");
    check(spec.single_ended && spec.loopback, "\"single-ended\" and \"loopback\" exclude each other");
    check(spec.single_ended_port == Some(0), "\"single-ended-port\" is 0");
    check(spec.parallel == Some(0), "\"parallel\" is 0");
}

/// The stock tools add the name of every address by default: a test without it says so.
const NO_NAMES: &str = "linerate does not look names up: set \"hostnames\" to false";

/// Most echoes of a test: each answer is part of the result.
const MAX_ECHOES: u32 = 100_000;

/// Shortest time between two echoes.
const MIN_ECHO_INTERVAL: Duration = Duration::from_millis(10);

/// Most packets of a test `latency`: each delay is kept until its end.
const MAX_PACKETS: u32 = 10_000_000;

/// Shortest time between two packets of a test `latency`, and least width of a bucket, in seconds.
const MIN_SECONDS: f64 = 1e-6;

fn rtt_obstacles(spec: &SpecValues, check: Check<'_>) {
    check(spec.hostnames != Some(false), NO_NAMES);
    check(spec.protocol.as_deref().is_some_and(|protocol| protocol != "icmp"), "only the protocol icmp is supported");
    check(spec.suppress_loopback, "\"suppress-loopback\" is not supported");
    check(spec.count.is_some_and(|count| !(1..=MAX_ECHOES).contains(&count)), "\"count\" is 0, or more than 100000");
    let is_flood = spec.interval.is_some_and(|interval| interval < MIN_ECHO_INTERVAL);
    check(is_flood, "\"interval\" is shorter than 10 ms");
    check(spec.ttl == Some(0), "\"ttl\" is 0");
}

fn latency_obstacles(spec: &SpecValues, check: Check<'_>) {
    // Without a protocol, the far end has an owampd, which linerate does not speak to.
    check(
        spec.protocol.as_deref() != Some("stamp"),
        "linerate needs a STAMP reflector at \"dest\": set \"protocol\" to \"stamp\"",
    );
    check(spec.flip, "\"flip\" is not supported");
    check(spec.output_raw, "\"output-raw\" is not supported");
    check(spec.traverse_nat, "\"traverse-nat\" is not supported");
    let is_countable = |count: u32| (1..=MAX_PACKETS).contains(&count);
    check(spec.packet_count.is_some_and(|count| !is_countable(count)), "\"packet-count\" is 0, or more than 10000000");
    let is_bad = |value: Option<f64>| value.is_some_and(|value| !(MIN_SECONDS..1e6).contains(&value));
    check(is_bad(spec.packet_interval), "\"packet-interval\" is not a number of seconds from 0.000001 on");
    check(is_bad(spec.bucket_width), "\"bucket-width\" is not a number of seconds from 0.000001 on");
    let is_endless = spec.packet_timeout.is_some_and(|value| !(0.0..1e6).contains(&value));
    check(is_endless, "\"packet-timeout\" is not a number of seconds");
}

fn trace_obstacles(spec: &SpecValues, check: Check<'_>) {
    check(spec.hostnames != Some(false), NO_NAMES);
    check(spec.systems != Some(false), "linerate does not look autonomous systems up: set \"as\" to false");
    check(spec.algorithm.is_some(), "\"algorithm\" is not supported");
    check(spec.probe_type.as_deref().is_some_and(|kind| kind != "icmp"), "only the probe type icmp is supported");
    check(spec.queries.is_some_and(|queries| queries != 1), "only one query per hop is supported");
    let (first, hops) = (spec.first_ttl.unwrap_or(1), spec.hops.unwrap_or(super::probes::DEFAULT_HOPS));
    check(first == 0 || hops == 0 || first > hops, "\"first-ttl\" is not within \"hops\"");
}

/// Answer of the method `can-run`.
#[must_use]
pub fn can_run(test: &Value) -> Value {
    match Specification::parse(test) {
        Ok(_) => json!({ "can-run": true }),
        Err(reasons) => json!({ "can-run": false, "reasons": reasons }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "callers write literals")]
    fn reasons(kind: &str, spec: Value) -> Vec<String> {
        Specification::parse(&json!({ "type": kind, "spec": spec })).err().unwrap_or_default()
    }

    #[test]
    fn every_key_that_the_contract_lists_is_accepted() {
        let spec = json!({
            "schema": 7, "source": "192.0.2.1", "dest": "192.0.2.2", "source-node": "a", "dest-node": "b", "duration": "PT20S",
            "interval": "PT2S", "link-rtt": "PT0.1S", "parallel": 4, "udp": false, "bandwidth": 1_000_000_000,
            "bandwidth-strict": true, "burst-size": 10, "window-size": 65536, "mss": 1400, "buffer-length": 131_072, "ip-tos": 32,
            "ip-version": 6, "local-address": "192.0.2.1", "omit": "PT1S", "no-delay": true, "congestion": "cubic",
            "zero-copy": true, "flow-label": 7, "client-cpu-affinity": 0, "server-cpu-affinity": 1, "single-ended": false,
            "single-ended-port": 5202, "reverse": true, "loopback": false
        });
        assert_eq!(reasons("throughput", spec), Vec::<String>::new());
        assert_eq!(can_run(&json!({ "type": "mtu", "spec": { "dest": "a" } })), json!({ "can-run": true }));
    }

    #[test]
    fn what_cannot_run_has_its_reasons() {
        for (kind, spec, part) in [
            ("dns", json!({}), "no test \"dns\"; it runs throughput, rtt"),
            ("throughput", json!([]), "no specification"),
            ("throughput", json!({}), "no \"dest\""),
            (
                "throughput",
                json!({ "dest": "a", "reverse-connections": true }),
                "\"reverse-connections\" in a test throughput",
            ),
            ("throughput", json!({ "dest": "a", "schema": 8 }), "schema 8 is newer than 7"),
            ("throughput", json!({ "dest": "a", "bandwidth": 1, "fq-rate": 1 }), "exclude each other"),
            ("throughput", json!({ "dest": "a", "duration": "10" }), "no ISO 8601 duration"),
            ("throughput", json!({ "dest": "a", "parallel": "4" }), "invalid type"),
            ("throughput", json!({ "dest": "a", "parallel": -4 }), "invalid value"),
            ("throughput", json!({ "dest": "a", "ip-version": 5 }), "neither 4 nor 6"),
            ("rtt", json!({ "dest": "a" }), "set \"hostnames\" to false"),
            ("rtt", json!({ "dest": "a", "hostnames": false, "protocol": "twamp" }), "protocol icmp"),
            ("latency", json!({ "dest": "a" }), "set \"protocol\" to \"stamp\""),
            ("latency", json!({ "dest": "a", "protocol": "stamp", "packet-interval": -1.0 }), "from 0.000001 on"),
            ("trace", json!({ "dest": "a", "hostnames": false }), "set \"as\" to false"),
            ("trace", json!({ "dest": "a", "hostnames": false, "as": false, "first-ttl": 40 }), "within \"hops\""),
            ("mtu", json!({ "dest": "a", "port": 5 }), "\"port\" in a test mtu"),
        ] {
            let found = reasons(kind, spec);
            assert!(found.iter().any(|reason| reason.contains(part)), "{part}: {found:?}");
        }
        assert_eq!(can_run(&json!({}))["reasons"], json!(["the test has no type"]));
        // Every unknown key is named.
        assert_eq!(reasons("mtu", json!({ "dest": "a", "x": 1, "y": 2, "_comment": "" })).len(), 2);
    }
}
