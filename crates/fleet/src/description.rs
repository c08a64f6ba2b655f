//! Description of a fleet: the part of psConfig that linerate reads, with its own keys below `_meta.linerate`.
//!
//! Source: psConfig's JSON Schema (`psconfig-schema.json`). What that schema allows and linerate does not read (address
//! classes, includes, contexts, labels, subtasks) is an error: a timetable without it would be another than the one meant.

use core::time::Duration;
use std::collections::BTreeMap;

use linerate_documents::fleet_result::FleetTestKind;
use linerate_units::{BitRate, parse};
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::Value;

use crate::{FleetError, iso_duration, unique_map};

/// Description of a fleet.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FleetDescription {
    /// Addresses that are measured, by name.
    #[serde(deserialize_with = "unique_map::deserialize")]
    pub addresses: BTreeMap<String, MemberAddress>,
    /// Sets of addresses whose pairs are measured.
    #[serde(deserialize_with = "unique_map::deserialize")]
    pub groups: BTreeMap<String, AddressGroup>,
    /// Hosts, where an address names its host.
    #[serde(default, deserialize_with = "unique_map::deserialize")]
    pub hosts: BTreeMap<String, HostEntry>,
    /// Kinds of measurements.
    #[serde(deserialize_with = "unique_map::deserialize")]
    pub tests: BTreeMap<String, TestEntry>,
    /// Repetitions.
    #[serde(default, deserialize_with = "unique_map::deserialize")]
    pub schedules: BTreeMap<String, ScheduleEntry>,
    /// Tests of groups on schedules.
    #[serde(deserialize_with = "unique_map::deserialize")]
    pub tasks: BTreeMap<String, TaskEntry>,
    /// Archives, for perfSONAR: linerate keeps the names only.
    #[serde(default, deserialize_with = "unique_map::deserialize")]
    pub archives: BTreeMap<String, Value>,
    /// Free entries; linerate's own are below `linerate`.
    #[serde(default, rename = "_meta")]
    pub meta: FreeEntries<FleetEntries>,
}

/// Free entries of psConfig, of which linerate reads those below `linerate`, and no others.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct FreeEntries<T> {
    /// linerate's entries.
    pub linerate: T,
    /// Name for people.
    #[serde(rename = "display-name")]
    pub display_name: Option<String>,
}

/// Entries of linerate for the whole fleet.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FleetEntries {
    /// Links that several hosts share, by name.
    #[serde(deserialize_with = "unique_map::deserialize")]
    pub uplinks: BTreeMap<String, UplinkEntry>,
    /// Longest difference of two hosts' clocks; 2 s where nothing is given.
    #[serde(deserialize_with = "iso_duration::deserialize")]
    pub clock_guard: Option<Duration>,
}

/// Link that several hosts share towards the others.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UplinkEntry {
    /// Rate that all tests across it may have together.
    #[serde(deserialize_with = "rate")]
    pub capacity: Option<BitRate>,
}

/// Entries of linerate for an address.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AddressEntries {
    /// Shared link between this address and the hosts that are not behind it.
    pub uplink: Option<String>,
    /// Rate of the host's own link.
    #[serde(deserialize_with = "rate")]
    pub rate: Option<BitRate>,
}

/// Address that is measured.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MemberAddress {
    /// Name or number that the others connect to.
    pub address: String,
    /// Host of this address; without one, the address is a host of its own.
    #[serde(default)]
    pub host: Option<String>,
    /// True when nothing is measured from or to it.
    #[serde(default)]
    pub disabled: bool,
    /// True when no agent runs there: only others start tests to it.
    #[serde(default)]
    pub no_agent: bool,
    /// Labels for people.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Address of pScheduler there, which linerate has no need of.
    #[serde(default)]
    pub pscheduler_address: Option<String>,
    /// Free entries.
    #[serde(default, rename = "_meta")]
    pub meta: FreeEntries<AddressEntries>,
}

/// Host of one or more addresses.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct HostEntry {
    /// True when nothing is measured from or to it.
    pub disabled: bool,
    /// True when no agent runs there.
    pub no_agent: bool,
    /// Archives, for perfSONAR.
    pub archives: Vec<String>,
    /// Labels for people.
    pub tags: Vec<String>,
    /// Free entries.
    #[serde(rename = "_meta")]
    pub meta: Value,
}

/// Addresses whose pairs are measured.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "type", deny_unknown_fields, rename_all = "lowercase", rename_all_fields = "kebab-case")]
pub enum AddressGroup {
    /// Each address with each other, in both directions.
    Mesh {
        /// Addresses.
        addresses: Vec<AddressSelector>,
        /// Pairs within a host are left out, which is all that there is.
        #[serde(default)]
        excludes_self: ExcludedSelf,
        /// Pairs that are left out beyond those of one host.
        #[serde(default)]
        excludes: Vec<ExcludedPairs>,
        /// Free entries.
        #[serde(default, rename = "_meta")]
        meta: Value,
    },
    /// Each address of one side with each of the other.
    Disjoint {
        /// One side.
        a_addresses: Vec<AddressSelector>,
        /// Other side.
        b_addresses: Vec<AddressSelector>,
        /// True for tests from the first to the second side only.
        #[serde(default)]
        unidirectional: bool,
        /// Pairs within a host are left out, which is all that there is.
        #[serde(default)]
        excludes_self: ExcludedSelf,
        /// Pairs that are left out.
        #[serde(default)]
        excludes: Vec<ExcludedPairs>,
        /// Free entries.
        #[serde(default, rename = "_meta")]
        meta: Value,
    },
}

/// Scope in which nothing is measured from an address to itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExcludedSelf {
    /// All addresses of a host.
    #[default]
    Host,
}

/// Name of an address in a group.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddressSelector {
    /// Name of the address.
    pub name: String,
    /// True when it is left out of this group.
    #[serde(default)]
    pub disabled: bool,
}

/// Pairs of a group that are not measured.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ExcludedPairs {
    /// Address that measures.
    pub local_address: AddressSelector,
    /// Addresses that it does not measure.
    pub target_addresses: Vec<AddressSelector>,
}

/// Kind of measurement: a test of pScheduler's, or `diagnose` and `load`, which only linerate has.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestEntry {
    /// Type.
    #[serde(rename = "type")]
    pub kind: FleetTestKind,
    /// Parameters.
    pub spec: TestParameters,
    /// Free entries.
    #[serde(default, rename = "_meta")]
    pub meta: Value,
}

/// Parameters of a test that the timetable needs; the others are for the program that runs it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct TestParameters {
    /// Duration of a transfer.
    #[serde(deserialize_with = "iso_duration::deserialize")]
    pub duration: Option<Duration>,
    /// Largest rate in bit/s.
    pub bandwidth: Option<u64>,
    /// Streams at once, which are measured after one alone.
    pub parallel: Option<u32>,
    /// Congestion control of the sender.
    pub congestion: Option<String>,
    /// Socket buffers in bytes.
    #[serde(rename = "window-size")]
    pub window_size: Option<u64>,
    /// True for UDP, which no test of linerate's fills a path with.
    pub udp: bool,
    /// The others.
    #[serde(flatten)]
    pub others: serde_json::Map<String, Value>,
}

/// Repetition.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ScheduleEntry {
    /// Time from one start to the next.
    #[serde(deserialize_with = "iso_duration::deserialize")]
    pub repeat: Option<Duration>,
    /// Latitude of the start, for pScheduler: the timetable has no need of it.
    #[serde(deserialize_with = "iso_duration::deserialize")]
    pub slip: Option<Duration>,
    /// True for a random start within `slip`, for pScheduler.
    pub sliprand: bool,
    /// Free entries.
    #[serde(rename = "_meta")]
    pub meta: Value,
}

/// Test of a group on a schedule.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TaskEntry {
    /// Name of the group.
    pub group: String,
    /// Name of the test.
    pub test: String,
    /// Name of the schedule; without one, light tests run all the time and others as often as the timetable allows.
    #[serde(default)]
    pub schedule: Option<String>,
    /// True when it does not run.
    #[serde(default)]
    pub disabled: bool,
    /// Archives, for perfSONAR.
    #[serde(default)]
    pub archives: Vec<String>,
    /// Tools, for pScheduler.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Priority, for pScheduler.
    #[serde(default)]
    pub priority: Option<i64>,
    /// Free reference.
    #[serde(default)]
    pub reference: Value,
    /// Free entries.
    #[serde(default, rename = "_meta")]
    pub meta: Value,
}

impl FleetDescription {
    /// Reads a description.
    ///
    /// # Errors
    ///
    /// [`FleetError::Syntax`] with the line and the column.
    pub fn read(text: &str) -> Result<Self, FleetError> {
        serde_json::from_str(text).map_err(FleetError::Syntax)
    }

    /// Name of the host of an address.
    #[must_use]
    pub fn host_of<'a>(&'a self, address: &'a str) -> &'a str {
        self.addresses.get(address).and_then(|entry| entry.host.as_deref()).unwrap_or(address)
    }

    /// True when an address is measured: neither it nor its host is disabled.
    #[must_use]
    pub fn is_measured(&self, address: &str) -> bool {
        let disabled = |entry: &MemberAddress| {
            entry.disabled
                || entry.host.as_ref().and_then(|host| self.hosts.get(host)).is_some_and(|host| host.disabled)
        };
        self.addresses.get(address).is_some_and(|entry| !disabled(entry))
    }

    /// True when an agent runs at an address.
    #[must_use]
    pub fn has_agent(&self, address: &str) -> bool {
        let without = |entry: &MemberAddress| {
            entry.no_agent
                || entry.host.as_ref().and_then(|host| self.hosts.get(host)).is_some_and(|host| host.no_agent)
        };
        self.addresses.get(address).is_some_and(|entry| !without(entry))
    }
}

/// Reads an optional rate with its unit.
fn rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<BitRate>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    parse::rate(&text).map(Some).map_err(D::Error::custom)
}
