//! The `linerate tune` command that tries a remedy and measures its effect.

use linerate_analysis::formulas::SOCKET_BUFFER_FACTOR;
use linerate_model::diagnosis::{Cause, CauseLocation, DiagnosisVerdict, TuneScope};
use linerate_units::ByteCount;

use super::TransferEvidence;
use crate::tuning::{SocketBuffer, measured_buffer_need};

/// Change that `linerate tune` can try against a cause, and the ends at which it applies.
struct TuningTrial {
    what: &'static str,
    sender: bool,
    receiver: bool,
}

/// Adds to the first verdict, the only one that tuning acts on, the run of `linerate tune` that tries a remedy, also as its
/// last advice. Nothing where no host can remove the cause, and where the figures show that tuning would propose nothing.
pub(super) fn add(first: &mut DiagnosisVerdict, evidence: &TransferEvidence<'_>) {
    let Some(trial) = trial(first.cause, evidence) else { return };
    let from_far = evidence.observation.asked.from_far;
    let scope = TuneScope {
        far: if from_far { trial.sender } else { trial.receiver },
        work_around: first.cause.location() == CauseLocation::Network,
    };
    let command: String = [
        (true, "linerate tune HOST"),
        (scope.far, " --far ssh:USER@HOST"),
        (scope.work_around, " --work-around"),
        (from_far, " -- -R"),
    ]
    .into_iter()
    .filter_map(|(wanted, part)| wanted.then_some(part))
    .collect();
    let instead = if scope.work_around { ", which works around the cause instead of removing it," } else { "" };
    first.tune = Some(scope);
    first.advice.push(format!(
        "`{command}` tries {}{instead} and keeps it only if interleaved measurements confirm a gain",
        trial.what
    ));
}

fn trial(cause: Cause, evidence: &TransferEvidence<'_>) -> Option<TuningTrial> {
    let at_sender = |what| Some(TuningTrial { what, sender: true, receiver: false });
    let keeps_to_its_model =
        evidence.observation.congestion_control.as_deref().is_some_and(|name| name.starts_with("bbr"));
    match cause {
        Cause::ReceiveWindow if may_grow(SocketBuffer::Receive, evidence) => {
            Some(TuningTrial { what: "a larger receive buffer", sender: false, receiver: true })
        }
        Cause::SendBuffer if may_grow(SocketBuffer::Send, evidence) => at_sender("a larger send buffer"),
        Cause::KernelMemory => Some(TuningTrial { what: "a tcp_mem that fits", sender: true, receiver: true }),
        Cause::WindowScalingOff => Some(feature_trial("net.ipv4.tcp_window_scaling", evidence)),
        Cause::SackOff => Some(feature_trial("net.ipv4.tcp_sack", evidence)),
        Cause::TimestampsOff => Some(feature_trial("net.ipv4.tcp_timestamps", evidence)),
        Cause::AutotuningOff => Some(TuningTrial { what: "that", sender: false, receiver: true }),
        Cause::SocketBuffer => buffer_limit_trial(evidence),
        _ if keeps_to_its_model && cause != Cause::Policer && cause != Cause::BlackHole => None,
        Cause::CongestionControl => at_sender("another congestion control"),
        Cause::SlowStartExit | Cause::Loss | Cause::BurstyLoss => at_sender("BBR"),
        Cause::Policer => at_sender("pacing below its rate"),
        Cause::BlackHole => {
            let probes = evidence.sender_setting("net.ipv4.tcp_mtu_probing").is_some_and(|value| value != [0]);
            at_sender("MTU probing").filter(|_| !probes)
        }
        _ => None,
    }
}

/// True when the path may need more than the setting allows.
fn may_grow(buffer: SocketBuffer, evidence: &TransferEvidence<'_>) -> bool {
    let now = match buffer {
        SocketBuffer::Receive => evidence.receiver_setting("net.ipv4.tcp_rmem"),
        SocketBuffer::Send => evidence.sender_setting("net.ipv4.tcp_wmem"),
    };
    let needed = measured_buffer_need(evidence.observation, buffer);
    now.and_then(|now| now.get(2).copied()).zip(needed).is_none_or(|(now, needed)| now < needed.size.get())
}

/// Returns the trial of a default feature at the ends that have it off; at both where that is unknown.
fn feature_trial(key: &str, evidence: &TransferEvidence<'_>) -> TuningTrial {
    let is_off = |value: Option<Vec<u64>>| value.is_some_and(|value| value == [0]);
    let (sender, receiver) = (is_off(evidence.sender_setting(key)), is_off(evidence.receiver_setting(key)));
    let unknown = !sender && !receiver;
    TuningTrial { what: "that", sender: sender || unknown, receiver: receiver || unknown }
}

/// A program that requested a larger buffer than allowed gets twice the limit.
fn buffer_limit_trial(evidence: &TransferEvidence<'_>) -> Option<TuningTrial> {
    let is_twice = |buffer: Option<(ByteCount, bool)>, limit: Option<Vec<u64>>| {
        let limit = limit.and_then(|limit| limit.first().copied());
        buffer.zip(limit).is_some_and(|((size, _), limit)| size.get() == limit.saturating_mul(SOCKET_BUFFER_FACTOR))
    };
    let sender = is_twice(evidence.send_buffer, evidence.sender_setting("net.core.wmem_max"));
    let receiver = is_twice(evidence.receive_buffer, evidence.receiver_setting("net.core.rmem_max"));
    (sender || receiver).then_some(TuningTrial { what: "a higher limit", sender, receiver })
}
