//! What holds a TCP sender back, from the kernel's own stop-watches.
//!
//! Linux counts for each connection how long it had data outstanding (`tcpi_busy_time`), and how much of that it
//! waited for the receiver's window (`tcpi_rwnd_limited`) or for room in its own send buffer (`tcpi_sndbuf_limited`);
//! see `net/ipv4/tcp_output.c`, `tcp_chrono_set`. What is left of the busy time is the congestion window's: the network.
//! Time that is not busy is the application's.

use core::time::Duration;

use linerate_units::Ratio;

use crate::tcp_info::TcpInfo;

/// What a transfer is limited by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// The sending application had nothing to send, or was told to send no faster.
    Application,
    /// The sending host: its send buffer, or a processor that has no time left.
    Sender,
    /// The receiving host: its window.
    Receiver,
    /// The network: the congestion window.
    Network,
}

/// The shares of the test's time that a sender spent under each limit; they add up to at most one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitShares {
    /// Nothing outstanding.
    pub application: Ratio,
    /// Waiting for room in the send buffer.
    pub send_buffer: Ratio,
    /// Waiting for the receiver's window.
    pub receive_window: Ratio,
    /// The rest of the busy time.
    pub network: Ratio,
    /// How busy the sending thread was with this stream, as a share of one processor, or, if that is more, how busy all
    /// processors of its host were; `None` when not measured.
    pub sender_cpu: Option<Ratio>,
    /// How busy the receiving thread's processor was with this stream; `None` when not measured.
    pub receiver_cpu: Option<Ratio>,
}

/// From this share of a processor on, the processor is what limits: the rest is scheduling.
const CPU_BOUND: f64 = 0.9;

impl LimitShares {
    /// The shares between two readings of one connection that lie `elapsed` apart.
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
            sender_cpu: None,
            receiver_cpu: None,
        })
    }

    /// The limit with the largest share. A processor without time left is named before the window that it keeps small:
    /// a window only says that somebody waits, not for what.
    #[must_use]
    pub fn verdict(&self) -> Limit {
        let bound = |cpu: Option<Ratio>| cpu.is_some_and(|cpu| cpu.get() >= CPU_BOUND);
        if bound(self.sender_cpu) {
            return Limit::Sender;
        }
        if bound(self.receiver_cpu) {
            return Limit::Receiver;
        }
        let shares = [
            (self.network, Limit::Network),
            (self.receive_window, Limit::Receiver),
            (self.send_buffer, Limit::Sender),
            (self.application, Limit::Application),
        ];
        shares.into_iter().max_by_key(|(share, _)| *share).map_or(Limit::Network, |(_, limit)| limit)
    }
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
            (reading(1010, 5, 5), Limit::Network),
            (reading(1010, 905, 5), Limit::Receiver),
            (reading(1010, 5, 805), Limit::Sender),
            (reading(110, 5, 5), Limit::Application),
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
        assert_eq!(shares.verdict(), Limit::Sender);
    }

    #[test]
    fn an_old_kernel_gives_no_shares() {
        let nothing = TcpInfo::default();
        assert_eq!(LimitShares::between(&nothing, &nothing, Duration::from_secs(1)), None);
    }
}
