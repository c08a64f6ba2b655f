//! Labels of JSON documents: the schema and the kind, by which readers recognise them.

use serde::Serialize;

/// Prefix of the identifiers of the schemas in docs/schema.
pub const SCHEMA_PREFIX: &str = "https://linerate.invalid/schema/1/";

/// Defines the kinds: name, display title, and whether docs/schema has the JSON Schema.
macro_rules! kinds {
    ($($variant:ident $name:literal $title:literal $has_schema:literal;)+) => {
        /// Kind of a document that is not a run. A run's kind is [`crate::run::RunKind`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum DocumentKind {
            $(#[doc = concat!($title, ".")] $variant,)+
        }

        impl DocumentKind {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Name in the key `kind`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// Display title.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title),+ }
            }

            /// True when docs/schema has its JSON Schema.
            #[must_use]
            pub const fn has_schema(self) -> bool {
                match self { $(Self::$variant => $has_schema),+ }
            }
        }
    };
}

kinds! {
    Audit "audit" "Audit of a host" true;
    AuditExplanation "audit-explanation" "Explanation of a kernel setting" true;
    Baseline "baseline" "Host without a network" true;
    Calculation "calculation" "Calculation" false;
    Calculators "calculators" "Calculators" false;
    ChangeReports "change-reports" "Rollback of changes" true;
    ChangeSets "change-sets" "Changes to this host" true;
    Comparison "comparison" "Comparison of two runs" false;
    FleetMembers "fleet-members" "Members of a fleet" true;
    FleetPlan "fleet-plan" "Timetable of a fleet" true;
    FleetReport "fleet-report" "Report of the results of a fleet" true;
    FleetResult "fleet-result" "Result of a test of a fleet" true;
    HostCheck "host-check" "Requirements of this host" true;
    LabCheck "lab-check" "Requirements of the lab" true;
    LabKernels "lab-kernels" "Kernels of the lab" true;
    LabPath "lab-path" "Path of the lab" true;
    LabPaths "lab-paths" "Paths of the lab" true;
    ResultList "result-list" "Results of monitors and agents" false;
    RunList "run-list" "Runs of the history" false;
    Shaper "shaper" "Traffic shaper" true;
    ShaperPersistence "shaper-persistence" "Traffic shaper at boot" true;
    ShaperStatus "shaper-status" "Active traffic shapers" true;
    Trend "trend" "Trend of a figure" false;
    Watch "watch" "TCP flows of a host" true;
}

impl DocumentKind {
    /// Kind of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

/// Identifier of a schema in docs/schema.
#[must_use]
pub fn schema_identifier(name: &str) -> String {
    format!("{SCHEMA_PREFIX}{name}.schema.json")
}

/// A document with its schema's identifier and its kind as the first keys.
#[derive(Debug, Serialize)]
pub struct LabelledDocument<'a, T> {
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    schema: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(flatten)]
    document: &'a T,
}

impl<'a, T: Serialize> LabelledDocument<'a, T> {
    /// Labels a document of this kind.
    pub fn new(kind: DocumentKind, document: &'a T) -> Self {
        let schema = kind.has_schema().then(|| schema_identifier(kind.name()));
        Self { schema, kind: Some(kind.name()), document }
    }
}

impl<'a> LabelledDocument<'a, crate::run::RunDocument> {
    /// Labels a run, which has its kind among its own keys.
    #[must_use]
    pub fn run(run: &'a crate::run::RunDocument) -> Self {
        Self { schema: Some(schema_identifier("run")), kind: None, document: run }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_comes_first() {
        let text = serde_json::to_string(&LabelledDocument::new(DocumentKind::Audit, &serde_json::json!({ "a": 1 })));
        let expected = r#"{"$schema":"https://linerate.invalid/schema/1/audit.schema.json","kind":"audit","a":1}"#;
        assert_eq!(text.expect("JSON"), expected);
        let text = serde_json::to_string(&LabelledDocument::new(DocumentKind::Trend, &serde_json::json!({})));
        assert_eq!(text.expect("JSON"), r#"{"kind":"trend"}"#);
    }

    #[test]
    fn names_are_unique() {
        for kind in DocumentKind::ALL {
            assert_eq!(DocumentKind::from_name(kind.name()), Some(*kind));
        }
    }
}
