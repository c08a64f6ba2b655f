//! Limits of a TCP sender, from the kernel's chronograph counters.
//!
//! Linux counts for each connection the time with data outstanding (`tcpi_busy_time`), and the parts of it limited by
//! the receive window (`tcpi_rwnd_limited`) or by the send buffer (`tcpi_sndbuf_limited`); see `net/ipv4/tcp_output.c`,
//! `tcp_chrono_set`. The remaining busy time belongs to the congestion window: the network. Idle time belongs to the
//! application.

use core::time::Duration;
use serde::{Deserialize, Serialize};

use linerate_units::Ratio;

use crate::tcp_info::TcpInfo;

/// Limit of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TransferLimit {
    /// The sending application: nothing to send, or a rate limit of its own.
    Application,
    /// The sending host: its send buffer, or a processor that has no time left.
    Sender,
    /// The receiving host: its window.
    Receiver,
    /// The network: the congestion window.
    Network,
}

/// Shares of the test's time that a sender spent under each limit; they sum to at most one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LimitShares {
    /// Nothing outstanding.
    pub application: Ratio,
    /// Waiting for space in the send buffer.
    pub send_buffer: Ratio,
    /// Waiting for the receiver's window.
    pub receive_window: Ratio,
    /// Remaining busy time.
    pub network: Ratio,
    /// Utilisation of one processor by the sending thread of this stream; other programs' use of the host's processors
    /// is not included. `None` when not measured.
    pub sender_cpu: Option<Ratio>,
    /// Utilisation of one processor by the receiving thread of this stream; `None` when not measured.
    pub receiver_cpu: Option<Ratio>,
    /// Share of the time for which the sending thread could run and waited for a processor; `None` when not measured.
    pub sender_wait: Option<Ratio>,
    /// Share of the time for which the receiving thread could run and waited for a processor; `None` when not measured.
    pub receiver_wait: Option<Ratio>,
}

/// Share of its time in which a thread runs, or waits for a processor, from which on the processor is the limit;
/// scheduling uses the remainder.
const MIN_CPU_BOUND_SHARE: f64 = 0.9;

impl LimitShares {
    /// Computes the shares between two samples of one connection taken `elapsed` apart.
    ///
    /// `None` when the kernel does not keep these times (before Linux 4.10) or no time has passed.
    #[must_use]
    pub fn between(first: &TcpInfo, last: &TcpInfo, elapsed: Duration) -> Option<Self> {
        let grown =
            |field: fn(&TcpInfo) -> Option<Duration>| Some(field(last)?.saturating_sub(field(first)?).min(elapsed));
        let busy = grown(|info| info.busy_time)?;
        let receive_window = grown(|info| info.receive_window_limited)?;
        let send_buffer = grown(|info| info.send_buffer_limited)?;
        let network = busy.saturating_sub(receive_window).saturating_sub(send_buffer);
        let share = |time: Duration| Ratio::of(time.as_secs_f64(), elapsed.as_secs_f64());
        Some(Self {
            application: share(elapsed.saturating_sub(busy))?,
            send_buffer: share(send_buffer)?,
            receive_window: share(receive_window)?,
            network: share(network)?,
            ..Self::default()
        })
    }

    /// Mean over several streams, and the busiest of their threads; `None` without any.
    #[must_use]
    pub fn mean(streams: &[Self]) -> Option<Self> {
        if streams.is_empty() {
            return None;
        }
        let mean = |share: fn(&Self) -> Ratio| {
            let (sum, count) = streams.iter().fold((0.0, 0.0), |(sum, n), limits| (sum + share(limits).get(), n + 1.0));
            Ratio::of(sum, count).unwrap_or_default()
        };
        Some(Self {
            application: mean(|limits| limits.application),
            send_buffer: mean(|limits| limits.send_buffer),
            receive_window: mean(|limits| limits.receive_window),
            network: mean(|limits| limits.network),
            sender_cpu: streams.iter().filter_map(|limits| limits.sender_cpu).max(),
            receiver_cpu: streams.iter().filter_map(|limits| limits.receiver_cpu).max(),
            sender_wait: streams.iter().filter_map(|limits| limits.sender_wait).max(),
            receiver_wait: streams.iter().filter_map(|limits| limits.receiver_wait).max(),
        })
    }

    /// True when the sending thread never slept: it ran, or waited for a processor.
    #[must_use]
    pub fn is_sender_cpu_bound(&self) -> bool {
        is_cpu_bound(self.sender_cpu, self.sender_wait)
    }

    /// True when the receiving thread never slept: it ran, or waited for a processor.
    #[must_use]
    pub fn is_receiver_cpu_bound(&self) -> bool {
        is_cpu_bound(self.receiver_cpu, self.receiver_wait)
    }

    /// Limit with the largest share. A saturated processor takes precedence over the window that it keeps small: a
    /// window shows the wait, not its cause.
    #[must_use]
    pub fn verdict(&self) -> TransferLimit {
        if self.is_sender_cpu_bound() {
            return TransferLimit::Sender;
        }
        if self.is_receiver_cpu_bound() {
            return TransferLimit::Receiver;
        }
        let shares = [
            (self.network, TransferLimit::Network),
            (self.receive_window, TransferLimit::Receiver),
            (self.send_buffer, TransferLimit::Sender),
            (self.application, TransferLimit::Application),
        ];
        shares.into_iter().max_by_key(|(share, _)| *share).map_or(TransferLimit::Network, |(_, limit)| limit)
    }
}

/// True when a thread used a processor for all of its time, or would have.
fn is_cpu_bound(cpu: Option<Ratio>, wait: Option<Ratio>) -> bool {
    let share = |ratio: Option<Ratio>| ratio.map_or(0.0, Ratio::get);
    share(cpu) + share(wait) >= MIN_CPU_BOUND_SHARE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(busy: u64, receive_window: u64, send_buffer: u64) -> TcpInfo {
        TcpInfo {
            busy_time: Some(Duration::from_millis(busy)),
            receive_window_limited: Some(Duration::from_millis(receive_window)),
            send_buffer_limited: Some(Duration::from_millis(send_buffer)),
            ..TcpInfo::default()
        }
    }

    #[test]
    fn each_limit_is_named() {
        let start = reading(10, 5, 5);
        let elapsed = Duration::from_secs(1);
        for (last, expected) in [
            (reading(1010, 5, 5), TransferLimit::Network),
            (reading(1010, 905, 5), TransferLimit::Receiver),
            (reading(1010, 5, 805), TransferLimit::Sender),
            (reading(110, 5, 5), TransferLimit::Application),
        ] {
            let shares = LimitShares::between(&start, &last, elapsed).expect("times are there");
            assert_eq!(shares.verdict(), expected, "{shares:?}");
            let sum = shares.application.get()
                + shares.send_buffer.get()
                + shares.receive_window.get()
                + shares.network.get();
            assert!((sum - 1.0).abs() < 1e-9, "{shares:?}");
        }
    }

    #[test]
    fn a_full_processor_comes_first() {
        let mut shares = LimitShares { network: Ratio::new(1.0).expect("ratio"), ..LimitShares::default() };
        shares.sender_cpu = Ratio::new(0.97);
        assert_eq!(shares.verdict(), TransferLimit::Sender);
        // Eight threads of two processors: each runs for a quarter of its time, and waits for the remainder.
        (shares.sender_cpu, shares.sender_wait) = (Ratio::new(0.25), Ratio::new(0.74));
        assert_eq!(shares.verdict(), TransferLimit::Sender);
        // Other programs delay the thread, which sleeps for most of its time.
        (shares.sender_cpu, shares.sender_wait) = (Ratio::new(0.01), Ratio::new(0.4));
        assert_eq!(shares.verdict(), TransferLimit::Network);
    }

    #[test]
    fn an_old_kernel_gives_no_shares() {
        let nothing = TcpInfo::default();
        assert_eq!(LimitShares::between(&nothing, &nothing, Duration::from_secs(1)), None);
    }
}
