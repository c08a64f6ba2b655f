//! Run of a diagnosis, from the parts that the export reads.

use linerate_documents::run::RunDocument;
use serde_json::json;

/// A diagnosis of one direction.
pub(crate) fn diagnosis(direction: &str, cause: &str) -> Box<RunDocument> {
    let head = json!({
        "schema": 1, "linerate_version": "0.2.0", "host": "b", "port": 5201, "started_at_unix_ns": 0,
        "duration_ns": 12_500_000_000_u64, "termination": { "outcome": "complete" }
    });
    let mut document = head.clone();
    let verdict = json!({
        "cause": cause, "location": "receiver", "confidence": "high", "text": "It does.", "evidence": [], "advice": []
    });
    for (key, value) in [
        ("direction", json!(direction)),
        ("transfer", json!([])),
        ("verdicts", json!([verdict])),
        ("states", json!([])),
        ("goodput_bits_per_second", json!(1e6)),
        ("bounds", json!([])),
        ("next", json!(null)),
        ("figures", json!({})),
        ("path", json!(null)),
    ] {
        document[key] = value;
    }
    let mut run = head;
    for (key, value) in [
        ("kind", json!("diagnose")),
        ("arguments", json!([])),
        ("verdict", json!("")),
        ("figures", json!([])),
        ("environment", json!({ "near": null, "far": null, "lab": null })),
        ("series", json!([])),
        ("result", json!({ "diagnose": document })),
    ] {
        run[key] = value;
    }
    serde_json::from_value(run).expect("a run")
}
