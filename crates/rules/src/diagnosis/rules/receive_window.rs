//! The sender waited for the receiver's window, or sends one window per round trip without losses, and the path is not full.

use linerate_model::diagnosis::{Cause, Confidence, Verdict};
use linerate_model::formulas::window_rate;
use linerate_units::ByteCount;

use super::super::Rule;
use super::super::evidence::Evidence;
use super::super::words::{With, percent, rate, size, third_number, time, verdict};
use crate::tuning::{Buffer, measured_need};

/// From this share of the busy time on, the window limits: it never reaches all of it, as the clock stops with each send.
const LIMITS: f64 = 0.2;

/// The sender waited for the receiver's window, or sends one window per round trip without losses, and the path is not full.
pub(super) const RULE: Rule = Rule {
    id: "receive-window",
    test: "The sender waited for the receiver's window, or sends one window per round trip without losses, and the path is not full.",
    citation: "tcpi_rwnd_limited (net/ipv4/tcp_output.c, tcp_chrono_start); RFC 9293 section 3.8.6; rate = window / round trip",
    check,
};

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    let shares = evidence.shares?;
    let waits = shares.receive_window.get() >= LIMITS;
    if evidence.is_full_despite(shares.receive_window) || !(waits || evidence.keeps_to_the_window()) {
        return None;
    }
    let most =
        evidence.receiver_setting("net.ipv4.tcp_rmem").and_then(|values| values.get(2).copied()).map(ByteCount::new);
    let needed = measured_need(evidence.observation, Buffer::Receive);
    let text = format!(
        "The receive window is the limit: {} per {} round trip allows {}.",
        evidence.window.map_or("a window".to_owned(), size),
        evidence.loaded.map_or_else(|| evidence.base.map_or("each".to_owned(), time), |(median, _)| time(median)),
        evidence
            .window
            .zip(evidence.loaded)
            .and_then(|(window, (median, _))| window_rate(window, median))
            .map_or("no more".to_owned(), rate),
    );
    let sure = if waits && evidence.keeps_to_the_window() { Confidence::High } else { Confidence::Medium };
    let verdict = verdict(Cause::ReceiveWindow, sure, text)
        .figure("time limited by the receiver's window", Some(percent(shares.receive_window)))
        .figure("receive buffer", evidence.receive_buffer.map(|(buffer, _)| size(buffer)))
        .figure("net.ipv4.tcp_rmem, largest", most.map(size))
        .figure("bandwidth-delay product", evidence.product().map(size))
        .advice(third_number("receiver", "net.ipv4.tcp_rmem", most, needed));
    if evidence.unread.is_some() {
        return Some(verdict);
    }
    Some(verdict.advice(
        "only the receiving host can tell a small buffer from a program that reads too slowly: `linerate watch` there",
    ))
}
