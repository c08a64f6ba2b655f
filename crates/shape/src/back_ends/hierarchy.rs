//! HTB's tree: the line, and in it what goes first, the rest, and what goes last.

use core::time::Duration;

use linerate_units::BitRate;

use super::builder::Builder;
use super::classify::{self, ROOT};
use super::{Inputs, sizes};
use crate::capability::Feature;
use crate::link::Direction;
use crate::plan::{Class, Goal, Handle, Parent};
use crate::policy::{Importance, Rule, Selector};

/// The class that is the line.
pub(super) const LINE: Handle = Handle::class(1, 1);

/// A kind of queue at the end of a class.
pub(super) struct Leaf {
    pub(super) kind: &'static str,
    /// Why it is there, as a phrase.
    pub(super) reason: &'static str,
    /// `tc`'s words for a class that may use this rate.
    pub(super) options: fn(&Inputs<'_>, BitRate, Direction) -> String,
    /// What it adds to a packet of a flow that does not fill it, and to one of a flow that does.
    pub(super) delays: fn(&Inputs<'_>, BitRate) -> (Duration, Duration),
}

/// The number of a tier's class.
pub(super) const fn tier(importance: Importance) -> Handle {
    Handle::class(
        1,
        match importance {
            Importance::Interactive => 0x10,
            Importance::Default => 0x20,
            Importance::Bulk => 0x30,
        },
    )
}

/// What acknowledgements wait in: a class of its own, which borrows.
pub(super) const ACKNOWLEDGEMENTS: Handle = Handle::class(1, 0x11);

/// What a class has by right that is to borrow the rest.
const BORROWER: f64 = 1.0 / 32.0;

/// What a tier may send by right, which HTB lets pass without looking at what the line has sent just now.
///
/// For what somebody waits for that is meant so: it leaves at once. Bulk is kept from starving. All else borrows from the
/// line, so that a packet starts only when the one before it has had its time, and two never stand in the modem.
pub(super) fn share(importance: Importance, rate: BitRate) -> BitRate {
    sizes::whole(
        rate * match importance {
            Importance::Interactive => 1.0 / 3.0,
            Importance::Default => BORROWER,
            Importance::Bulk => 1.0 / 6.0,
        },
    )
}

/// HTB's `prio` among those that borrow. Interactive and default packets take turns there, so that a flood of the former
/// cannot take what the latter need.
const fn turn(importance: Importance) -> u8 {
    match importance {
        Importance::Interactive | Importance::Default => 0,
        Importance::Bulk => 1,
    }
}

/// What HTB is to hold: in the bytes that it can count.
pub(super) fn held(builder: &Builder<'_>) -> BitRate {
    sizes::whole(sizes::without_ptm(builder.inputs.line.layer, builder.rate))
}

/// Whether the direction gets classes: sorting needs `u32`.
pub(super) fn sorts(inputs: &Inputs<'_>) -> bool {
    inputs.capabilities.has(Feature::Filter("u32"))
}

/// A class of HTB with all its numbers stated. `at_once`: whether a packet may leave without waiting when the class was
/// idle, which is for those that send little.
pub(super) fn class(
    builder: &Builder<'_>,
    (parent, handle): (Handle, Handle),
    (rate, ceiling): (BitRate, BitRate),
    (importance, at_once): (Option<Importance>, bool),
) -> Class {
    let inputs = builder.inputs;
    let burst = if at_once { sizes::burst(inputs, rate) } else { sizes::spacing(rate) }.get();
    let ceiling_burst = sizes::spacing(ceiling).get();
    let priority = importance.map_or(String::new(), |importance| format!(" prio {}", turn(importance)));
    let options = format!(
        "rate {} ceil {} burst {burst} cburst {ceiling_burst} quantum {}{priority}{}",
        sizes::rate_word(rate),
        sizes::rate_word(ceiling),
        sizes::quantum(inputs, rate).get(),
        sizes::layer_words(inputs.line.layer, inputs.device.header),
    );
    let options = options.split_whitespace().map(str::to_owned).collect();
    let device = builder.device.clone();
    Class { device, parent, handle, kind: "htb", rate, ceiling: Some(ceiling), importance, options }
}

/// The discipline and the class that is the line.
pub(super) fn line(builder: &mut Builder<'_>, default: u16) {
    let rate = held(builder);
    let reason = format!("HTB shares the line out; what no filter sorts goes to 1:{default:x}");
    builder.discipline((Parent::Root, ROOT), "htb", None, &format!("default {default:x}"), reason);
    let class = class(builder, (ROOT, LINE), (rate, rate), (None, false));
    builder
        .class(class, "the line: nothing below it can exceed this together, so the queue is here and not in the modem");
}

/// A class with its queue.
pub(super) fn leaf(
    builder: &mut Builder<'_>,
    (parent, handle): (Handle, Handle),
    (rate, ceiling): (BitRate, BitRate),
    importance: Importance,
    leaf: &Leaf,
    reason: &str,
) {
    // One of many leaves is idle most of the time, and so is what goes first.
    let at_once = handle == tier(Importance::Interactive) || parent != LINE;
    let class = class(builder, (parent, handle), (rate, ceiling), (Some(importance), at_once));
    builder.class(class, reason);
    let words = (leaf.options)(builder.inputs, ceiling, builder.direction);
    let place = (Parent::At(handle), Handle::discipline(handle.minor));
    builder.discipline(place, leaf.kind, None, &words, leaf.reason);
}

/// The filters of the policy, into the classes of the tiers.
pub(super) fn sort(builder: &mut Builder<'_>, class_of: impl Fn(Importance) -> Handle) {
    let policy = builder.inputs.policy;
    classify::add(builder, policy.rules.iter(), |rule| {
        let class = if waits_with_data(rule) { ACKNOWLEDGEMENTS } else { class_of(rule.importance) };
        (format!("flowid {class}"), Goal::Class(class))
    });
}

/// Whether a rule's packets go into the class of acknowledgements.
fn waits_with_data(rule: &Rule) -> bool {
    rule.selector == Selector::PureAcknowledgement && rule.importance == Importance::Interactive
}

/// The class of acknowledgements: before the next packet of data, but not into the modem behind the one under way. There
/// they would pile up, reach the far end together, and call a volley of data into the other direction's queue just when
/// the answer to a ping that waited with them comes along (in the lab, 220 and 850 kbit/s on a line of 240 and 900, both
/// full: mean 77 ms with acknowledgements that leave at once, 58 with these).
pub(super) fn acknowledgements(builder: &mut Builder<'_>, rate: BitRate, kind: &Leaf) {
    if builder.inputs.policy.rules.iter().any(waits_with_data) {
        let rates = (sizes::whole(rate * BORROWER), rate);
        let why = "acknowledgements: at the next turn, before they pile up in the modem behind data";
        leaf(builder, (LINE, ACKNOWLEDGEMENTS), rates, Importance::Interactive, kind, why);
    }
}

/// Why each tier is there.
pub(super) const fn why(importance: Importance) -> &'static str {
    match importance {
        Importance::Interactive => {
            "what somebody waits for leaves at once, up to a third of the line; beyond that in turn"
        }
        Importance::Default => "everything else: what others leave",
        Importance::Bulk => "what nobody waits for: a sixth of the line, and what all others leave",
    }
}

/// The whole tree: three tiers where packets are sorted, else one. In both directions: on a slow line an answer to a ping
/// would else wait for the class's next turn.
pub(super) fn shape(builder: &mut Builder<'_>, kind: &Leaf) {
    let tiers = sorts(builder.inputs);
    let rate = held(builder);
    line(builder, tier(Importance::Default).minor);
    let (flow, own) = (kind.delays)(builder.inputs, builder.rate);
    if !tiers {
        let place = (LINE, tier(Importance::Default));
        leaf(builder, place, (rate, rate), Importance::Default, kind, "all packets: the queue below tells flows apart");
        builder.predict(Importance::Interactive, flow, own);
        builder.predict(Importance::Default, flow, own);
        return;
    }
    for importance in Importance::ALL {
        let rates = (share(importance, rate), rate);
        leaf(builder, (LINE, tier(importance)), rates, importance, kind, why(importance));
        if importance == Importance::Interactive {
            acknowledgements(builder, rate, kind);
        }
        let waits = if importance == Importance::Interactive { Duration::ZERO } else { flow };
        builder.predict(importance, waits, own);
    }
    sort(builder, tier);
    addresses(builder);
}

/// What HTB's queues do not do.
pub(super) fn addresses(builder: &mut Builder<'_>) {
    if builder.inputs.policy.fairness == crate::policy::Fairness::Hosts {
        builder.note("Flows share equally, not hosts: sharing by host needs CAKE.");
    }
}
