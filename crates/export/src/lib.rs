//! Results of fleets and monitors in the formats of others: OpenTelemetry's OTLP, Prometheus' text, pScheduler's archive.
//!
//! Every function takes a [`linerate_documents::fleet_result::FleetResult`] as it is in a log, from this or another version and
//! with any text and any number, and gives a document that its reader accepts. Nothing is sent here; requests of scrapers are parsed.

#![forbid(unsafe_code)]

mod causes;
mod exposition;
#[doc(hidden)]
pub mod fuzzing;
mod http_request;
mod latest;
mod metric;
mod otlp;
mod pscheduler;

pub use exposition::Exposition;
pub use http_request::HttpRequest;
pub use latest::LatestResults;
pub use metric::{ExportedFigure, ExportedMetric, exported_figures};
pub use otlp::{ID_ATTRIBUTE, OtlpResource, logs_request, metrics_request};
pub use pscheduler::archive_document;
