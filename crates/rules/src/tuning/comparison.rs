//! Comparison with the values of a well-known guide for the same path.

use linerate_analysis::formulas::{bandwidth_delay_product, usable_window, window_rate};
use linerate_model::change::{ChangeGroup, ChangeReason, ChangeTarget, EffectTiming, HostChange};
use linerate_units::{BitRate, ByteCount, display};

use super::buffers::window_share;
use super::inputs::TuningInputs;
use super::proposal::ProposedHostChange;

/// Settings of the guide, with their first two numbers.
const GUIDE_SETTINGS: [(&str, &str); 2] = [("net.ipv4.tcp_rmem", "4096 262144"), ("net.ipv4.tcp_wmem", "4096 24576")];

/// Recommendation of a guide.
#[derive(Clone, Debug, PartialEq)]
pub struct GuideComparison {
    /// Name of the guide.
    pub source: &'static str,
    /// Recommended changes, at the known ends.
    pub changes: Vec<ProposedHostChange>,
    /// Computation of its value, and the correct one.
    pub arithmetic: String,
    /// Goodput that its window allows.
    pub predicted: Option<BitRate>,
}

/// Returns the values of the RHEL guide to TCP tuning for high throughput (section 31.5.4). It computes the
/// bandwidth-delay product as `(10 Gbit/s / 8) * 117 = 10683760 bytes`: the rate divided by the milliseconds. It sets
/// both limits to twice that. `None` where the path is unknown.
#[must_use]
pub fn rhel_guide(inputs: &TuningInputs) -> Option<GuideComparison> {
    let transfers = inputs.transfers();
    let transfer = transfers.first()?;
    let (capacity, round_trip) = (transfer.way.capacity?, inputs.path.round_trip?);
    let milliseconds = round_trip.as_secs_f64() * 1e3;
    if milliseconds <= 0.0 {
        return None;
    }
    let quotient = ByteCount::from_f64((capacity.bits_per_second() / 8.0 / milliseconds).floor());
    let size = ByteCount::new(quotient.get().saturating_mul(2).min(i32::MAX as u64));
    let product = bandwidth_delay_product(capacity, round_trip);
    let window = usable_window(size, window_share(inputs, transfer));
    let changes = inputs.known_hosts().flat_map(|(end, host)| {
        let set = |(key, smaller): (&str, &str)| {
            change(key, host.settings.get(key).cloned(), format!("{smaller} {}", size.get()))
        };
        GUIDE_SETTINGS.map(set).map(|change| ProposedHostChange { end, change, alternatives: Vec::new() })
    });
    Some(GuideComparison {
        source: "RHEL guide, TCP tuning for high throughput",
        changes: changes.collect(),
        arithmetic: format!(
            "2 x ({} / 8) / {milliseconds:.0} = {} B: a division, but {} x {} / 8 = {} B are in flight",
            display::rate(capacity),
            size.get(),
            display::rate(capacity),
            display::duration(round_trip),
            product.get()
        ),
        predicted: window_rate(window, round_trip).map(|rate| rate.min(capacity)),
    })
}

fn change(key: &str, from: Option<String>, to: String) -> HostChange {
    HostChange {
        target: ChangeTarget::Setting { key: key.to_owned() },
        from,
        to,
        group: ChangeGroup::Buffers,
        takes_effect: EffectTiming::NewConnections,
        reason: ChangeReason { text: "Value of a well-known guide.".to_owned(), ..ChangeReason::default() },
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::super::{HostEnd, TuningGoal, TuningHost};
    use super::*;

    #[test]
    fn the_guides_own_numbers_come_out_for_its_own_path() {
        let inputs = TuningInputs::from_rate_and_rtt(
            TuningGoal::WanBulk,
            TuningHost::default(),
            Some(TuningHost::default()),
            BitRate::from_bits_per_second(10e9),
            Duration::from_millis(117),
        );
        let found = rhel_guide(&inputs).expect("a path");
        let to: Vec<&str> = found.changes.iter().map(|one| one.change.to.as_str()).collect();
        assert_eq!(to, ["4096 262144 21367520", "4096 24576 21367520", "4096 262144 21367520", "4096 24576 21367520"]);
        assert!(found.changes.iter().any(|one| one.end == HostEnd::Far));
        assert!(found.arithmetic.contains("146250000 B"), "{}", found.arithmetic);
        // 0.62 of the buffer per round trip.
        let predicted = found.predicted.expect("a rate").bits_per_second();
        assert!((906e6 - predicted).abs() < 1e6, "{predicted}");
    }

    #[test]
    fn an_unknown_path_has_no_comparison() {
        assert_eq!(rhel_guide(&TuningInputs::default()), None);
    }
}
