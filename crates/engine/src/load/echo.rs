//! ICMP echoes throughout the measurement: to the far end, and to the hops next to this host.

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use core::time::Duration;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use linerate_sys::clock;
use linerate_sys::error_queue::PathErrorKind;
use linerate_sys::icmp::{EchoEvent, EchoOptions, EchoSocket};
use linerate_units::serde::nanoseconds;
use linerate_units::{ByteCount, MonotonicTime};

use super::evidence::{HopSamples, ProbeFate, ProbeReading};
use crate::probe::{ProbeTarget, lock};

/// Payload of an echo: as small as the other probes.
pub(super) const PAYLOAD: ByteCount = ByteCount::new(16);

/// Number of hops probed.
const MAX_HOPS: u8 = 5;

/// Probe interval of each hop: routers answer a few times a second at most.
const HOP_INTERVAL: Duration = Duration::from_secs(1);

/// Longest delay until a new order is noticed.
const LOOK: Duration = Duration::from_millis(250);

/// A request, and its round trip if it was answered.
#[derive(Clone, Copy, Debug)]
struct SentEcho {
    sent: MonotonicTime,
    round_trip: Option<Duration>,
}

#[derive(Debug, Default)]
struct EchoState {
    asked: Mutex<BTreeMap<u64, SentEcho>>,
    address: Mutex<Option<IpAddr>>,
    /// Nanoseconds.
    interval: AtomicU64,
    quiet: AtomicBool,
    stopping: AtomicBool,
}

/// A thread that sends echo requests. Dropping it ends it.
#[derive(Debug)]
pub(super) struct EchoProber {
    shared: Arc<EchoState>,
    thread: Option<JoinHandle<()>>,
}

impl EchoProber {
    /// Starts to probe `peer`; returns the reason when this host cannot.
    pub(super) fn start(target: &ProbeTarget, peer: SocketAddr, interval: Duration) -> Result<Self, String> {
        Self::begin(target, peer, interval, None)
    }

    fn begin(
        target: &ProbeTarget,
        peer: SocketAddr,
        interval: Duration,
        hop: Option<(u8, Arc<AtomicU8>)>,
    ) -> Result<Self, String> {
        if let Some(reason) = target.unreachable_reason() {
            return Err(reason.to_owned());
        }
        let options = EchoOptions {
            source: target.bind,
            device: target.device.clone(),
            hop_limit: hop.as_ref().map(|(distance, _)| *distance),
            ..EchoOptions::default()
        };
        let socket = EchoSocket::open(peer, &options).map_err(|error| error.to_string())?;
        let shared = Arc::new(EchoState::default());
        shared.interval.store(nanoseconds(interval), Ordering::Relaxed);
        let worker = EchoWorker { socket, peer: peer.ip(), shared: Arc::clone(&shared), hop };
        let thread = std::thread::Builder::new().name("echo".into()).stack_size(256 << 10);
        let thread = thread.spawn(move || worker.run()).map_err(|cause| format!("starting a thread: {cause}"))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Changes the interval.
    pub(super) fn set_interval(&self, interval: Duration) {
        self.shared.interval.store(nanoseconds(interval), Ordering::Relaxed);
    }

    /// Sends no more requests, and goes on receiving.
    pub(super) fn stop_sending(&self) {
        self.shared.quiet.store(true, Ordering::Relaxed);
    }

    /// Number of requests sent.
    pub(super) fn sent(&self) -> u64 {
        lock(&self.shared.asked).len() as u64
    }

    /// Results of the requests sent since `from`.
    pub(super) fn since(&self, from: MonotonicTime) -> Vec<ProbeReading> {
        let asked = lock(&self.shared.asked);
        let mut latest: Vec<ProbeReading> =
            asked.values().rev().take_while(|asked| asked.sent >= from).map(SentEcho::reading).collect();
        latest.reverse();
        latest
    }

    /// Ends the thread; returns the result of each request.
    pub(super) fn stop(mut self) -> Vec<ProbeReading> {
        self.end();
        lock(&self.shared.asked).values().map(SentEcho::reading).collect()
    }

    fn end(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for EchoProber {
    fn drop(&mut self) {
        self.end();
    }
}

impl SentEcho {
    fn reading(&self) -> ProbeReading {
        let fate = self.round_trip.map_or(ProbeFate::Lost(None), ProbeFate::Answered);
        ProbeReading { sent: self.sent, fate, up: None, down: None }
    }
}

struct EchoWorker {
    socket: EchoSocket,
    peer: IpAddr,
    shared: Arc<EchoState>,
    /// Probed hop, and the nearest distance at which the far end itself answered.
    hop: Option<(u8, Arc<AtomicU8>)>,
}

impl EchoWorker {
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
            // A shorter interval takes effect at once.
            next = next.min(now + interval);
            let until = if quiet { LOOK } else { next.since(clock::monotonic_now()).min(LOOK) };
            match self.socket.next_event(Some(until.max(Duration::from_micros(50)))) {
                Ok(Some(event)) => self.take(event),
                Ok(None) => {}
                // An error of an earlier request; a later one may succeed, but not at once.
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
            lock(&self.shared.asked).insert(number, SentEcho { sent, round_trip: None });
        }
    }

    fn take(&mut self, event: EchoEvent) {
        match event {
            EchoEvent::Reply(reply) => {
                if let Some(asked) = lock(&self.shared.asked).get_mut(&reply.number) {
                    // Counted from the handover to the kernel: time in this host's own queue counts, too.
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

/// Probes of the hops next to this host, nearest first.
#[derive(Debug)]
pub(super) struct HopProbes {
    series: Vec<(u8, EchoProber)>,
    nearest: Arc<AtomicU8>,
}

impl HopProbes {
    /// Starts to probe the hops; returns the reason when this host cannot.
    pub(super) fn start(target: &ProbeTarget, peer: SocketAddr) -> Result<Self, String> {
        let nearest = Arc::new(AtomicU8::new(u8::MAX));
        let begin = |distance| {
            let echoes = EchoProber::begin(target, peer, HOP_INTERVAL, Some((distance, Arc::clone(&nearest))))?;
            Ok((distance, echoes))
        };
        let series = (1..=MAX_HOPS).map(begin).collect::<Result<Vec<_>, String>>()?;
        Ok(Self { series, nearest })
    }

    /// Ends the probes: results of the hops before the far end, and the distance of the far end, if it is one of the
    /// nearest hops itself.
    pub(super) fn stop(self) -> (Vec<HopSamples>, Option<u8>) {
        let nearest = self.nearest.load(Ordering::Relaxed);
        let before = self.series.into_iter().filter(|(distance, _)| *distance < nearest);
        let readings = before.map(|(distance, echoes)| {
            let address = *lock(&echoes.shared.address);
            HopSamples { distance, address, readings: echoes.stop() }
        });
        (readings.collect(), Some(nearest).filter(|distance| *distance <= MAX_HOPS))
    }
}
