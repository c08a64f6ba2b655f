//! What a program says next waits behind much that is not sent yet.

use linerate_model::change::{Group, TakesEffect};
use linerate_model::diagnosis::Cause;
use linerate_units::{ByteCount, display};

use super::super::cases::{host, rhel};
use super::super::goal::Goal;
use super::super::support::Setting;
use super::super::{Answer, Inputs, TuningRule};

const ID: &str = "unsent-limit";
const KEY: &str = "net.ipv4.tcp_notsent_lowat";
/// Enough for the kernel to build large segments of, little enough not to wait for.
const LIMIT: ByteCount = ByteCount::from_kibibytes(128);

pub(super) const RULE: TuningRule = TuningRule {
    id: ID,
    group: Group::Queueing,
    explanation: "A program may write until the send buffer is full, and what it writes last waits behind all of it. With \
                  tcp_notsent_lowat the socket only counts as writable when little is left unsent, so that a program that \
                  waits for that decides late what comes next. For goals that mind waiting, and only where much was seen \
                  to wait.",
    citation: "Documentation/networking/ip-sysctl.rst (tcp_notsent_lowat); RFC 9113 section 5.3 (priorities)",
    causes: &[Cause::SendBuffer, Cause::ReceiveWindow],
    unmeasured: true,
    propose,
    fires: || waiting(ByteCount::from_mebibytes(2)),
    silent: || waiting(ByteCount::from_kibibytes(64)),
};

/// A web server that sends, with so much unsent.
fn waiting(not_sent: ByteCount) -> Inputs {
    let mut inputs = rhel(host(&[(KEY, "4294967295")]));
    inputs.goal = Goal::Web;
    inputs.seen.not_sent = Some(not_sent);
    inputs
}

fn propose(inputs: &Inputs) -> Vec<Answer> {
    let Some(waits) = inputs.seen.not_sent.filter(|waits| inputs.goal.minds_waiting() && *waits > LIMIT * 2) else {
        return Vec::new();
    };
    let transfers = inputs.transfers();
    let senders = transfers.iter().map(|transfer| transfer.sender);
    let unlimited = senders.filter(|end| {
        let now = inputs.host(*end).and_then(|host| host.number(KEY));
        now.is_some_and(|now| now > LIMIT.get())
    });
    unlimited
        .flat_map(|end| {
            let time = inputs.seen.goodput.and_then(|goodput| goodput.time_to_send(waits));
            Setting {
                rule: ID,
                end,
                key: KEY,
                to: LIMIT.get().to_string(),
                group: Group::Queueing,
                takes_effect: TakesEffect::NewConnections,
                text: "What a program writes next waits behind much that is not sent yet.".to_owned(),
                arithmetic: time
                    .map(|time| format!("{} unsent take {}", display::size(waits), display::duration(time))),
                evidence: vec![format!("usually written and not sent: {}", display::size(waits))],
                risk: "programs that wait until they may write are woken more often",
            }
            .answer(inputs)
        })
        .collect()
}
