//! Probes: small requests on new connections, and on those of the load.

use core::time::Duration;
use std::sync::Arc;

use hyper::client::conn::http2::SendRequest;
use linerate_analysis::latency_under_load::ForeignProbe;
use linerate_sys::clock;
use linerate_units::{ByteCount, MonotonicTime};
use tokio::sync::mpsc::UnboundedSender;

use super::client::{HttpTarget, RequestBody};
use super::config::ServerObjects;
use super::load::LoadConnection;

/// Most bytes of a small object: it should have one.
const MAX_SMALL_OBJECT: usize = 4096;

/// Most probes of each kind per second ("MPS").
const MAX_PROBES_PER_SECOND: u32 = 100;

/// Bytes on the wire of a probe on a new connection and one on a loaded connection, together, and their largest share of the capacity
/// ("PTC").
const PAIR_SIZE: ByteCount = ByteCount::new(6000);
const CAPACITY_DIVISOR: u64 = 20;

/// Longest time between two probes.
const MAX_PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// Something that happened in a task of a phase.
pub(super) enum TestEvent {
    /// A connection of the load is open.
    Opened(LoadConnection),
    /// A connection of the load has failed.
    Broken(String),
    /// A probe on a new connection ended at this time.
    Foreign(MonotonicTime, Result<ForeignProbe, String>),
    /// A probe on an existing connection ended at this time.
    Loaded(MonotonicTime, Result<Duration, String>),
}

/// Time between two pairs of probes at this capacity per second; `None` for an unknown one.
pub(super) fn probe_interval(capacity: Option<ByteCount>) -> Duration {
    let least = Duration::from_secs(1) / MAX_PROBES_PER_SECOND;
    let Some(capacity) = capacity else { return least * 10 };
    let share = (capacity.get() / CAPACITY_DIVISOR).max(1);
    let time = PAIR_SIZE.as_f64() / ByteCount::new(share).as_f64();
    Duration::from_secs_f64(time).clamp(least, MAX_PROBE_INTERVAL)
}

/// Opens a connection, requests a small object, and reports the times.
pub(super) async fn foreign(target: HttpTarget, objects: Arc<ServerObjects>, events: UnboundedSender<TestEvent>) {
    let probe = async {
        let mut opened = target.open().await?;
        let begun = clock::monotonic_now();
        target.get(&mut opened.sender, &objects.small, MAX_SMALL_OBJECT).await?;
        let request = clock::monotonic_now().since(begun);
        Ok(ForeignProbe { tcp: opened.tcp, tls: Some(opened.tls), request })
    };
    let result = probe.await;
    // The receiver is gone when the phase has ended.
    let _ = events.send(TestEvent::Foreign(clock::monotonic_now(), result));
}

/// Requests a small object on an open connection, and reports the time.
pub(super) async fn loaded(
    target: HttpTarget,
    objects: Arc<ServerObjects>,
    mut sender: SendRequest<RequestBody>,
    events: UnboundedSender<TestEvent>,
) {
    let begun = clock::monotonic_now();
    let result = target.get(&mut sender, &objects.small, MAX_SMALL_OBJECT).await;
    let now = clock::monotonic_now();
    let _ = events.send(TestEvent::Loaded(now, result.map(|_| now.since(begun))));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_take_a_twentieth_of_the_capacity_at_most() {
        let milliseconds = |bytes_per_second| probe_interval(Some(ByteCount::new(bytes_per_second))).as_millis();
        // 100 Mbit/s: 5 % are 625 kB, 104 pairs.
        assert_eq!(milliseconds(12_500_000), 10);
        // 10 Mbit/s: 62.5 kB, 10 pairs.
        assert_eq!(milliseconds(1_250_000), 96);
        assert_eq!((milliseconds(1000), milliseconds(0)), (1000, 1000));
        assert_eq!(probe_interval(None).as_millis(), 100);
    }
}
