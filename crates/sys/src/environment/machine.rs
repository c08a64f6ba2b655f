//! Processors, memory, virtualisation and load.

use core::time::Duration;
use std::path::Path;

use linerate_model::environment::{HostLoad, HostMachine};
use linerate_model::host::processors::ProcessorTicks;
use linerate_units::{ByteCount, Ratio};

use super::UnreadableNotes;
use crate::host;

pub(super) fn machine(notes: &mut UnreadableNotes) -> HostMachine {
    let processors = notes.text("processor", "/proc/cpuinfo").unwrap_or_default();
    let device_tree = || std::fs::read_to_string("/proc/device-tree/model").ok();
    let memory = notes.text("memory", "/proc/meminfo").unwrap_or_default();
    HostMachine {
        processor: processor_model(&processors)
            .map(str::to_owned)
            .or_else(|| device_tree().map(|model| model.trim_end_matches('\0').to_owned())),
        processors: host::online_processors(),
        usable_processors: Some(host::cpu_count().get()),
        frequency_governor: notes.file("frequency governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        memory: memory_total(&memory),
        virtualisation: joined(container(), hypervisor(&processors)),
    }
}

pub(super) fn load(notes: &mut UnreadableNotes) -> HostLoad {
    let statistics = notes.text("processor time", "/proc/stat").unwrap_or_default();
    HostLoad {
        uptime: notes.file("uptime", "/proc/uptime").and_then(|text| uptime(&text)),
        averages: notes.file("load", "/proc/loadavg").and_then(|text| load_averages(&text)),
        stolen: stolen_share(&statistics),
    }
}

/// The first value of this key in `/proc/cpuinfo`.
fn value_of<'a>(processors: &'a str, key: &str) -> Option<&'a str> {
    let mut pairs = processors.lines().filter_map(|line| line.split_once(':'));
    pairs.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
}

/// Each architecture has its own key for it.
fn processor_model(processors: &str) -> Option<&str> {
    ["model name", "Model", "cpu model", "cpu", "Hardware", "Processor"]
        .iter()
        .find_map(|key| value_of(processors, key))
}

pub(super) fn memory_total(memory: &str) -> Option<ByteCount> {
    let kibibytes = value_of(memory, "MemTotal")?.strip_suffix(" kB")?;
    kibibytes.trim().parse().ok().map(ByteCount::from_kibibytes)
}

fn joined(container: Option<String>, hypervisor: Option<String>) -> Option<String> {
    match (container, hypervisor) {
        (Some(container), Some(hypervisor)) => Some(format!("{container} on {hypervisor}")),
        (container, hypervisor) => container.or(hypervisor),
    }
}

fn container() -> Option<String> {
    let named = std::fs::read_to_string("/run/systemd/container").ok().map(|name| name.trim().to_owned());
    let present = |path: &str, name: &str| Path::new(path).exists().then(|| name.to_owned());
    named
        .filter(|name| !name.is_empty())
        .or_else(|| present("/.dockerenv", "docker"))
        .or_else(|| present("/run/.containerenv", "podman"))
}

fn hypervisor(processors: &str) -> Option<String> {
    if value_of(processors, "vendor_id") == Some("User Mode Linux") {
        return Some("User-Mode Linux".to_owned());
    }
    let read = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    if let Some(name) = read("/sys/hypervisor/type").filter(|name| !name.is_empty()) {
        return Some(name);
    }
    let flagged = value_of(processors, "flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let maker = ["sys_vendor", "product_name"].map(|name| read(&format!("/sys/class/dmi/id/{name}")));
    let maker = maker.into_iter().flatten().collect::<Vec<_>>().join(" ");
    // The clock source that a hypervisor offers its guests identifies it.
    let clocks = read("/sys/devices/system/clocksource/clocksource0/available_clocksource").unwrap_or_default();
    let by_clock = [("kvm-clock", "KVM"), ("hyperv", "Hyper-V"), ("xen", "Xen")];
    let by_clock = by_clock.iter().find(|(clock, _)| clocks.contains(clock)).map(|(_, name)| (*name).to_owned());
    match (flagged, maker.is_empty()) {
        (true, false) => Some(maker),
        (true, true) => by_clock.or_else(|| Some("a hypervisor".to_owned())),
        // Processors without such a flag: the name of the machine identifies the hypervisor.
        (false, _) => ["QEMU", "KVM", "VMware", "VirtualBox", "Amazon EC2", "Google Compute Engine"]
            .iter()
            .any(|name| maker.contains(name))
            .then_some(maker)
            .or(by_clock),
    }
}

fn uptime(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.split(' ').next()?.parse().ok()?).ok()
}

fn load_averages(text: &str) -> Option<[f64; 3]> {
    let averages: Vec<f64> = text.split(' ').take(3).map_while(|number| number.parse().ok()).collect();
    averages.try_into().ok()
}

fn stolen_share(statistics: &str) -> Option<Ratio> {
    ProcessorTicks::parse_all(statistics).get(&None)?.stolen_share()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_of_several_architectures() {
        for (text, expected) in [
            (
                "processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n\nprocessor : 1\nmodel name: other\n",
                Some("AMD EPYC"),
            ),
            ("processor\t: 0\nBogoMIPS\t: 108\n\nModel\t\t: Raspberry Pi 4 Model B\n", Some("Raspberry Pi 4 Model B")),
            ("processor\t: 0\ncpu\t\t: POWER9, altivec supported\n", Some("POWER9, altivec supported")),
            ("vendor_id\t: User Mode Linux\nmodel name\t: UML\n", Some("UML")),
            ("model name\t:\n", None),
            ("", None),
        ] {
            assert_eq!(processor_model(text), expected, "{text:?}");
        }
        let name = |text: &str| Some(text.to_owned());
        assert_eq!(joined(name("docker"), name("KVM")), name("docker on KVM"));
        assert_eq!((joined(name("docker"), None), joined(None, None)), (name("docker"), None));
        assert_eq!(hypervisor("vendor_id\t: User Mode Linux\n").as_deref(), Some("User-Mode Linux"));
    }

    #[test]
    fn numbers_of_procfs() {
        assert_eq!(
            memory_total("MemTotal:       24684096 kB\nMemFree: 1 kB\n"),
            Some(ByteCount::from_kibibytes(24_684_096))
        );
        assert_eq!(memory_total("MemTotal: many\n"), None);
        assert_eq!(uptime("123.45 200.00"), Some(Duration::from_millis(123_450)));
        assert_eq!(uptime("-1"), None);
        assert_eq!(load_averages("0.50 0.25 0.10 1/200 1234"), Some([0.5, 0.25, 0.1]));
        assert_eq!(load_averages("0.50 x"), None);
        assert_eq!(stolen_share("cpu  10 0 10 60 0 0 0 20 5 5\ncpu0 1\n"), Ratio::new(0.2));
        for wrong in ["", "cpu  1 2 3\n", "cpu0 1 2 3 4 5 6 7 8\n"] {
            assert_eq!(stolen_share(wrong), None, "{wrong:?}");
        }
    }
}
