//! The JSON documents of finished runs: one type per kind of document, composed of the types of `model`.
//!
//! Their JSON Schemas (docs/schema) are generated from these types in a test of this crate.

#![forbid(unsafe_code)]

pub mod audit;
pub mod baseline;
pub mod calculation;
pub mod change_reports;
pub mod change_sets;
pub mod civil_time;
pub mod comparison;
pub mod diagnose;
pub mod doctor;
pub mod environment;
pub mod fleet_members;
pub mod fleet_plan;
pub mod fleet_report;
pub mod fleet_result;
mod fleet_test_kind;
pub mod host_check;
#[cfg(test)]
mod json_schema;
pub mod lab_check;
pub mod lab_kernels;
pub mod lab_path;
pub mod lab_paths;
pub mod label;
pub mod progress;
pub mod result_list;
pub mod rfc6349;
pub mod rr;
pub mod run;
pub mod run_list;
pub mod shape;
pub mod shaper;
pub mod shaper_persistence;
pub mod shaper_status;
pub mod throughput;
pub mod trend;
pub mod tune;
pub mod watch;
pub mod web;

pub use linerate_units::serde::nanoseconds;
