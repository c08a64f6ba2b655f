//! The sender had nothing to send, or was never ahead of the kernel, while no buffer was full.

use linerate_model::diagnosis::{Cause, Confidence, Verdict};
use linerate_units::Ratio;

use super::super::Rule;
use super::super::evidence::Evidence;
use super::super::words::{With, percent, rate, size, verdict};

/// Share of the time without anything to send from which on the program pauses.
const IDLE: f64 = 0.1;

/// The sender had nothing to send, or was never ahead of the kernel, while no buffer was full.
pub(super) const RULE: Rule = Rule {
    id: "application",
    test: "The sender had nothing to send, or was never ahead of the kernel, while no buffer was full.",
    citation: "RFC 9438 section 5.8 (application-limited flows); tcpi_delivery_rate_app_limited; net/ipv4/tcp_output.c, tcp_chrono_set",
    check,
};

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    let shares = evidence.shares?;
    let idle = shares.application.get();
    let limited = evidence.application_limited.map_or(0.0, Ratio::get);
    let held = shares.send_buffer.get() >= 0.05 || shares.receive_window.get() >= 0.05;
    let ahead = !evidence.nothing_waits() || evidence.send_is_full() || !evidence.window_is_free();
    if held || evidence.is_full() || (idle < IDLE && ahead) {
        return None;
    }
    let asked = evidence.observation.asked.rate;
    let (cause, text) = if idle >= IDLE {
        (
            Cause::Application,
            format!("The sending program had nothing to send for {} of the time.", percent(shares.application)),
        )
    } else {
        (
            Cause::ApplicationPacing,
            format!(
                "The sending program writes at a steady {}, and the kernel sends all of it at once.",
                rate(evidence.steady)
            ),
        )
    };
    Some(
        verdict(cause, if limited >= 0.5 { Confidence::High } else { Confidence::Medium }, text)
            .figure("readings limited by the application", evidence.application_limited.map(percent))
            .figure("written and not sent", evidence.not_sent.map(size))
            .figure("rate that the program asked for", asked.map(rate))
            .figure("the path carries", evidence.capacity.map(rate))
            .advice("look at the program: its disk, its cipher, the size of its writes; `linerate baseline` tells what this host's disk and ciphers do"),
    )
}
