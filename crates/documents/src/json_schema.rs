//! JSON Schemas (draft 2020-12) in docs/schema, generated from the types of this directory.
//!
//! They describe the output of this version: every key is present, an unknown value is `null`, and additional keys of a
//! later version are allowed. `cargo xtask schema` writes them.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Value, json};

use super::audit::{AuditDocument, ExplanationDocument};
use super::baseline::BaselineDocument;
use super::calculation::{CalculationDocument, CalculatorsDocument};
use super::change_reports::ChangeReportsDocument;
use super::change_sets::ChangeSetsDocument;
use super::comparison::ComparisonDocument;
use super::diagnose::DiagnoseDocument;
use super::doctor::DoctorDocument;
use super::fleet_members::FleetMembersDocument;
use super::fleet_plan::FleetPlanDocument;
use super::fleet_report::FleetReport;
use super::fleet_result::FleetResult;
use super::host_check::HostCheckDocument;
use super::lab_check::LabCheckDocument;
use super::lab_kernels::LabKernelsDocument;
use super::lab_path::LabPathDocument;
use super::lab_paths::LabPathsDocument;
use super::label::{DocumentKind, schema_identifier};
use super::progress::ProgressEvent;
use super::result_list::ResultListDocument;
use super::rfc6349::Rfc6349Document;
use super::rr::RrDocument;
use super::run::RunDocument;
use super::run_list::RunListDocument;
use super::shaper::ShaperDocument;
use super::shaper_persistence::ShaperPersistenceDocument;
use super::shaper_status::ShaperStatusDocument;
use super::throughput::ThroughputDocument;
use super::trend::TrendDocument;
use super::tune::TuneDocument;
use super::watch::WatchDocument;
use super::web::WebDocument;
use linerate_model::load::LoadDocument;
use linerate_model::path::PathDocument;

/// Markers around the schemas in this test's output, for `cargo xtask schema`.
const BEGIN: &str = "=== schemas\n";
const END: &str = "\n=== end";

fn schema<T: JsonSchema>(name: &str, title: &str) -> Value {
    let schema = SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>();
    let mut schema = schema.to_value();
    rewrite_descriptions(&mut schema);
    schema["$id"] = json!(schema_identifier(name));
    add_label(&mut schema, name);
    schema["title"] = json!(title);
    schema
}

/// Replaces Rust's terms in all descriptions by those of JSON.
fn rewrite_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::String(text)) = map.get_mut("description") {
                *text = in_terms_of_json(text);
            }
            map.values_mut().for_each(rewrite_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(rewrite_descriptions),
        _ => {}
    }
}

/// Documentation of Rust without `None`, references to constants, and links: a variant or field is named as in JSON.
fn in_terms_of_json(text: &str) -> String {
    let mut pieces = text.split("[`");
    let mut rewritten = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (link, rest) = piece.split_once("`]").expect("a link ends");
        let is_constant = link.chars().all(|one| one.is_ascii_uppercase() || one == '_');
        let reference = rewritten.strip_suffix(" (").zip(rest.strip_prefix(')')).filter(|_| is_constant);
        let name = link.rsplit_once("::").map_or_else(|| link.to_owned(), |(_, item)| snake_case(item));
        rewritten = reference
            .map_or_else(|| [&rewritten, "`", &name, "`", rest].concat(), |(before, rest)| [before, rest].concat());
    }
    rewritten.replace("`None`", "`null`")
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for (place, letter) in name.char_indices() {
        if letter.is_ascii_uppercase() && place > 0 {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// Adds the keys of [`super::label::LabelledDocument`].
fn add_label(schema: &mut Value, name: &str) {
    let kind = DocumentKind::from_name(name);
    let mut keys = vec![];
    if kind.is_some() || name == "run" {
        keys.push(("$schema", schema_identifier(name), "Identifier of this schema."));
    }
    keys.extend(kind.map(|kind| ("kind", kind.name().to_owned(), "Kind of the document.")));
    for (key, value, description) in keys {
        schema["properties"][key] = json!({ "const": value, "description": description, "type": "string" });
        schema["required"].as_array_mut().expect("keys").push(json!(key));
    }
}

/// Schemas, each with its file name and the committed version.
fn schemas() -> [(&'static str, Value, &'static str); 35] {
    macro_rules! schema {
        ($document:ty, $name:literal, $title:literal) => {
            (
                concat!($name, ".schema.json"),
                schema::<$document>($name, $title),
                include_str!(concat!("../../../docs/schema/", $name, ".schema.json")),
            )
        };
    }
    [
        schema!(RunDocument, "run", "A finished measurement (linerate history show --json)"),
        schema!(ThroughputDocument, "throughput", "Throughput (linerate test --json)"),
        schema!(PathDocument, "path", "A measured path (linerate path --json)"),
        schema!(LoadDocument, "load", "Latency under load (linerate load --json)"),
        schema!(AuditDocument, "audit", "Audit findings on a host (linerate audit --json)"),
        schema!(
            ExplanationDocument,
            "audit-explanation",
            "Explanation of one kernel setting (linerate audit --explain KEY --json)"
        ),
        schema!(Rfc6349Document, "rfc6349", "TCP throughput test by RFC 6349 (linerate rfc6349 --json)"),
        schema!(RrDocument, "rr", "Requests and responses (linerate rr --json)"),
        schema!(DiagnoseDocument, "diagnose", "Limiting causes of a transfer (linerate diagnose --json)"),
        schema!(TuneDocument, "tune", "Proposed, tried and kept changes (linerate tune --json)"),
        schema!(DoctorDocument, "doctor", "A complete guided run (linerate doctor --json)"),
        schema!(HostCheckDocument, "host-check", "Requirements of a host, each tried (linerate doctor --check --json)"),
        schema!(BaselineDocument, "baseline", "Host performance without a network (linerate baseline --json)"),
        schema!(
            ShaperPersistenceDocument,
            "shaper-persistence",
            "Files and commands that start a shaper at boot (linerate shape DEV persist --json)"
        ),
        schema!(ShaperDocument, "shaper", "Plan and state of a traffic shaper (linerate shape DEV --json)"),
        schema!(ShaperStatusDocument, "shaper-status", "State of active shapers (linerate shape status --json)"),
        schema!(WatchDocument, "watch", "The TCP flows of a host over one interval (linerate watch --json)"),
        schema!(WebDocument, "web", "A test in a browser (linerate serve --web)"),
        schema!(FleetReport, "fleet-report", "Results of a fleet or a monitor (linerate fleet report --format json)"),
        schema!(FleetResult, "fleet-result", "A test of a fleet or a monitor (linerate fleet agent --json)"),
        schema!(FleetMembersDocument, "fleet-members", "Running agents of a fleet (linerate fleet members --json)"),
        schema!(FleetPlanDocument, "fleet-plan", "Timetable of a fleet (linerate fleet plan --json)"),
        schema!(ChangeSetsDocument, "change-sets", "Changes to a host (linerate rollback --list --json)"),
        schema!(ChangeReportsDocument, "change-reports", "Rollback of changes (linerate rollback --json)"),
        schema!(LabCheckDocument, "lab-check", "Requirements of the lab, each tried (linerate lab check --json)"),
        schema!(LabKernelsDocument, "lab-kernels", "Kernels of the lab's guests (linerate lab kernel status --json)"),
        schema!(LabPathDocument, "lab-path", "An emulated path (linerate lab show PATH --json)"),
        schema!(LabPathsDocument, "lab-paths", "Paths of the lab's library (linerate lab list --json)"),
        schema!(RunListDocument, "run-list", "Runs of the history (linerate history list --json)"),
        schema!(
            ResultListDocument,
            "result-list",
            "Results of monitors and agents (linerate history list --results --json)"
        ),
        schema!(TrendDocument, "trend", "Trend of a figure (linerate history trend FIGURE --json)"),
        schema!(ComparisonDocument, "comparison", "Comparison of runs (linerate history compare RUNS RUNS --json)"),
        schema!(CalculationDocument, "calculation", "Answer of a calculator (linerate calc NAME --json)"),
        schema!(CalculatorsDocument, "calculators", "List of calculators (linerate calc --json)"),
        schema!(ProgressEvent, "event", "Event of a running command (--json-stream)"),
    ]
}

#[test]
fn the_published_schemas_are_those_of_the_types() {
    for (file, schema, published) in schemas() {
        let published: Value = serde_json::from_str(published).unwrap_or_default();
        assert!(published == schema, "docs/schema/{file} is not current: `cargo xtask schema` writes it");
    }
}

/// Passes the schemas on by failing, since a pure crate writes no file.
#[test]
#[ignore = "long: cargo xtask schema"]
fn hand_over() {
    let all: serde_json::Map<String, Value> =
        schemas().into_iter().map(|(file, schema, _)| (file.to_owned(), schema)).collect();
    panic!("{BEGIN}{}{END}", Value::Object(all));
}

#[test]
fn descriptions_are_in_terms_of_json() {
    for (rust, json) in [
        ("Schema version ([`SCHEMA`]).", "Schema version."),
        ("Times ([`SCHEMA`]) of [`RunKind::Rfc6349`], `None` without.", "Times of `rfc6349`, `null` without."),
        (
            "In addition to [`LatencySummary`], and to [`Self::together_with`].",
            "In addition to `LatencySummary`, and to `together_with`.",
        ),
        ("Of [`HandshakeKind::NotResumed`]", "Of `not_resumed`"),
    ] {
        assert_eq!(in_terms_of_json(rust), json);
    }
    for (file, schema, _) in schemas() {
        let text = schema.to_string();
        assert!(!text.contains("`None`") && !text.contains("[`"), "{file}");
    }
}

/// Guards against a schema that allows anything and would accept every document.
#[test]
fn the_schemas_require_their_keys() {
    for (file, schema, _) in schemas() {
        let required = schema["required"].as_array().map_or(0, Vec::len);
        let properties = schema["properties"].as_object().map_or(0, serde_json::Map::len);
        assert!(required > 3 && required == properties, "{file}: {required} of {properties} keys are required");
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{file}");
    }
}
