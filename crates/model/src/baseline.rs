//! What a host can do without a network: how fast it moves data between memory and disk, through its own TCP, and through
//! ciphers. A transfer over the network cannot be faster than the slowest of those that it needs.

use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Ratio};

use crate::fact::Fact;

/// Data that passed somewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passage {
    /// How much.
    pub bytes: ByteCount,
    /// In which time.
    pub time: Duration,
    /// What the thread that moved it took of a processor's time.
    pub processor_time: Duration,
}

impl Passage {
    /// How fast.
    #[must_use]
    pub fn rate(&self) -> BitRate {
        self.bytes.rate_over(self.time)
    }

    /// The share of one processor that the thread took; `None` of no time.
    #[must_use]
    pub fn processor_share(&self) -> Option<Ratio> {
        Ratio::of(self.processor_time.as_secs_f64(), self.time.as_secs_f64())
    }
}

/// One TCP connection of the host with itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loopback {
    /// What the sending thread sent.
    pub sent: Passage,
    /// What the receiving thread received.
    pub received: Passage,
}

/// Sequential access to one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskRates {
    /// Memory to disk, until the disk has it.
    pub write: Fact<Passage>,
    /// Disk to memory.
    pub read: Fact<Passage>,
    /// Disk to disk: read from one file and written to another, block after block.
    pub copy: Fact<Passage>,
}

/// What a host can do without a network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    /// Memory to memory: TCP over the loopback device.
    pub loopback: Fact<Loopback>,
    /// The directory whose file system was tried.
    pub directory: String,
    /// Whether that is in memory, so that it says nothing about a disk.
    pub is_in_memory: Option<bool>,
    /// Past the page cache (`O_DIRECT`): what the disk itself does.
    pub direct: DiskRates,
    /// Through the page cache; what is read is in it, as far as it has room.
    pub cached: DiskRates,
    /// Encryption by one thread, in records of 16 KiB as TLS and SSH have them, by the cipher's name.
    pub ciphers: Vec<(String, Fact<Passage>)>,
}

impl Baseline {
    /// Whether something was broken off before it was measured.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let disk = [&self.direct, &self.cached].map(|rates| [&rates.write, &rates.read, &rates.copy]);
        let known = disk.into_iter().flatten().chain(self.ciphers.iter().map(|(_, fact)| fact));
        let was_tried =
            |fact: &Fact<Passage>| fact.unread().is_none_or(|unread| unread.obstacle != crate::fact::Obstacle::NotRead);
        known.into_iter().all(was_tried)
            && self.loopback.unread().is_none_or(|unread| unread.obstacle != crate::fact::Obstacle::NotRead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_shares() {
        let passage = Passage {
            bytes: ByteCount::new(125_000_000),
            time: Duration::from_secs(2),
            processor_time: Duration::from_secs(1),
        };
        assert_eq!(passage.rate(), BitRate::from_bits_per_second(5e8));
        assert_eq!(passage.processor_share(), Ratio::new(0.5));
        assert_eq!(Passage::default().processor_share(), None);
        assert!(!Baseline::default().is_complete());
    }
}
