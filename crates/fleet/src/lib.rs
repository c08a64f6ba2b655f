//! Tests between many hosts: which hosts and tests there are, and which test runs when.
//!
//! A [`FleetDescription`] is a part of psConfig, perfSONAR's description of meshes, so that one file drives both. From it
//! follow [`TestSession`]s, and from these a [`Timetable`]: the same on every host, without messages between them. This crate
//! reads no file and no clock.

#![forbid(unsafe_code)]

mod alerts;
mod calendar;
mod commands;
mod cost;
mod description;
mod error;
mod facts;
mod free_slots;
pub mod fuzzing;
mod identity;
mod iso_duration;
mod pairs;
mod plain_host;
pub mod pscheduler;
mod round_robin;
mod route;
mod sessions;
mod timetable;
mod unique_map;
mod unusual;
pub mod usual;

pub use alerts::{AlertKind, MonitorAlert, MonitorSample, REMEMBERED, alerts};
pub use calendar::{CalendarExpression, MonitorSchedule, QuietHours, hour_of_week};
pub use commands::session_command;
pub use cost::fleet_cost;
pub use description::{
    AddressGroup, AddressSelector, FleetDescription, HostEntry, MemberAddress, ScheduleEntry, TaskEntry, TestEntry,
    UplinkEntry,
};
pub use error::FleetError;
pub use facts::TestFacts;
pub use free_slots::session_resources;
pub use linerate_documents::fleet_plan::{FleetCost, PlannedSession, SessionDirections, TestSession, TestWeight};
pub use plain_host::is_plain_host;
pub use route::{HopChange, hop_changes};
pub use timetable::{SessionStart, Timetable};
pub use unusual::unusual_figures;
