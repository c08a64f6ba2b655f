//! A program requested a larger socket buffer than the limit allows.

use linerate_analysis::formulas::SOCKET_BUFFER_FACTOR;
use linerate_model::change::{ChangeGroup, EffectTiming};
use linerate_model::diagnosis::Cause;
use linerate_model::direction::Direction;
use linerate_units::{ByteCount, display};

use super::super::buffers::SocketBuffer;
use super::super::inputs::DataFlow;
use super::super::support::{SettingProposal, exact_size, largest_buffer, refuse};
use super::super::test_cases::{diagnosed, host, rhel};
use super::super::{RuleAnswer, TuningInputs, TuningRule};

const ID: &str = "socket-buffer-limit";

pub(super) const RULE: TuningRule = TuningRule {
    id: ID,
    group: ChangeGroup::Buffers,
    explanation: "A request with SO_RCVBUF or SO_SNDBUF is limited by net.core.rmem_max and wmem_max alone, \
    never by tcp_rmem and tcp_wmem; the kernel doubles it, and then does not tune the buffer. The limit is \
    raised only where a program reached it, and only as far as requested or as the path needs. \
    Better is a program that does not set its buffer.",
    citation: "socket(7), SO_RCVBUF; Linux, net/core/sock.c (sk_setsockopt); lab:300m-20ms-socket-buffer-8m",
    causes: &[Cause::SocketBuffer],
    unmeasured: false,
    propose,
    fires: || {
        let mut inputs = diagnosed(rhel(host(&[("net.core.rmem_max", "212992")])), Cause::SocketBuffer);
        inputs.data = Some(Direction::Down);
        inputs.seen.asked_buffer = Some(ByteCount::from_mebibytes(64));
        inputs.seen.receive_buffer = Some(ByteCount::new(425_984));
        inputs
    },
    silent: || {
        let mut inputs = diagnosed(rhel(host(&[("net.core.rmem_max", "212992")])), Cause::SocketBuffer);
        inputs.data = Some(Direction::Down);
        inputs.seen.asked_buffer = Some(ByteCount::from_kibibytes(64));
        inputs.seen.receive_buffer = Some(ByteCount::from_kibibytes(128));
        inputs
    },
};

fn propose(inputs: &TuningInputs) -> Vec<RuleAnswer> {
    let transfers = inputs.transfers();
    let pairs = transfers.iter().flat_map(|transfer| SocketBuffer::ALL.map(|buffer| (transfer, buffer)));
    pairs.filter_map(|(transfer, buffer)| buffer_answers(inputs, transfer, buffer)).flatten().collect()
}

fn buffer_answers(inputs: &TuningInputs, transfer: &DataFlow<'_>, buffer: SocketBuffer) -> Option<Vec<RuleAnswer>> {
    let (key, seen) = match buffer {
        SocketBuffer::Receive => ("net.core.rmem_max", inputs.seen.receive_buffer?),
        SocketBuffer::Send => ("net.core.wmem_max", inputs.seen.send_buffer?),
    };
    let end = buffer.end(transfer);
    let host = inputs.host(end)?;
    let limit = host.number(key)?;
    // A program that requested more than the limit has twice the limit.
    if seen.get() != limit.saturating_mul(SOCKET_BUFFER_FACTOR) {
        return None;
    }
    let needed = buffer.need(inputs, transfer)?;
    let half = ByteCount::new(needed.size.get() / SOCKET_BUFFER_FACTOR);
    let wanted = inputs.seen.asked_buffer.map_or(half, |asked| asked.min(half));
    let (bound, why) = largest_buffer(inputs, host);
    let to = wanted.min(ByteCount::new(bound.get() / SOCKET_BUFFER_FACTOR));
    let mut answers = Vec::new();
    if to < wanted {
        let text = format!("{key} should be {}, but ends at {}: {why}.", exact_size(wanted), exact_size(to));
        answers.push(refuse(ID, Some(end), inputs, text));
    }
    if to.get() <= limit {
        return Some(answers);
    }
    let asked = inputs.seen.asked_buffer.map(|asked| format!("requested by the program: {}", display::size(asked)));
    let setting = SettingProposal {
        rule: ID,
        end,
        key,
        to: to.get().to_string(),
        group: ChangeGroup::Buffers,
        takes_effect: EffectTiming::NewConnections,
        text: format!("A program requested a larger buffer than {key} allows, and got twice that limit."),
        arithmetic: Some(format!("half of {}, as the kernel doubles it; no more than requested", needed.arithmetic)),
        evidence: core::iter::once(format!("the socket's buffer: {}", exact_size(seen))).chain(asked).collect(),
        risk: "every program may request as much",
    };
    answers.extend(setting.answer(inputs));
    Some(answers)
}
