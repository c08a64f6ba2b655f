//! Where a run was measured, as tables.

use linerate_model::schema::environment::{Environment, Interface, OtherTraffic};
use linerate_model::schema::run::{RunEnvironment, Unit};

use super::{Cell, Quantity, Row, Table};

/// A table of both ends, then one of the emulated path.
pub(super) fn tables(environment: &RunEnvironment) -> Vec<Table> {
    let near = environment.near.as_ref().map(facts);
    let far = environment.far.as_ref().map(facts);
    let (title, columns, rows) = match (near, far) {
        (Some(near), Some(far)) => {
            ("Both ends as they were then", &["Fact", "This end", "Far end"][..], side_by_side(near, far))
        }
        (Some(one), None) => ("This end as it was then", &["Fact", "Value"][..], alone(one)),
        (None, Some(one)) => ("The far end as it was then", &["Fact", "Value"][..], alone(one)),
        (None, None) => ("", &[][..], Vec::new()),
    };
    let both = Table { rows, ..Table::new("environment", title, columns) };
    let mut tables: Vec<Table> = both.filled().into_iter().collect();
    if let Some(lab) = &environment.lab {
        let mut table = Table::new("emulated_path", "Emulated path", &["Fact", "Value"]);
        table.row("Name", vec![Cell::text(lab.name.clone())]);
        table.row("Seed", vec![Cell::text(lab.seed.to_string())]);
        table.row("Description", vec![Cell::text(lab.description.trim())]);
        tables.push(table);
    }
    tables
}

type Facts = Vec<(String, Cell)>;

fn alone(facts: Facts) -> Vec<Row> {
    facts.into_iter().map(|(label, cell)| Row { label, cells: vec![cell] }).collect()
}

/// One row for each fact that either end has, in the order in which they come.
fn side_by_side(near: Facts, mut far: Facts) -> Vec<Row> {
    const FAR_UNKNOWN: &str = "the far end does not tell";
    const NEAR_UNKNOWN: &str = "not recorded";
    let mut rows = Vec::new();
    for (label, cell) in near {
        let place = far.iter().position(|(name, _)| *name == label);
        let other = place.map_or_else(|| Cell::Unknown(FAR_UNKNOWN.to_owned()), |place| far.remove(place).1);
        rows.push(Row { label, cells: vec![cell, other] });
    }
    let rest = far.into_iter().map(|(label, cell)| {
        let near = Cell::Unknown(NEAR_UNKNOWN.to_owned());
        Row { label, cells: vec![near, cell] }
    });
    rows.extend(rest);
    rows
}

fn facts(environment: &Environment) -> Facts {
    let mut facts = Collected { facts: Vec::new(), seen: Vec::new(), environment };
    facts.text("Host", "host_name", environment.host_name.clone());
    facts.text("Kernel", "kernel", environment.kernel.clone());
    facts.text("Architecture", "architecture", environment.architecture.clone());
    facts.text("Processor", "processor", environment.processor.clone());
    facts.quantity("Logical processors", "processors", environment.processors.map(Quantity::count));
    facts.text("Runs in", "virtualisation", environment.virtualisation.clone());
    facts.text("Congestion control", "congestion_control", environment.congestion_control.clone());
    let controls = environment.congestion_controls.as_ref().map(|controls| controls.join(", "));
    facts.text("Congestion controls to choose from", "congestion_controls", controls);
    facts.text("Clock source", "clock_source", environment.clock_source.clone());
    let synchronised = environment.clock_synchronised.map(|yes| if yes { "yes" } else { "no" }.to_owned());
    facts.text("Clock synchronised", "clock_synchronised", synchronised);
    let bound = environment.clock_error_bound_ns.map(Quantity::nanoseconds);
    facts.quantity("Clock at most wrong by", "clock_error_bound_ns", bound);
    let load = environment.load_average.map(|load| Quantity::new(load, Unit::One));
    facts.quantity("Load average", "load_average", load);
    if let Some(interface) = &environment.interface {
        facts.interface(interface);
    }
    facts.text("Traffic of others", "other_traffic", environment.other_traffic.as_ref().map(others));
    for (key, value) in &environment.sysctls {
        facts.text(key, key, Some(value.clone()));
    }
    facts.rest();
    facts.facts
}

fn others(traffic: &OtherTraffic) -> String {
    let rate = |rate| Quantity::bits_per_second(rate).shown();
    format!("{} received, {} sent", rate(traffic.received_bits_per_second), rate(traffic.sent_bits_per_second))
}

struct Collected<'a> {
    facts: Facts,
    /// Keys that were looked at.
    seen: Vec<String>,
    environment: &'a Environment,
}

impl Collected<'_> {
    fn push(&mut self, label: &str, key: &str, value: Option<Cell>) {
        self.seen.push(key.to_owned());
        let reason = || self.environment.unreadable.get(key).cloned().map(Cell::Unknown);
        if let Some(cell) = value.or_else(reason) {
            self.facts.push((label.to_owned(), cell));
        }
    }

    fn text(&mut self, label: &str, key: &str, value: Option<String>) {
        self.push(label, key, value.map(Cell::Text));
    }

    fn quantity(&mut self, label: &str, key: &str, value: Option<Quantity>) {
        self.push(label, key, value.map(Cell::Value));
    }

    fn interface(&mut self, interface: &Interface) {
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

    /// What could not be read and has no row yet.
    fn rest(&mut self) {
        for (key, reason) in &self.environment.unreadable {
            if !self.seen.contains(key) {
                self.facts.push((key.clone(), Cell::Unknown(reason.clone())));
            }
        }
    }
}
