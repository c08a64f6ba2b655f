//! Cap on the receive window, for changes that fill a path with a deep buffer.
//!
//! A change that lets a transfer fill a path also fills the path's queue. A window just large enough for the path bounds
//! that queue. It is set on the route to the other host: `tcp_rmem` would bound longer paths from the same host, too, and
//! is never lowered.

use core::time::Duration;

use linerate_analysis::formulas::{bandwidth_delay_product, usable_window};
use linerate_model::change::{ChangeGroup, ChangeReason, ChangeTarget, EffectTiming, HostChange};
use linerate_units::{ByteCount, Ratio, StreamCount, display};

use super::buffers::{SocketBuffer, window_share};
use super::inputs::{RouteText, TuningInputs, parse_triple};
use super::proposal::ProposedHostChange;
use super::support::{exact_size, rounded_up};

const ID: &str = "window-cap";

/// Largest size ratio of a tightened cap: a smaller reduction is not worth a trial.
const MAX_TIGHTENING_RATIO: f64 = 0.97;

/// Attribute of a route that caps the window advertised to its destination.
const WINDOW: &str = "window";

/// Returns the change that caps the window at the path's need, on the route to the other host, in the group of the
/// change it is tried with. `None` where path or route is unknown, several connections share it, or the buffer is small
/// enough.
#[must_use]
pub fn lid(inputs: &TuningInputs, group: ChangeGroup) -> Option<ProposedHostChange> {
    let transfers = inputs.transfers();
    let transfer = transfers.first()?;
    let is_one = inputs.flows.is_none_or(|flows| flows == StreamCount::new(1));
    inputs.diagnosis.as_ref().filter(|_| is_one && transfers.len() == 1)?;
    let end = SocketBuffer::Receive.end(transfer);
    let host = inputs.host(end)?;
    let [_, first, now] = host.triple(SocketBuffer::Receive.key())?;
    let need = SocketBuffer::Receive.need(inputs, transfer)?;
    let target = SocketBuffer::Receive.recommended_size(inputs, transfer)?.get();
    if target >= now || target < first {
        return None;
    }
    let route = host.route.as_ref()?;
    let peer = route.peer.clone()?;
    let share = window_share(inputs, transfer);
    let window = usable_window(ByteCount::new(target), share);
    let from = is_route_of(route, &peer).then(|| route.attributes.clone());
    let change = HostChange {
        target: ChangeTarget::Route { destination: peer },
        from,
        to: with_window(&route.attributes, window),
        group,
        takes_effect: EffectTiming::NewConnections,
        reason: ChangeReason {
            rule: ID.to_owned(),
            text:
                "Without a cap the receive window also fills the path's own buffer, and the round trip grows with it."
                    .to_owned(),
            arithmetic: Some(format!("{}; {:.2} of it as window", need.arithmetic, share.get())),
            evidence: inputs
                .path
                .round_trip
                .map(|time| format!("smallest round trip: {}", display::duration(time)))
                .into_iter()
                .collect(),
            risk: "a host route: it does not follow when the route to that host changes".to_owned(),
        },
    };
    Some(ProposedHostChange { end, change, alternatives: Vec::new() })
}

/// True when the route is of this host alone.
fn is_route_of(route: &RouteText, peer: &str) -> bool {
    route.destination.split('/').next() == Some(peer) && !route.destination.contains('/')
}

/// The attributes with this window in place of any other.
fn with_window(attributes: &str, window: ByteCount) -> String {
    let tokens: Vec<&str> = attributes.split_ascii_whitespace().collect();
    let place = tokens.iter().position(|token| *token == WINDOW);
    let is_kept = |index: usize| place.is_none_or(|place| index != place && index != place + 1);
    let kept = tokens.iter().enumerate().filter(|(index, _)| is_kept(*index)).map(|(_, token)| *token);
    let window = window.get().to_string();
    kept.chain([WINDOW, &window]).collect::<Vec<_>>().join(" ")
}

fn window_of(attributes: &str) -> Option<u64> {
    attributes.split_ascii_whitespace().skip_while(|token| *token != WINDOW).nth(1)?.parse().ok()
}

/// Returns the same changes with the window, or the receive buffer, reduced by the excess of the round trip under load, as
/// the effect of a size is only known after a trial. `None` where no change is one of these, the reduction would be
/// negligible, or the buffer would go below its present size.
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
    let buffer = ChangeTarget::Setting { key: SocketBuffer::Receive.key().to_owned() };
    let is_cap =
        |one: &ProposedHostChange| one.end == end && (one.change.target == buffer || one.change.reason.rule == ID);
    let index = changes.iter().rposition(is_cap)?;
    let product = bandwidth_delay_product(transfer.way.capacity?, inputs.path.round_trip?);
    let multiple = SocketBuffer::Receive.room(inputs, product);
    let factor = Ratio::of(base.as_secs_f64() * multiple, under_load.as_secs_f64())
        .filter(|factor| factor.get() < MAX_TIGHTENING_RATIO)?;
    let mut changes = changes.to_vec();
    let change = &mut changes[index].change;
    let tried = window_of(&change.to).or_else(|| Some(parse_triple(&change.to)?[2]))?;
    let size = rounded_up(ByteCount::from_f64(ByteCount::new(tried).as_f64() * factor.get()));
    change.to = match change.target {
        ChangeTarget::Route { .. } => with_window(&change.to, size),
        _ => smaller_buffer(change, size)?,
    };
    change.reason.arithmetic = Some(format!(
        "{} x {multiple:.2} x {} / {} = {}",
        display::size(ByteCount::new(tried)),
        display::duration(base),
        display::duration(under_load),
        exact_size(size)
    ));
    Some(changes)
}

/// The buffer's three numbers with this size; `None` where that is no more than the present one.
fn smaller_buffer(change: &HostChange, size: ByteCount) -> Option<String> {
    let [least, first, _] = parse_triple(&change.to)?;
    let present = change.from.as_deref().and_then(parse_triple).map_or(first, |present| present[2]);
    (size.get() > present).then(|| format!("{least} {first} {}", size.get()))
}

#[cfg(test)]
mod tests {
    use linerate_model::diagnosis::Cause;

    use super::super::test_cases::{diagnosed, host, rhel};
    use super::super::{HostEnd, TuningHost};
    use super::*;

    fn inputs(most: &str) -> TuningInputs {
        let settings = [("net.ipv4.tcp_rmem", most), ("net.ipv4.tcp_wmem", "4096 16384 4194304")];
        let mut inputs = diagnosed(rhel(host(&settings)), Cause::SackOff);
        inputs.data = Some(linerate_model::direction::Direction::Up);
        let route = RouteText {
            destination: "default".into(),
            attributes: "via 192.0.2.1 dev eth0 window 70000 mtu 1400".into(),
            peer: Some("198.51.100.7".into()),
        };
        inputs.far = Some(TuningHost { route: Some(route), ..host(&settings) });
        inputs
    }

    #[test]
    fn a_window_larger_than_the_path_gets_a_cap_at_the_paths_need() {
        let inputs = inputs("4096 131072 2000000000");
        let found = lid(&inputs, ChangeGroup::Features).expect("a cap");
        assert_eq!((found.end, found.change.group), (HostEnd::Far, ChangeGroup::Features));
        assert_eq!(found.change.target, ChangeTarget::Route { destination: "198.51.100.7".into() });
        assert!(found.change.to.starts_with("via 192.0.2.1 dev eth0 mtu 1400 window "), "{}", found.change.to);
        assert_eq!((found.change.from.as_deref(), window_of("dev eth0 mtu 1400")), (None, None));
        let window = window_of(&found.change.to).expect("a window");
        // One to one and a quarter products of 146.25 MB.
        assert!((146_000_000..=200_000_000).contains(&window), "{window}");
        // Without its own route nothing is capped: the setting is of all paths.
        let mut unknown = inputs;
        unknown.far.as_mut().expect("known").route = None;
        assert_eq!(lid(&unknown, ChangeGroup::Features), None);
    }

    #[test]
    fn a_cap_that_was_too_high_is_reduced_in_proportion() {
        let mut inputs = inputs("4096 131072 2000000000");
        // As a measurement has it: then 1.12 products are enough.
        inputs.seen.window_share = Ratio::new(0.62);
        let changes = [lid(&inputs, ChangeGroup::Features).expect("a cap")];
        let size = |changes: &[ProposedHostChange]| window_of(&changes[0].change.to).expect("a window");
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
