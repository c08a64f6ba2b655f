//! QUIC part of a test: handshakes in one line, two lines per transfer over one stream and one per other transfer, then the
//! comparison with TCP.

use linerate_model::quic::{QuicHandshake, QuicHandshakeKind, QuicResult, QuicRun};
use linerate_units::{ByteCount, Ratio, StreamCount, display};

use super::result::{push_line, push_wrapped};
use super::style::{TextColour, TextStyle};
use crate::escape;

/// Renders the whole part, below that of TCP.
#[must_use]
pub fn quic_text(quic: &QuicResult, style: TextStyle) -> String {
    let runs: String = quic.runs.iter().map(|run| quic_run(run, style)).collect();
    format!("{}{runs}{}", heading(quic, style), conclusion(quic, style))
}

/// Renders the line above the transfers: port and handshakes.
fn heading(quic: &QuicResult, style: TextStyle) -> String {
    let times = [QuicHandshakeKind::Full, QuicHandshakeKind::Resumed, QuicHandshakeKind::ZeroRtt];
    let times: Vec<String> = times.into_iter().filter_map(|kind| handshake_text(quic, kind, style)).collect();
    let separator = style.pick("·", "-");
    let times = if times.is_empty() { String::new() } else { format!(" {separator} handshake {}", times.join(", ")) };
    let mut text = String::new();
    push_wrapped(
        &mut text,
        &format!("QUIC {separator} UDP port {}{times}", quic.port),
        "",
        style,
        Some(TextColour::Bold),
    );
    text
}

/// `full 18.9 ms`, by the median; for 0-RTT the time until the answer, which then takes one round trip.
fn handshake_text(quic: &QuicResult, kind: QuicHandshakeKind, style: TextStyle) -> Option<String> {
    let time = |handshake: &QuicHandshake| match kind {
        QuicHandshakeKind::ZeroRtt => handshake.answer,
        QuicHandshakeKind::Full | QuicHandshakeKind::Resumed => handshake.complete,
    };
    let mut times: Vec<_> = quic.handshakes.iter().filter(|one| one.kind == kind).map(time).collect();
    times.sort_unstable();
    let median = times.get(times.len() / 2)?;
    Some(format!("{} {}", kind.title(), style.duration(*median)))
}

/// Renders a transfer: its rate and losses, then round trip, window, datagrams and processors of one stream. More streams
/// have the same path and ends.
fn quic_run(run: &QuicRun, style: TextStyle) -> String {
    let rate = run.rate().map_or_else(|| "no data".to_owned(), display::rate);
    let label = style.run_label(run.direction, StreamCount::new(run.streams));
    let line = |rate: &str, losses: &str| format!("  {label:<17}  {rate}   {losses}");
    let (rate, losses) = (format!("{rate:>11}"), losses(run));
    let is_wide = style.width.fits(&line(&rate, &losses));
    let mut text = String::new();
    push_line(&mut text, &line(&style.paint(TextColour::Bold, &rate), if is_wide { &losses } else { "" }));
    let mut below = if is_wide { Vec::new() } else { vec![losses] };
    if run.streams == 1 {
        below.extend(details(run, style));
    }
    if !below.is_empty() {
        push_wrapped(&mut text, &below.join(", "), "    ", style, Some(TextColour::Dim));
    }
    text
}

fn losses(run: &QuicRun) -> String {
    let lost = match (run.sender().lost_packets, run.sender().loss()) {
        (Some(0), _) => "no packet lost".to_owned(),
        (Some(lost), Some(share)) => format!("{lost} packets lost ({:.2} %)", share.percent()),
        _ => "losses unknown".to_owned(),
    };
    match run.receiver().buffer_drops {
        Some(drops @ 1..) => format!("{lost}, {drops} at the buffer"),
        _ => lost,
    }
}

fn details(run: &QuicRun, style: TextStyle) -> Vec<String> {
    let (sender, receiver) = (run.sender(), run.receiver());
    let rtt = sender.rtt.map(|rtt| format!("RTT {}, p95 {}", style.duration(rtt.median), style.duration(rtt.p95)));
    let window = sender.congestion_window_bytes.zip(sender.congestion_control);
    let window =
        window.map(|(size, control)| format!("{} up to {}", control.name(), display::size(ByteCount::new(size))));
    let per_call = ByteCount::new(sender.sent_datagrams).as_f64() / ByteCount::new(sender.send_calls.max(1)).as_f64();
    let datagrams = format!("{} B datagrams, {per_call:.0} per call", sender.datagram_bytes);
    let marks = receiver.ecn.filter(|ecn| ecn.ce > 0).map(|ecn| format!("{} CE marks", ecn.ce));
    let cpu =
        |share: Option<Ratio>| share.map_or_else(|| "unknown".to_owned(), |share| format!("{:.0} %", share.percent()));
    let (here, there) = (cpu(run.client.processor_share()), cpu(run.server.processor_share()));
    [rtt, window, Some(datagrams), marks, Some(format!("CPU {here}, peer {there}"))].into_iter().flatten().collect()
}

/// Renders the early end, and the comparison with TCP. A failure is an error of the command.
fn conclusion(quic: &QuicResult, style: TextStyle) -> String {
    let mut text = String::new();
    if quic.interrupted {
        let part = if quic.runs.last().is_some_and(|run| run.interrupted) { "this transfer" } else { "this part" };
        let ending = format!("cut short: a signal ended {part}");
        push_wrapped(&mut text, &ending, "    ", style, Some(TextColour::Red));
    }
    for verdict in &quic.verdicts {
        push_wrapped(&mut text, &format!("{}.", style.ascii(&escape::line(&verdict.text))), "  ", style, None);
    }
    let mut remedies: Vec<&str> = quic.verdicts.iter().filter_map(|verdict| verdict.remedy.as_deref()).collect();
    remedies.dedup();
    for remedy in remedies {
        let remedy = format!("Remedy: {}.", style.ascii(&escape::line(remedy)));
        push_wrapped(&mut text, &remedy, "  ", style, Some(TextColour::Dim));
    }
    text
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use linerate_model::direction::Direction;
    use linerate_model::quic::{QuicCongestionControl, QuicEnd};
    use linerate_model::summary::DurationDistribution;
    use linerate_units::Port;

    use super::super::style::TerminalWidth;
    use super::*;

    fn run(streams: u64, lost: u64) -> QuicRun {
        let end = QuicEnd {
            bytes: 1_250_000_000,
            duration: Duration::from_secs(1),
            sent_packets: 100_000,
            lost_packets: Some(lost),
            congestion_window_bytes: Some(1_500_000),
            congestion_control: Some(QuicCongestionControl::Cubic),
            rtt: DurationDistribution::of(&mut [Duration::from_millis(20)]),
            buffer_drops: Some(lost / 2),
            datagram_bytes: 1452,
            sent_datagrams: 100,
            send_calls: 10,
            thread_cpu: Duration::from_millis(250),
            ..QuicEnd::default()
        };
        QuicRun {
            direction: Direction::Up,
            streams,
            started_at_unix_ns: 0,
            interrupted: false,
            client: end.clone(),
            server: end,
        }
    }

    fn text(runs: Vec<QuicRun>, width: u16) -> String {
        let port = Port::new(4433).expect("not zero");
        let interrupted = runs.iter().any(|run| run.interrupted);
        let quic = QuicResult {
            port,
            handshakes: vec![],
            runs,
            failure: None,
            unanswered: false,
            interrupted,
            verdicts: vec![],
        };
        quic_text(&quic, TextStyle { width: TerminalWidth::new(width), ..TextStyle::plain() })
    }

    #[test]
    fn losses_that_do_not_fit_follow_on_the_next_line() {
        let wide = text(vec![run(1, 1234)], 80);
        assert!(wide.contains("10.0 Gbit/s   1234 packets lost (1.23 %), 617 at the buffer\n"), "{wide}");
        let narrow = text(vec![run(1, 1234)], 60);
        assert!(narrow.contains("10.0 Gbit/s\n    1234 packets lost (1.23 %), 617 at the buffer,"), "{narrow}");
        assert!(narrow.lines().all(|line| line.chars().count() <= 60), "{narrow}");
    }

    #[test]
    fn what_was_measured_before_a_signal_is_shown_as_cut_short() {
        let shown = text(vec![run(1, 0), QuicRun { interrupted: true, ..run(4, 0) }], 80);
        assert!(
            shown.ends_with("10.0 Gbit/s   no packet lost\n    cut short: a signal ended this transfer\n"),
            "{shown}"
        );
        assert!(!text(vec![run(1, 0)], 80).contains("cut short"));
    }

    #[test]
    fn a_transfer_over_several_streams_has_one_line() {
        assert_eq!(text(vec![run(4, 0)], 80).lines().count(), 2);
        assert_eq!(text(vec![run(1, 0)], 80).lines().count(), 4);
    }
}
