//! Losses that are no congestion keep the congestion control far below what the path carries.

use linerate_model::change::{Change, Group, Reason, TakesEffect, Target};
use linerate_model::diagnosis::Cause;
use linerate_model::formulas::{bbr_loss_limit, loss_limited_rate};
use linerate_units::{BitRate, Mss, Ratio, display};

use super::super::cases::{diagnosed, host, rhel};
use super::super::inputs::{Host, RouteText, Transfer};
use super::super::support::{Setting, rate, refuse};
use super::super::{Answer, End, Inputs, TuningRule};

const ID: &str = "congestion-control";
const KEY: &str = "net.ipv4.tcp_congestion_control";
const AVAILABLE: &str = "net.ipv4.tcp_available_congestion_control";
/// The switch of CUBIC's early exit from slow start.
const EARLY_EXIT: &str = "/sys/module/tcp_cubic/parameters/hystart";
/// What else may do well on a lossy path, tried only where the first choice does not earn its keep.
const OTHERS: [&str; 2] = ["htcp", "cubic"];
/// From this share of the capacity on, a congestion control is good enough.
const ENOUGH: f64 = 0.8;
/// Segments of a path with an MTU of 1500, where none was seen.
const USUAL_SEGMENT: Mss = Mss::new(1448);

pub(super) const RULE: TuningRule = TuningRule {
    id: ID,
    group: Group::CongestionControl,
    explanation: "CUBIC takes each loss for a full queue. Where losses are none, its own law (RFC 9438) says how little it \
                  makes of the path; below four fifths of it another one is tried: CUBIC for Reno where that is enough, BBR \
                  otherwise. Never where a policer was found: BBR loses several percent there, and pacing is the \
                  answer.\n\nWhat is only right for this destination is proposed for its route, where that is known.",
    citation: "RFC 9438 section 5.2; Cardwell et al. 2016; lab:300m-20ms-loss-cubic, lab:transatlantic-1g-59ms-reno",
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

/// What to try instead.
struct Choice {
    name: &'static str,
    text: String,
    arithmetic: Option<String>,
}

fn propose(inputs: &Inputs) -> Vec<Answer> {
    inputs.transfers().iter().flat_map(|transfer| of_sender(inputs, transfer).unwrap_or_default()).collect()
}

/// The congestion control that a sender will have once all that is proposed without a measurement was applied: buffers are
/// sized for that one. Where a transfer was measured, groups are tried one after the other, and looked at anew.
pub(crate) fn planned(inputs: &Inputs, sender: End) -> Option<String> {
    let is_asked = inputs.diagnosis.is_none() && RULE.is_asked(inputs);
    let transfers = inputs.transfers();
    let answers = transfers
        .iter()
        .filter(|transfer| is_asked && transfer.sender == sender)
        .flat_map(|transfer| of_sender(inputs, transfer).unwrap_or_default());
    let mut proposed = answers.filter_map(|answer| match answer {
        Answer::Change(proposed) => proposed.change.to.split_ascii_whitespace().next_back().map(str::to_owned),
        Answer::Refusal(_) => None,
    });
    proposed.next_back().or_else(|| inputs.congestion_control(sender).map(str::to_owned))
}

fn of_sender(inputs: &Inputs, transfer: &Transfer<'_>) -> Option<Vec<Answer>> {
    let end = transfer.sender;
    let (host, now) = (inputs.host(end)?, inputs.congestion_control(end)?);
    let choice = match choose(inputs, transfer, now)? {
        Ok(choice) => choice,
        Err(text) => return Some(vec![refuse(ID, Some(end), inputs, text)]),
    };
    if host.settings.get(KEY).is_some_and(|set| set == choice.name) || on_the_route(host, choice.name) {
        return None;
    }
    let offered = host.settings.get(AVAILABLE);
    if offered.is_some_and(|names| names.split_ascii_whitespace().all(|name| name != choice.name)) {
        let text = format!("{} would be worth a try, but its module is not loaded: modprobe tcp_{0}.", choice.name);
        return Some(vec![refuse(ID, Some(end), inputs, text)]);
    }
    Some(answers(inputs, transfer, host, &choice))
}

/// The congestion control that is worth a try; or why none; `None` where nothing speaks for another.
fn choose(inputs: &Inputs, transfer: &Transfer<'_>, now: &str) -> Option<Result<Choice, String>> {
    if now.starts_with("bbr") {
        return None;
    }
    let bbr = |text: String, arithmetic| Choice { name: "bbr", text, arithmetic };
    let policed = transfer.way.policer.is_some();
    if inputs.cause() == Some(Cause::SlowStartExit) {
        let text = "Slow start took varying delay for a queue and ended early; BBR does not look at that.".to_owned();
        return (!policed).then(|| Ok(bbr(text, None)));
    }
    let loss = inputs.seen.retransmitted.or(transfer.way.loss).filter(|loss| *loss > Ratio::ZERO);
    let Some(loss) = loss else {
        let text = "Reno grows by a segment per round trip after a loss; CUBIC grows with time.".to_owned();
        let is_slow = inputs.cause() == Some(Cause::CongestionControl) && now == "reno";
        return is_slow.then_some(Ok(Choice { name: "cubic", text, arithmetic: None }));
    };
    let (capacity, cubic) = (transfer.way.capacity?, of_cubic(inputs, transfer, loss)?);
    let arithmetic = format!(
        "CUBIC at a loss of {} and {}: {} of {} ({})",
        display::percent(loss),
        display::duration(inputs.path.round_trip?),
        rate(cubic),
        rate(capacity),
        (cubic / capacity).map_or_else(String::new, display::percent)
    );
    let is_enough = cubic >= capacity * ENOUGH;
    Some(match (now, is_enough) {
        ("reno", true) => {
            let text = "Reno takes long to come back from a loss on this path; CUBIC does not.".to_owned();
            Ok(Choice { name: "cubic", text, arithmetic: Some(arithmetic) })
        }
        (_, true) => {
            return inputs.diagnosis.is_some().then(|| Err(format!("{arithmetic}: another one would gain little.")));
        }
        (_, false) if policed => {
            Err("A policer drops what exceeds its rate: pace below it before trying another congestion control."
                .to_owned())
        }
        (_, false) if loss >= bbr_loss_limit() => Err(format!(
            "At a loss of {} no congestion control gets far: find where packets are lost.",
            display::percent(loss)
        )),
        (_, false) => Ok(bbr(
            format!("{now} takes each loss for congestion; BBR keeps to the rate that it measures."),
            Some(arithmetic),
        )),
    })
}

fn of_cubic(inputs: &Inputs, transfer: &Transfer<'_>, loss: Ratio) -> Option<BitRate> {
    let of_path = transfer.way.mtu.map(|mtu| Mss::new(mtu.get().saturating_sub(52)));
    let segment = inputs.seen.segment.or(of_path).unwrap_or(USUAL_SEGMENT);
    loss_limited_rate("cubic", segment, inputs.path.round_trip?, loss)
}

fn on_the_route(host: &Host, name: &str) -> bool {
    let words = host.route.as_ref().map(|route| route.attributes.split_ascii_whitespace().collect::<Vec<_>>());
    words.is_some_and(|words| words.windows(2).any(|pair| pair == ["congctl", name]))
}

fn answers(inputs: &Inputs, transfer: &Transfer<'_>, host: &Host, choice: &Choice) -> Vec<Answer> {
    let setting = Setting {
        rule: ID,
        end: transfer.sender,
        key: KEY,
        to: choice.name.to_owned(),
        group: Group::CongestionControl,
        takes_effect: TakesEffect::NewConnections,
        text: choice.text.clone(),
        arithmetic: choice.arithmetic.clone(),
        evidence: inputs.seen.goodput.map(|goodput| format!("goodput: {}", rate(goodput))).into_iter().collect(),
        risk: if choice.name == "bbr" {
            "BBR retransmits more, and leaves less to others where the path's buffer is short"
        } else {
            "none known: it is the kernel's own default"
        },
    };
    let mut answers = setting.answer(inputs);
    if let Some(Answer::Change(proposed)) = answers.first_mut() {
        let exit = (inputs.cause() == Some(Cause::SlowStartExit)).then(|| early_exit(&proposed.change.reason));
        if let Some(route) = &host.route {
            let narrow = by_route(route, choice.name, &proposed.change.reason);
            proposed.alternatives.push(core::mem::replace(&mut proposed.change, narrow));
        }
        proposed.alternatives.extend(exit);
        proposed.alternatives.extend(others(inputs, transfer, host, choice.name, &proposed.change));
    }
    answers
}

/// The same change with another congestion control, for those that are loaded and not in use.
fn others(inputs: &Inputs, transfer: &Transfer<'_>, host: &Host, chosen: &str, change: &Change) -> Vec<Change> {
    let offered = host.settings.get(AVAILABLE).map_or("", String::as_str);
    let now = inputs.congestion_control(transfer.sender);
    let is_free = |name: &&str| {
        offered.split_ascii_whitespace().any(|other| other == *name) && *name != chosen && now != Some(*name)
    };
    let with = |name: &str| {
        let reason = Reason {
            text: format!("{name}, where {chosen} does not do better than what is in use."),
            arithmetic: None,
            risk: "it takes more than its share of a queue that others use, too".to_owned(),
            ..change.reason.clone()
        };
        match (&host.route, &change.target) {
            (Some(route), Target::Route { .. }) => by_route(route, name, &reason),
            _ => Change { to: name.to_owned(), reason, ..change.clone() },
        }
    };
    OTHERS.into_iter().filter(is_free).map(with).collect()
}

/// The same for one destination.
fn by_route(route: &RouteText, name: &str, reason: &Reason) -> Change {
    let mut words: Vec<&str> = route.attributes.split_ascii_whitespace().collect();
    if let Some(at) = words.iter().position(|word| *word == "congctl") {
        words.drain(at..(at + 2).min(words.len()));
    }
    words.extend(["congctl", name]);
    Change {
        target: Target::Route { destination: route.destination.clone() },
        from: Some(route.attributes.clone()),
        to: words.join(" "),
        group: Group::CongestionControl,
        takes_effect: TakesEffect::NewConnections,
        reason: reason.clone(),
    }
}

/// CUBIC without the test that ended slow start.
fn early_exit(reason: &Reason) -> Change {
    Change {
        target: Target::File { path: EARLY_EXIT.to_owned() },
        from: Some("1".to_owned()),
        to: "0".to_owned(),
        group: Group::CongestionControl,
        takes_effect: TakesEffect::NewConnections,
        reason: Reason {
            text:
                "Slow start took varying delay for a queue and ended early; without that test CUBIC goes on to a loss."
                    .to_owned(),
            arithmetic: None,
            risk: "slow start ends in a burst of losses wherever a queue is full".to_owned(),
            ..reason.clone()
        },
    }
}
