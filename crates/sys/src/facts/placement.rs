//! Location of devices in the machine, and the processors that serve them: `/sys/class/net`, `/proc/interrupts`.

use std::collections::BTreeSet;
use std::fs;

use linerate_model::fact::Fact;
use linerate_model::host::link::{DeviceInterrupt, NetworkLink, PciLink, ReceiveQueue, TransmitQueue};
use linerate_model::host::processors::ProcessorSet;
use linerate_units::{BitRate, ByteCount};

use super::reading::{entry_numbers, file, names, parsed};

/// Fills in a link's facts from files; `of_this_namespace` has the reason when the files are of another namespace.
pub(super) fn describe(link: &mut NetworkLink, of_this_namespace: &Fact<()>, interrupts: &Fact<Vec<InterruptLine>>) {
    if let Fact::Unknown(unread) = of_this_namespace {
        link.receive_queues = Fact::Unknown(unread.clone());
        link.transmit_queues = Fact::Unknown(unread.clone());
        link.has_receive_threads = Fact::Unknown(unread.clone());
        link.interrupts = Fact::Unknown(unread.clone());
        link.memory_node = Fact::Unknown(unread.clone());
        link.near_processors = Fact::Unknown(unread.clone());
        link.pci = Fact::Unknown(unread.clone());
        return;
    }
    let directory = format!("/sys/class/net/{}", link.name);
    let queues = names(format!("{directory}/queues"));
    link.receive_queues = queues.clone().map(|names| receive_queues(&directory, &names));
    link.transmit_queues = queues.map(|names| transmit_queues(&directory, &names));
    link.has_receive_threads = parsed(format!("{directory}/threaded"), |text| Some(text != "0"));
    if !link.is_hardware() {
        let unread = || format!("{} is a software device", link.name);
        link.interrupts = Fact::absent(unread());
        link.memory_node = Fact::absent(unread());
        link.near_processors = Fact::absent(unread());
        link.pci = Fact::absent(unread());
        return;
    }
    link.memory_node = match parsed(format!("{directory}/device/numa_node"), |text| text.parse::<i32>().ok()) {
        Fact::Known(node) => u32::try_from(node)
            .map_or_else(|_| Fact::absent("the machine has only one NUMA node, or does not report it"), Fact::Known),
        Fact::Unknown(unread) => Fact::Unknown(unread),
    };
    link.near_processors = parsed(format!("{directory}/device/local_cpulist"), ProcessorSet::parse_list);
    link.pci = pci_link(&directory);
    link.interrupts = interrupts.clone().map(|lines| interrupts_of(link, &directory, &lines));
}

fn receive_queues(directory: &str, names: &[String]) -> Vec<ReceiveQueue> {
    let queue = |number| {
        let path = format!("{directory}/queues/rx-{number}");
        let steered = file(format!("{path}/rps_cpus"));
        let flows = file(format!("{path}/rps_flow_cnt"));
        ReceiveQueue {
            number,
            steered_to: steered.known().and_then(|mask| ProcessorSet::parse_mask(mask)).unwrap_or_default(),
            flows: flows.known().and_then(|count| count.parse().ok()).unwrap_or_default(),
        }
    };
    entry_numbers(names, "rx-").into_iter().map(queue).collect()
}

fn transmit_queues(directory: &str, names: &[String]) -> Vec<TransmitQueue> {
    let queue = |number| {
        let path = format!("{directory}/queues/tx-{number}");
        // Devices with one queue have no such setting: reading it fails.
        let sends_for = file(format!("{path}/xps_cpus"));
        let limit = file(format!("{path}/byte_queue_limits/limit"));
        TransmitQueue {
            number,
            processors: sends_for.known().and_then(|mask| ProcessorSet::parse_mask(mask)),
            byte_limit: limit.known().and_then(|bytes| bytes.parse().ok()).map(ByteCount::new),
        }
    };
    entry_numbers(names, "tx-").into_iter().map(queue).collect()
}

fn pci_link(directory: &str) -> Fact<PciLink> {
    let read = |name: &str| file(format!("{directory}/device/{name}"));
    let texts = ["current_link_speed", "current_link_width", "max_link_speed", "max_link_width"].map(read);
    if let Some(unread) = texts.iter().find_map(Fact::unread) {
        return Fact::Unknown(unread.clone());
    }
    let [speed, lanes, highest, most] = texts.map(|text| text.known().cloned().unwrap_or_default());
    parse_pci_link(&speed, &lanes, &highest, &most).map_or_else(
        || Fact::absent(format!("its link reports {speed:?} and {lanes:?} lanes, as devices of hypervisors do")),
        Fact::Known,
    )
}

/// Speeds are `8.0 GT/s PCIe`; virtual devices report `Unknown` and 0 or 255 lanes.
fn parse_pci_link(speed: &str, lanes: &str, highest: &str, most: &str) -> Option<PciLink> {
    let rate = |text: &str| {
        let transfers: f64 = text.split_once(" GT/s")?.0.parse().ok()?;
        (transfers > 0.0 && transfers < 1e4).then(|| BitRate::from_bits_per_second(transfers * 1e9))
    };
    let width = |text: &str| text.parse().ok().filter(|lanes| (1..=32).contains(lanes));
    Some(PciLink {
        lane_rate: rate(speed)?,
        lanes: width(lanes)?,
        highest_lane_rate: rate(highest)?,
        most_lanes: width(most)?,
    })
}

/// A line of `/proc/interrupts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InterruptLine {
    number: u32,
    count: u64,
    name: String,
}

/// All numbered interrupts of the host.
pub(super) fn interrupt_lines() -> Fact<Vec<InterruptLine>> {
    parsed("/proc/interrupts", |text| Some(parse_interrupts(text)))
}

/// A line of column heads, one for each processor; then lines of a number, one count per processor, the chip, and the
/// device.
fn parse_interrupts(text: &str) -> Vec<InterruptLine> {
    let mut lines = text.lines();
    let processors = lines.next().unwrap_or_default().split_ascii_whitespace().count();
    let line = |line: &str| {
        let (number, rest) = line.split_once(':')?;
        let number = number.trim().parse().ok()?;
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        let counts = words.get(..processors)?.iter().map(|count| count.parse::<u64>().unwrap_or_default());
        let name = words.get(processors..)?.last().map(|name| (*name).to_owned())?;
        Some(InterruptLine { number, count: counts.fold(0, u64::saturating_add), name })
    };
    lines.filter_map(line).collect()
}

fn interrupts_of(link: &NetworkLink, directory: &str, lines: &[InterruptLine]) -> Vec<DeviceInterrupt> {
    let own = own_interrupts(directory);
    let device = fs::read_link(format!("{directory}/device"));
    let device = device.ok().and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
    let is_own = |line: &&InterruptLine| match &device {
        // Several devices of a hypervisor may share one PCI device; their interrupts bear their names.
        Some(name) if name.starts_with("virtio") => belongs_to(&line.name, name),
        _ => own.contains(&line.number) || belongs_to(&line.name, &link.name),
    };
    lines.iter().filter(is_own).map(described).collect()
}

/// Numbers of the interrupts of the device below an interface, used or not.
fn own_interrupts(directory: &str) -> BTreeSet<u32> {
    let messages = names(format!("{directory}/device/msi_irqs"));
    let single = file(format!("{directory}/device/irq"));
    match (messages.known(), single.known()) {
        (Some(names), _) => names.iter().filter_map(|name| name.parse().ok()).collect(),
        (None, Some(number)) => number.parse().ok().filter(|number| *number != 0).into_iter().collect(),
        (None, None) => BTreeSet::new(),
    }
}

/// True when a name is a device's or begins with it: `eth0`, `eth0-TxRx-3`, `virtio2-input.0`, but not `eth01`.
fn belongs_to(name: &str, device: &str) -> bool {
    let rest = name.strip_prefix(device);
    rest.is_some_and(|rest| !rest.starts_with(|character: char| character.is_ascii_alphanumeric()))
}

fn described(line: &InterruptLine) -> DeviceInterrupt {
    let list = |name| {
        let text = file(format!("/proc/irq/{}/{name}", line.number));
        text.known().and_then(|text| ProcessorSet::parse_list(text))
    };
    DeviceInterrupt {
        number: line.number,
        name: line.name.clone(),
        allowed: list("smp_affinity_list"),
        effective: list("effective_affinity_list"),
        count: line.count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERRUPTS: &str = "            CPU0       CPU1\n\
        \x20 8:          0          7   IO-APIC   8-edge      rtc0\n\
        \x2025:        100         20   PCI-MSI 524288-edge      eth0-TxRx-0\n\
        \x2026:          1          2   PCI-MSI 524289-edge      virtio2-input.0\n\
        \x2027:          1\n\
        NMI:          1          2   Non-maskable interrupts\n";

    #[test]
    fn lines_of_interrupts() {
        let lines = parse_interrupts(INTERRUPTS);
        let line = |number, count, name: &str| InterruptLine { number, count, name: name.to_owned() };
        assert_eq!(lines, [line(8, 7, "rtc0"), line(25, 120, "eth0-TxRx-0"), line(26, 3, "virtio2-input.0")]);
        for length in 0..INTERRUPTS.len() {
            assert!(parse_interrupts(&INTERRUPTS[..length]).len() <= 3, "{length}");
        }
        assert!(belongs_to("eth0-TxRx-0", "eth0") && belongs_to("virtio2-input.0", "virtio2"));
        assert!(!belongs_to("eth01-TxRx-0", "eth0") && !belongs_to("rtc0", "eth0"));
    }

    #[test]
    fn links_of_pci_express() {
        let link = parse_pci_link("8.0 GT/s PCIe", "4", "16.0 GT/s PCIe", "16").expect("a link");
        assert_eq!((link.lanes, link.most_lanes), (4, 16));
        assert_eq!(link.lane_rate, BitRate::from_bits_per_second(8e9));
        assert!(link.is_reduced());
        assert_eq!(parse_pci_link("5 GT/s", "8", "5 GT/s", "8").map(|link| link.is_reduced()), Some(false));
        for wrong in [("Unknown", "4"), ("8.0 GT/s PCIe", "255"), ("8.0 GT/s PCIe", "0"), ("", "")] {
            assert_eq!(parse_pci_link(wrong.0, wrong.1, "8.0 GT/s PCIe", "8"), None, "{wrong:?}");
        }
    }

    #[test]
    fn this_hosts_interrupts_are_listed() {
        let lines = interrupt_lines();
        assert!(lines.known().is_none_or(|lines| lines.iter().all(|line| !line.name.is_empty())), "{lines:?}");
    }
}
