//! Non-congestion losses keep the congestion control far below the path's capacity.

use linerate_analysis::formulas::{bbr_loss_limit, loss_limited_rate};
use linerate_model::change::{ChangeGroup, ChangeReason, ChangeTarget, EffectTiming, HostChange};
use linerate_model::diagnosis::Cause;
use linerate_units::{BitRate, Mss, Ratio, display};

use super::super::inputs::{DataFlow, RouteText, TuningHost};
use super::super::support::{SettingProposal, rate, refuse};
use super::super::test_cases::{diagnosed, host, rhel};
use super::super::{HostEnd, RuleAnswer, TuningInputs, TuningRule};

const ID: &str = "congestion-control";
const KEY: &str = "net.ipv4.tcp_congestion_control";
/// Switch of CUBIC's early exit from slow start (`HyStart`).
const HYSTART_SWITCH: &str = "/sys/module/tcp_cubic/parameters/hystart";
/// Alternatives for lossy paths, tried only where the first choice gains nothing.
const ALTERNATIVE_CONTROLS: [&str; 2] = ["htcp", "cubic"];
/// Share of the capacity from which a congestion control is good enough.
const MIN_SUFFICIENT_SHARE: f64 = 0.8;
/// Segment size of a path with an MTU of 1500, where none was observed.
const DEFAULT_SEGMENT: Mss = Mss::new(1448);

pub(super) const RULE: TuningRule = TuningRule {
    id: ID,
    group: ChangeGroup::CongestionControl,
    explanation: "CUBIC takes each loss for congestion. For other losses, its response function (RFC 9438) gives the \
    rate that it reaches; below four fifths of the capacity another one is tried: CUBIC instead of Reno where that is \
    enough, BBR otherwise. Never where a policer was found: BBR loses several percent there, and pacing is the \
    remedy.\n\nA change for this destination only is proposed for its route, where that is known. One that is not loaded is \
    tried, too: tcp_available_congestion_control lists loaded modules only, and the kernel loads tcp_NAME when the name \
    is written.",
    citation: "RFC 9438 section 5.2; net/ipv4/tcp_cong.c, tcp_ca_find_autoload; Cardwell et al. 2016; lab:300m-20ms-loss-cubic, lab:transatlantic-1g-59ms-reno",
    causes: &[Cause::CongestionControl, Cause::Loss, Cause::BurstyLoss, Cause::SlowStartExit],
    unmeasured: true,
    propose,
    fires: || {
        let mut inputs = diagnosed(rhel(host(&[(KEY, "cubic")])), Cause::Loss);
        inputs.seen.retransmitted = Ratio::new(1e-3);
        inputs
    },
    silent: || {
        let mut inputs = diagnosed(rhel(host(&[(KEY, "bbr")])), Cause::Loss);
        inputs.seen.retransmitted = Ratio::new(1e-3);
        inputs
    },
};

/// Congestion control to try.
struct ControlChoice {
    name: &'static str,
    text: String,
    arithmetic: Option<String>,
}

fn propose(inputs: &TuningInputs) -> Vec<RuleAnswer> {
    inputs.transfers().iter().flat_map(|transfer| sender_answers(inputs, transfer).unwrap_or_default()).collect()
}

/// Returns the congestion control of a sender after all changes that are proposed without a measurement: buffers are
/// sized for that one. With a measured transfer, groups are tried one after the other, and evaluated again.
pub(crate) fn planned_congestion_control(inputs: &TuningInputs, sender: HostEnd) -> Option<String> {
    let is_asked = inputs.diagnosis.is_none() && RULE.is_asked(inputs);
    let transfers = inputs.transfers();
    let answers = transfers
        .iter()
        .filter(|transfer| is_asked && transfer.sender == sender)
        .flat_map(|transfer| sender_answers(inputs, transfer).unwrap_or_default());
    let mut proposed = answers.filter_map(|answer| match answer {
        RuleAnswer::Change(proposed) => proposed.change.to.split_ascii_whitespace().next_back().map(str::to_owned),
        RuleAnswer::Refusal(_) => None,
    });
    proposed.next_back().or_else(|| inputs.congestion_control(sender).map(str::to_owned))
}

fn sender_answers(inputs: &TuningInputs, transfer: &DataFlow<'_>) -> Option<Vec<RuleAnswer>> {
    let end = transfer.sender;
    let (host, now) = (inputs.host(end)?, inputs.congestion_control(end)?);
    let choice = match choose_control(inputs, transfer, now)? {
        Ok(choice) => choice,
        Err(text) => return Some(vec![refuse(ID, Some(end), inputs, text)]),
    };
    if host.settings.get(KEY).is_some_and(|set| set == choice.name) || is_on_route(host, choice.name) {
        return None;
    }
    Some(answers(inputs, transfer, host, &choice))
}

/// Returns the congestion control to try, or the reason against one; `None` where the current one is fine.
fn choose_control(inputs: &TuningInputs, transfer: &DataFlow<'_>, now: &str) -> Option<Result<ControlChoice, String>> {
    if now.starts_with("bbr") {
        return None;
    }
    let bbr = |text: String, arithmetic| ControlChoice { name: "bbr", text, arithmetic };
    let policed = transfer.way.policer.is_some();
    if inputs.cause() == Some(Cause::SlowStartExit) {
        let text = "Slow start mistook varying delay for a queue and ended early; BBR has no such test.".to_owned();
        return (!policed).then(|| Ok(bbr(text, None)));
    }
    let loss = inputs.seen.retransmitted.or(transfer.way.loss).filter(|loss| *loss > Ratio::ZERO);
    let Some(loss) = loss else {
        let text = "Reno grows by one segment per round trip after a loss; CUBIC grows with time.".to_owned();
        let is_slow = inputs.cause() == Some(Cause::CongestionControl) && now == "reno";
        return is_slow.then_some(Ok(ControlChoice { name: "cubic", text, arithmetic: None }));
    };
    let (capacity, cubic) = (transfer.way.capacity?, cubic_rate(inputs, transfer, loss)?);
    let arithmetic = format!(
        "CUBIC at a loss of {} and {}: {} of {} ({})",
        display::percent(loss),
        display::duration(inputs.path.round_trip?),
        rate(cubic),
        rate(capacity),
        (cubic / capacity).map_or_else(String::new, display::percent)
    );
    let is_enough = cubic >= capacity * MIN_SUFFICIENT_SHARE;
    Some(match (now, is_enough) {
        ("reno", true) => {
            let text = "Reno recovers slowly from a loss on this path; CUBIC does not.".to_owned();
            Ok(ControlChoice { name: "cubic", text, arithmetic: Some(arithmetic) })
        }
        (_, true) => {
            return inputs
                .diagnosis
                .is_some()
                .then(|| Err(format!("{arithmetic}: another congestion control would gain little.")));
        }
        (_, false) if policed => {
            Err("A policer drops what exceeds its rate: pace below it before trying another congestion control."
                .to_owned())
        }
        (_, false) if loss >= bbr_loss_limit() => Err(format!(
            "At a loss of {} no congestion control is fast: find where packets are lost.",
            display::percent(loss)
        )),
        (_, false) => {
            Ok(bbr(format!("{now} takes each loss for congestion; BBR follows its measured rate."), Some(arithmetic)))
        }
    })
}

fn cubic_rate(inputs: &TuningInputs, transfer: &DataFlow<'_>, loss: Ratio) -> Option<BitRate> {
    let of_path = transfer.way.mtu.map(|mtu| Mss::new(mtu.get().saturating_sub(52)));
    let segment = inputs.seen.segment.or(of_path).unwrap_or(DEFAULT_SEGMENT);
    loss_limited_rate("cubic", segment, inputs.path.round_trip?, loss)
}

fn is_on_route(host: &TuningHost, name: &str) -> bool {
    let tokens = host.route.as_ref().map(|route| route.attributes.split_ascii_whitespace().collect::<Vec<_>>());
    tokens.is_some_and(|tokens| tokens.windows(2).any(|pair| pair == ["congctl", name]))
}

fn answers(
    inputs: &TuningInputs,
    transfer: &DataFlow<'_>,
    host: &TuningHost,
    choice: &ControlChoice,
) -> Vec<RuleAnswer> {
    let setting = SettingProposal {
        rule: ID,
        end: transfer.sender,
        key: KEY,
        to: choice.name.to_owned(),
        group: ChangeGroup::CongestionControl,
        takes_effect: EffectTiming::NewConnections,
        text: choice.text.clone(),
        arithmetic: choice.arithmetic.clone(),
        evidence: inputs.seen.goodput.map(|goodput| format!("goodput: {}", rate(goodput))).into_iter().collect(),
        risk: if choice.name == "bbr" {
            "BBR retransmits more, and takes more than its share where the path's buffer is small"
        } else {
            "none known: it is the kernel's default"
        },
    };
    let mut answers = setting.answer(inputs);
    if let Some(RuleAnswer::Change(proposed)) = answers.first_mut() {
        let exit = (inputs.cause() == Some(Cause::SlowStartExit)).then(|| hystart_change(&proposed.change.reason));
        if let Some(route) = &host.route {
            let narrow = route_change(route, choice.name, &proposed.change.reason);
            proposed.alternatives.push(core::mem::replace(&mut proposed.change, narrow));
        }
        proposed.alternatives.extend(exit);
        proposed.alternatives.extend(others(inputs, transfer, host, choice.name, &proposed.change));
    }
    answers
}

/// Returns the same change with other congestion controls that are not in use.
fn others(
    inputs: &TuningInputs,
    transfer: &DataFlow<'_>,
    host: &TuningHost,
    chosen: &str,
    change: &HostChange,
) -> Vec<HostChange> {
    let now = inputs.congestion_control(transfer.sender);
    let is_free = |name: &&str| *name != chosen && now != Some(*name);
    let with = |name: &str| {
        let reason = ChangeReason {
            text: format!("{name}, if {chosen} gains nothing over the current one."),
            arithmetic: None,
            risk: "it takes more than its share of a shared queue".to_owned(),
            ..change.reason.clone()
        };
        match (&host.route, &change.target) {
            (Some(route), ChangeTarget::Route { .. }) => route_change(route, name, &reason),
            _ => HostChange { to: name.to_owned(), reason, ..change.clone() },
        }
    };
    ALTERNATIVE_CONTROLS.into_iter().filter(is_free).map(with).collect()
}

/// Returns the same change for one destination.
fn route_change(route: &RouteText, name: &str, reason: &ChangeReason) -> HostChange {
    let mut tokens: Vec<&str> = route.attributes.split_ascii_whitespace().collect();
    if let Some(at) = tokens.iter().position(|token| *token == "congctl") {
        tokens.drain(at..(at + 2).min(tokens.len()));
    }
    tokens.extend(["congctl", name]);
    HostChange {
        target: ChangeTarget::Route { destination: route.destination.clone() },
        from: Some(route.attributes.clone()),
        to: tokens.join(" "),
        group: ChangeGroup::CongestionControl,
        takes_effect: EffectTiming::NewConnections,
        reason: reason.clone(),
    }
}

/// Returns the change that disables the test that ended slow start (`HyStart`).
fn hystart_change(reason: &ChangeReason) -> HostChange {
    HostChange {
        target: ChangeTarget::File { path: HYSTART_SWITCH.to_owned() },
        from: Some("1".to_owned()),
        to: "0".to_owned(),
        group: ChangeGroup::CongestionControl,
        takes_effect: EffectTiming::NewConnections,
        reason: ChangeReason {
            text:
                "Slow start mistook varying delay for a queue and ended early; without that test CUBIC continues to a \
                    loss."
                    .to_owned(),
            arithmetic: None,
            risk: "slow start ends in a burst of losses wherever a queue is full".to_owned(),
            ..reason.clone()
        },
    }
}
