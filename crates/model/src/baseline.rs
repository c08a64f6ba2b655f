//! Host performance without a network: memory and disk throughput, the host's own TCP, and ciphers. A network transfer
//! cannot be faster than the slowest of those that it needs.

use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Ratio};

use crate::fact::Fact;

/// Measured data transfer within a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimedTransfer {
    /// Bytes transferred.
    pub bytes: ByteCount,
    /// Elapsed time.
    pub time: Duration,
    /// Processor time of the thread that moved the data.
    pub processor_time: Duration,
}

impl TimedTransfer {
    /// Throughput.
    #[must_use]
    pub fn rate(&self) -> BitRate {
        self.bytes.rate_over(self.time)
    }

    /// Share of one processor that the thread used; `None` for a duration of zero.
    #[must_use]
    pub fn processor_share(&self) -> Option<Ratio> {
        Ratio::of(self.processor_time.as_secs_f64(), self.time.as_secs_f64())
    }
}

/// TCP connection of the host with itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopbackThroughput {
    /// Data sent by the sending thread.
    pub sent: TimedTransfer,
    /// Data received by the receiving thread.
    pub received: TimedTransfer,
}

/// Sequential access to one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskRates {
    /// Memory to disk, until the disk has it.
    pub write: Fact<TimedTransfer>,
    /// Disk to memory.
    pub read: Fact<TimedTransfer>,
    /// Disk to disk: read from one file and written to another, block after block.
    pub copy: Fact<TimedTransfer>,
}

/// Host performance without a network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostBaseline {
    /// Memory to memory: TCP over the loopback device.
    pub loopback: Fact<LoopbackThroughput>,
    /// Directory whose file system was measured.
    pub directory: String,
    /// True when that directory is in memory, so that its rates are not those of a disk.
    pub is_in_memory: Option<bool>,
    /// Access past the page cache (`O_DIRECT`): rates of the disk itself.
    pub direct: DiskRates,
    /// Access through the page cache; data that is read is already cached as far as it fits.
    pub cached: DiskRates,
    /// Encryption by one thread, in records of 16 KiB as TLS and SSH have them, by the cipher's name.
    pub ciphers: Vec<(String, Fact<TimedTransfer>)>,
}

impl HostBaseline {
    /// False when some measurement was interrupted.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let disk = [&self.direct, &self.cached].map(|rates| [&rates.write, &rates.read, &rates.copy]);
        let known = disk.into_iter().flatten().chain(self.ciphers.iter().map(|(_, fact)| fact));
        let was_tried = |fact: &Fact<TimedTransfer>| {
            fact.unread().is_none_or(|unread| unread.obstacle != crate::fact::ReadObstacle::NotRead)
        };
        known.into_iter().all(was_tried)
            && self.loopback.unread().is_none_or(|unread| unread.obstacle != crate::fact::ReadObstacle::NotRead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_shares() {
        let passage = TimedTransfer {
            bytes: ByteCount::new(125_000_000),
            time: Duration::from_secs(2),
            processor_time: Duration::from_secs(1),
        };
        assert_eq!(passage.rate(), BitRate::from_bits_per_second(5e8));
        assert_eq!(passage.processor_share(), Ratio::new(0.5));
        assert_eq!(TimedTransfer::default().processor_share(), None);
        assert!(!HostBaseline::default().is_complete());
    }
}
