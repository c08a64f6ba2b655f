//! OTLP/HTTP with JSON: bodies of `POST /v1/metrics` and `POST /v1/logs`.
//!
//! Integers of 64 bits are strings and enumerations numbers, as the mapping of Protocol Buffers to JSON has them.

use linerate_documents::fleet_result::{FleetResult, SessionOutcome};
use linerate_units::WallTime;
use serde_json::{Value, json};

use crate::causes::limiting_causes;
use crate::metric::{ExportedMetric, exported_figures};

/// Attribute of a log record with the identity of its result, by which a receiver recognises what it has already.
pub const ID_ATTRIBUTE: &str = "linerate.result.id";

/// `SEVERITY_NUMBER_INFO`, `SEVERITY_NUMBER_WARN` and `SEVERITY_NUMBER_ERROR`.
const SEVERITIES: [(u8, &str); 3] = [(9, "INFO"), (13, "WARN"), (17, "ERROR")];

/// Sender of the results.
#[derive(Clone, Debug)]
pub struct OtlpResource {
    /// Name of the host.
    pub host: Option<String>,
    /// Version of linerate.
    pub version: &'static str,
}

impl OtlpResource {
    fn attributes(&self) -> Vec<Value> {
        let mut attributes = vec![text("service.name", "linerate"), text("service.version", self.version)];
        attributes.extend(self.host.as_deref().map(|host| text("host.name", host)));
        attributes
    }

    fn scope(&self) -> Value {
        json!({ "name": "linerate", "version": self.version })
    }
}

/// Body for `/v1/metrics`: a gauge per figure, and the outcome, at the times of the results.
#[must_use]
pub fn metrics_request(resource: &OtlpResource, results: &[&FleetResult]) -> Value {
    let mut metrics: Vec<Value> = ExportedMetric::all().filter_map(|metric| figure_gauge(metric, results)).collect();
    let verdicts: Vec<Value> = results.iter().flat_map(|result| verdict_points(result)).collect();
    metrics.extend(gauge("linerate.verdict", "1", "1 for the cause that limited a direction.", &verdicts));
    let durations: Vec<Value> = results.iter().filter_map(|result| duration_point(result)).collect();
    metrics.extend(gauge("linerate.run.duration", "s", "Duration of a run.", &durations));
    let outcome = |result: &FleetResult| text("linerate.outcome", result.outcome.name());
    let outcomes: Vec<Value> = results.iter().map(|result| point(result, &[outcome(result)], 1.0)).collect();
    metrics.extend(outcome_sum(&outcomes));
    json!({ "resourceMetrics": [{
        "resource": { "attributes": resource.attributes() },
        "scopeMetrics": [{ "scope": resource.scope(), "metrics": metrics }],
    }] })
}

/// Body for `/v1/logs`: each result as a record, whose body is the line of the log. Each result is with its
/// line.
#[must_use]
pub fn logs_request(resource: &OtlpResource, results: &[(&FleetResult, &str)], now: WallTime) -> Value {
    let observed_at = now.since_unix_epoch().as_nanos().to_string();
    let records: Vec<Value> = results
        .iter()
        .map(|(result, line)| {
            let (number, name) = match result.outcome {
                SessionOutcome::Done => SEVERITIES[0],
                SessionOutcome::Skipped => SEVERITIES[1],
                SessionOutcome::Failed => SEVERITIES[2],
            };
            let mut attributes = vec![text(ID_ATTRIBUTE, &result.id)];
            attributes.extend(pair_attributes(result));
            attributes.push(text("linerate.outcome", result.outcome.name()));
            attributes.extend(result.reason.as_deref().map(|reason| text("linerate.reason", reason)));
            attributes.extend((!result.verdict.is_empty()).then(|| text("linerate.verdict.text", &result.verdict)));
            json!({
                "timeUnixNano": result.at_unix_ns.to_string(),
                "observedTimeUnixNano": observed_at,
                "severityNumber": number,
                "severityText": name,
                "eventName": "linerate.result",
                "body": { "stringValue": line },
                "attributes": attributes,
            })
        })
        .collect();
    json!({ "resourceLogs": [{
        "resource": { "attributes": resource.attributes() },
        "scopeLogs": [{ "scope": resource.scope(), "logRecords": records }],
    }] })
}

fn figure_gauge(metric: &'static ExportedMetric, results: &[&FleetResult]) -> Option<Value> {
    let mut points = Vec::new();
    for result in results {
        for figure in exported_figures(result).iter().filter(|figure| figure.metric == metric) {
            let mut attributes = vec![text("linerate.figure", &figure.figure)];
            attributes.extend(figure.direction.map(|direction| text("linerate.direction", direction.name())));
            points.push(point(result, &attributes, figure.value));
        }
    }
    gauge(metric.name, metric.unit, metric.help, &points)
}

fn verdict_points(result: &FleetResult) -> Vec<Value> {
    let causes = limiting_causes(result).into_iter();
    causes
        .map(|(direction, cause)| {
            let attributes = [text("linerate.direction", direction.name()), text("linerate.verdict", cause.name())];
            point(result, &attributes, 1.0)
        })
        .collect()
}

fn duration_point(result: &FleetResult) -> Option<Value> {
    #[expect(clippy::cast_precision_loss, reason = "the duration of a run is far below 2^53 ns")]
    let duration = result.run.as_ref()?.duration_ns as f64 / 1e9;
    Some(point(result, &[], duration))
}

/// Gauge with points; `None` without any.
fn gauge(name: &str, unit: &str, help: &str, points: &[Value]) -> Option<Value> {
    let is_there = !points.is_empty();
    is_there.then(|| json!({ "name": name, "unit": unit, "description": help, "gauge": { "dataPoints": points } }))
}

/// Sum of results by outcome; each point counts its own result (delta), by whose time a result that came twice is recognised.
fn outcome_sum(points: &[Value]) -> Option<Value> {
    const DELTA: u8 = 1;
    let is_there = !points.is_empty();
    is_there.then(|| {
        json!({
            "name": "linerate.results", "unit": "{result}", "description": "Results by outcome.",
            "sum": { "aggregationTemporality": DELTA, "isMonotonic": true, "dataPoints": points },
        })
    })
}

fn point(result: &FleetResult, attributes: &[Value], value: f64) -> Value {
    let attributes: Vec<Value> = pair_attributes(result).into_iter().chain(attributes.iter().cloned()).collect();
    json!({
        "timeUnixNano": result.at_unix_ns.to_string(),
        "startTimeUnixNano": result.at_unix_ns.to_string(),
        "attributes": attributes,
        "asDouble": value,
    })
}

fn pair_attributes(result: &FleetResult) -> Vec<Value> {
    vec![
        text("linerate.source", &result.source),
        text("linerate.destination", &result.destination),
        text("linerate.task", &result.task),
        text("linerate.test", result.test.name()),
    ]
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}
