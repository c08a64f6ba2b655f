//! Frames arrive damaged.

use linerate_model::fact::Fact;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::NetworkLink;
use linerate_units::PacketCount;

use super::AuditRule;
use super::link_support::{
    FindingDraft, driver_counters, exceeds, host_with, link_that_received, part_of, received, working,
};

const ID: &str = "frames-damaged";
const CITATION: &str = "IEEE 802.3 (a bit error ratio of 1e-12 damages one full frame in 80 million); kernel: \
    Documentation/networking/statistics.rst";
/// Frame error ratio: a hundred times that of a link within its specification.
const MIN_WARNING_RATIO: f64 = 1e-6;
/// Frame error ratio that limits every flow severely: Reno's window is sqrt(1.5 / p) segments.
const MIN_CRITICAL_RATIO: f64 = 1e-4;

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "Frames arrive damaged: wrong checksums, or errors that could not be corrected.",
    explanation: "A damaged frame is dropped by the device, and TCP takes that for congestion: with one in ten \
        thousand, Reno's window is about 120 segments however much the path could carry. No setting of the host \
        helps. Check the cabling: dirty or bent fibres, transceivers, bad contacts, forward error correction modes \
        that differ between the two ends.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host_with(vec![link_with(50, &[])]),
    silent: || host_with(vec![link_with(0, &[("fec_corrected_blocks", 500)])]),
};

fn link_with(damaged: u64, counters: &[(&str, u64)]) -> NetworkLink {
    let mut link = link_that_received(1_000_000);
    if let Some(of) = &mut link.counters {
        of.receive_errors.checksum = PacketCount::new(damaged);
    }
    let counters = counters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    NetworkLink { driver_counters: Fact::Known(counters), ..link }
}

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    working(host).filter_map(check_link).collect()
}

fn check_link(link: &NetworkLink) -> Option<AuditFinding> {
    let faults = link.counters?.receive_errors;
    let frames = faults.checksum.get().saturating_add(faults.frame.get());
    let (uncorrected, of_driver) = driver_counters(link, |name| name.contains("fec") && name.contains("uncorr"));
    let damaged = frames.saturating_add(uncorrected);
    (damaged > 0).then_some(())?;
    let whole = received(link).map_or(0, PacketCount::get).saturating_add(damaged);
    let severity = if exceeds(damaged, whole, MIN_CRITICAL_RATIO) {
        FindingSeverity::Critical
    } else if exceeds(damaged, whole, MIN_WARNING_RATIO) {
        FindingSeverity::Warning
    } else {
        FindingSeverity::Note
    };
    let name = &link.name;
    let mut evidence = vec![format!("{name}: {} wrong checksums, {} misaligned", faults.checksum, faults.frame)];
    evidence.extend(of_driver);
    evidence.extend(link.error_correction.known().map(|mode| format!("{name}: forward error correction: {mode}")));
    let draft = FindingDraft {
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
    Some(draft.finding())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severity_follows_the_error_ratio() {
        let severity =
            |damaged, counters: &[(&str, u64)]| check(&host_with(vec![link_with(damaged, counters)]))[0].severity;
        assert_eq!(severity(500, &[]), FindingSeverity::Critical);
        assert_eq!(severity(5, &[]), FindingSeverity::Warning);
        assert_eq!(severity(0, &[("rx_fec_uncorrectable_blocks", 3)]), FindingSeverity::Warning);
        let mut busy = link_with(5, &[]);
        if let Some(counters) = &mut busy.counters {
            counters.traffic.received.packets = PacketCount::new(1_000_000_000);
        }
        assert_eq!(check(&host_with(vec![busy]))[0].severity, FindingSeverity::Note);
    }
}
