//! A lid on the window, for changes that fill a path whose own buffer is deep.
//!
//! What lets a transfer fill a path for the first time also lets its queue stand for the first time. A receive buffer that
//! is just large enough for the path bounds that queue, at the price that longer paths from the same host are bounded, too.

use core::time::Duration;

use linerate_model::change::{Group, TakesEffect, Target};
use linerate_model::formulas::bandwidth_delay_product;
use linerate_units::{ByteCount, Ratio, StreamCount, display};

use super::buffers::Buffer;
use super::inputs::{Inputs, three};
use super::proposal::{Answer, Proposed};
use super::support::{Setting, exact, rounded_up};

const ID: &str = "window-lid";

/// What is not smaller than this share is no other thing to try.
const HARDLY: f64 = 0.97;

/// The change that keeps the window at what the path needs, together with what else is tried; in the group of that. `None`
/// where the path is not known, more than one connection shares it, or the buffer is no larger anyway.
#[must_use]
pub fn lid(inputs: &Inputs, group: Group) -> Option<Proposed> {
    let transfers = inputs.transfers();
    let transfer = transfers.first()?;
    let is_one = inputs.flows.is_none_or(|flows| flows == StreamCount::new(1));
    inputs.diagnosis.as_ref().filter(|_| is_one && transfers.len() == 1)?;
    let end = Buffer::Receive.end(transfer);
    let [least, first, now] = inputs.host(end)?.three(Buffer::Receive.key())?;
    let need = Buffer::Receive.need(inputs, transfer)?;
    let target = Buffer::Receive.target(inputs, transfer)?.get();
    if target >= now || target < first {
        return None;
    }
    let change = Setting {
        rule: ID,
        end,
        key: Buffer::Receive.key(),
        to: format!("{least} {first} {target}"),
        group,
        takes_effect: TakesEffect::NewConnections,
        text: "Without a lid the window fills the path's own buffer as well, and the round trip grows with it."
            .to_owned(),
        arithmetic: Some(need.arithmetic),
        evidence: inputs
            .path
            .round_trip
            .map(|time| format!("smallest round trip: {}", display::duration(time)))
            .into_iter()
            .collect(),
        risk: "longer paths to the same host need a larger one: take the lid off where there are any",
    };
    match change.answer(inputs).pop()? {
        Answer::Change(proposed) => Some(*proposed),
        Answer::Refusal(_) => None,
    }
}

/// The same changes with the receive buffer as much smaller as the round trip under load was too long: what a buffer of a
/// size makes of a path is known for sure only once it was tried. `None` where none of them is that buffer, or it would be
/// hardly smaller.
#[must_use]
pub fn tightened(inputs: &Inputs, changes: &[Proposed], base: Duration, under_load: Duration) -> Option<Vec<Proposed>> {
    let transfers = inputs.transfers();
    let transfer = transfers.first()?;
    let end = Buffer::Receive.end(transfer);
    let is_lid = |one: &Proposed| {
        one.end == end && one.change.target == Target::Setting { key: Buffer::Receive.key().to_owned() }
    };
    let index = changes.iter().position(is_lid)?;
    let product = bandwidth_delay_product(transfer.way.capacity?, inputs.path.round_trip?);
    let room = Buffer::Receive.room(inputs, product);
    let factor =
        Ratio::of(base.as_secs_f64() * room, under_load.as_secs_f64()).filter(|factor| factor.get() < HARDLY)?;
    let mut changes = changes.to_vec();
    let change = &mut changes[index].change;
    let [least, first, tried] = three(&change.to)?;
    let size = rounded_up(ByteCount::from_f64(ByteCount::new(tried).as_f64() * factor.get()));
    if size.get() < first {
        return None;
    }
    change.to = format!("{least} {first} {}", size.get());
    change.reason.arithmetic = Some(format!(
        "{} x {room:.2} x {} / {} = {}",
        display::size(ByteCount::new(tried)),
        display::duration(base),
        display::duration(under_load),
        exact(size)
    ));
    Some(changes)
}

#[cfg(test)]
mod tests {
    use linerate_model::diagnosis::Cause;

    use super::super::End;
    use super::super::cases::{diagnosed, host, rhel};
    use super::*;

    fn inputs(most: &str) -> Inputs {
        let settings = [("net.ipv4.tcp_rmem", most), ("net.ipv4.tcp_wmem", "4096 16384 4194304")];
        let mut inputs = diagnosed(rhel(host(&settings)), Cause::SackOff);
        inputs.data = super::super::Data::ToFar;
        inputs.far = Some(host(&settings));
        inputs
    }

    #[test]
    fn a_window_that_is_larger_than_the_path_gets_a_lid_at_what_the_path_needs() {
        let inputs = inputs("4096 131072 2000000000");
        let found = lid(&inputs, Group::Features).expect("a lid");
        assert_eq!((found.end, found.change.group), (End::Far, Group::Features));
        let size: u64 = found.change.to.split(' ').next_back().and_then(|word| word.parse().ok()).expect("a size");
        // A window of one to one and a quarter products of 146.25 MB at 0.62 of the buffer.
        assert!((235_000_000..=320_000_000).contains(&size), "{size}");
    }

    #[test]
    fn a_lid_that_was_too_wide_is_made_as_much_narrower() {
        let mut inputs = inputs("4096 131072 2000000000");
        // As a measurement has it: then 1.12 products are enough.
        inputs.seen.window_share = Ratio::new(0.62);
        let changes = [lid(&inputs, Group::Features).expect("a lid")];
        let size = |changes: &[Proposed]| three(&changes[0].change.to).expect("three numbers")[2];
        let (base, long) = (Duration::from_millis(117), Duration::from_millis(157));
        let narrower = tightened(&inputs, &changes, base, long).expect("another");
        let expected = ByteCount::new(size(&changes)).as_f64() * 1.12 * 117.0 / 157.0;
        let got = ByteCount::new(size(&narrower)).as_f64();
        assert!(got >= expected && got < expected * 1.04, "{got} for {expected}");
        assert_eq!(tightened(&inputs, &changes, base, Duration::from_millis(131)), None, "hardly too long");
        assert_eq!(tightened(&inputs, &[], base, long), None, "nothing to narrow");
    }

    #[test]
    fn a_window_that_is_small_enough_gets_none() {
        assert_eq!(lid(&inputs("4096 131072 6291456"), Group::Features), None);
        assert_eq!(lid(&Inputs { diagnosis: None, ..inputs("4096 131072 2000000000") }, Group::Features), None);
    }
}
