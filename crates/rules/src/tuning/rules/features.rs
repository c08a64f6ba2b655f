//! Rules for TCP features that are switched off, as a table.

use linerate_model::change::ChangeGroup;
use linerate_model::diagnosis::Cause;

use super::super::inputs::DataFlow;
use super::super::support::{FeatureProposal, both_ends};
use super::super::test_cases::{host, rhel};
use super::super::{HostEnd, TuningRule};
use crate::same_text;

/// Rule for a feature that is on when its setting is not 0.
struct FeatureRule {
    id: &'static str,
    key: &'static str,
    group: ChangeGroup,
    explanation: &'static str,
    citation: &'static str,
    causes: &'static [Cause],
    text: &'static str,
    risk: &'static str,
    concerns: fn(&DataFlow<'_>, HostEnd) -> bool,
}

/// Returns the rule of a row: `rule::<{ row("timestamps") }>()`.
pub(super) const fn rule<const ROW: usize>() -> TuningRule {
    let row = &FEATURES[ROW];
    TuningRule {
        id: row.id,
        group: row.group,
        explanation: row.explanation,
        citation: row.citation,
        causes: row.causes,
        unmeasured: true,
        propose: |inputs| FEATURES[ROW].feature().restore(inputs, &[]),
        fires: || rhel(host(&[(FEATURES[ROW].key, "0")])),
        silent: || rhel(host(&[(FEATURES[ROW].key, "1")])),
    }
}

/// Returns the row of this identifier; the compiler rejects unknown ones, as it evaluates this.
pub(super) const fn row(id: &str) -> usize {
    let mut row = 0;
    while !same_text(FEATURES[row].id, id) {
        row += 1;
    }
    row
}

impl FeatureRule {
    const fn feature(&self) -> FeatureProposal {
        let Self { id, key, group, text, risk, concerns, .. } = *self;
        FeatureProposal { rule: id, key, group, text, risk, concerns }
    }
}

const FEATURES: &[FeatureRule] = &[
    FeatureRule {
        id: "window-scaling",
        key: "net.ipv4.tcp_window_scaling",
        group: ChangeGroup::Features,
        explanation: "The window field has 16 bits. Both ends must offer the option in the handshake, so it must be \
            on at both.",
        citation: "RFC 7323 section 2; lab:rhel-1g-1500us-no-window-scaling",
        causes: &[Cause::WindowScalingOff, Cause::ReceiveWindow],
        text: "Without the window scale option at most 65535 bytes are in flight.",
        risk: "none known: all systems of the last twenty years support it",
        concerns: both_ends,
    },
    FeatureRule {
        id: "selective-acknowledgements",
        key: "net.ipv4.tcp_sack",
        group: ChangeGroup::Features,
        explanation: "At 300 Mbit/s and 20 ms with a queue of half a bandwidth-delay product a transfer of eight \
            seconds gets 98 instead of 286 Mbit/s (docs/truth-table.md); on an emulator that lost more at once, 4.9 \
            to 8.0 instead of 212.",
        citation: "RFC 2018; lab:300m-20ms-half-buffer-no-sack",
        causes: &[Cause::SackOff],
        text: "Without selective acknowledgements only one lost segment is repaired per round trip.",
        risk: "none known: kernels without the errors of 2019 search their lists quickly",
        concerns: both_ends,
    },
    FeatureRule {
        id: "timestamps",
        key: "net.ipv4.tcp_timestamps",
        group: ChangeGroup::Features,
        explanation: "At 10 Gbit/s sequence numbers wrap every 3.4 s; timestamps protect against old segments \
            (PAWS). Switching them off has no measurable gain.",
        citation: "RFC 7323 sections 4 and 5; lab:300m-20ms-half-buffer-no-timestamps",
        causes: &[Cause::TimestampsOff],
        text: "Without timestamps old segments cannot be distinguished from new ones when sequence numbers wrap, and \
            there are fewer RTT samples.",
        risk: "12 bytes in each segment",
        concerns: both_ends,
    },
    FeatureRule {
        id: "receive-autotuning",
        key: "net.ipv4.tcp_moderate_rcvbuf",
        group: ChangeGroup::Buffers,
        explanation: "With tcp_moderate_rcvbuf = 0 each receive buffer keeps its initial size.",
        citation: "Documentation/networking/ip-sysctl.rst (tcp_moderate_rcvbuf)",
        causes: &[Cause::AutotuningOff, Cause::ReceiveWindow, Cause::SocketBuffer, Cause::WindowScalingOff],
        text: "Receive buffers keep the second number of tcp_rmem, whatever the path needs.",
        risk: "memory for each fast connection, within tcp_rmem",
        concerns: |transfer, end| transfer.receiver == end,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_listed() {
        for row in FEATURES {
            assert!(super::super::TUNING_RULES.iter().any(|rule| rule.id == row.id), "{} is not listed", row.id);
        }
    }
}
