//! Merged results: the results of all participants as that of the test.

use serde_json::{Map, Value, json};

use super::specification::{Specification, TestKind};

/// Answer of the method `merged-results`; an error is one of the input.
pub fn merged_results(input: &Value) -> Result<Value, String> {
    let test = input.get("test").ok_or("the input has no \"test\"")?;
    let test = Specification::parse(test).map_err(|reasons| reasons.join("; "))?;
    let results = input.get("results").and_then(Value::as_array).ok_or("the input has no array \"results\"")?;
    let first = results.first().unwrap_or(&Value::Null);
    let mut merged = match test.kind {
        TestKind::Throughput => throughput(&test, results),
        _ => whole(first),
    }
    .unwrap_or_else(|| failure(test.kind, results));
    if matches!(test.kind, TestKind::Throughput | TestKind::Diagnose) {
        merged.insert("diags".to_owned(), Value::String(diagnostics(results)));
    }
    Ok(Value::Object(merged))
}

/// The result of a participant that succeeded.
fn whole(of: &Value) -> Option<Map<String, Value>> {
    let result = of.get("result")?.as_object()?;
    (result.get("succeeded") == Some(&Value::Bool(true))).then(|| result.clone())
}

/// The sender's figures: only it knows its retransmissions and windows. The receiver's rate is the client's.
fn throughput(test: &Specification, results: &[Value]) -> Option<Map<String, Value>> {
    let client = whole(results.first()?);
    let server = results.get(1).and_then(whole).filter(|_| test.values.reverse);
    let (Some(mut merged), Some(client)) = (server, client.clone()) else { return client };
    let received = Value::Object(client).pointer("/summary/summary/receiver-throughput-bits").cloned();
    let summary =
        merged.get_mut("summary").and_then(|summary| summary.get_mut("summary")).and_then(Value::as_object_mut);
    if let (Some(summary), Some(received)) = (summary, received) {
        summary.insert("receiver-throughput-bits".to_owned(), received);
    }
    Some(merged)
}

fn failure(kind: TestKind, results: &[Value]) -> Map<String, Value> {
    let errors = results.iter().enumerate().filter_map(|(index, result)| {
        let error = result.get("error").and_then(Value::as_str)?;
        Some(format!("participant {index}: {error}"))
    });
    let errors: Vec<String> = errors.collect();
    let error = if errors.is_empty() { "a participant reported no result".to_owned() } else { errors.join("; ") };
    let mut failure = Map::new();
    failure.insert("schema".to_owned(), json!(1));
    failure.insert("succeeded".to_owned(), json!(false));
    failure.insert("error".to_owned(), json!(error));
    if kind == TestKind::Throughput {
        // Its schema requires them.
        failure.insert("intervals".to_owned(), json!([]));
        failure.insert("summary".to_owned(), json!({}));
    }
    failure
}

fn diagnostics(results: &[Value]) -> String {
    let texts = results.iter().enumerate().filter_map(|(index, result)| {
        let text = result.get("diags").and_then(Value::as_str).filter(|text| !text.is_empty())?;
        Some(format!("Participant {index}:\n{text}\n"))
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(retransmits: u64, received: f64) -> Value {
        let summary = json!({ "retransmits": retransmits, "receiver-throughput-bits": received });
        let result = json!({ "succeeded": true, "diags": "x", "intervals": [], "summary": { "streams": [], "summary": summary } });
        json!({ "succeeded": true, "diags": format!("r{retransmits}"), "error": null, "result": result })
    }

    #[expect(clippy::needless_pass_by_value, reason = "callers write literals")]
    fn merged(spec: Value, results: Value) -> Value {
        merged_results(&json!({ "test": { "type": "throughput", "spec": spec }, "results": results }))
            .expect("a result")
    }

    #[test]
    fn the_senders_figures_are_the_results() {
        let forward = merged(json!({ "dest": "a" }), json!([run(1, 10.0), run(2, 20.0)]));
        assert_eq!(forward["summary"]["summary"]["retransmits"], 1);
        assert_eq!(forward["diags"], "Participant 0:\nr1\n\nParticipant 1:\nr2\n");
        let reverse = merged(json!({ "dest": "a", "reverse": true }), json!([run(1, 10.0), run(2, 20.0)]));
        let summary = &reverse["summary"]["summary"];
        assert_eq!((&summary["retransmits"], &summary["receiver-throughput-bits"]), (&json!(2), &json!(10.0)));
        // Only one of them has a result: the client's is whole, the server's is not.
        for lost in [json!(null), json!({ "succeeded": false, "error": "e", "diags": "" })] {
            let reverse = merged(json!({ "dest": "a", "reverse": true }), json!([run(1, 10.0), lost]));
            assert_eq!(reverse["summary"]["summary"]["retransmits"], 1);
        }
    }

    #[test]
    fn failures_have_their_reasons() {
        let failed = json!({ "succeeded": false, "diags": "d", "error": "unable to connect", "result": null });
        let merged = merged(json!({ "dest": "a" }), json!([failed, null]));
        assert_eq!(merged["succeeded"], false);
        assert_eq!(merged["error"], "participant 0: unable to connect");
        assert_eq!((&merged["intervals"], &merged["summary"]), (&json!([]), &json!({})));
        assert_eq!(merged["diags"], "Participant 0:\nd\n");
        let none = merged_results(&json!({ "test": { "type": "mtu", "spec": { "dest": "a" } }, "results": [null] }));
        assert_eq!(none, Ok(json!({ "schema": 1, "succeeded": false, "error": "a participant reported no result" })));
        assert!(merged_results(&json!({ "test": {} })).is_err());
    }
}
