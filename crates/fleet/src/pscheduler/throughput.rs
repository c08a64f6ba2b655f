//! Result of a test `throughput`, from the JSON of an iperf3.

use core::time::Duration;

use serde_json::{Map, Value, json};

/// Key of iperf3, and that of pScheduler with the same value (µs for round trips, as the stock tool has it).
const KEYS: [(&str, &str); 12] = [
    ("socket", "stream-id"),
    ("start", "start"),
    ("end", "end"),
    ("bytes", "throughput-bytes"),
    ("bits_per_second", "throughput-bits"),
    ("omitted", "omitted"),
    ("jitter_ms", "jitter"),
    ("packets", "sent"),
    ("lost_packets", "lost"),
    ("retransmits", "retransmits"),
    ("snd_cwnd", "tcp-window-size"),
    ("rtt", "rtt"),
];

/// Times within which an interval counts as whole.
const TOLERANCE: f64 = 0.05;

/// Converts the document of an iperf3, with intervals of this length: the samples of a diagnosis are shorter.
pub fn throughput_result(document: &Value, interval: Duration, diagnostics: &str) -> Result<Value, String> {
    if let Some(error) = document.get("error").and_then(Value::as_str) {
        return Err(error.to_owned());
    }
    let end = document.get("end").ok_or("the transfer did not end")?;
    let sum = end.get("sum_sent").or_else(|| end.get("sum")).ok_or("the transfer has no sum")?;
    let mut summary = renamed(sum);
    if let Some(received) = end.get("sum_received").and_then(|sum| sum.get("bits_per_second")) {
        summary.insert("receiver-throughput-bits".to_owned(), received.clone());
    }
    let streams: Vec<_> = array(end, "streams").iter().filter_map(stream_end).collect();
    let intervals = grouped(array(document, "intervals"), interval);
    Ok(json!({
        "schema": 1,
        "succeeded": true,
        "diags": diagnostics,
        "intervals": intervals,
        "summary": { "streams": streams, "summary": summary },
    }))
}

fn array<'a>(of: &'a Value, key: &str) -> &'a [Value] {
    of.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn stream_end(stream: &Value) -> Option<Map<String, Value>> {
    let sides = stream.get("udp").or_else(|| stream.get("sender"))?;
    let mut entry = renamed(sides);
    if let Some(rtt) = sides.get("mean_rtt") {
        entry.insert("rtt".to_owned(), rtt.clone());
    }
    Some(entry)
}

fn renamed(entry: &Value) -> Map<String, Value> {
    let found = KEYS.iter().filter_map(|(from, to)| Some(((*to).to_owned(), entry.get(from)?.clone())));
    found.collect()
}

/// Joins successive intervals up to the requested length.
fn grouped(intervals: &[Value], length: Duration) -> Vec<Value> {
    let mut groups: Vec<Vec<&Value>> = Vec::new();
    let mut begun = 0.0;
    for interval in intervals {
        let sum = interval.get("sum").unwrap_or(&Value::Null);
        let (start, is_omitted) = (number(sum, "start"), sum.get("omitted"));
        let same = groups.last_mut().filter(|group| {
            let same_kind =
                group.last().is_some_and(|last| last.get("sum").and_then(|sum| sum.get("omitted")) == is_omitted);
            same_kind && start - begun < length.as_secs_f64() - TOLERANCE && start >= begun
        });
        if let Some(group) = same {
            group.push(interval);
        } else {
            begun = start;
            groups.push(vec![interval]);
        }
    }
    groups.iter().map(|group| joined(group)).collect()
}

fn joined(group: &[&Value]) -> Value {
    let sums: Vec<Value> = group.iter().filter_map(|interval| interval.get("sum").cloned()).collect();
    let count = group.first().map_or(0, |interval| array(interval, "streams").len());
    let streams = (0..count).map(|index| {
        let parts: Vec<Value> =
            group.iter().filter_map(|interval| array(interval, "streams").get(index).cloned()).collect();
        entry_of(&parts)
    });
    json!({ "streams": streams.collect::<Vec<_>>(), "summary": entry_of(&sums) })
}

/// One entry for successive ones of a stream: counts add up, the last window counts, round trips are averaged.
fn entry_of(parts: &[Value]) -> Map<String, Value> {
    let Some((first, last)) = parts.first().zip(parts.last()) else { return Map::new() };
    let mut whole = renamed(last);
    whole.insert("start".to_owned(), first.get("start").cloned().unwrap_or(json!(0)));
    let bytes: f64 = parts.iter().map(|part| number(part, "bytes")).sum();
    let time = number(last, "end") - number(first, "start");
    if parts.len() > 1 && time > 0.0 {
        whole.insert("throughput-bits".to_owned(), json!(bytes * 8.0 / time));
    }
    for (from, to) in KEYS.iter().filter(|(from, _)| ["bytes", "retransmits", "packets", "lost_packets"].contains(from))
    {
        let counts: Vec<u64> = parts.iter().filter_map(|part| part.get(from)?.as_u64()).collect();
        if counts.len() == parts.len() {
            whole.insert((*to).to_owned(), json!(counts.iter().sum::<u64>()));
        }
    }
    let times: Vec<f64> = parts.iter().filter_map(|part| part.get("rtt")?.as_f64()).collect();
    if let Ok(count @ 1..) = u32::try_from(times.len()) {
        whole.insert("rtt".to_owned(), json!((times.iter().sum::<f64>() / f64::from(count)).round()));
    }
    whole
}

fn number(of: &Value, key: &str) -> f64 {
    of.get(key).and_then(Value::as_f64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quarter(index: u32, omitted: bool) -> Value {
        let start = f64::from(index) * 0.25;
        let entry = json!({
            "start": start, "end": start + 0.25, "seconds": 0.25, "bytes": 250_000, "bits_per_second": 8e6, "retransmits": index,
            "omitted": omitted, "sender": true
        });
        let mut stream = entry.clone();
        stream["socket"] = json!(5);
        stream["snd_cwnd"] = json!(1000 + index);
        stream["rtt"] = json!(100 * index);
        json!({ "streams": [stream], "sum": entry })
    }

    fn document() -> Value {
        // Half a second is omitted: the counted time starts again at zero.
        let mut intervals: Vec<Value> = (0..2).map(|index| quarter(index, true)).collect();
        intervals.extend((0..6).map(|index| quarter(index, false)));
        json!({
            "intervals": intervals,
            "end": {
                "streams": [{ "sender": { "socket": 5, "bytes": 1_500_000, "bits_per_second": 8e6, "mean_rtt": 250, "max_rtt": 9 } }],
                "sum_sent": { "start": 0, "end": 1.5, "bytes": 1_500_000, "bits_per_second": 8e6, "retransmits": 15 },
                "sum_received": { "bits_per_second": 7.9e6 }
            }
        })
    }

    #[test]
    fn samples_become_intervals_of_the_requested_length() {
        let result = throughput_result(&document(), Duration::from_secs(1), "d").expect("a result");
        let starts: Vec<(f64, f64, bool)> = array(&result, "intervals")
            .iter()
            .map(|interval| {
                let summary = &interval["summary"];
                (number(summary, "start"), number(summary, "end"), summary["omitted"] == true)
            })
            .collect();
        assert_eq!(starts, [(0.0, 0.5, true), (0.0, 1.0, false), (1.0, 1.5, false)]);
        let whole = &result["intervals"][1]["streams"][0];
        assert_eq!(whole["throughput-bytes"], 1_000_000);
        assert_eq!(whole["throughput-bits"], 8e6);
        assert_eq!(whole["retransmits"], 6);
        assert_eq!(whole["tcp-window-size"], 1003);
        assert_eq!(whole["rtt"], 150.0);
        assert_eq!(whole["stream-id"], 5);
        assert_eq!(whole.get("seconds"), None);
        let summary = &result["summary"]["summary"];
        assert_eq!((&summary["throughput-bits"], &summary["receiver-throughput-bits"]), (&json!(8e6), &json!(7.9e6)));
        assert_eq!(result["summary"]["streams"][0]["rtt"], 250);
    }

    #[test]
    fn a_broken_transfer_is_an_error() {
        let of = |document: &Value| throughput_result(document, Duration::from_secs(1), "");
        assert_eq!(of(&json!({ "error": "unable to connect" })), Err("unable to connect".to_owned()));
        assert_eq!(of(&json!({ "intervals": [] })), Err("the transfer did not end".to_owned()));
        assert_eq!(of(&json!({ "end": {} })), Err("the transfer has no sum".to_owned()));
    }
}
