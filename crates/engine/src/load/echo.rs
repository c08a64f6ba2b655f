//! ICMP echoes through the whole measurement: to the far end, and to the hops next to this host.

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use core::time::Duration;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use linerate_model::schema::nanoseconds;
use linerate_sys::clock;
use linerate_sys::error_queue::PathErrorKind;
use linerate_sys::icmp::{EchoEvent, EchoOptions, EchoSocket};
use linerate_units::{ByteCount, MonotonicTime};

use super::evidence::{Fate, HopReadings, Reading};
use crate::probe::{Target, lock};

/// Content of an echo: as small as the other probes.
pub(super) const PAYLOAD: ByteCount = ByteCount::new(16);

/// Distances at which hops are asked.
const MOST_HOPS: u8 = 5;

/// They are asked so often: routers answer a few times a second at most.
const HOP_INTERVAL: Duration = Duration::from_secs(1);

/// An order is noticed this soon.
const LOOK: Duration = Duration::from_millis(250);

/// A request, and its answer if it came.
#[derive(Clone, Copy, Debug)]
struct Asked {
    sent: MonotonicTime,
    round_trip: Option<Duration>,
}

#[derive(Debug, Default)]
struct Shared {
    asked: Mutex<BTreeMap<u64, Asked>>,
    address: Mutex<Option<IpAddr>>,
    /// Nanoseconds.
    interval: AtomicU64,
    quiet: AtomicBool,
    stopping: AtomicBool,
}

/// A thread that asks for echoes. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Echoes {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Echoes {
    /// Begins to ask `peer`; the reason when that is not possible on this host.
    pub(super) fn start(target: &Target, peer: SocketAddr, interval: Duration) -> Result<Self, String> {
        Self::begin(target, peer, interval, None)
    }

    fn begin(
        target: &Target,
        peer: SocketAddr,
        interval: Duration,
        hop: Option<(u8, Arc<AtomicU8>)>,
    ) -> Result<Self, String> {
        let options = EchoOptions {
            source: target.bind,
            device: target.device.clone(),
            hop_limit: hop.as_ref().map(|(distance, _)| *distance),
            ..EchoOptions::default()
        };
        let socket = EchoSocket::open(peer, &options).map_err(|error| error.to_string())?;
        let shared = Arc::new(Shared::default());
        shared.interval.store(nanoseconds(interval), Ordering::Relaxed);
        let worker = Worker { socket, peer: peer.ip(), shared: Arc::clone(&shared), hop };
        let thread = std::thread::Builder::new().name("echo".into()).stack_size(256 << 10);
        let thread = thread.spawn(move || worker.run()).map_err(|cause| format!("starting a thread: {cause}"))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Changes the interval.
    pub(super) fn set_interval(&self, interval: Duration) {
        self.shared.interval.store(nanoseconds(interval), Ordering::Relaxed);
    }

    /// Asks no more, and goes on listening.
    pub(super) fn fall_silent(&self) {
        self.shared.quiet.store(true, Ordering::Relaxed);
    }

    /// How many requests have been sent.
    pub(super) fn sent(&self) -> u64 {
        lock(&self.shared.asked).len() as u64
    }

    /// What became of the requests sent since then.
    pub(super) fn since(&self, from: MonotonicTime) -> Vec<Reading> {
        let asked = lock(&self.shared.asked);
        let mut latest: Vec<Reading> =
            asked.values().rev().take_while(|asked| asked.sent >= from).map(Asked::reading).collect();
        latest.reverse();
        latest
    }

    /// Ends it: what became of each request.
    pub(super) fn stop(mut self) -> Vec<Reading> {
        self.end();
        lock(&self.shared.asked).values().map(Asked::reading).collect()
    }

    fn end(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Echoes {
    fn drop(&mut self) {
        self.end();
    }
}

impl Asked {
    fn reading(&self) -> Reading {
        let fate = self.round_trip.map_or(Fate::Lost(None), Fate::Answered);
        Reading { sent: self.sent, fate, up: None, down: None }
    }
}

struct Worker {
    socket: EchoSocket,
    peer: IpAddr,
    shared: Arc<Shared>,
    /// Which hop it asks, and the nearest distance at which the far end itself answered.
    hop: Option<(u8, Arc<AtomicU8>)>,
}

impl Worker {
    fn run(mut self) {
        let mut next = clock::monotonic_now();
        while !self.is_over() {
            let now = clock::monotonic_now();
            let interval = Duration::from_nanos(self.shared.interval.load(Ordering::Relaxed));
            let quiet = self.shared.quiet.load(Ordering::Relaxed);
            if !quiet && now >= next {
                self.ask();
                next = if next + interval > now { next + interval } else { now + interval };
            }
            // An interval that was made shorter holds at once.
            next = next.min(now + interval);
            let until = if quiet { LOOK } else { next.since(clock::monotonic_now()).min(LOOK) };
            match self.socket.next_event(Some(until.max(Duration::from_micros(50)))) {
                Ok(Some(event)) => self.take(event),
                Ok(None) => {}
                // What the kernel says of an earlier request; a later one may do better, but not at once.
                Err(_) => clock::sleep_until(clock::monotonic_now() + Duration::from_millis(20)),
            }
        }
    }

    fn is_over(&self) -> bool {
        let beyond = self.hop.as_ref().is_some_and(|(distance, nearest)| nearest.load(Ordering::Relaxed) <= *distance);
        beyond || self.shared.stopping.load(Ordering::Acquire)
    }

    fn ask(&mut self) {
        let sent = clock::monotonic_now();
        if let Ok(number) = self.socket.send(&vec![0; PAYLOAD.to_usize()]) {
            lock(&self.shared.asked).insert(number, Asked { sent, round_trip: None });
        }
    }

    fn take(&mut self, event: EchoEvent) {
        match event {
            EchoEvent::Reply(reply) => {
                if let Some(asked) = lock(&self.shared.asked).get_mut(&reply.number) {
                    // From when it was handed to the kernel: what waits in this host's own queue counts, too.
                    asked.round_trip = asked.round_trip.or(Some(reply.arrived.monotonic.since(asked.sent)));
                }
                if let Some((distance, nearest)) = &self.hop {
                    nearest.fetch_min(*distance, Ordering::Relaxed);
                }
            }
            EchoEvent::PathError { number: Some(number), error, .. } => {
                let Some((distance, nearest)) = &self.hop else { return };
                if error.kind != PathErrorKind::TimeExceeded || error.reporter == Some(self.peer) {
                    nearest.fetch_min(*distance, Ordering::Relaxed);
                    return;
                }
                *lock(&self.shared.address) = error.reporter;
                if let Some(asked) = lock(&self.shared.asked).get_mut(&number) {
                    asked.round_trip = Some(error.arrived.monotonic.since(asked.sent));
                }
            }
            EchoEvent::PathError { .. } => {}
        }
    }
}

/// The hops next to this host, nearest first.
#[derive(Debug)]
pub(super) struct Hops {
    series: Vec<(u8, Echoes)>,
    nearest: Arc<AtomicU8>,
}

impl Hops {
    /// Begins to ask them; the reason when that is not possible on this host.
    pub(super) fn start(target: &Target, peer: SocketAddr) -> Result<Self, String> {
        let nearest = Arc::new(AtomicU8::new(u8::MAX));
        let begin = |distance| {
            let echoes = Echoes::begin(target, peer, HOP_INTERVAL, Some((distance, Arc::clone(&nearest))))?;
            Ok((distance, echoes))
        };
        let series = (1..=MOST_HOPS).map(begin).collect::<Result<Vec<_>, String>>()?;
        Ok(Self { series, nearest })
    }

    /// Ends it: what the hops answered, without those at and behind the far end, and how far away that is, if it is one of
    /// the nearest itself.
    pub(super) fn stop(self) -> (Vec<HopReadings>, Option<u8>) {
        let nearest = self.nearest.load(Ordering::Relaxed);
        let before = self.series.into_iter().filter(|(distance, _)| *distance < nearest);
        let readings = before.map(|(distance, echoes)| {
            let address = *lock(&echoes.shared.address);
            HopReadings { distance, address, readings: echoes.stop() }
        });
        (readings.collect(), Some(nearest).filter(|distance| *distance <= MOST_HOPS))
    }
}
