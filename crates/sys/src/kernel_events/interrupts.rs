//! Device interrupts of each processor, by name (`/proc/interrupts`).

use std::collections::BTreeMap;
use std::fs;

/// Counts by processor and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct InterruptCounts(BTreeMap<(u32, String), u64>);

impl InterruptCounts {
    /// Present counts; empty where the file cannot be read.
    pub(super) fn read() -> Self {
        fs::read_to_string("/proc/interrupts").map(|text| Self::parse(&text)).unwrap_or_default()
    }

    /// A line of column heads, one for each processor; then lines of a number, the counts, the chip, and the device.
    /// Lines with letters instead of a number are the processor's own interrupts and are left out.
    fn parse(text: &str) -> Self {
        let mut lines = text.lines();
        let heads = lines.next().unwrap_or_default().split_ascii_whitespace();
        let processors: Vec<u32> = heads.filter_map(|head| head.strip_prefix("CPU")?.parse().ok()).collect();
        let mut counts = BTreeMap::new();
        for line in lines {
            let Some((number, rest)) = line.split_once(':') else { continue };
            let mut columns = rest.split_ascii_whitespace();
            let of_processors: Vec<&str> = columns.by_ref().take(processors.len()).collect();
            let Some(name) = columns.last().filter(|_| number.trim().parse::<u32>().is_ok()) else { continue };
            for (processor, count) in processors.iter().zip(of_processors) {
                let sum: &mut u64 = counts.entry((*processor, name.to_owned())).or_default();
                *sum = sum.saturating_add(count.parse().unwrap_or_default());
            }
        }
        Self(counts)
    }

    /// Name of the device interrupt that `processor` handled most often since `earlier`.
    pub(super) fn busiest_since(&self, earlier: &Self, processor: u32) -> Option<String> {
        let grown = |(key, count): (&(u32, String), &u64)| {
            let before = earlier.0.get(key).copied().unwrap_or_default();
            (key.0 == processor && *count > before).then(|| (count - before, key.1.clone()))
        };
        self.0.iter().filter_map(grown).max().map(|(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_that_interrupts_most_is_named_for_each_processor() {
        let text = |eth: u64, disk: u64| {
            format!(
                "           CPU0       CPU2\n 24:  5  {eth}  PCI-MSIX-0000:00:03.0   0-edge      eth0-rx-0\n \
                25:  {disk}  7  PCI-MSI 1-edge virtio1-req.0\nLOC:  900000  900000  Local timer interrupts\nERR: 0\n"
            )
        };
        let (before, now) = (InterruptCounts::parse(&text(10, 3)), InterruptCounts::parse(&text(500, 9)));
        assert_eq!(now.busiest_since(&before, 2).as_deref(), Some("eth0-rx-0"));
        assert_eq!(now.busiest_since(&before, 0).as_deref(), Some("virtio1-req.0"));
        assert_eq!(now.busiest_since(&before, 1), None);
        assert_eq!(InterruptCounts::parse(""), InterruptCounts::default());
    }
}
