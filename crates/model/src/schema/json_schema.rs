//! The JSON Schemas (draft 2020-12) in docs/schema, generated from the types of this folder.
//!
//! They describe what this version writes: every key is there, an unknown value is `null`, and keys that a later version
//! adds are allowed. `cargo xtask schema` writes them.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Value, json};

use super::audit::{AuditDocument, ExplanationDocument};
use super::baseline::BaselineDocument;
use super::diagnose::DiagnoseDocument;
use super::doctor::DoctorDocument;
use super::load::LoadDocument;
use super::path::PathDocument;
use super::rfc6349::Rfc6349Document;
use super::run::RunDocument;
use super::shaper::ShaperDocument;
use super::shaper_persistence::ShaperPersistenceDocument;
use super::shaper_status::ShaperStatusDocument;
use super::throughput::ThroughputDocument;
use super::tune::TuneDocument;
use super::watch::WatchDocument;

/// Around the schemas, where `cargo xtask schema` takes them from this test's output.
const BEGIN: &str = "=== schemas\n";
const END: &str = "\n=== end";

fn schema<T: JsonSchema>(name: &str, title: &str) -> Value {
    let schema = SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>();
    let mut schema = schema.to_value();
    schema["$id"] = json!(format!("https://linerate.invalid/schema/1/{name}.schema.json"));
    schema["title"] = json!(title);
    schema
}

/// Each schema with the name of its file and what is committed there.
fn schemas() -> [(&'static str, Value, &'static str); 15] {
    macro_rules! schema {
        ($document:ty, $name:literal, $title:literal) => {
            (
                concat!($name, ".schema.json"),
                schema::<$document>($name, $title),
                include_str!(concat!("../../../../docs/schema/", $name, ".schema.json")),
            )
        };
    }
    [
        schema!(RunDocument, "run", "A finished measurement (linerate history show --json)"),
        schema!(ThroughputDocument, "throughput", "Throughput (linerate test --json)"),
        schema!(PathDocument, "path", "A measured path (linerate path --json)"),
        schema!(LoadDocument, "load", "Latency under load (linerate load --json)"),
        schema!(AuditDocument, "audit", "What was found on a host (linerate audit --json)"),
        schema!(
            ExplanationDocument,
            "audit-explanation",
            "Everything about one setting (linerate audit --explain KEY --json)"
        ),
        schema!(Rfc6349Document, "rfc6349", "TCP throughput after RFC 6349 (linerate rfc6349 --json)"),
        schema!(DiagnoseDocument, "diagnose", "What limits a transfer (linerate diagnose --json)"),
        schema!(TuneDocument, "tune", "What was proposed, tried and kept (linerate tune --json)"),
        schema!(DoctorDocument, "doctor", "A guided run as a whole (linerate doctor --json)"),
        schema!(BaselineDocument, "baseline", "What a host can do without a network (linerate baseline --json)"),
        schema!(
            ShaperPersistenceDocument,
            "shaper-persistence",
            "What sets a shaper up at each boot (linerate shape DEV persist --json)"
        ),
        schema!(ShaperDocument, "shaper", "What was planned for a line, and what stands (linerate shape DEV --json)"),
        schema!(ShaperStatusDocument, "shaper-status", "What the shapers of a host do (linerate shape status --json)"),
        schema!(WatchDocument, "watch", "The TCP flows of a host over one interval (linerate watch --json)"),
    ]
}

#[test]
fn the_published_schemas_are_those_of_the_types() {
    for (file, schema, published) in schemas() {
        let published: Value = serde_json::from_str(published).unwrap_or_default();
        assert!(published == schema, "docs/schema/{file} is not current: `cargo xtask schema` writes it");
    }
}

/// A pure crate writes no file, so it hands them over by failing.
#[test]
#[ignore = "for `cargo xtask schema`"]
fn hand_over() {
    let all: serde_json::Map<String, Value> =
        schemas().into_iter().map(|(file, schema, _)| (file.to_owned(), schema)).collect();
    panic!("{BEGIN}{}{END}", Value::Object(all));
}

/// A schema that allows anything would pass every document.
#[test]
fn the_schemas_know_what_they_are_about() {
    for (file, schema, _) in schemas() {
        let required = schema["required"].as_array().map_or(0, Vec::len);
        let properties = schema["properties"].as_object().map_or(0, serde_json::Map::len);
        assert!(required > 3 && required == properties, "{file}: {required} of {properties} keys are required");
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{file}");
    }
}
