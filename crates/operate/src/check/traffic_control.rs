//! Queueing disciplines, filters, actions and devices, each tried in a scratch namespace.

use linerate_documents::host_check::{CheckGroup, CheckedItem};
use linerate_shape::back_ends;
use linerate_shape::capability::{FeatureProbe, FeatureSupport, KernelCapabilities, KernelFeature};
use linerate_shape::plan::PlanCommand;
use linerate_sys::distribution::{self, MORE_MODULES};

use crate::shaping::trials;

const GROUP: CheckGroup = CheckGroup::TrafficControl;

/// Disciplines in addition to those of the shapers, with their use.
const DISCIPLINES: [(&str, &str, &str); 3] = [
    ("fq", "", "`tune` cannot pace by this discipline; TCP paces itself"),
    ("mq", "", "none on devices with one queue"),
    ("netem", "delay 1ms", "no lab in namespaces of this host"),
];

/// Disciplines that only the original scripts or the newest kernels have.
const RARE: [&str; 2] = ["cbq", "cake_mq"];

pub(super) fn items() -> Vec<CheckedItem> {
    match trials::features(&more_probes()) {
        Ok(found) => of_capabilities(&found),
        Err(error) => {
            let consequence = "no `shape`";
            vec![CheckedItem::missing(GROUP, "traffic control", format!("not tried: {}", error.text), consequence)]
        }
    }
}

fn more_probes() -> Vec<FeatureProbe> {
    let probe = |(kind, options, _): &(&'static str, &str, &str)| {
        // `mq` is only for devices with several queues.
        let device = if *kind == "mq" { "queues1" } else { "lo" };
        let words = |text: String| text.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let before = format!("link add name {device} numtxqueues 2 numrxqueues 2 type ifb");
        FeatureProbe {
            feature: KernelFeature::Discipline(kind),
            before: if *kind == "mq" { vec![PlanCommand::ip(words(before))] } else { Vec::new() },
            trial: PlanCommand::tc(words(format!("qdisc add dev {device} root handle 1: {kind} {options}"))),
            after: vec![PlanCommand::tc(words(format!("qdisc del dev {device} root")))],
            reason: "a discipline that can be attached is supported",
        }
    };
    DISCIPLINES.iter().map(probe).collect()
}

fn of_capabilities(found: &KernelCapabilities) -> Vec<CheckedItem> {
    let mut items = vec![best_shaper(found)];
    items.extend(found.all().filter(|(feature, support)| !is_rare(*feature, support)).map(|(feature, support)| {
        let name = feature.phrase().trim_start_matches("the ").to_owned();
        match support {
            FeatureSupport::Present => CheckedItem::working(GROUP, name, "attached"),
            FeatureSupport::Absent(said) => CheckedItem::missing(GROUP, name, said, consequence(feature))
                .with_remedy(distribution::install_advice(&[MORE_MODULES])),
            FeatureSupport::Refused(said) => CheckedItem::missing(GROUP, name, said, consequence(feature))
                .with_remedy("use a newer iproute2 if `tc` does not know it, and root".to_owned()),
        }
    }));
    items
}

fn is_rare(feature: KernelFeature, support: &FeatureSupport) -> bool {
    matches!(feature, KernelFeature::Discipline(kind) if RARE.contains(&kind)) && *support != FeatureSupport::Present
}

/// The best back end whose needs are met.
fn best_shaper(found: &KernelCapabilities) -> CheckedItem {
    let usable = |needs: &[KernelFeature]| needs.iter().all(|feature| found.has(*feature));
    match back_ends::BACK_ENDS.iter().find(|back_end| usable(back_end.needs)) {
        Some(back_end) => CheckedItem::working(GROUP, "shaper", format!("the best back end is {}", back_end.id)),
        None => CheckedItem::missing(GROUP, "shaper", "the kernel has the disciplines of no back end", "no `shape`")
            .with_remedy(distribution::install_advice(&[MORE_MODULES])),
    }
}

fn consequence(feature: KernelFeature) -> String {
    match feature {
        KernelFeature::Discipline(kind) => {
            let other = DISCIPLINES.iter().find(|(other, ..)| *other == kind).map(|(.., text)| (*text).to_owned());
            other.unwrap_or_else(|| "`shape` uses another discipline in its place".to_owned())
        }
        KernelFeature::IntermediateDevice | KernelFeature::Action("mirred") => {
            "the downlink is policed instead of shaped".to_owned()
        }
        KernelFeature::Filter(_) | KernelFeature::Action(_) => "`shape` uses another filter or action".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capabilities(kinds: &[(&'static str, FeatureSupport)]) -> KernelCapabilities {
        let mut found = KernelCapabilities::new(None);
        for (kind, support) in kinds {
            found.record(KernelFeature::Discipline(kind), support.clone());
        }
        found
    }

    #[test]
    fn a_missing_kind_leads_to_the_modules_of_the_distribution() {
        let unknown = FeatureSupport::Absent("Specified qdisc kind is unknown".into());
        let items = of_capabilities(&capabilities(&[("cake", unknown.clone()), ("cbq", unknown)]));
        let cake = items.iter().find(|item| item.name.contains("cake")).expect("listed");
        assert!(!cake.works && cake.remedy == distribution::install_advice(&[MORE_MODULES]), "{cake:?}");
        assert!(!items.iter().any(|item| item.name.contains("cbq")), "no new kernel has it");
        assert!(!items[0].works, "no shaper without any discipline");
    }

    #[test]
    fn with_every_feature_the_best_back_end_is_named() {
        let items = of_capabilities(&KernelCapabilities::all_features());
        assert!(items.iter().all(|item| item.works), "{items:?}");
        assert!(items[0].detail.contains("cake"), "{items:?}");
    }
}
