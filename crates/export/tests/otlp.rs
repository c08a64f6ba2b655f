//! OTLP's JSON, read by the types of OpenTelemetry.

use linerate_documents::fleet_result::{FleetResult, SessionOutcome};
use linerate_export::{ID_ATTRIBUTE, OtlpResource, logs_request, metrics_request};
use linerate_units::WallTime;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::metrics::v1::{NumberDataPoint, metric::Data, number_data_point};
use proptest::prelude::*;

use crate::support::{any_result, diagnosis, result};

fn resource() -> OtlpResource {
    OtlpResource { host: Some("lisbon".to_owned()), version: "0.2.0" }
}

fn metrics(results: &[&FleetResult]) -> ExportMetricsServiceRequest {
    let text = metrics_request(&resource(), results).to_string();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn logs(results: &[(&FleetResult, &str)]) -> ExportLogsServiceRequest {
    let text = logs_request(&resource(), results, WallTime::from_unix(core::time::Duration::from_nanos(7))).to_string();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn attribute(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?.value.as_ref()?.value.as_ref()?;
    let Value::StringValue(text) = found else { panic!("{key} is no text") };
    Some(text.clone())
}

/// Names, units and points of all metrics.
fn points(request: &ExportMetricsServiceRequest) -> Vec<(String, String, NumberDataPoint)> {
    let all = request.resource_metrics.iter().flat_map(|one| &one.scope_metrics).flat_map(|one| &one.metrics);
    let of = |metric: &opentelemetry_proto::tonic::metrics::v1::Metric| {
        let points = match metric.data.as_ref().expect("data") {
            Data::Gauge(gauge) => gauge.data_points.clone(),
            Data::Sum(sum) => sum.data_points.clone(),
            other => panic!("{other:?}"),
        };
        let named = |point| (metric.name.clone(), metric.unit.clone(), point);
        points.into_iter().map(named).collect::<Vec<_>>()
    };
    all.flat_map(of).collect()
}

fn value(point: &NumberDataPoint) -> f64 {
    match point.value {
        Some(number_data_point::Value::AsDouble(value)) => value,
        other => panic!("{other:?}"),
    }
}

#[test]
fn figures_have_base_units_and_the_pair() {
    let measured = FleetResult { run: Some(diagnosis("up", "receive-window")), ..result(100, SessionOutcome::Done) };
    let request = metrics(&[&measured]);
    let resource = request.resource_metrics[0].resource.as_ref().expect("a resource");
    assert_eq!(attribute(&resource.attributes, "service.name").as_deref(), Some("linerate"));
    assert_eq!(attribute(&resource.attributes, "host.name").as_deref(), Some("lisbon"));
    let points = points(&request);
    let found: Vec<(&str, &str, f64)> =
        points.iter().map(|(name, unit, point)| (name.as_str(), unit.as_str(), value(point))).collect();
    assert_eq!(
        found,
        [
            ("linerate.goodput", "By/s", 1e6),
            ("linerate.rtt", "s", 0.025),
            ("linerate.loss.ratio", "1", 0.125),
            ("linerate.mtu", "By", 1500.0),
            // A goodput in nanoseconds is no goodput.
            ("linerate.figure.time", "s", 0.5),
            ("linerate.verdict", "1", 1.0),
            ("linerate.run.duration", "s", 12.5),
            ("linerate.results", "{result}", 1.0),
        ]
    );
    let goodput = &points[0].2;
    assert_eq!(goodput.time_unix_nano, 100_000_000_000);
    for (key, text) in [("source", "a"), ("destination", "b"), ("direction", "down"), ("figure", "goodput_down")] {
        assert_eq!(attribute(&goodput.attributes, &format!("linerate.{key}")).as_deref(), Some(text));
    }
    let verdict = &points[5].2;
    assert_eq!(attribute(&verdict.attributes, "linerate.verdict").as_deref(), Some("receive-window"));
    assert_eq!(attribute(&verdict.attributes, "linerate.direction").as_deref(), Some("up"));
}

#[test]
fn the_whole_document_is_a_log_record_with_its_identity() {
    let skipped = FleetResult { reason: Some("busy".to_owned()), ..result(100, SessionOutcome::Skipped) };
    let request = logs(&[(&skipped, r#"{"schema":1}"#)]);
    let record = &request.resource_logs[0].scope_logs[0].log_records[0];
    assert_eq!(attribute(&record.attributes, ID_ATTRIBUTE).as_deref(), Some("limits/a/b/100000000000"));
    assert_eq!(attribute(&record.attributes, "linerate.reason").as_deref(), Some("busy"));
    assert_eq!((record.time_unix_nano, record.observed_time_unix_nano), (100_000_000_000, 7));
    assert_eq!((record.severity_number, record.severity_text.as_str()), (13, "WARN"));
    let body = record.body.as_ref().and_then(|body| body.value.clone());
    assert_eq!(body, Some(Value::StringValue(r#"{"schema":1}"#.to_owned())));
}

proptest! {
    #[test]
    fn any_results_are_read(results in proptest::collection::vec(any_result(), 0..4)) {
        let all: Vec<&FleetResult> = results.iter().collect();
        let mut identities = std::collections::HashSet::new();
        for (name, _, point) in points(&metrics(&all)) {
            prop_assert!(value(&point).is_finite());
            let mut attributes: Vec<String> = point.attributes.iter().map(|one| format!("{one:?}")).collect();
            attributes.sort();
            identities.insert((name, point.time_unix_nano, attributes));
        }
        if let [one] = all[..] {
            let count = points(&metrics(&all)).len();
            prop_assert_eq!(identities.len(), count, "two points of one series at one time: {:?}", one);
        }
        let lines: Vec<(&FleetResult, &str)> = all.iter().map(|one| (*one, one.verdict.as_str())).collect();
        let request = logs(&lines);
        let records = &request.resource_logs[0].scope_logs[0].log_records;
        prop_assert_eq!(records.len(), results.len());
        for (record, result) in records.iter().zip(&results) {
            prop_assert_eq!(attribute(&record.attributes, ID_ATTRIBUTE).unwrap_or_default(), result.id.clone());
        }
    }
}
