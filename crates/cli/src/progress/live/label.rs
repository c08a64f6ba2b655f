//! Texts of the live picture.

use std::time::Duration;

use linerate_model::limit::{LimitShares, TransferLimit};
use linerate_units::{BitRate, Ratio, display};

use super::draw::Look;
use super::state::{LiveFigures, LivePhase, LivePicture};

/// `text` in at most `width` characters.
pub(super) fn cut(text: &str, width: usize, look: Look) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let sign = look.pick("…", "~");
    text.chars().take(width.saturating_sub(1)).chain(sign.chars()).take(width).collect()
}

/// Time; without Unicode `us` are microseconds.
pub(super) fn time(time: Duration, look: Look) -> String {
    let text = display::duration(time);
    if look.unicode { text } else { text.replace('µ', "u") }
}

/// Rate in bit/s.
pub(super) fn rate(bits_per_second: f64) -> String {
    display::rate(BitRate::from_bits_per_second(bits_per_second))
}

/// Rate at an axis: `100M`.
pub(super) fn axis_rate(bits_per_second: f64) -> String {
    short(bits_per_second, &[(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")])
}

/// Time at an axis: `20ms`.
pub(super) fn axis_time(seconds: f64) -> String {
    short(seconds, &[(1.0, "s"), (1e-3, "ms"), (1e-6, "us")])
}

/// Value with at most two significant digits, and its unit.
fn short(value: f64, units: &[(f64, &str)]) -> String {
    if value <= 0.0 {
        return "0".to_owned();
    }
    let fallback = units.last().copied().unwrap_or((1.0, ""));
    let (unit, name) = units.iter().copied().find(|(unit, _)| value >= *unit * 0.999).unwrap_or(fallback);
    let value = value / unit;
    let digits = usize::from(value < 9.95 && (value - value.round()).abs() > 0.01);
    format!("{value:.digits$}{name}")
}

/// The next larger of 1, 2, 5 and their multiples by ten.
pub(super) fn round_up(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps.into_iter().map(|step| step * decade).find(|step| *step >= value * 0.999).unwrap_or(value)
}

/// `1:05`.
pub(super) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

/// Number of `all` characters that are `share` of them.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a width is 0 to 65535")]
pub(super) fn part_of(all: usize, share: f64) -> usize {
    let width = f64::from(u16::try_from(all).unwrap_or(u16::MAX));
    ((width * share.clamp(0.0, 1.0)).round() as usize).min(all)
}

/// Completed share of a phase, and its remaining time.
pub(super) fn phase_progress(phase: &LivePhase, now: Duration) -> (Option<f64>, String) {
    let Some((begun, end)) = phase.begun.zip(phase.expected_end) else {
        return (None, phase.awaited.clone().unwrap_or_else(|| "until the load is stable".to_owned()));
    };
    let left = end.saturating_sub(now);
    let text = if left.is_zero() { "ending".to_owned() } else { format!("{} s left", left.as_secs_f64().ceil()) };
    let total = end.saturating_sub(begun).as_secs_f64();
    let done = now.saturating_sub(begun).as_secs_f64();
    (Some(if total > 0.0 { (done / total).min(1.0) } else { 1.0 }), text)
}

/// Name and remaining time of the running phase.
pub(super) fn present_phase(picture: &LivePicture) -> String {
    match picture.current.and_then(|index| picture.phases.get(index)) {
        Some(phase) => format!("{}  {}", phase.name, phase_progress(phase, picture.now).1),
        None => "connecting".to_owned(),
    }
}

/// Rates of both directions.
pub(super) fn rates(figures: &LiveFigures, look: Look) -> Vec<String> {
    let text = |value: Option<f64>, name: &str| value.map(|value| format!("{name} {}", rate(value)));
    let both = [text(figures.down, look.pick("↓", "down")), text(figures.up, look.pick("↑", "up"))];
    both.into_iter().flatten().collect()
}

/// Figures of a phase in one line.
pub(super) fn figures(figures: &LiveFigures, look: Look) -> String {
    let mut parts = rates(figures, look);
    parts.extend(figures.rtt.map(|rtt| format!("RTT {}", time(rtt, look))));
    parts.join("  ")
}

/// Present limit, as far as this host knows it while it measures.
pub(super) fn limit(picture: &LivePicture, look: Look) -> Option<String> {
    let figures = picture.figures();
    let queue = picture.queueing().map(|added| format!("its queue adds {}", time(added, look)));
    match (&figures.limits, queue) {
        (Some(limits), queue) => Some(known_limit(limits, figures.retransmits, queue)),
        (None, Some(queue)) => Some(format!("the path: {queue}")),
        (None, None) if figures.down.is_some() && figures.up.is_none() => {
            Some("not known yet: the remote host sends".to_owned())
        }
        (None, None) => None,
    }
}

fn known_limit(limits: &LimitShares, retransmits: Option<u64>, queue: Option<String>) -> String {
    let percent = |share: Ratio| format!("{:.0} %", share.percent());
    if limits.is_sender_cpu_bound() {
        return "the processor of the sender".to_owned();
    }
    if limits.is_receiver_cpu_bound() {
        return "the processor of the receiver".to_owned();
    }
    match limits.verdict() {
        TransferLimit::Receiver => format!("the receive window, {} of the time", percent(limits.receive_window)),
        TransferLimit::Sender => format!("the send buffer, {} of the time", percent(limits.send_buffer)),
        TransferLimit::Application => format!("the application, idle {} of the time", percent(limits.application)),
        TransferLimit::Network => {
            let again = retransmits.filter(|count| *count > 0).map(|count| format!("{count} retransmits"));
            let details: Vec<String> = queue.into_iter().chain(again).collect();
            let separator = if details.is_empty() { "" } else { ": " };
            format!("the path, {} of the time{separator}{}", percent(limits.network), details.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_at_an_axis_are_short_and_end_at_a_round_number() {
        let shown: Vec<String> = [0.0, 1e3, 5e7, 1.5e8, 1e9, 2.5e10].into_iter().map(axis_rate).collect();
        assert_eq!(shown, ["0", "1k", "50M", "150M", "1G", "25G"]);
        let shown: Vec<String> = [0.0, 2e-5, 1.5e-3, 0.02, 0.15, 2.0].into_iter().map(axis_time).collect();
        assert_eq!(shown, ["0", "20us", "1.5ms", "20ms", "150ms", "2s"]);
        for (value, top) in [(94.1e6, 1e8), (1e8, 1e8), (1.01e8, 1.2e8), (0.031, 0.04), (7e-5, 8e-5)] {
            assert!((round_up(value) / top - 1.0).abs() < 1e-9, "{value}: {}", round_up(value));
        }
    }

    #[test]
    fn a_limit_has_its_share_and_its_cause() {
        let of = |text: &str, limits: LimitShares, retransmits, queue: Option<&str>| {
            assert_eq!(known_limit(&limits, retransmits, queue.map(str::to_owned)), text);
        };
        let share = |part: f64| Ratio::of(part, 1.0).expect("finite");
        let none = LimitShares::default;
        let network = || LimitShares { network: share(0.97), ..none() };
        of("the path, 97 % of the time", network(), Some(0), None);
        let queue = Some("its queue adds 12 ms");
        of("the path, 97 % of the time: its queue adds 12 ms, 3 retransmits", network(), Some(3), queue);
        of("the receive window, 76 % of the time", LimitShares { receive_window: share(0.76), ..none() }, None, queue);
        of("the processor of the sender", LimitShares { sender_cpu: Some(share(0.99)), ..network() }, None, None);
    }
}
