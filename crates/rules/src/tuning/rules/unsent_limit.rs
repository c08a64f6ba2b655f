//! New data of a program waits behind much unsent data.

use linerate_model::change::{ChangeGroup, EffectTiming};
use linerate_model::diagnosis::Cause;
use linerate_units::{ByteCount, display};

use super::super::goal::TuningGoal;
use super::super::support::SettingProposal;
use super::super::test_cases::{host, rhel};
use super::super::{RuleAnswer, TuningInputs, TuningRule};

const ID: &str = "unsent-limit";
const KEY: &str = "net.ipv4.tcp_notsent_lowat";
/// Limit of unsent data: enough for large GSO segments, too little for a noticeable delay.
const UNSENT_LIMIT: ByteCount = ByteCount::from_kibibytes(128);

pub(super) const RULE: TuningRule = TuningRule {
    id: ID,
    group: ChangeGroup::Queueing,
    explanation: "A program may write until the send buffer is full, and new data waits behind all of it. With \
    tcp_notsent_lowat the socket is only writable when little is left unsent, so that a program that \
    waits for that chooses late what to send next. For latency-sensitive goals, and only where much unsent \
    data was observed.",
    citation: "Documentation/networking/ip-sysctl.rst (tcp_notsent_lowat); RFC 9113 section 5.3 (priorities)",
    causes: &[Cause::SendBuffer, Cause::ReceiveWindow],
    unmeasured: true,
    propose,
    fires: || waiting(ByteCount::from_mebibytes(2)),
    silent: || waiting(ByteCount::from_kibibytes(64)),
};

/// Returns a web server with this amount of unsent data.
fn waiting(not_sent: ByteCount) -> TuningInputs {
    let mut inputs = rhel(host(&[(KEY, "4294967295")]));
    inputs.goal = TuningGoal::Web;
    inputs.seen.not_sent = Some(not_sent);
    inputs
}

fn propose(inputs: &TuningInputs) -> Vec<RuleAnswer> {
    let Some(waits) = inputs.seen.not_sent.filter(|waits| inputs.goal.minds_waiting() && *waits > UNSENT_LIMIT * 2)
    else {
        return Vec::new();
    };
    let transfers = inputs.transfers();
    let senders = transfers.iter().map(|transfer| transfer.sender);
    let unlimited = senders.filter(|end| {
        let now = inputs.host(*end).and_then(|host| host.number(KEY));
        now.is_some_and(|now| now > UNSENT_LIMIT.get())
    });
    unlimited
        .flat_map(|end| {
            let time = inputs.seen.goodput.and_then(|goodput| goodput.time_to_send(waits));
            SettingProposal {
                rule: ID,
                end,
                key: KEY,
                to: UNSENT_LIMIT.get().to_string(),
                group: ChangeGroup::Queueing,
                takes_effect: EffectTiming::NewConnections,
                text: "New data of a program waits behind much unsent data.".to_owned(),
                arithmetic: time.map(|time| {
                    format!("sending {} of unsent data takes {}", display::size(waits), display::duration(time))
                }),
                evidence: vec![format!("median of written but unsent data: {}", display::size(waits))],
                risk: "programs that wait for a writable socket wake up more often",
            }
            .answer(inputs)
        })
        .collect()
}
