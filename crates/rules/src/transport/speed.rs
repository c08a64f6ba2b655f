//! Verdicts from the rates alone.

use linerate_model::quic::TransportCause;

use super::{MIN_SAME, TransportObservation, TransportRule, VerdictText};

pub(super) const SLOWER: TransportRule = TransportRule { cause: TransportCause::SlowerUnexplained, check: slower };
pub(super) const FASTER: TransportRule = TransportRule { cause: TransportCause::QuicFaster, check: faster };
pub(super) const SAME: TransportRule = TransportRule { cause: TransportCause::Same, check: same };

fn slower(observation: &TransportObservation) -> Option<VerdictText> {
    let rates = observation.rates().filter(|_| observation.is_slower())?;
    Some(match controls(observation) {
        Some((tcp, quic)) => (
            format!(
                "{rates}, with {quic} instead of {tcp} as congestion control; nothing else that was observed differs"
            ),
            Some(format!("repeat with the same one for both (-C {quic}), and longer (-t 30s)")),
        ),
        None => (
            format!("{rates}; no loss, buffer or processor explains it"),
            Some("repeat with a longer test (-t 30s): on a long path the start takes its time".to_owned()),
        ),
    })
}

fn faster(observation: &TransportObservation) -> Option<VerdictText> {
    let rates = observation.rates()?;
    observation.ratio().filter(|ratio| *ratio > 1.0 / MIN_SAME)?;
    let control = controls(observation)
        .map_or_else(String::new, |(tcp, quic)| format!(", with {quic} instead of {tcp} as congestion control"));
    Some((format!("{rates}{control}"), Some("see what limits TCP: linerate diagnose".to_owned())))
}

fn same(observation: &TransportObservation) -> Option<VerdictText> {
    observation.ratio()?;
    Some((format!("{}: the same within 10 %", observation.rates()?), None))
}

/// Congestion controls of TCP and QUIC where they differ.
fn controls(observation: &TransportObservation) -> Option<(&str, &'static str)> {
    let tcp = observation.tcp.as_ref()?.congestion_control.as_deref()?;
    let quic = observation.quic.as_ref()?.sender().congestion_control?.name();
    (tcp != quic).then_some((tcp, quic))
}
