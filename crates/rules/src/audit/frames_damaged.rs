//! Frames arrive damaged.

use linerate_model::fact::Fact;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::Link;
use linerate_units::PacketCount;

use super::Rule;
use super::link_support::{
    Saying, driver_counters, exceeds, host_with, link_that_received, part_of, received, working,
};

const ID: &str = "frames-damaged";
const CITATION: &str = "IEEE 802.3 (a bit error ratio of 1e-12 damages one full frame in 80 million); kernel: \
    Documentation/networking/statistics.rst";
/// Hundred times what a link within its specification damages.
const WITHIN_SPECIFICATION: f64 = 1e-6;
/// What costs every flow dearly: Reno's window is sqrt(1.5 / p) segments.
const CRIPPLING: f64 = 1e-4;

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "Frames arrive damaged: wrong checksums, or errors that could not be corrected.",
    explanation: "A damaged frame is dropped by the device, and TCP takes that for congestion: with one in ten \
        thousand, Reno's window is about 120 segments however much the path could carry. Nothing on the host helps \
        but the cable: dirty or bent fibres, transceivers, bad contacts, forward error correction that the two ends \
        do not agree on.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host_with(vec![link_with(50, &[])]),
    silent: || host_with(vec![link_with(0, &[("fec_corrected_blocks", 500)])]),
};

fn link_with(damaged: u64, counters: &[(&str, u64)]) -> Link {
    let mut link = link_that_received(1_000_000);
    if let Some(of) = &mut link.counters {
        of.faults.checksum = PacketCount::new(damaged);
    }
    let counters = counters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    Link { driver_counters: Fact::Known(counters), ..link }
}

fn check(host: &HostFacts) -> Vec<Finding> {
    working(host).filter_map(look).collect()
}

fn look(link: &Link) -> Option<Finding> {
    let faults = link.counters?.faults;
    let frames = faults.checksum.get().saturating_add(faults.frame.get());
    let (uncorrected, of_driver) = driver_counters(link, |name| name.contains("fec") && name.contains("uncorr"));
    let damaged = frames.saturating_add(uncorrected);
    (damaged > 0).then_some(())?;
    let whole = received(link).map_or(0, PacketCount::get).saturating_add(damaged);
    let severity = if exceeds(damaged, whole, CRIPPLING) {
        Severity::Critical
    } else if exceeds(damaged, whole, WITHIN_SPECIFICATION) {
        Severity::Warning
    } else {
        Severity::Note
    };
    let name = &link.name;
    let mut evidence = vec![format!("{name}: {} wrong checksums, {} misaligned", faults.checksum, faults.frame)];
    evidence.extend(of_driver);
    evidence.extend(link.error_correction.known().map(|mode| format!("{name}: forward error correction: {mode}")));
    let saying = Saying {
        rule: (ID, CITATION),
        severity,
        subject: name.clone(),
        text: format!("{name} received {} frames damaged.", part_of(damaged, whole)),
        evidence,
        remedy: vec![
            format!("ethtool -m {name} (is the received light within the module's limits?)"),
            format!("ethtool --show-fec {name} (the same at both ends?)"),
            "clean or replace fibre, cable and transceiver, one after the other, and watch the counters".to_owned(),
        ],
        risk: "",
    };
    Some(saying.finding())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_grave_it_is() {
        let severity =
            |damaged, counters: &[(&str, u64)]| check(&host_with(vec![link_with(damaged, counters)]))[0].severity;
        assert_eq!(severity(500, &[]), Severity::Critical);
        assert_eq!(severity(5, &[]), Severity::Warning);
        assert_eq!(severity(0, &[("rx_fec_uncorrectable_blocks", 3)]), Severity::Warning);
        let mut busy = link_with(5, &[]);
        if let Some(counters) = &mut busy.counters {
            counters.passed.received.packets = PacketCount::new(1_000_000_000);
        }
        assert_eq!(check(&host_with(vec![busy]))[0].severity, Severity::Note);
    }
}
