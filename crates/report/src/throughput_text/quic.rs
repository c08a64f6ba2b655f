//! QUIC part of a test: handshakes in one line, two lines per transfer, then the comparison with TCP.

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

/// Renders a transfer in two lines: its rate and losses, then round trip, window, datagrams and processors.
fn quic_run(run: &QuicRun, style: TextStyle) -> String {
    let rate = run.rate().map_or_else(|| "no data".to_owned(), display::rate);
    let label = style.run_label(run.direction, StreamCount::new(run.streams));
    let rate = style.paint(TextColour::Bold, &format!("{rate:>11}"));
    let mut text = String::new();
    push_line(&mut text, &format!("  {label:<17}  {rate}   {}", losses(run)));
    push_wrapped(&mut text, &details(run, style).join(", "), "    ", style, Some(TextColour::Dim));
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

/// Renders the comparison with TCP. A failure is an error of the command.
fn conclusion(quic: &QuicResult, style: TextStyle) -> String {
    let mut text = String::new();
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
