//! Requirements of this host ([`check_host`]): everything that linerate uses is tried, and nothing of the host is changed.
//! Distributions add features to old kernels and containers forbid them in new ones, so no version is compared.

mod changes;
mod measurement;
mod traffic_control;

use std::path::Path;

use linerate_change::ChangeStore;
use linerate_documents::host_check::{CheckGroup, CheckedItem};
use linerate_sys::{distribution, iproute2};

/// Tries everything that changes, shaping and measurements need. `program`: this program, which is also the watchdog.
/// Takes one to three seconds.
#[must_use]
pub fn check_host(store: &ChangeStore, program: &Path) -> Vec<CheckedItem> {
    let mut items = changes::items(store, program);
    items.extend(traffic_control::items());
    items.extend(measurement::items());
    items.extend(programs());
    items
}

/// Programs of some commands, with the consequence of their absence.
const PROGRAMS: [(&str, &str); 4] = [
    ("ss", "messages that name it do not help"),
    ("ssh", "`--far ssh:HOST` cannot reach the far host"),
    ("nft", "`shape` cannot see whether this host translates addresses; `serve` cannot open an nftables firewall"),
    ("modprobe", "modules are not loaded on demand"),
];

fn programs() -> Vec<CheckedItem> {
    PROGRAMS.iter().map(|(program, consequence)| program_item(program, consequence)).collect()
}

fn program_item(program: &str, consequence: &str) -> CheckedItem {
    let found = linerate_sys::command::path_of(program).map(|path| path.display().to_string());
    CheckedItem::tried(CheckGroup::Commands, program, found, consequence)
        .with_remedy(distribution::install_advice(&[program]))
}

/// A program of iproute2, which changes need.
fn iproute2_item(program: &str) -> CheckedItem {
    let consequence = match program {
        "ip" => "routes and intermediate devices are not changed; the lab does not work",
        _ => "queueing disciplines are neither read nor changed: no `shape`, no pacing by `tune`",
    };
    CheckedItem::tried(CheckGroup::Changes, program, iproute2::version(program), consequence)
        .with_remedy(distribution::install_advice(&[program]))
        .needed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_has_a_consequence_and_a_remedy() {
        let item = program_item("no-such-program-here", "nothing works");
        assert!(!item.works && item.detail.contains("no-such-program-here"), "{item:?}");
        assert_eq!(item.consequence.as_deref(), Some("nothing works"));
        assert_eq!(item.remedy, None, "no package is known");
        for (program, _) in PROGRAMS {
            assert!(distribution::install_advice(&[program]).is_some(), "{program}");
        }
    }
}
