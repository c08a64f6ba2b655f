//! A program asked for a larger socket buffer than it may have.

use linerate_model::change::{Group, TakesEffect};
use linerate_model::diagnosis::Cause;
use linerate_model::formulas::SOCKET_BUFFER_FACTOR;
use linerate_units::{ByteCount, display};

use super::super::buffers::Buffer;
use super::super::cases::{diagnosed, host, rhel};
use super::super::inputs::{Data, Transfer};
use super::super::support::{Setting, exact, most, refuse};
use super::super::{Answer, Inputs, TuningRule};

const ID: &str = "socket-buffer-limit";

pub(super) const RULE: TuningRule = TuningRule {
    id: ID,
    group: Group::Buffers,
    explanation: "What a program asks for with SO_RCVBUF or SO_SNDBUF is bounded by net.core.rmem_max and wmem_max alone, \
                  never by tcp_rmem and tcp_wmem; the kernel doubles it, and then leaves the buffer as it is. The limit is \
                  raised only where a program was seen to run into it, and only as far as it asked or the path needs. \
                  Better is a program that does not ask.",
    citation: "socket(7), SO_RCVBUF; Linux, net/core/sock.c (sk_setsockopt); lab:300m-20ms-socket-buffer-8m",
    causes: &[Cause::SocketBuffer],
    unmeasured: false,
    propose,
    fires: || {
        let mut inputs = diagnosed(rhel(host(&[("net.core.rmem_max", "212992")])), Cause::SocketBuffer);
        inputs.data = Data::FromFar;
        inputs.seen.asked_buffer = Some(ByteCount::from_mebibytes(64));
        inputs.seen.receive_buffer = Some(ByteCount::new(425_984));
        inputs
    },
    silent: || {
        let mut inputs = diagnosed(rhel(host(&[("net.core.rmem_max", "212992")])), Cause::SocketBuffer);
        inputs.data = Data::FromFar;
        inputs.seen.asked_buffer = Some(ByteCount::from_kibibytes(64));
        inputs.seen.receive_buffer = Some(ByteCount::from_kibibytes(128));
        inputs
    },
};

fn propose(inputs: &Inputs) -> Vec<Answer> {
    let transfers = inputs.transfers();
    let pairs = transfers.iter().flat_map(|transfer| Buffer::ALL.map(|buffer| (transfer, buffer)));
    pairs.filter_map(|(transfer, buffer)| of_buffer(inputs, transfer, buffer)).flatten().collect()
}

fn of_buffer(inputs: &Inputs, transfer: &Transfer<'_>, buffer: Buffer) -> Option<Vec<Answer>> {
    let (key, seen) = match buffer {
        Buffer::Receive => ("net.core.rmem_max", inputs.seen.receive_buffer?),
        Buffer::Send => ("net.core.wmem_max", inputs.seen.send_buffer?),
    };
    let end = buffer.end(transfer);
    let host = inputs.host(end)?;
    let limit = host.number(key)?;
    // Who asked for more than the limit has twice the limit.
    if seen.get() != limit.saturating_mul(SOCKET_BUFFER_FACTOR) {
        return None;
    }
    let needed = buffer.need(inputs, transfer)?;
    let half = ByteCount::new(needed.size.get() / SOCKET_BUFFER_FACTOR);
    let wanted = inputs.seen.asked_buffer.map_or(half, |asked| asked.min(half));
    let (bound, why) = most(inputs, host);
    let to = wanted.min(ByteCount::new(bound.get() / SOCKET_BUFFER_FACTOR));
    let mut answers = Vec::new();
    if to < wanted {
        let text = format!("{key} should be {}, but ends at {}: {why}.", exact(wanted), exact(to));
        answers.push(refuse(ID, Some(end), inputs, text));
    }
    if to.get() <= limit {
        return Some(answers);
    }
    let asked = inputs.seen.asked_buffer.map(|asked| format!("the program asked for {}", display::size(asked)));
    let setting = Setting {
        rule: ID,
        end,
        key,
        to: to.get().to_string(),
        group: Group::Buffers,
        takes_effect: TakesEffect::NewConnections,
        text: format!("A program asked for a larger buffer than {key} allows, and got twice that limit."),
        arithmetic: Some(format!(
            "half of {}, as the kernel doubles it; no more than was asked for",
            needed.arithmetic
        )),
        evidence: core::iter::once(format!("the socket's buffer: {}", exact(seen))).chain(asked).collect(),
        risk: "every program may ask for as much",
    };
    answers.extend(setting.answer(inputs));
    Some(answers)
}
