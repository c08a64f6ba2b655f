//! HTB with one dual queue for L4S and classic traffic.

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_units::BitRate;

use super::builder::{DirectionBuilder, OWN_PACKETS};
use super::htb_tree::{self, LeafQueue, tier_class};
use super::{BackEnd, BackEndId, PlanInputs, builder, sizes};
use crate::capability::KernelFeature;
use crate::plan::ShaperPlan;
use crate::policy::TrafficImportance;
use crate::prediction::ShaperTurn;

pub(super) static BACK_END: BackEnd = BackEnd {
    id: BackEndId::HtbDualpi2,
    title: "HTB with a dual queue: one for L4S (ECT(1)), one for all other traffic",
    explanation: "HTB shapes to the rate; below it dualpi2 has a queue for senders that react to each mark of ECN (L4S, \
                  TCP Prague), which wait a millisecond at most, and one for all others, which PI2 keeps at its target. \
                  Both share the link without a queue for each flow. Nothing is prioritised by port or codepoint, and a \
                  ping waits with the classic traffic; chosen by name only. Linux has it since 6.17.",
    citation: "RFC 9332 (DualQ Coupled AQM); RFC 9331 (L4S identifier); man tc-dualpi2",
    needs: &[KernelFeature::Discipline("htb"), KernelFeature::Discipline("dualpi2")],
    unsuitable: |_| None,
    automatic: false,
    remedy: "it needs Linux 6.17 with CONFIG_NET_SCH_DUALPI2; cake and htb+fq_codel need less of the kernel",
    make,
};

/// PI2's default target of the classic queue (RFC 9332 §2.5.2.1).
const TARGET: Duration = Duration::from_millis(15);

static LEAF: LeafQueue = LeafQueue {
    kind: "dualpi2",
    reason: "two coupled queues: L4S is marked from a millisecond on, all other traffic is kept at the target",
    options,
    own_queue,
};

/// Options; none where the kernel's defaults hold, which every `tc` can ask for.
fn options(inputs: &PlanInputs<'_>, rate: BitRate, direction: Direction) -> String {
    let target = sizes::controlled_target(inputs, rate, direction, TARGET);
    let target = if target == TARGET { String::new() } else { format!("target {}", sizes::time_argument(target)) };
    target + &inputs.policy.queues.dual.of(direction).tc_arguments()
}

fn own_queue(builder: &DirectionBuilder<'_>) -> Duration {
    builder.own_queue(OWN_PACKETS, sizes::controlled_target(builder.inputs, builder.rate, builder.direction, TARGET))
}

fn shape(builder: &mut DirectionBuilder<'_>) {
    let rate = htb_tree::held(builder);
    let class = tier_class(TrafficImportance::Default);
    htb_tree::line(builder, class.minor);
    let place = (htb_tree::LINK_CLASS, class);
    let why = "all packets: the dual queue below separates L4S from other traffic";
    htb_tree::leaf(builder, place, (rate, rate), TrafficImportance::Default, &LEAF, why);
    let target = sizes::controlled_target(builder.inputs, builder.rate, builder.direction, TARGET);
    let own = own_queue(builder);
    for importance in [TrafficImportance::Interactive, TrafficImportance::Default] {
        builder.predict(importance, (ShaperTurn::Next, target), own.max(target));
    }
    builder.predict_l4s(builder.inputs.policy.queues.dual.of(builder.direction).step());
    builder.note("Only packets with ECT(1) wait briefly: a ping waits in the queue of the classic traffic.");
}

fn make(inputs: &PlanInputs<'_>, plan: ShaperPlan) -> ShaperPlan {
    builder::shape_both_directions(inputs, plan, false, shape)
}

#[cfg(test)]
mod tests {
    use super::super::DeviceProperties;
    use super::*;
    use crate::capability::KernelCapabilities;
    use crate::link::AccessLink;
    use crate::policy::{QueueOptions, TrafficPolicy};
    use crate::refusal::ShaperRefusal;
    use crate::verify::PerDirection;

    fn plan(id: BackEndId, queues: &QueueOptions) -> Result<ShaperPlan, ShaperRefusal> {
        let rate = |megabits: f64| Some(BitRate::from_bits_per_second(megabits * 1e6));
        let (line, policy) =
            (AccessLink::new(rate(20.0), rate(100.0)), TrafficPolicy { queues: *queues, ..TrafficPolicy::default() });
        let (capabilities, device) = (KernelCapabilities::all_features(), DeviceProperties::ethernet("eth0"));
        let inputs = PlanInputs { line: &line, policy: &policy, capabilities: &capabilities, device: &device };
        id.back_end().plan(&inputs)
    }

    fn options_of(plan: &ShaperPlan, device: &str) -> String {
        let leaf = plan.disciplines().find(|one| one.kind == "dualpi2" && one.device == device);
        leaf.expect("a dual queue").options.join(" ")
    }

    #[test]
    fn each_direction_has_its_options() {
        let dual = PerDirection {
            up: "coupling=3,step=2ms".parse().expect("valid"),
            down: "split-gso=off".parse().expect("valid"),
        };
        let target = PerDirection { up: None, down: Some(Duration::from_millis(20)) };
        let plan =
            plan(BackEndId::HtbDualpi2, &QueueOptions { target, dual, ..QueueOptions::default() }).expect("a plan");
        assert_eq!(options_of(&plan, "eth0"), "coupling_factor 3 step_thresh 2000us");
        assert_eq!(options_of(&plan, "ifb4eth0"), "target 20000us no_split_gso");
    }

    #[test]
    fn defaults_need_no_option() {
        let plan = plan(BackEndId::HtbDualpi2, &QueueOptions::default()).expect("a plan");
        assert_eq!(options_of(&plan, "eth0"), "");
    }

    /// The point of a dual queue: 0.3 ms for the current packet of 0.6, and 0.25 of a threshold of 1 ms.
    #[test]
    fn packets_with_ect1_have_a_prediction_of_their_own() {
        let mean = |dual: &str| {
            let both = dual.parse().expect("valid");
            let queues = QueueOptions { dual: PerDirection { up: both, down: both }, ..QueueOptions::default() };
            let prediction = plan(BackEndId::HtbDualpi2, &queues).expect("a plan").prediction;
            let l4s: Vec<_> = prediction.classes.iter().filter(|one| one.l4s).collect();
            assert_eq!(l4s.len(), 3, "up, down and both");
            let classic = prediction.class(Direction::Up, TrafficImportance::Default).expect("predicted");
            assert!(!classic.l4s && classic.mean > Duration::from_millis(15), "{classic:?}");
            (l4s[0].mean.as_micros(), l4s[0].max.as_micros())
        };
        assert_eq!(mean("step=1ms"), (552, 2605));
        assert_eq!(mean("step=4ms"), (1302, 8605));
    }

    #[test]
    fn options_are_refused_where_they_have_no_effect() {
        let dual = PerDirection { up: "coupling=3".parse().expect("valid"), ..PerDirection::default() };
        let refusal =
            plan(BackEndId::HtbFqCodel, &QueueOptions { dual, ..QueueOptions::default() }).expect_err("no dual queue");
        assert!(refusal.reason.contains("--dualpi2"), "{refusal}");
        let ecn = PerDirection { up: Some(false), down: None };
        let refusal =
            plan(BackEndId::HtbDualpi2, &QueueOptions { ecn, ..QueueOptions::default() }).expect_err("always ECN");
        assert!(refusal.reason.contains("--ecn off"), "{refusal}");
    }
}
