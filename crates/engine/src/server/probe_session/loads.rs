//! Load connections of a session.

use core::time::Duration;
use linerate_model::direction::Direction;
use std::collections::HashMap;
use std::net::TcpStream;
use std::sync::Arc;

use linerate_sys::options;
use linerate_sys::poll::Waker;
use linerate_sys::{clock, host, tcp_info};
use linerate_wire::cookie::Cookie;
use linerate_wire::probe::{
    ConnectionNumber, ConnectionRef, LoadEnd, LoadOrder, LoadProgress, LoadReady, LoadSamples, MAX_SESSION_STREAMS,
    ProbeResponse, RequestRefused,
};

use super::{AnswerOutbox, RequestOutcome, error_text};
use crate::probe::load_link::{LinkOrder, LoadLink};
use crate::resources::{DESCRIPTORS_PER_FLOW, FLOW_MEMORY, MemoryLease, ResourceAccount};
use crate::server::session::SessionStart;
use crate::server::{ClientChoices, ServerOptions};

pub(super) struct LoadConnections {
    cookie: Cookie,
    waker: Arc<Waker>,
    stall_limit: Duration,
    choices: ClientChoices,
    account: ResourceAccount,
    /// The connection that the client is about to make, with its memory: they arrive one after another.
    expected: Option<(LoadOrder, MemoryLease)>,
    links: HashMap<ConnectionNumber, LoadLink>,
}

impl LoadConnections {
    pub(super) fn new(cookie: Cookie, waker: Arc<Waker>, options: &ServerOptions, account: ResourceAccount) -> Self {
        let (stall_limit, choices) = (options.stall_timeout, options.choices);
        Self { cookie, waker, stall_limit, choices, account, expected: None, links: HashMap::new() }
    }

    /// True when a connection exists or is expected.
    pub(super) fn exist(&self) -> bool {
        self.expected.is_some() || !self.links.is_empty()
    }

    /// True when one has been started.
    pub(super) fn are_running(&self) -> bool {
        self.links.values().any(|link| link.look(|seen| seen.started.is_some() && seen.ended.is_none()))
    }

    /// Expects a connection; it replaces one that never arrived.
    pub(super) fn expect(
        &mut self,
        order: &LoadOrder,
        start: &SessionStart,
        outbox: &mut AnswerOutbox,
    ) -> RequestOutcome {
        if self.links.contains_key(&order.connection) {
            return Err(format!("there is a load connection {} already", order.connection));
        }
        if self.links.len() >= MAX_SESSION_STREAMS {
            return Err(format!("a session has at most {MAX_SESSION_STREAMS} load connections at once"));
        }
        let memory = self.account.lease_flows(FLOW_MEMORY, DESCRIPTORS_PER_FLOW).map_err(|error| error.to_string())?;
        if self.expected.is_none() && !start.registry.expect_another(self.cookie, &start.inbox) {
            return Err("the session's token is in use".to_owned());
        }
        self.expected = Some((order.clone(), memory));
        outbox.say(ProbeResponse::LoadExpected(ConnectionRef { connection: order.connection }));
        Ok(())
    }

    /// Adds a connection that has sent the session's token.
    pub(super) fn join(&mut self, stream: TcpStream, outbox: &mut AnswerOutbox) {
        let Some((order, memory)) = self.expected.take() else { return };
        let connection = order.connection;
        match self.prepare(stream, &order, memory) {
            Ok(congestion_control) => {
                outbox.say(ProbeResponse::LoadReady(LoadReady { connection, congestion_control }));
            }
            Err(reason) => {
                let connection = Some(connection);
                outbox.say(ProbeResponse::Refused(RequestRefused {
                    request: "load".into(),
                    stream: None,
                    connection,
                    reason,
                }));
            }
        }
    }

    fn prepare(&mut self, stream: TcpStream, order: &LoadOrder, memory: MemoryLease) -> Result<Option<String>, String> {
        let refused = |cause: linerate_sys::Error| cause.to_string();
        if let Some(name) = &order.congestion_control {
            if !self.choices.grants_congestion(name, &host::allowed_congestion_controls()) {
                return Err(format!("this server does not grant congestion control {name} to its clients"));
            }
            options::set_congestion(&stream, name).map_err(refused)?;
        }
        if order.type_of_service.get() != 0 {
            options::set_type_of_service(&stream, order.type_of_service).map_err(refused)?;
        }
        let congestion_control = options::congestion(&stream).ok();
        let sends = order.direction == Direction::Down;
        let link = LinkOrder {
            sends,
            sampling: order.sampling,
            rate: self.account.rate(),
            stall_limit: Some(self.stall_limit),
            memory,
        };
        let link =
            LoadLink::start(stream, link, &[], Some(Arc::clone(&self.waker))).map_err(|error| error_text(&error))?;
        self.links.insert(order.connection, link);
        Ok(congestion_control)
    }

    fn link(&self, number: ConnectionNumber) -> Result<&LoadLink, String> {
        self.links.get(&number).ok_or_else(|| format!("there is no load connection {number}"))
    }

    pub(super) fn begin(&self, number: ConnectionNumber) -> RequestOutcome {
        self.link(number)?.begin();
        Ok(())
    }

    /// Ends a connection, and reports its full record.
    pub(super) fn end(&mut self, number: ConnectionNumber, outbox: &mut AnswerOutbox) -> RequestOutcome {
        self.link(number)?;
        let Some(mut link) = self.links.remove(&number) else { return Ok(()) };
        let (bytes, mut seen) = (link.bytes(), link.end());
        outbox.hold(core::mem::take(&mut seen.memory));
        let mut samples = seen.samples.chunks(LoadSamples::MOST);
        let mut goodput = seen.goodput.chunks(LoadSamples::MOST);
        // Each end sends or receives: only one of the two has data.
        while let Some((samples, goodput)) = match (samples.next(), goodput.next()) {
            (None, None) => None,
            (samples, goodput) => Some((samples.unwrap_or_default(), goodput.unwrap_or_default())),
        } {
            let (samples, goodput) = (samples.to_vec(), goodput.to_vec());
            outbox.say(ProbeResponse::LoadSamples(LoadSamples { connection: number, samples, goodput }));
        }
        let time = match (seen.started, seen.ended) {
            (Some(started), Some(ended)) => ended.since(started),
            _ => Duration::ZERO,
        };
        outbox.say(ProbeResponse::LoadEnd(LoadEnd { connection: number, bytes, time, error: seen.broken }));
        Ok(())
    }

    /// Ends all connections, and reports their records.
    pub(super) fn cease(&mut self, outbox: &mut AnswerOutbox) {
        let all: Vec<ConnectionNumber> = self.links.keys().copied().collect();
        for connection in all {
            let _ = self.end(connection, outbox);
        }
    }

    /// Progress of the connections.
    pub(super) fn progress(&self) -> Vec<LoadProgress> {
        let now = clock::monotonic_now();
        let started =
            self.links.iter().filter_map(|(number, link)| Some((*number, link, link.look(|seen| seen.started)?)));
        let progress = |(connection, link, started): (ConnectionNumber, &LoadLink, _)| LoadProgress {
            connection,
            time: now.since(started),
            bytes: link.bytes(),
            rtt: tcp_info::read(link.stream()).ok().and_then(|info| info.rtt),
        };
        started.map(progress).collect()
    }
}
