//! Results of the light tests: round trips, one-way delays, path MTU and routers.

use core::time::Duration;

use linerate_units::Mtu;
use serde_json::{Map, Value, json};

use super::iso_text;
use super::specification::SpecValues;

/// Echoes of a test `rtt` that names no number.
pub const DEFAULT_COUNT: u32 = 5;

/// Hops of a test `trace` that names no number.
pub const DEFAULT_HOPS: u8 = 30;

/// Hops that are asked at the same time.
pub const HOPS_AT_ONCE: u32 = 8;

/// Packets of a test `latency` that names no number.
pub const DEFAULT_PACKETS: u32 = 100;

/// Time between the packets of a test `latency`.
#[must_use]
pub fn packet_interval(spec: &SpecValues) -> Duration {
    Duration::from_secs_f64(spec.packet_interval.unwrap_or(0.1))
}

/// Time after which a packet of a test `latency` is lost.
#[must_use]
pub fn packet_timeout(spec: &SpecValues) -> Duration {
    // A packet without any time could never arrive.
    Duration::from_secs_f64(spec.packet_timeout.filter(|time| *time > 0.0).unwrap_or(3.0))
}

/// Width of the buckets of a test `latency`.
#[must_use]
pub fn bucket_width(spec: &SpecValues) -> Duration {
    spec.bucket_width.map_or(Duration::from_millis(1), Duration::from_secs_f64)
}

/// Time for which a test `trace` waits for each answer.
#[must_use]
pub fn probe_wait(spec: &SpecValues) -> Duration {
    spec.wait.unwrap_or(Duration::from_secs(2))
}

/// A request, and its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoundTrip {
    /// Answering address.
    pub address: Option<String>,
    /// Bytes of the answer's ICMP message.
    pub bytes: Option<u64>,
    /// Remaining hop limit of the answer.
    pub hop_limit: Option<u8>,
    /// Time from the request to the answer; `None` without an answer.
    pub time: Option<Duration>,
    /// Reported reason for which there is no answer, in pScheduler's terms.
    pub error: Option<&'static str>,
}

/// Result of a test `rtt`: the round trips in the order of their requests.
#[must_use]
pub fn rtt_result(trips: &[RoundTrip], duplicates: u64, reordered: u64) -> Value {
    let times: Vec<Duration> = trips.iter().filter_map(|trip| trip.time).collect();
    let lost = trips.len() - times.len();
    let entries = trips.iter().enumerate().map(|(index, trip)| {
        let mut entry = Map::new();
        let mut add = |key: &str, value: Option<Value>| entry.extend(value.map(|value| (key.to_owned(), value)));
        add("seq", Some(json!(index + 1)));
        add("ip", trip.address.as_ref().map(|address| json!(address)));
        add("length", trip.bytes.map(|bytes| json!(bytes)));
        add("ttl", trip.hop_limit.map(|hops| json!(hops)));
        add("rtt", trip.time.map(|time| json!(iso_text(time))));
        add("error", trip.error.map(|error| json!(error)));
        Value::Object(entry)
    });
    let mut result = json!({
        "schema": 1,
        "succeeded": true,
        "roundtrips": entries.collect::<Vec<_>>(),
        "sent": trips.len(),
        "received": times.len(),
        "lost": lost,
        "loss": share(lost, trips.len()),
        "duplicates": duplicates,
        "reorders": reordered,
    });
    for (key, time) in spread(&times) {
        result[key] = json!(iso_text(time));
    }
    result
}

fn share(part: usize, whole: usize) -> f64 {
    let [part, whole] = [part, whole].map(|count| f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Extremes, mean and standard deviation (of the population, as ping's); nothing without an answer.
fn spread(times: &[Duration]) -> Vec<(&'static str, Duration)> {
    let (Some(least), Some(most)) = (times.iter().min(), times.iter().max()) else { return Vec::new() };
    let count = f64::from(u32::try_from(times.len()).unwrap_or(u32::MAX));
    let mean = times.iter().map(Duration::as_secs_f64).sum::<f64>() / count;
    let variance = times.iter().map(|time| (time.as_secs_f64() - mean).powi(2)).sum::<f64>() / count;
    let [mean, deviation] = [mean, variance.sqrt()].map(Duration::from_secs_f64);
    vec![("min", *least), ("max", *most), ("mean", mean), ("stddev", deviation)]
}

/// Result of a test `mtu`.
#[must_use]
pub fn mtu_result(mtu: Mtu) -> Value {
    json!({ "schema": 1, "succeeded": true, "mtu": mtu.get() })
}

/// A hop of the path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceHop {
    /// Address that answered; `None` without an answer.
    pub address: Option<String>,
    /// Round trip to it.
    pub time: Option<Duration>,
    /// Reported reason for which the packet went no further, in pScheduler's terms.
    pub error: Option<&'static str>,
}

/// Result of a test `trace`: hops from the first one on.
#[must_use]
pub fn trace_result(hops: &[TraceHop]) -> Value {
    let entries = hops.iter().map(|hop| {
        let mut entry = Map::new();
        entry.extend(hop.address.as_ref().map(|address| ("ip".to_owned(), json!(address))));
        entry.extend(hop.time.map(|time| ("rtt".to_owned(), json!(iso_text(time)))));
        entry.extend(hop.error.map(|error| ("error".to_owned(), json!(error))));
        Value::Object(entry)
    });
    json!({ "schema": 1, "succeeded": true, "paths": [entries.collect::<Vec<_>>()] })
}

/// Samples of a test `latency`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LatencySamples {
    /// One-way delays of the packets that arrived; negative where the clocks differ by more than the delay.
    pub delays_seconds: Vec<f64>,
    /// Packets sent.
    pub sent: u64,
    /// Packets that arrived more than once.
    pub duplicates: u64,
    /// Packets that arrived after a later one.
    pub reordered: u64,
    /// Remaining hop limits, with the number of packets that had them.
    pub hop_limits: Vec<(u8, u64)>,
    /// Bound of the difference of the clocks; `None` where a clock does not report its error.
    pub clock_error: Option<Duration>,
}

/// Result of a test `latency`, in buckets of this width.
#[must_use]
pub fn latency_result(samples: &LatencySamples, bucket_width: Duration) -> Value {
    let width = bucket_width.as_secs_f64();
    let mut buckets: Vec<(String, u64)> = Vec::new();
    let mut delays = samples.delays_seconds.clone();
    delays.sort_by(f64::total_cmp);
    for delay in delays {
        // A rounded zero has no sign.
        let key = format!("{:.2}", (delay / width * 100.0).round() / 100.0 + 0.0);
        match buckets.last_mut().filter(|(last, _)| *last == key) {
            Some((_, count)) => *count += 1,
            None => buckets.push((key, 1)),
        }
    }
    let received = samples.delays_seconds.len() as u64;
    let by_key =
        |counts: Vec<(String, u64)>| counts.into_iter().map(|(key, count)| (key, json!(count))).collect::<Map<_, _>>();
    let hops = samples.hop_limits.iter().map(|(hops, count)| (hops.to_string(), *count)).collect();
    let mut result = json!({
        "schema": 1,
        "succeeded": true,
        "packets-sent": samples.sent,
        "packets-received": received,
        "packets-lost": samples.sent.saturating_sub(received),
        "packets-duplicated": samples.duplicates,
        "packets-reordered": samples.reordered,
        "histogram-latency": by_key(buckets),
        "histogram-ttl": by_key(hops),
    });
    if let Some(error) = samples.clock_error {
        result["max-clock-error"] = json!(error.as_secs_f64() * 1e3);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_are_summed_up() {
        let answered = |milliseconds| RoundTrip {
            address: Some("192.0.2.1".to_owned()),
            bytes: Some(64),
            hop_limit: Some(60),
            time: Some(Duration::from_millis(milliseconds)),
            error: None,
        };
        let refused = RoundTrip { error: Some("host-unreachable"), ..RoundTrip::default() };
        let result = rtt_result(&[answered(10), RoundTrip::default(), refused, answered(20)], 1, 0);
        assert_eq!((&result["sent"], &result["received"], &result["lost"]), (&json!(4), &json!(2), &json!(2)));
        assert_eq!((&result["loss"], &result["duplicates"]), (&json!(0.5), &json!(1)));
        assert_eq!((&result["min"], &result["mean"]), (&json!("PT0.01S"), &json!("PT0.015S")));
        assert_eq!((&result["max"], &result["stddev"]), (&json!("PT0.02S"), &json!("PT0.005S")));
        assert_eq!(result["roundtrips"][1], json!({ "seq": 2 }));
        assert_eq!(result["roundtrips"][2], json!({ "seq": 3, "error": "host-unreachable" }));
        // Without an answer nothing is known of the times.
        let result = rtt_result(&[RoundTrip::default()], 0, 0);
        assert_eq!((result.get("min"), &result["loss"]), (None, &json!(1.0)));
    }

    #[test]
    fn delays_are_counted_in_buckets() {
        let samples = LatencySamples {
            delays_seconds: vec![0.0102, 0.010_201, 0.0305, -0.000_001],
            sent: 5,
            hop_limits: vec![(64, 4)],
            clock_error: Some(Duration::from_micros(1500)),
            ..LatencySamples::default()
        };
        let result = latency_result(&samples, Duration::from_millis(1));
        assert_eq!(result["histogram-latency"], json!({ "0.00": 1, "10.20": 2, "30.50": 1 }));
        assert_eq!((&result["packets-lost"], &result["histogram-ttl"]), (&json!(1), &json!({ "64": 4 })));
        assert_eq!(result["max-clock-error"], 1.5);
    }

    #[test]
    fn silent_hops_have_their_place() {
        let hop =
            TraceHop { address: Some("192.0.2.1".to_owned()), time: Some(Duration::from_micros(1200)), error: None };
        let result = trace_result(&[TraceHop::default(), hop]);
        assert_eq!(result["paths"], json!([[{}, { "ip": "192.0.2.1", "rtt": "PT0.0012S" }]]));
    }
}
