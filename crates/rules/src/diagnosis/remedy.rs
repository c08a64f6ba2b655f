//! The command that tries what would help, and proves whether it does.

use linerate_model::diagnosis::{Cause, Place};
use linerate_model::formulas::SOCKET_BUFFER_FACTOR;
use linerate_units::ByteCount;

use super::Evidence;
use crate::tuning::{Buffer, measured_need};

/// What `linerate tune` can try against a cause, and at which ends of the data.
struct Trial {
    what: &'static str,
    sender: bool,
    receiver: bool,
}

/// The last advice of the first verdict: tuning answers to that one alone. `None` where no host can do anything about it,
/// and where what was seen says already that nothing would be proposed.
pub(super) fn advice(cause: Cause, evidence: &Evidence<'_>) -> Option<String> {
    let trial = trial(cause, evidence)?;
    let from_far = evidence.observation.asked.from_far;
    let is_far = if from_far { trial.sender } else { trial.receiver };
    let on_the_path = cause.place() == Place::Network;
    let command: String = [
        (true, "linerate tune HOST"),
        (is_far, " --far ssh:USER@HOST"),
        (on_the_path, " --work-around"),
        (from_far, " -- -R"),
    ]
    .into_iter()
    .filter_map(|(wanted, words)| wanted.then_some(words))
    .collect();
    let instead = if on_the_path { ", which lives with the cause instead of removing it," } else { "" };
    Some(format!(
        "`{command}` tries {}{instead} and keeps it only if measurements in turn prove that it helps",
        trial.what
    ))
}

fn trial(cause: Cause, evidence: &Evidence<'_>) -> Option<Trial> {
    let at_sender = |what| Some(Trial { what, sender: true, receiver: false });
    let keeps_to_its_model =
        evidence.observation.congestion_control.as_deref().is_some_and(|name| name.starts_with("bbr"));
    match cause {
        Cause::ReceiveWindow if may_grow(Buffer::Receive, evidence) => {
            Some(Trial { what: "a larger receive buffer", sender: false, receiver: true })
        }
        Cause::SendBuffer if may_grow(Buffer::Send, evidence) => at_sender("a larger send buffer"),
        Cause::KernelMemory => Some(Trial { what: "a tcp_mem that fits", sender: true, receiver: true }),
        Cause::WindowScalingOff => Some(feature("net.ipv4.tcp_window_scaling", evidence)),
        Cause::SackOff => Some(feature("net.ipv4.tcp_sack", evidence)),
        Cause::TimestampsOff => Some(feature("net.ipv4.tcp_timestamps", evidence)),
        Cause::SocketBuffer => limit_of_requests(evidence),
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

/// Whether more than the setting allows may be needed.
fn may_grow(buffer: Buffer, evidence: &Evidence<'_>) -> bool {
    let now = match buffer {
        Buffer::Receive => evidence.receiver_setting("net.ipv4.tcp_rmem"),
        Buffer::Send => evidence.sender_setting("net.ipv4.tcp_wmem"),
    };
    let needed = measured_need(evidence.observation, buffer);
    now.and_then(|now| now.get(2).copied()).zip(needed).is_none_or(|(now, needed)| now < needed.size.get())
}

/// What is on by default, at the ends that have it off; at both where that is not known.
fn feature(key: &str, evidence: &Evidence<'_>) -> Trial {
    let is_off = |value: Option<Vec<u64>>| value.is_some_and(|value| value == [0]);
    let (sender, receiver) = (is_off(evidence.sender_setting(key)), is_off(evidence.receiver_setting(key)));
    let unknown = !sender && !receiver;
    Trial { what: "that", sender: sender || unknown, receiver: receiver || unknown }
}

/// Who asked for a larger buffer than programs may has twice the limit.
fn limit_of_requests(evidence: &Evidence<'_>) -> Option<Trial> {
    let is_twice = |buffer: Option<(ByteCount, bool)>, limit: Option<Vec<u64>>| {
        let limit = limit.and_then(|limit| limit.first().copied());
        buffer.zip(limit).is_some_and(|((size, _), limit)| size.get() == limit.saturating_mul(SOCKET_BUFFER_FACTOR))
    };
    let sender = is_twice(evidence.send_buffer, evidence.sender_setting("net.core.wmem_max"));
    let receiver = is_twice(evidence.receive_buffer, evidence.receiver_setting("net.core.rmem_max"));
    (sender || receiver).then_some(Trial { what: "a higher limit", sender, receiver })
}
