//! Cap on the receive window, for changes that fill a path with a deep buffer.
//!
//! A change that lets a transfer fill a path also fills the path's queue. A receive buffer just large enough for the
//! path bounds that queue, but also bounds longer paths from the same host.

use core::time::Duration;

use linerate_analysis::formulas::bandwidth_delay_product;
use linerate_model::change::{ChangeGroup, ChangeTarget, EffectTiming};
use linerate_units::{ByteCount, Ratio, StreamCount, display};

use super::buffers::SocketBuffer;
use super::inputs::{TuningInputs, parse_triple};
use super::proposal::{ProposedHostChange, RuleAnswer};
use super::support::{SettingProposal, exact_size, rounded_up};

const ID: &str = "window-cap";

/// Largest size ratio of a tightened cap: a smaller reduction is not worth a trial.
const MAX_TIGHTENING_RATIO: f64 = 0.97;

/// Returns the change that caps the window at the path's need, in the group of the change it is tried with. `None`
/// where the path is unknown, several connections share it, or the buffer is small enough.
#[must_use]
pub fn lid(inputs: &TuningInputs, group: ChangeGroup) -> Option<ProposedHostChange> {
    let transfers = inputs.transfers();
    let transfer = transfers.first()?;
    let is_one = inputs.flows.is_none_or(|flows| flows == StreamCount::new(1));
    inputs.diagnosis.as_ref().filter(|_| is_one && transfers.len() == 1)?;
    let end = SocketBuffer::Receive.end(transfer);
    let [least, first, now] = inputs.host(end)?.triple(SocketBuffer::Receive.key())?;
    let need = SocketBuffer::Receive.need(inputs, transfer)?;
    let target = SocketBuffer::Receive.recommended_size(inputs, transfer)?.get();
    if target >= now || target < first {
        return None;
    }
    let change = SettingProposal {
        rule: ID,
        end,
        key: SocketBuffer::Receive.key(),
        to: format!("{least} {first} {target}"),
        group,
        takes_effect: EffectTiming::NewConnections,
        text: "Without a cap the receive window also fills the path's own buffer, and the round trip grows with it."
            .to_owned(),
        arithmetic: Some(need.arithmetic),
        evidence: inputs
            .path
            .round_trip
            .map(|time| format!("smallest round trip: {}", display::duration(time)))
            .into_iter()
            .collect(),
        risk: "longer paths to the same host need a larger window: raise the cap for them",
    };
    match change.answer(inputs).pop()? {
        RuleAnswer::Change(proposed) => Some(*proposed),
        RuleAnswer::Refusal(_) => None,
    }
}

/// Returns the same changes with the receive buffer reduced by the excess of the round trip under load, as the effect
/// of a buffer size is only known after a trial. `None` where no change is that buffer, or the reduction would be
/// negligible.
#[must_use]
pub fn tighten_cap(
    inputs: &TuningInputs,
    changes: &[ProposedHostChange],
    base: Duration,
    under_load: Duration,
) -> Option<Vec<ProposedHostChange>> {
    let transfers = inputs.transfers();
    let transfer = transfers.first()?;
    let end = SocketBuffer::Receive.end(transfer);
    let is_cap = |one: &ProposedHostChange| {
        one.end == end && one.change.target == ChangeTarget::Setting { key: SocketBuffer::Receive.key().to_owned() }
    };
    let index = changes.iter().position(is_cap)?;
    let product = bandwidth_delay_product(transfer.way.capacity?, inputs.path.round_trip?);
    let multiple = SocketBuffer::Receive.room(inputs, product);
    let factor = Ratio::of(base.as_secs_f64() * multiple, under_load.as_secs_f64())
        .filter(|factor| factor.get() < MAX_TIGHTENING_RATIO)?;
    let mut changes = changes.to_vec();
    let change = &mut changes[index].change;
    let [least, first, tried] = parse_triple(&change.to)?;
    let size = rounded_up(ByteCount::from_f64(ByteCount::new(tried).as_f64() * factor.get()));
    if size.get() < first {
        return None;
    }
    change.to = format!("{least} {first} {}", size.get());
    change.reason.arithmetic = Some(format!(
        "{} x {multiple:.2} x {} / {} = {}",
        display::size(ByteCount::new(tried)),
        display::duration(base),
        display::duration(under_load),
        exact_size(size)
    ));
    Some(changes)
}

#[cfg(test)]
mod tests {
    use linerate_model::diagnosis::Cause;

    use super::super::HostEnd;
    use super::super::test_cases::{diagnosed, host, rhel};
    use super::*;

    fn inputs(most: &str) -> TuningInputs {
        let settings = [("net.ipv4.tcp_rmem", most), ("net.ipv4.tcp_wmem", "4096 16384 4194304")];
        let mut inputs = diagnosed(rhel(host(&settings)), Cause::SackOff);
        inputs.data = Some(linerate_model::direction::Direction::Up);
        inputs.far = Some(host(&settings));
        inputs
    }

    #[test]
    fn a_window_larger_than_the_path_gets_a_cap_at_the_paths_need() {
        let inputs = inputs("4096 131072 2000000000");
        let found = lid(&inputs, ChangeGroup::Features).expect("a cap");
        assert_eq!((found.end, found.change.group), (HostEnd::Far, ChangeGroup::Features));
        let size: u64 = found.change.to.split(' ').next_back().and_then(|number| number.parse().ok()).expect("a size");
        // A window of one to one and a quarter products of 146.25 MB at 0.62 of the buffer.
        assert!((235_000_000..=320_000_000).contains(&size), "{size}");
    }

    #[test]
    fn a_cap_that_was_too_high_is_reduced_in_proportion() {
        let mut inputs = inputs("4096 131072 2000000000");
        // As a measurement has it: then 1.12 products are enough.
        inputs.seen.window_share = Ratio::new(0.62);
        let changes = [lid(&inputs, ChangeGroup::Features).expect("a cap")];
        let size = |changes: &[ProposedHostChange]| parse_triple(&changes[0].change.to).expect("three numbers")[2];
        let (base, long) = (Duration::from_millis(117), Duration::from_millis(157));
        let narrower = tighten_cap(&inputs, &changes, base, long).expect("another");
        let expected = ByteCount::new(size(&changes)).as_f64() * 1.12 * 117.0 / 157.0;
        let got = ByteCount::new(size(&narrower)).as_f64();
        assert!(got >= expected && got < expected * 1.04, "{got} for {expected}");
        assert_eq!(tighten_cap(&inputs, &changes, base, Duration::from_millis(131)), None, "hardly too long");
        assert_eq!(tighten_cap(&inputs, &[], base, long), None, "nothing to narrow");
    }

    #[test]
    fn a_window_that_is_small_enough_gets_no_cap() {
        assert_eq!(lid(&inputs("4096 131072 6291456"), ChangeGroup::Features), None);
        assert_eq!(
            lid(&TuningInputs { diagnosis: None, ..inputs("4096 131072 2000000000") }, ChangeGroup::Features),
            None
        );
    }
}
