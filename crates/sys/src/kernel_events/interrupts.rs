//! Device interrupts of each processor (`/proc/interrupts`), and the software interrupts that their devices can raise.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Counts by processor, number and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct InterruptCounts(BTreeMap<(u32, u32, String), u64>);

impl InterruptCounts {
    /// Present counts; empty where the file cannot be read.
    pub(super) fn read() -> Self {
        fs::read_to_string("/proc/interrupts").map(|text| Self::parse(&text)).unwrap_or_default()
    }

    /// A line of column heads, one for each processor; then lines of a number, the counts, the chip, and the device.
    /// Lines with letters instead of a number are the processor's own interrupts and are left out.
    pub(super) fn parse(text: &str) -> Self {
        let mut lines = text.lines();
        let heads = lines.next().unwrap_or_default().split_ascii_whitespace();
        let processors: Vec<u32> = heads.filter_map(|head| head.strip_prefix("CPU")?.parse().ok()).collect();
        let mut counts = BTreeMap::new();
        for line in lines {
            let Some((number, rest)) = line.split_once(':') else { continue };
            let Ok(number) = number.trim().parse() else { continue };
            let mut columns = rest.split_ascii_whitespace();
            let of_processors: Vec<&str> = columns.by_ref().take(processors.len()).collect();
            let Some(name) = columns.last() else { continue };
            for (processor, count) in processors.iter().zip(of_processors) {
                let sum: &mut u64 = counts.entry((*processor, number, name.to_owned())).or_default();
                *sum = sum.saturating_add(count.parse().unwrap_or_default());
            }
        }
        Self(counts)
    }

    /// Name of the interrupt of one of `devices` that `processor` handled most often since `earlier`.
    pub(super) fn busiest_since(&self, earlier: &Self, processor: u32, devices: &InterruptSources) -> Option<String> {
        let mut grown: BTreeMap<&str, u64> = BTreeMap::new();
        for (key @ (of_processor, number, name), count) in &self.0 {
            let more = count.saturating_sub(earlier.0.get(key).copied().unwrap_or_default());
            if *of_processor == processor && more > 0 && devices.has(*number, name) {
                let sum = grown.entry(name).or_default();
                *sum = sum.saturating_add(more);
            }
        }
        grown.into_iter().max_by_key(|(_, more)| *more).map(|(name, _)| name.to_owned())
    }
}

/// Devices of one class, by what identifies their interrupts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct InterruptSources {
    /// Numbers of the interrupts.
    numbers: BTreeSet<u32>,
    /// Names of the devices: without a list of numbers, the names of interrupts begin with them.
    names: BTreeSet<String>,
}

impl InterruptSources {
    /// Devices with these interrupts and names.
    pub(super) fn of<'a>(numbers: impl IntoIterator<Item = u32>, names: impl IntoIterator<Item = &'a str>) -> Self {
        Self { numbers: numbers.into_iter().collect(), names: names.into_iter().map(str::to_owned).collect() }
    }

    fn has(&self, number: u32, name: &str) -> bool {
        let is_of = |device: &String| {
            let rest = name.strip_prefix(device.as_str());
            rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_alphanumeric()))
        };
        self.numbers.contains(&number) || self.names.iter().any(is_of)
    }

    /// Devices of a class in sysfs.
    fn read(class: &str) -> Self {
        let mut found = Self::default();
        for entry in fs::read_dir(Path::new("/sys/class").join(class)).into_iter().flatten().flatten() {
            let Ok(device) = fs::canonicalize(entry.path().join("device")) else { continue };
            let names = [entry.file_name(), device.file_name().unwrap_or_default().to_owned()];
            found.names.extend(names.iter().filter_map(|name| name.to_str()).map(str::to_owned));
            found.numbers.extend(interrupt_numbers(&device));
        }
        found
    }
}

/// Interrupts of the nearest device above that has any: that of a disk is its controller.
fn interrupt_numbers(device: &Path) -> BTreeSet<u32> {
    let number = |text: &str| text.trim().parse().ok().filter(|number| *number != 0);
    let numbers_of = |above: &Path| {
        let messages = fs::read_dir(above.join("msi_irqs")).into_iter().flatten().flatten();
        let mut numbers: BTreeSet<u32> = messages.filter_map(|entry| number(entry.file_name().to_str()?)).collect();
        numbers.extend(fs::read_to_string(above.join("irq")).ok().as_deref().and_then(number));
        numbers
    };
    device.ancestors().map(numbers_of).find(|numbers| !numbers.is_empty()).unwrap_or_default()
}

/// Devices whose interrupts may raise software interrupts.
#[derive(Debug, Default)]
pub(super) struct DeviceInterrupts {
    network: InterruptSources,
    disks: InterruptSources,
}

impl DeviceInterrupts {
    /// Reads the devices of this host.
    pub(super) fn read() -> Self {
        Self { network: InterruptSources::read("net"), disks: InterruptSources::read("block") }
    }

    /// Devices that raise a vector; `None` for vectors of timers, the scheduler and the kernel's own work.
    pub(super) fn of_vector(&self, vector: &str) -> Option<&InterruptSources> {
        match vector {
            "NET_RX" | "NET_TX" => Some(&self.network),
            "BLOCK" => Some(&self.disks),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(eth: u64, disk: u64) -> String {
        format!(
            "           CPU0       CPU2\n 24:  5  {eth}  PCI-MSIX-0000:00:03.0   0-edge      eth0-rx-0\n \
            25:  {disk}  {disk}  PCI-MSI 1-edge virtio1-req.0\n 26: {eth} 0 PCI-MSI 2-edge virtio10-input.0\n\
            LOC:  900000  900000  Local timer interrupts\nERR: 0\n"
        )
    }

    fn devices() -> DeviceInterrupts {
        DeviceInterrupts {
            network: InterruptSources::of([26], ["eth0"]),
            disks: InterruptSources::of([], ["vda", "virtio1"]),
        }
    }

    /// The disk interrupts most, and raises no network vector; timers have no device.
    #[test]
    fn only_a_device_that_can_raise_the_vector_is_named() {
        let (before, now) = (InterruptCounts::parse(&text(10, 3)), InterruptCounts::parse(&text(500, 900_000)));
        let devices = devices();
        let busiest = |processor, vector| now.busiest_since(&before, processor, devices.of_vector(vector)?);
        assert_eq!(busiest(2, "NET_RX").as_deref(), Some("eth0-rx-0"));
        assert_eq!(busiest(0, "NET_TX").as_deref(), Some("virtio10-input.0"));
        assert_eq!(busiest(0, "BLOCK").as_deref(), Some("virtio1-req.0"), "virtio10 is another device");
        assert_eq!(busiest(1, "NET_RX"), None);
        for vector in ["HRTIMER", "TIMER", "RCU", "SCHED", "TASKLET", "HI", "IRQ_POLL", "3"] {
            assert_eq!(busiest(0, vector), None, "{vector}");
        }
        assert_eq!(InterruptCounts::parse(""), InterruptCounts::default());
    }
}
