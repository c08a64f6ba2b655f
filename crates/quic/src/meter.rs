//! Figures of one end of a transfer.

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use linerate_model::quic::{EcnDatagrams, QuicCongestionControl, QuicEnd};
use linerate_model::summary::DurationDistribution;
use linerate_sys::clock;
use linerate_units::{ByteCount, MonotonicTime};
use linerate_wire::quic::{MAX_SAMPLES, QuicTransferOrder};
use quinn::{Connection, ConnectionStats};
use tokio::sync::Notify;

use crate::client::QuicProgress;
use crate::gaps::MAX_GAPS;
use crate::socket::{SocketFigures, WatchedPeer};

/// Payload that passed one end, over all streams.
#[derive(Debug, Default)]
pub(crate) struct PayloadCounter {
    bytes: AtomicU64,
    first: Notify,
    /// Gaps of all streams, at a receiver.
    gaps: AtomicUsize,
}

impl PayloadCounter {
    pub(crate) fn add(&self, bytes: usize) {
        if self.bytes.fetch_add(bytes as u64, Ordering::Relaxed) == 0 {
            self.first.notify_one();
        }
    }

    /// Counts the gaps of one stream, of which there were `before`; false when all streams have too many.
    pub(crate) fn has_space_for_gaps(&self, before: usize, now: usize) -> bool {
        if before == now {
            return true;
        }
        let all = self.gaps.load(Ordering::Relaxed).saturating_sub(before) + now;
        self.gaps.store(all, Ordering::Relaxed);
        all <= MAX_GAPS
    }

    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Waits for the first byte.
    async fn begun(&self) {
        if self.bytes() == 0 {
            self.first.notified().await;
        }
    }
}

/// Everything that is counted, at one time.
struct Snapshot {
    at: MonotonicTime,
    bytes: u64,
    statistics: ConnectionStats,
    ecn: EcnDatagrams,
    more_calls: u64,
    socket: SocketFigures,
    cpu: Duration,
    wait: Option<Duration>,
}

/// Observer of one end of a transfer. It runs on the thread of the connection, whose processor time it takes.
pub(crate) struct TransferMeter<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) peer: &'a WatchedPeer,
    pub(crate) payload: Arc<PayloadCounter>,
    pub(crate) order: QuicTransferOrder,
    /// Congestion control, at the sending end.
    pub(crate) sender: Option<QuicCongestionControl>,
}

impl TransferMeter<'_> {
    /// Measures from the first byte: omits the first part, then takes samples until the time is over or `ended` resolves.
    pub(crate) async fn measure(
        &self,
        ended: impl Future<Output = ()>,
        observe: &mut impl FnMut(QuicProgress),
    ) -> QuicEnd {
        let mut ended = core::pin::pin!(ended);
        let mut end = QuicEnd { sample: self.order.sample, ..QuicEnd::default() };
        let mut rtts = Vec::new();
        tokio::select! {
            () = self.payload.begun() => {}
            () = &mut ended => return end,
        }
        let is_over = tokio::time::timeout(self.order.omit, ended.as_mut()).await.is_ok();
        let base = self.snapshot();
        let (mut last, mut window) = (base.bytes, 0);
        let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + self.order.sample, self.order.sample);
        while !is_over && !self.is_complete(&base) {
            let rest = self.order.time.saturating_sub(clock::monotonic_now().since(base.at));
            let finished = tokio::select! {
                () = &mut ended => true,
                () = tokio::time::sleep(rest) => true,
                _ = ticks.tick() => false,
            };
            let path = self.connection.stats().path;
            (window, rtts) = (path.cwnd.max(window), with(rtts, path.rtt));
            let bytes = self.payload.bytes();
            if finished {
                break;
            }
            if end.sample_bytes.len() < MAX_SAMPLES as usize {
                end.sample_bytes.push(bytes - last);
            }
            observe(self.progress(bytes - last, &base, path.rtt));
            last = bytes;
        }
        self.finish(end, &base, rtts, window)
    }

    fn is_complete(&self, base: &Snapshot) -> bool {
        clock::monotonic_now().since(base.at) >= self.order.time
    }

    fn progress(&self, bytes: u64, base: &Snapshot, rtt: Duration) -> QuicProgress {
        QuicProgress {
            elapsed: clock::monotonic_now().since(base.at),
            bytes: ByteCount::new(bytes),
            time: self.order.sample,
            rtt: self.sender.map(|_| rtt),
        }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            at: clock::monotonic_now(),
            bytes: self.payload.bytes(),
            statistics: self.connection.stats(),
            ecn: self.peer.ecn(),
            more_calls: self.peer.more_calls(),
            socket: self.peer.socket().figures(),
            cpu: clock::thread_cpu_time(),
            wait: clock::thread_run_delay(),
        }
    }

    fn finish(&self, end: QuicEnd, base: &Snapshot, mut rtts: Vec<Duration>, window: u64) -> QuicEnd {
        let now = self.snapshot();
        let (path, earlier) = (now.statistics.path, base.statistics.path);
        let (sent, earlier_sent) = (now.statistics.udp_tx, base.statistics.udp_tx);
        let at_sender = |value: u64| self.sender.map(|_| value);
        QuicEnd {
            bytes: now.bytes - base.bytes,
            duration: now.at.since(base.at),
            rtt: self.sender.and_then(|_| DurationDistribution::of(&mut rtts)),
            congestion_window_bytes: at_sender(window),
            congestion_control: self.sender,
            congestion_events: at_sender(path.congestion_events - earlier.congestion_events),
            sent_packets: path.sent_packets - earlier.sent_packets,
            lost_packets: at_sender(path.lost_packets - earlier.lost_packets),
            datagram_bytes: u64::from(path.current_mtu),
            sent_datagrams: sent.datagrams - earlier_sent.datagrams,
            send_calls: sent.ios - earlier_sent.ios + now.more_calls - base.more_calls,
            segmentation_offload: self.peer.socket().segments() > 1,
            ecn: Some(now.ecn.since(base.ecn)),
            receive_buffer_bytes: now.socket.receive_buffer,
            send_buffer_bytes: now.socket.send_buffer,
            buffer_drops: now.socket.drops.zip(base.socket.drops).map(|(now, base)| now.saturating_sub(base)),
            thread_cpu: now.cpu.saturating_sub(base.cpu),
            thread_wait: now.wait.zip(base.wait).map(|(now, base)| now.saturating_sub(base)),
            ..end
        }
    }
}

/// Adds a sample, as long as there are not too many.
fn with(mut samples: Vec<Duration>, sample: Duration) -> Vec<Duration> {
    if samples.len() < MAX_SAMPLES as usize {
        samples.push(sample);
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gaps_of_all_streams_are_limited_together() {
        let counter = PayloadCounter::default();
        assert!(counter.has_space_for_gaps(0, MAX_GAPS - 1) && counter.has_space_for_gaps(0, 1));
        assert!(!counter.has_space_for_gaps(1, 2));
        assert!(counter.has_space_for_gaps(2, 0));
    }
}
