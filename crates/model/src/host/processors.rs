//! Processors of a host: numbers, frequency governors, use of their time.

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};

use linerate_units::{CompactCollect, Ratio};

use crate::fact::Fact;

/// Set of processors by the kernel's numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessorSet(pub BTreeSet<u32>);

/// Upper bound of processor numbers, above that of any kernel (`CONFIG_NR_CPUS`): larger ranges are rejected.
const MAX_PROCESSORS: u32 = 1 << 16;

impl ProcessorSet {
    /// Parses the kernel's lists: `0-3,8`. `None` for other text.
    #[must_use]
    pub fn parse_list(text: &str) -> Option<Self> {
        let mut numbers = BTreeSet::new();
        for part in text.trim().split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            (first <= last && last < MAX_PROCESSORS).then_some(())?;
            numbers.extend(first..=last);
        }
        Some(Self(numbers))
    }

    /// Parses the kernel's masks, the lowest processors last: `00000001,0000ff00`. `None` for other text.
    #[must_use]
    pub fn parse_mask(text: &str) -> Option<Self> {
        let digits: String = text.trim().chars().filter(|character| *character != ',').collect();
        let short = !digits.is_empty() && digits.len() <= usize::try_from(MAX_PROCESSORS / 4).ok()?;
        short.then_some(())?;
        let mut numbers = BTreeSet::new();
        for (place, digit) in (0_u32..).zip(digits.chars().rev()) {
            let digit = digit.to_digit(16)?;
            numbers.extend((0..4).filter(|bit| digit >> bit & 1 == 1).map(|bit| place * 4 + bit));
        }
        Some(Self(numbers))
    }

    /// Number of processors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True when the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True when all of them are among the others.
    #[must_use]
    pub fn is_within(&self, others: &Self) -> bool {
        self.0.is_subset(&others.0)
    }

    /// Formats the mask for the kernel's files: groups of eight hexadecimal digits, the lowest processors last.
    #[must_use]
    pub fn mask(&self) -> String {
        let groups = self.0.last().map_or(0, |last| last / 32) + 1;
        let group = |group: u32| {
            let bits = self.0.range(group * 32..(group + 1) * 32);
            format!("{:08x}", bits.fold(0_u32, |mask, number| mask | 1 << (number % 32)))
        };
        (0..groups).rev().map(group).collect::<Vec<_>>().join(",")
    }
}

/// Formats the kernel's list: `0-3,8`.
impl fmt::Display for ProcessorSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for number in &self.0 {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == *number => *last = *number,
                _ => ranges.push((*number, *number)),
            }
        }
        let text = ranges.iter().map(
            |(first, last)| {
                if first == last { first.to_string() } else { format!("{first}-{last}") }
            },
        );
        formatter.write_str(&text.collect::<Vec<_>>().join(","))
    }
}

impl FromIterator<u32> for ProcessorSet {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        Self(numbers.into_iter().collect())
    }
}

/// Time of a processor, or of all of them, by use, in the kernel's ticks (`/proc/stat`, proc(5)). Guest time is
/// included in `user`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorTicks {
    /// User mode, including low priority.
    pub user: u64,
    /// Kernel mode.
    pub system: u64,
    /// Idle.
    pub idle: u64,
    /// Idle while waiting for disks (`iowait`).
    pub waiting: u64,
    /// Interrupts.
    pub interrupts: u64,
    /// Soft interrupts: most of the network stack's work on received packets (`softirq`).
    pub soft_interrupts: u64,
    /// Taken by a hypervisor (`steal`).
    pub stolen: u64,
}

impl ProcessorTicks {
    /// Parses the numbers of a line of `/proc/stat` after the processor's name: user, nice, system, idle, iowait, irq,
    /// softirq, steal. `None` when some are missing.
    #[must_use]
    pub fn parse(numbers: &str) -> Option<Self> {
        let ticks: Vec<u64> = numbers.split_ascii_whitespace().map_while(|number| number.parse().ok()).collect();
        let [user, nice, system, idle, waiting, interrupts, soft_interrupts, stolen] = *ticks.first_chunk()?;
        let user = user.saturating_add(nice);
        Some(Self { user, system, idle, waiting, interrupts, soft_interrupts, stolen })
    }

    /// Parses `/proc/stat`: all processors together (`None` as key), and each.
    #[must_use]
    pub fn parse_all(text: &str) -> BTreeMap<Option<u32>, Self> {
        let read = |line: &str| {
            let (name, numbers) = line.strip_prefix("cpu")?.split_once(' ')?;
            let number = if name.is_empty() { None } else { Some(name.parse().ok()?) };
            Some((number, Self::parse(numbers)?))
        };
        text.lines().filter_map(read).collect_compactly()
    }

    /// Difference from an earlier sample. The kernel's idle time may run backwards a little; that counts as zero.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
            idle: self.idle.saturating_sub(earlier.idle),
            waiting: self.waiting.saturating_sub(earlier.waiting),
            interrupts: self.interrupts.saturating_sub(earlier.interrupts),
            soft_interrupts: self.soft_interrupts.saturating_sub(earlier.soft_interrupts),
            stolen: self.stolen.saturating_sub(earlier.stolen),
        }
    }

    /// Total time.
    #[must_use]
    pub const fn total(&self) -> u64 {
        let busy = self.user.saturating_add(self.system).saturating_add(self.interrupts);
        let busy = busy.saturating_add(self.soft_interrupts).saturating_add(self.stolen);
        busy.saturating_add(self.idle).saturating_add(self.waiting)
    }

    /// Share of its time in which it was busy; `None` for a total of zero.
    #[must_use]
    pub fn busy(&self) -> Option<Ratio> {
        self.share(self.total().saturating_sub(self.idle).saturating_sub(self.waiting))
    }

    /// Share of interrupts and soft interrupts; `None` for a total of zero.
    #[must_use]
    pub fn interrupted(&self) -> Option<Ratio> {
        self.share(self.interrupts.saturating_add(self.soft_interrupts))
    }

    /// Share taken by a hypervisor; `None` for a total of zero.
    #[must_use]
    pub fn stolen_share(&self) -> Option<Ratio> {
        self.share(self.stolen)
    }

    #[expect(clippy::cast_precision_loss, reason = "a share of two counts; exact up to 2^53 ticks")]
    fn share(&self, part: u64) -> Option<Ratio> {
        Ratio::of(part as f64, self.total() as f64)
    }
}

/// Pressure stall information: share of the time in which some task was stalled (`/proc/pressure`, the line `some`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PressureAverages {
    /// Average over 10 seconds.
    pub last_10_seconds: Ratio,
    /// Average over a minute.
    pub last_minute: Ratio,
    /// Average over 5 minutes.
    pub last_5_minutes: Ratio,
}

impl PressureAverages {
    /// Parses a file of `/proc/pressure`: the line that begins with `some`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
        let share = |name: &str| {
            let word = line.split_ascii_whitespace().find_map(|word| word.strip_prefix(name))?;
            Ratio::from_percent(word.strip_prefix('=')?.parse().ok()?)
        };
        Some(Self { last_10_seconds: share("avg10")?, last_minute: share("avg60")?, last_5_minutes: share("avg300")? })
    }
}

/// Processors of a host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostProcessors {
    /// Online processors.
    pub online: Fact<ProcessorSet>,
    /// Processors excluded from scheduling (`isolcpus=`); empty where there are none.
    pub isolated: Fact<ProcessorSet>,
    /// Frequency governors (`scaling_governor`), each with its processors.
    pub governors: Fact<BTreeMap<String, ProcessorSet>>,
    /// Energy preferences (`energy_performance_preference`), each with its processors.
    pub energy_preferences: Fact<BTreeMap<String, ProcessorSet>>,
    /// NUMA nodes, each with its processors.
    pub nodes: Fact<BTreeMap<u32, ProcessorSet>>,
    /// True when two logical processors share one core.
    pub share_cores: Fact<bool>,
    /// Time of all processors since boot.
    pub total_ticks: Fact<ProcessorTicks>,
    /// Time of each processor since boot.
    pub ticks_by_processor: Fact<BTreeMap<u32, ProcessorTicks>>,
    /// Pressure on processors.
    pub processor_pressure: Fact<PressureAverages>,
    /// Pressure on memory.
    pub memory_pressure: Fact<PressureAverages>,
    /// Pressure on disks.
    pub disk_pressure: Fact<PressureAverages>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_and_masks() {
        let set = ProcessorSet::parse_list("0-3,8\n").expect("a list");
        assert_eq!((set.len(), set.to_string()), (5, "0-3,8".to_owned()));
        assert_eq!(ProcessorSet::parse_mask("10f"), Some(set.clone()));
        assert_eq!(ProcessorSet::parse_mask("00000001,00000000").expect("a mask").to_string(), "32");
        assert_eq!((set.mask(), ProcessorSet::default().mask()), ("0000010f".to_owned(), "00000000".to_owned()));
        assert_eq!(ProcessorSet::parse_list("\n"), Some(ProcessorSet::default()));
        assert!(ProcessorSet::parse_list("8").is_some_and(|one| one.is_within(&set) && !set.is_within(&one)));
        for wrong in ["3-1", "a", "0-99999999", "1-"] {
            assert_eq!(ProcessorSet::parse_list(wrong), None, "{wrong:?}");
        }
        assert_eq!((ProcessorSet::parse_mask(""), ProcessorSet::parse_mask("0x1")), (None, None));
    }

    #[test]
    fn shares_of_a_processors_time() {
        let text = "cpu  100 10 50 800 50 5 15 20 7 7\ncpu0 1 0 1 8 0 0 0 0\ncpu1 x\nintr 5 6 7\n";
        let all = ProcessorTicks::parse_all(text);
        assert_eq!(all.keys().collect::<Vec<_>>(), [&None, &Some(0)]);
        let together = all[&None];
        assert_eq!((together.total(), together.user), (1050, 110));
        assert_eq!(together.busy(), Ratio::of(200.0, 1050.0));
        assert_eq!(together.interrupted(), Ratio::of(20.0, 1050.0));
        assert_eq!(together.stolen_share(), Ratio::of(20.0, 1050.0));
        let later = ProcessorTicks { user: 210, idle: 790, ..together };
        assert_eq!(later.since(&together), ProcessorTicks { user: 100, ..ProcessorTicks::default() });
        assert_eq!(ProcessorTicks::default().busy(), None);
    }

    #[test]
    fn pressure() {
        let text = "some avg10=80.50 avg60=29.00 avg300=20.00 total=12872178838\nfull avg10=0.00 avg60=0.00\n";
        let pressure = PressureAverages::parse(text).expect("a sample");
        assert_eq!(Some(pressure.last_10_seconds), Ratio::from_percent(80.5));
        assert_eq!(Some(pressure.last_5_minutes), Ratio::from_percent(20.0));
        assert_eq!(
            (PressureAverages::parse("full avg10=1"), PressureAverages::parse("some avg10=1 avg60=2")),
            (None, None)
        );
    }

    proptest! {
        #[test]
        fn formatted_sets_parse_to_the_same_set(numbers in proptest::collection::btree_set(0_u32..300, 0..40)) {
            let set = ProcessorSet(numbers);
            prop_assert_eq!(ProcessorSet::parse_list(&set.to_string()), Some(set.clone()));
            prop_assert_eq!(ProcessorSet::parse_mask(&set.mask()), Some(set));
        }

        #[test]
        fn parsing_never_panics(text in ".{0,200}") {
            let _ = (ProcessorSet::parse_list(&text), ProcessorSet::parse_mask(&text), PressureAverages::parse(&text));
            prop_assert!(ProcessorTicks::parse_all(&text).len() <= text.lines().count());
        }
    }
}
