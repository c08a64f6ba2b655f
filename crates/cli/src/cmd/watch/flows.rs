//! TCP flows of the host, with their changes between samples.

use std::collections::HashMap;
use std::time::Duration;

use linerate_model::fact::Fact;
use linerate_model::flow::{BufferSettings, FlowChange, FlowState};
use linerate_model::flow_events::IntervalEvents;
use linerate_model::socket::{FlowKey, SocketCookie, SocketInode, SocketOwner, SocketSnapshot};
use linerate_rules::flow_state::flow_state;
use linerate_sys::clock;
use linerate_sys::sock_diag::{SocketFilter, SocketOwners, SocketReader};
use linerate_units::MonotonicTime;

use super::events::FlowEventTrace;
use super::history::FlowHistory;

/// Flow as of its latest sample.
#[derive(Debug)]
pub(crate) struct FlowEntry {
    pub(crate) reading: SocketSnapshot,
    read_at: MonotonicTime,
    /// Change since the previous sample; `None` after the first.
    pub(crate) change: Option<FlowChange>,
    /// Limit of the flow; `None` after the first sample.
    pub(crate) state: Option<FlowState>,
    /// History, only of flows that moved data: most flows are idle.
    pub(crate) history: Option<Box<FlowHistory>>,
    round: u64,
}

/// Flow and the process that owns its socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowRow<'a> {
    pub(crate) flow: &'a FlowEntry,
    pub(crate) owner: &'a Fact<SocketOwner>,
    /// Events of the kernel in the latest interval, where they are traced.
    pub(crate) events: Option<&'a IntervalEvents>,
}

/// All flows, and the state needed to sample them.
#[derive(Debug)]
pub(crate) struct FlowTable {
    reader: SocketReader,
    filter: SocketFilter,
    settings: BufferSettings,
    owners: SocketOwners,
    by_cookie: HashMap<SocketCookie, FlowEntry>,
    round: u64,
    /// Number of intervals shown.
    pub(crate) intervals: u64,
    /// Time between the two latest samples.
    pub(crate) elapsed: Duration,
    read_at: Option<MonotonicTime>,
    /// Events of the kernel, where they were requested.
    pub(crate) events: Option<FlowEventTrace>,
}

impl FlowTable {
    pub(crate) fn new(filter: SocketFilter) -> Result<Self, linerate_sys::Error> {
        Ok(Self {
            reader: SocketReader::new()?,
            filter,
            settings: super::settings::buffer_settings(),
            owners: SocketOwners::new(),
            by_cookie: HashMap::new(),
            round: 0,
            intervals: 0,
            elapsed: Duration::ZERO,
            read_at: None,
            events: None,
        })
    }

    /// Traces the kernel's events from now on.
    pub(crate) fn trace_kernel_events(&mut self) {
        self.events = Some(FlowEventTrace::start());
    }

    /// Samples all flows, and removes the closed ones.
    pub(crate) fn update(&mut self) -> Result<(), linerate_sys::Error> {
        self.round += 1;
        let (round, settings, flows) = (self.round, &self.settings, &mut self.by_cookie);
        let start = clock::monotonic_now();
        self.reader.read(&self.filter, |reading| {
            // Each flow has its own time: ten thousand sockets are not sampled in an instant.
            let now = clock::monotonic_now();
            match flows.get_mut(&reading.key.cookie) {
                Some(flow) if flow.round < round => flow.record_sample(reading, now, round, settings),
                Some(_) => {}
                None => {
                    flows.insert(reading.key.cookie, FlowEntry::new(reading, now, round));
                }
            }
        })?;
        flows.retain(|_, flow| flow.round == round);
        self.owners.refresh(flows.values().filter_map(|flow| flow.reading.inode));
        if let Some(events) = &mut self.events {
            let owner = |flow: &FlowEntry| self.owners.owner(flow.reading.inode).known().map(|owner| owner.process);
            events.update(&flows.values().filter_map(owner).collect());
        }
        if let Some(before) = self.read_at.replace(start) {
            self.elapsed = start.since(before);
            self.intervals += 1;
        }
        Ok(())
    }

    /// Inserts a flow as if it had been sampled.
    #[cfg(test)]
    pub(crate) fn insert(&mut self, flow: FlowEntry) {
        self.by_cookie.insert(flow.reading.key.cookie, flow);
        self.intervals = 1;
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = FlowRow<'_>> {
        self.by_cookie.values().map(|flow| self.row_of(flow))
    }

    /// Flow with this key, while it exists.
    pub(crate) fn row(&self, key: &FlowKey) -> Option<FlowRow<'_>> {
        let flow = self.by_cookie.get(&key.cookie)?;
        Some(self.row_of(flow))
    }

    fn row_of<'a>(&'a self, flow: &'a FlowEntry) -> FlowRow<'a> {
        let events = self.events.as_ref().and_then(FlowEventTrace::latest);
        FlowRow { flow, owner: self.owner(flow.reading.inode), events }
    }

    fn owner(&self, inode: Option<SocketInode>) -> &Fact<SocketOwner> {
        self.owners.owner(inode)
    }
}

impl FlowEntry {
    pub(crate) fn new(reading: SocketSnapshot, read_at: MonotonicTime, round: u64) -> Self {
        Self { reading, read_at, change: None, state: None, history: None, round }
    }

    pub(crate) fn record_sample(
        &mut self,
        reading: SocketSnapshot,
        now: MonotonicTime,
        round: u64,
        settings: &BufferSettings,
    ) {
        let change = FlowChange::between(&self.reading, &reading, now.since(self.read_at));
        self.state = Some(flow_state(&self.reading, &reading, &change, settings));
        if self.history.is_some() || change.has_moved_data() {
            self.history.get_or_insert_default().push(&change);
        }
        self.change = Some(change);
        self.reading = reading;
        self.read_at = now;
        self.round = round;
    }
}
