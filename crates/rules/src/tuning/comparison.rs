//! What a well-known guide would set for the same path, with its own arithmetic.

use linerate_model::change::{Change, Group, Reason, TakesEffect, Target};
use linerate_model::formulas::{bandwidth_delay_product, usable_window, window_rate};
use linerate_units::{BitRate, ByteCount, display};

use super::buffers::window_share;
use super::inputs::Inputs;
use super::proposal::Proposed;

/// The settings that it names, with the first two numbers that stand there.
const SETTINGS: [(&str, &str); 2] = [("net.ipv4.tcp_rmem", "4096 262144"), ("net.ipv4.tcp_wmem", "4096 24576")];

/// A recommendation by somebody else.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Whose.
    pub source: &'static str,
    /// What it would change, at the ends that are known.
    pub changes: Vec<Proposed>,
    /// How its value comes about, and what it should be.
    pub arithmetic: String,
    /// The goodput that its window allows.
    pub predicted: Option<BitRate>,
}

/// The RHEL guide to TCP tuning for high throughput (section 31.5.4) writes `(10 Gbit/s / 8) * 117 = 10683760 bytes` for the
/// bandwidth-delay product: that is the rate divided by the milliseconds. It sets both limits to twice that. `None` where
/// the path is not known.
#[must_use]
pub fn guide(inputs: &Inputs) -> Option<Comparison> {
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
    let changes = inputs.ends().flat_map(|(end, host)| {
        let set = |(key, smaller): (&str, &str)| {
            change(key, host.settings.get(key).cloned(), format!("{smaller} {}", size.get()))
        };
        SETTINGS.map(set).map(|change| Proposed { end, change, alternatives: Vec::new() })
    });
    Some(Comparison {
        source: "RHEL guide, TCP tuning for high throughput",
        changes: changes.collect(),
        arithmetic: format!(
            "2 x ({} / 8) / {milliseconds:.0} = {} B: a division, where {} x {} / 8 = {} B are under way",
            display::rate(capacity),
            size.get(),
            display::rate(capacity),
            display::duration(round_trip),
            product.get()
        ),
        predicted: window_rate(window, round_trip).map(|rate| rate.min(capacity)),
    })
}

fn change(key: &str, from: Option<String>, to: String) -> Change {
    Change {
        target: Target::Setting { key: key.to_owned() },
        from,
        to,
        group: Group::Buffers,
        takes_effect: TakesEffect::NewConnections,
        reason: Reason { text: "What a well-known guide would set.".to_owned(), ..Reason::default() },
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::super::{End, Goal, Host};
    use super::*;

    #[test]
    fn the_guides_own_numbers_come_out_for_its_own_path() {
        let inputs = Inputs::given(
            Goal::WanBulk,
            Host::default(),
            Some(Host::default()),
            BitRate::from_bits_per_second(10e9),
            Duration::from_millis(117),
        );
        let found = guide(&inputs).expect("a path");
        let to: Vec<&str> = found.changes.iter().map(|one| one.change.to.as_str()).collect();
        assert_eq!(to, ["4096 262144 21367520", "4096 24576 21367520", "4096 262144 21367520", "4096 24576 21367520"]);
        assert!(found.changes.iter().any(|one| one.end == End::Far));
        assert!(found.arithmetic.contains("146250000 B"), "{}", found.arithmetic);
        // 0.62 of the buffer per round trip.
        let predicted = found.predicted.expect("a rate").bits_per_second();
        assert!((906e6 - predicted).abs() < 1e6, "{predicted}");
    }

    #[test]
    fn nothing_is_said_of_an_unknown_path() {
        assert_eq!(guide(&Inputs::default()), None);
    }
}
