//! All flows of the host, from reading to reading.

use std::collections::HashMap;
use std::time::Duration;

use linerate_model::fact::Fact;
use linerate_model::flow::{BufferSettings, FlowChange, FlowState};
use linerate_model::socket::{FlowKey, Inode, Owner, SocketCookie, SocketReading};
use linerate_rules::flow_state::flow_state;
use linerate_sys::clock;
use linerate_sys::sock_diag::{Owners, SocketFilter, SocketReader};
use linerate_units::MonotonicTime;

use super::history::History;

/// One flow as of its latest reading.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) reading: SocketReading,
    read_at: MonotonicTime,
    /// Since the reading before; `None` after the first.
    pub(crate) change: Option<FlowChange>,
    /// What limits it; `None` after the first reading.
    pub(crate) state: Option<FlowState>,
    /// Only of flows that have moved: idle ones are many.
    pub(crate) history: Option<Box<History>>,
    round: u64,
}

/// A flow with the process that has it open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a> {
    pub(crate) flow: &'a Flow,
    pub(crate) owner: &'a Fact<Owner>,
}

/// The flows, and what is needed to read them again.
#[derive(Debug)]
pub(crate) struct Flows {
    reader: SocketReader,
    filter: SocketFilter,
    settings: BufferSettings,
    owners: Owners,
    by_cookie: HashMap<SocketCookie, Flow>,
    round: u64,
    /// How many intervals have been shown.
    pub(crate) intervals: u64,
    /// Time between the two latest readings.
    pub(crate) elapsed: Duration,
    read_at: Option<MonotonicTime>,
}

impl Flows {
    pub(crate) fn new(filter: SocketFilter) -> Result<Self, linerate_sys::Error> {
        Ok(Self {
            reader: SocketReader::new()?,
            filter,
            settings: super::settings::buffer_settings(),
            owners: Owners::new(),
            by_cookie: HashMap::new(),
            round: 0,
            intervals: 0,
            elapsed: Duration::ZERO,
            read_at: None,
        })
    }

    /// Reads all flows, and forgets those that are gone.
    pub(crate) fn update(&mut self) -> Result<(), linerate_sys::Error> {
        self.round += 1;
        let (round, settings, flows) = (self.round, &self.settings, &mut self.by_cookie);
        let start = clock::monotonic_now();
        self.reader.read(&self.filter, |reading| {
            // Each at its own time: ten thousand sockets are not read in one moment.
            let now = clock::monotonic_now();
            match flows.get_mut(&reading.key.cookie) {
                Some(flow) if flow.round < round => flow.renew(reading, now, round, settings),
                Some(_) => {}
                None => {
                    flows.insert(reading.key.cookie, Flow::new(reading, now, round));
                }
            }
        })?;
        flows.retain(|_, flow| flow.round == round);
        self.owners.refresh(flows.values().filter_map(|flow| flow.reading.inode));
        if let Some(before) = self.read_at.replace(start) {
            self.elapsed = start.since(before);
            self.intervals += 1;
        }
        Ok(())
    }

    /// As if it had been read.
    #[cfg(test)]
    pub(crate) fn insert(&mut self, flow: Flow) {
        self.by_cookie.insert(flow.reading.key.cookie, flow);
        self.intervals = 1;
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.by_cookie.values().map(|flow| Row { flow, owner: self.owner(flow.reading.inode) })
    }

    /// The flow with this key, while it is there.
    pub(crate) fn row(&self, key: &FlowKey) -> Option<Row<'_>> {
        let flow = self.by_cookie.get(&key.cookie)?;
        Some(Row { flow, owner: self.owner(flow.reading.inode) })
    }

    fn owner(&self, inode: Option<Inode>) -> &Fact<Owner> {
        self.owners.owner(inode)
    }
}

impl Flow {
    pub(crate) fn new(reading: SocketReading, read_at: MonotonicTime, round: u64) -> Self {
        Self { reading, read_at, change: None, state: None, history: None, round }
    }

    pub(crate) fn renew(&mut self, reading: SocketReading, now: MonotonicTime, round: u64, settings: &BufferSettings) {
        let change = FlowChange::between(&self.reading, &reading, now.since(self.read_at));
        self.state = Some(flow_state(&self.reading, &reading, &change, settings));
        if self.history.is_some() || change.moved() {
            self.history.get_or_insert_default().push(&change);
        }
        self.change = Some(change);
        self.reading = reading;
        self.read_at = now;
        self.round = round;
    }
}
