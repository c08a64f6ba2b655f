//! The load connections that have joined a session.

use core::time::Duration;
use std::collections::HashMap;
use std::net::TcpStream;
use std::sync::Arc;

use linerate_sys::options;
use linerate_sys::poll::Waker;
use linerate_sys::{clock, tcp_info};
use linerate_units::BitRate;
use linerate_wire::cookie::Cookie;
use linerate_wire::probe::{
    Answer, ConnectionNumber, ConnectionRef, LoadDirection, LoadEnd, LoadOrder, LoadProgress, LoadReady, LoadSamples,
    MOST_STREAMS, Refused,
};

use super::{Outbox, Outcome, words};
use crate::probe::load_link::{LinkOrder, LoadLink};
use crate::server::session::SessionStart;

pub(super) struct Loads {
    cookie: Cookie,
    waker: Arc<Waker>,
    most_rate: Option<BitRate>,
    /// The one that the client is about to make: they come one after another.
    expected: Option<LoadOrder>,
    links: HashMap<ConnectionNumber, LoadLink>,
}

impl Loads {
    pub(super) fn new(cookie: Cookie, waker: Arc<Waker>, most_rate: Option<BitRate>) -> Self {
        Self { cookie, waker, most_rate, expected: None, links: HashMap::new() }
    }

    /// Whether one has been told to start.
    pub(super) fn are_running(&self) -> bool {
        self.links.values().any(|link| link.look(|seen| seen.started.is_some() && seen.ended.is_none()))
    }

    /// A connection that never came makes room for the next.
    pub(super) fn expect(&mut self, order: &LoadOrder, start: &SessionStart, outbox: &mut Outbox) -> Outcome {
        if self.links.contains_key(&order.connection) {
            return Err(format!("there is a load connection {} already", order.connection));
        }
        if self.links.len() >= MOST_STREAMS {
            return Err(format!("a session has at most {MOST_STREAMS} load connections at once"));
        }
        if self.expected.is_none() && !start.registry.expect_another(self.cookie, &start.inbox) {
            return Err("the session's token is in use".to_owned());
        }
        self.expected = Some(order.clone());
        outbox.say(Answer::LoadExpected(ConnectionRef { connection: order.connection }));
        Ok(())
    }

    /// A connection with the session's token has come.
    pub(super) fn join(&mut self, stream: TcpStream, outbox: &mut Outbox) {
        let Some(order) = self.expected.take() else { return };
        let connection = order.connection;
        match self.prepare(stream, &order) {
            Ok(congestion_control) => outbox.say(Answer::LoadReady(LoadReady { connection, congestion_control })),
            Err(reason) => {
                let connection = Some(connection);
                outbox.say(Answer::Refused(Refused { request: "load".into(), stream: None, connection, reason }));
            }
        }
    }

    fn prepare(&mut self, stream: TcpStream, order: &LoadOrder) -> Result<Option<String>, String> {
        let refused = |cause: linerate_sys::Error| cause.to_string();
        if let Some(name) = &order.congestion_control {
            options::set_congestion(&stream, name).map_err(refused)?;
        }
        if order.type_of_service.get() != 0 {
            options::set_type_of_service(&stream, order.type_of_service).map_err(refused)?;
        }
        let congestion_control = options::congestion(&stream).ok();
        let link = LinkOrder {
            sends: order.direction == LoadDirection::Down,
            sampling: order.sampling,
            most_rate: self.most_rate,
        };
        let link = LoadLink::start(stream, link, &[], Some(Arc::clone(&self.waker))).map_err(|error| words(&error))?;
        self.links.insert(order.connection, link);
        Ok(congestion_control)
    }

    fn link(&self, number: ConnectionNumber) -> Result<&LoadLink, String> {
        self.links.get(&number).ok_or_else(|| format!("there is no load connection {number}"))
    }

    pub(super) fn begin(&self, number: ConnectionNumber) -> Outcome {
        self.link(number)?.begin();
        Ok(())
    }

    /// Ends a connection, and tells all that was seen of it.
    pub(super) fn end(&mut self, number: ConnectionNumber, outbox: &mut Outbox) -> Outcome {
        self.link(number)?;
        let Some(mut link) = self.links.remove(&number) else { return Ok(()) };
        let (bytes, seen) = (link.bytes(), link.end());
        let mut samples = seen.samples.chunks(LoadSamples::MOST);
        let mut goodput = seen.goodput.chunks(LoadSamples::MOST);
        // An end sends or receives: only one of the two has anything.
        while let Some((samples, goodput)) = match (samples.next(), goodput.next()) {
            (None, None) => None,
            (samples, goodput) => Some((samples.unwrap_or_default(), goodput.unwrap_or_default())),
        } {
            let (samples, goodput) = (samples.to_vec(), goodput.to_vec());
            outbox.say(Answer::LoadSamples(LoadSamples { connection: number, samples, goodput }));
        }
        let time = match (seen.started, seen.ended) {
            (Some(started), Some(ended)) => ended.since(started),
            _ => Duration::ZERO,
        };
        outbox.say(Answer::LoadEnd(LoadEnd { connection: number, bytes, time, broken: seen.broken }));
        Ok(())
    }

    /// How they stand.
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
