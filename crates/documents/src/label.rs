//! Labels of JSON documents: the schema and the kind, by which readers recognise them.

use serde::Serialize;

/// Prefix of the identifiers of the schemas in docs/schema.
pub const SCHEMA_PREFIX: &str = "https://linerate.invalid/schema/1/";

/// Defines the kinds: name and display title.
macro_rules! kinds {
    ($($variant:ident $name:literal $title:literal;)+) => {
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
        }
    };
}

kinds! {
    Audit "audit" "Audit of a host";
    AuditExplanation "audit-explanation" "Explanation of a kernel setting";
    Baseline "baseline" "Host without a network";
    Calculation "calculation" "Calculation";
    Calculators "calculators" "Calculators";
    ChangeReports "change-reports" "Rollback of changes";
    ChangeSets "change-sets" "Changes to this host";
    Comparison "comparison" "Comparison of two runs";
    FleetMembers "fleet-members" "Members of a fleet";
    FleetPlan "fleet-plan" "Timetable of a fleet";
    FleetReport "fleet-report" "Report of the results of a fleet";
    FleetResult "fleet-result" "Result of a test of a fleet";
    HostCheck "host-check" "Requirements of this host";
    LabCheck "lab-check" "Requirements of the lab";
    LabKernels "lab-kernels" "Kernels of the lab";
    LabPath "lab-path" "Path of the lab";
    LabPaths "lab-paths" "Paths of the lab";
    ResultList "result-list" "Results of monitors and agents";
    RunList "run-list" "Runs of the history";
    Shaper "shaper" "Traffic shaper";
    ShaperPersistence "shaper-persistence" "Traffic shaper at boot";
    ShaperStatus "shaper-status" "Active traffic shapers";
    Trend "trend" "Trend of a figure";
    Watch "watch" "TCP flows of a host";
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
    #[serde(rename = "$schema")]
    schema: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(flatten)]
    document: &'a T,
}

impl<'a, T: Serialize> LabelledDocument<'a, T> {
    /// Labels a document of this kind.
    pub fn new(kind: DocumentKind, document: &'a T) -> Self {
        Self { schema: schema_identifier(kind.name()), kind: Some(kind.name()), document }
    }
}

impl<'a> LabelledDocument<'a, crate::run::RunDocument> {
    /// Labels a run, which has its kind among its own keys.
    #[must_use]
    pub fn run(run: &'a crate::run::RunDocument) -> Self {
        Self { schema: schema_identifier("run"), kind: None, document: run }
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
    }

    #[test]
    fn names_are_unique() {
        for kind in DocumentKind::ALL {
            assert_eq!(DocumentKind::from_name(kind.name()), Some(*kind));
        }
    }
}
