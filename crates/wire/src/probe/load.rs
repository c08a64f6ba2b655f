//! Reports about a load connection.

use core::time::Duration;

use linerate_units::{BitRate, ByteCount, SegmentCount};
use serde::{Deserialize, Serialize};

use super::orders::ConnectionNumber;
use super::scalar::{bytes, maybe_nanos, nanos, rate};

/// Maximum number of samples of one load connection: 100 s at 10 ms; of a longer load, every second, fourth … is kept.
pub const MAX_LOAD_SAMPLES: usize = 10_000;

/// One sample of a sending socket's `tcp_info`. In a message it is an array, in the order of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "SampleArray", into = "SampleArray")]
pub struct LoadSample {
    /// Time since the start of the connection.
    pub time: Duration,
    /// Smoothed round-trip time (`tcpi_rtt`).
    pub rtt: Option<Duration>,
    /// Congestion window in bytes (`tcpi_snd_cwnd` × `tcpi_snd_mss`).
    pub congestion_window: Option<ByteCount>,
    /// Payload acknowledged since the connection began (`tcpi_bytes_acked`).
    pub bytes_acknowledged: Option<ByteCount>,
    /// Segments retransmitted since the connection began (`tcpi_total_retrans`).
    pub retransmits: Option<SegmentCount>,
    /// Delivery rate (`tcpi_delivery_rate`).
    pub delivery_rate: Option<BitRate>,
    /// Bytes in the send buffer that are not sent yet (`tcpi_notsent_bytes`).
    pub not_sent: Option<ByteCount>,
    /// Time with data outstanding (`tcpi_busy_time`).
    pub busy: Option<Duration>,
    /// Part of the busy time limited by the peer's window (`tcpi_rwnd_limited`).
    pub receive_window_limited: Option<Duration>,
    /// Part of the busy time limited by the send buffer (`tcpi_sndbuf_limited`).
    pub send_buffer_limited: Option<Duration>,
}

/// Time, RTT, window, acknowledged, retransmits, delivery rate, not sent; busy, and limited by window and by buffer.
type SampleArray = (
    u64,
    Option<u64>,
    Option<u64>,
    Option<u64>,
    Option<u64>,
    Option<u64>,
    Option<u64>,
    (Option<u64>, Option<u64>, Option<u64>),
);

impl From<LoadSample> for SampleArray {
    fn from(sample: LoadSample) -> Self {
        let time = |time: Option<Duration>| time.map(nanos::whole);
        (
            nanos::whole(sample.time),
            time(sample.rtt),
            sample.congestion_window.map(ByteCount::get),
            sample.bytes_acknowledged.map(ByteCount::get),
            sample.retransmits.map(SegmentCount::get),
            sample.delivery_rate.map(BitRate::whole_bits_per_second),
            sample.not_sent.map(ByteCount::get),
            (time(sample.busy), time(sample.receive_window_limited), time(sample.send_buffer_limited)),
        )
    }
}

impl From<SampleArray> for LoadSample {
    fn from(array: SampleArray) -> Self {
        let (time, rtt, window, acknowledged, retransmits, delivery, not_sent, (busy, by_window, by_buffer)) = array;
        Self {
            time: Duration::from_nanos(time),
            rtt: rtt.map(Duration::from_nanos),
            congestion_window: window.map(ByteCount::new),
            bytes_acknowledged: acknowledged.map(ByteCount::new),
            retransmits: retransmits.map(SegmentCount::new),
            delivery_rate: delivery.map(rate::from_whole),
            not_sent: not_sent.map(ByteCount::new),
            busy: busy.map(Duration::from_nanos),
            receive_window_limited: by_window.map(Duration::from_nanos),
            send_buffer_limited: by_buffer.map(Duration::from_nanos),
        }
    }
}

/// Payload that a receiver has read from a load connection. In a message it is an array: time, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64)", into = "(u64, u64)")]
pub struct GoodputSample {
    /// Time since the start of the connection.
    pub time: Duration,
    /// Bulk payload until that time.
    pub bytes: ByteCount,
}

impl From<GoodputSample> for (u64, u64) {
    fn from(goodput: GoodputSample) -> Self {
        (nanos::whole(goodput.time), goodput.bytes.get())
    }
}

impl From<(u64, u64)> for GoodputSample {
    fn from((time, bytes): (u64, u64)) -> Self {
        Self { time: Duration::from_nanos(time), bytes: ByteCount::new(bytes) }
    }
}

/// Progress of a load connection, reported every half second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadProgress {
    /// Number of the connection.
    pub connection: ConnectionNumber,
    /// Time since the start of the connection.
    #[serde(rename = "t", with = "nanos")]
    pub time: Duration,
    /// Bulk payload passed to the kernel (sender) or read from it (receiver).
    #[serde(with = "bytes")]
    pub bytes: ByteCount,
    /// Smoothed round-trip time, on a sender.
    #[serde(default, with = "maybe_nanos")]
    pub rtt: Option<Duration>,
}

/// A part of the samples of a load connection, sent after its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadSamples {
    /// Number of the connection.
    pub connection: ConnectionNumber,
    /// Samples of a sender, oldest first.
    #[serde(default)]
    pub samples: Vec<LoadSample>,
    /// Samples of a receiver, every 50 ms, oldest first.
    #[serde(default)]
    pub goodput: Vec<GoodputSample>,
}

impl LoadSamples {
    /// Maximum number of samples in one message.
    pub const MOST: usize = 2048;

    pub(super) fn check(&self) -> Result<(), &'static str> {
        if self.samples.len() + self.goodput.len() > Self::MOST {
            return Err("a message has at most 2048 samples");
        }
        Ok(())
    }
}

/// End of a load connection: the last message about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadEnd {
    /// Number of the connection.
    pub connection: ConnectionNumber,
    /// Bulk payload passed to the kernel (sender) or read from it (receiver).
    #[serde(with = "bytes")]
    pub bytes: ByteCount,
    /// Time since the start; zero when it was not started.
    #[serde(with = "nanos")]
    pub time: Duration,
    /// The kernel's error when it failed; `None` when it was stopped.
    #[serde(default)]
    pub error: Option<String>,
}
