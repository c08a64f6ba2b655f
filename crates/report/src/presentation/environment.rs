//! Environment of a run, as tables.

use linerate_documents::environment::{HostEnvironmentRecord, InterfaceEnvironment, OtherTraffic};
use linerate_documents::run::{FigureUnit, RunEnvironment};

use super::{Quantity, ReportTable, TableCell, TableRow};

/// A table of both ends, then one of the emulated path.
pub(super) fn tables(environment: &RunEnvironment) -> Vec<ReportTable> {
    let near = environment.near.as_ref().map(facts);
    let far = environment.far.as_ref().map(facts);
    let (title, columns, rows) = match (near, far) {
        (Some(near), Some(far)) => {
            ("Environment of both ends", &["Fact", "This end", "Far end"][..], side_by_side(near, far))
        }
        (Some(one), None) => ("Environment of this end", &["Fact", "Value"][..], alone(one)),
        (None, Some(one)) => ("Environment of the far end", &["Fact", "Value"][..], alone(one)),
        (None, None) => ("", &[][..], Vec::new()),
    };
    let both = ReportTable { rows, ..ReportTable::new("environment", title, columns) };
    let mut tables: Vec<ReportTable> = both.non_empty().into_iter().collect();
    if let Some(lab) = &environment.lab {
        let mut table = ReportTable::new("emulated_path", "Emulated path", &["Fact", "Value"]);
        table.push_row("Name", vec![TableCell::text(lab.name.clone())]);
        table.push_row("Seed", vec![TableCell::text(lab.seed.to_string())]);
        table.push_row("Description", vec![TableCell::text(lab.description.trim())]);
        tables.push(table);
    }
    tables
}

type FactRows = Vec<(String, TableCell)>;

fn alone(facts: FactRows) -> Vec<TableRow> {
    facts.into_iter().map(|(label, cell)| TableRow { label, cells: vec![cell] }).collect()
}

/// One row for each fact that either end has, in order of appearance.
fn side_by_side(near: FactRows, mut far: FactRows) -> Vec<TableRow> {
    const FAR_UNKNOWN: &str = "not reported by the far end";
    const NEAR_UNKNOWN: &str = "not recorded";
    let mut rows = Vec::new();
    for (label, cell) in near {
        let place = far.iter().position(|(name, _)| *name == label);
        let other = place.map_or_else(|| TableCell::Unknown(FAR_UNKNOWN.to_owned()), |place| far.remove(place).1);
        rows.push(TableRow { label, cells: vec![cell, other] });
    }
    let rest = far.into_iter().map(|(label, cell)| {
        let near = TableCell::Unknown(NEAR_UNKNOWN.to_owned());
        TableRow { label, cells: vec![near, cell] }
    });
    rows.extend(rest);
    rows
}

fn facts(environment: &HostEnvironmentRecord) -> FactRows {
    let mut facts = FactCollector { facts: Vec::new(), seen: Vec::new(), environment };
    facts.text("Host", "host_name", environment.host_name.clone());
    facts.text("Kernel", "kernel", environment.kernel.clone());
    facts.text("Architecture", "architecture", environment.architecture.clone());
    facts.text("Processor", "processor", environment.processor.clone());
    facts.quantity("Logical processors", "processors", environment.processors.map(Quantity::count));
    facts.text("Runs in", "virtualisation", environment.virtualisation.clone());
    facts.text("Congestion control", "congestion_control", environment.congestion_control.clone());
    let controls = environment.congestion_controls.as_ref().map(|controls| controls.join(", "));
    facts.text("Available congestion controls", "congestion_controls", controls);
    facts.text("Clock source", "clock_source", environment.clock_source.clone());
    let synchronised = environment.clock_synchronised.map(|yes| if yes { "yes" } else { "no" }.to_owned());
    facts.text("Clock synchronised", "clock_synchronised", synchronised);
    let bound = environment.clock_error_bound_ns.map(Quantity::nanoseconds);
    facts.quantity("Clock error bound", "clock_error_bound_ns", bound);
    let load = environment.load_average.map(|load| Quantity::new(load, FigureUnit::One));
    facts.quantity("Load average", "load_average", load);
    if let Some(interface) = &environment.interface {
        facts.interface(interface);
    }
    facts.text("Other traffic", "other_traffic", environment.other_traffic.as_ref().map(other_traffic_text));
    for (key, value) in &environment.sysctls {
        facts.text(key, key, Some(value.clone()));
    }
    facts.add_unreadable();
    facts.facts
}

fn other_traffic_text(traffic: &OtherTraffic) -> String {
    let rate = |rate| Quantity::bits_per_second(rate).display_text();
    format!("{} received, {} sent", rate(traffic.received_bits_per_second), rate(traffic.sent_bits_per_second))
}

struct FactCollector<'a> {
    facts: FactRows,
    /// Keys that have been handled.
    seen: Vec<String>,
    environment: &'a HostEnvironmentRecord,
}

impl FactCollector<'_> {
    fn push(&mut self, label: &str, key: &str, value: Option<TableCell>) {
        self.seen.push(key.to_owned());
        let reason = || self.environment.unreadable.get(key).cloned().map(TableCell::Unknown);
        if let Some(cell) = value.or_else(reason) {
            self.facts.push((label.to_owned(), cell));
        }
    }

    fn text(&mut self, label: &str, key: &str, value: Option<String>) {
        self.push(label, key, value.map(TableCell::Text));
    }

    fn quantity(&mut self, label: &str, key: &str, value: Option<Quantity>) {
        self.push(label, key, value.map(TableCell::Value));
    }

    fn interface(&mut self, interface: &InterfaceEnvironment) {
        self.text("Interface", "interface", Some(interface.name.clone()));
        self.quantity("Interface's MTU", "interface.mtu_bytes", interface.mtu_bytes.map(Quantity::bytes));
        self.text("Interface's driver", "interface.driver", interface.driver.clone());
        let speed = interface.speed_bits_per_second.map(Quantity::bits_per_second);
        self.quantity("Interface's speed", "interface.speed_bits_per_second", speed);
        let discipline = interface.queueing_discipline.clone();
        self.text("Queueing discipline", "interface.queueing_discipline", discipline);
        let queue = interface.transmit_queue_packets.map(Quantity::packets);
        self.quantity("Device's queue", "interface.transmit_queue_packets", queue);
        let named = |wanted: bool| {
            let names: Vec<&str> =
                interface.offloads.iter().filter(|(_, on)| **on == wanted).map(|(name, _)| name.as_str()).collect();
            (!names.is_empty()).then(|| names.join(", "))
        };
        self.text("Offloads on", "interface.offloads", named(true));
        self.text("Offloads off", "", named(false));
    }

    /// Adds unreadable values that have no row yet.
    fn add_unreadable(&mut self) {
        for (key, reason) in &self.environment.unreadable {
            if !self.seen.contains(key) {
                self.facts.push((key.clone(), TableCell::Unknown(reason.clone())));
            }
        }
    }
}
