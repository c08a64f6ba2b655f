//! pScheduler's form of a finished test, as its archiver `http` puts it to perfSONAR's archive.

use core::time::Duration;

use linerate_documents::fleet_result::{FleetResult, SessionOutcome};
use serde_json::{Value, json};

/// Document for `PUT /logstash` of an archive. Its test type is `diagnose`: the types of perfSONAR allow no further keys, and
/// its pipeline files every type under its own name. `start` is the time of the result as RFC 3339.
#[must_use]
pub fn archive_document(result: &FleetResult, start: &str) -> Value {
    let is_done = result.outcome == SessionOutcome::Done;
    let duration = result.run.as_ref().map_or(0, |run| Duration::from_nanos(run.duration_ns).as_secs());
    let figures: serde_json::Map<String, Value> =
        result.figures.iter().map(|figure| (figure.name.clone(), json!(figure.value))).collect();
    let units: serde_json::Map<String, Value> =
        result.figures.iter().map(|figure| (figure.name.clone(), json!(figure.unit))).collect();
    let version = result.run.as_ref().map(|run| run.linerate_version.as_str());
    json!({
        "id": result.id,
        "schedule": { "start": start, "duration": format!("PT{duration}S") },
        "test": {
            "type": "diagnose",
            "spec": { "schema": 1, "source": result.source, "dest": result.destination, "test": result.test },
        },
        "tool": { "name": "linerate", "version": version.unwrap_or("unknown") },
        "participants": [result.source, result.destination],
        "reference": { "task": result.task },
        "result": {
            "schema": 1,
            "succeeded": is_done,
            "error": (!is_done).then_some(&result.reason),
            "diags": result.verdict,
            "outcome": result.outcome.name(),
            "verdict": result.verdict,
            "figures": figures,
            "units": units,
            "route": result.route,
        },
    })
}
