//! `NetworkManager`: a script of its dispatcher (NetworkManager-dispatcher(8)), called with the interface and what
//! happened to it.

use linerate_model::host::managers::InterfaceManager;
use linerate_sys::whole_file::Mode;

use super::hook::{script, set_up, word};
use super::managers::{Manager, PersistentFile};
use super::wish::Wish;

pub(super) const MANAGER: Manager = Manager {
    id: "network-manager",
    title: "NetworkManager",
    choice: |place, wish| {
        let owner = place.owner.as_ref().filter(|owner| owner.manager == InterfaceManager::NetworkManager)?;
        Some(format!("{} belongs to {} ({})", wish.device, owner.manager, owner.evidence))
    },
    obstacle: |place| {
        let is_there = place.has_directory("/etc/NetworkManager");
        (!is_there).then(|| "it is not installed (there is no /etc/NetworkManager)".to_owned())
    },
    files: |wish| vec![file(wish)],
    unit: |_| None,
    notes: |_| Vec::new(),
};

/// What happened, where the queueing may have become another: after a new address the profile was applied anew.
const EVENTS: &str = "up|dhcp4-change|dhcp6-change|vpn-up|reapply";

fn file(wish: &Wish) -> PersistentFile {
    let device = word(&wish.device);
    let conditions =
        format!("[ \"$1\" = {device} ] || exit 0\ncase \"$2\" in\n    {EVENTS}) ;;\n    *) exit 0 ;;\nesac\n");
    PersistentFile {
        path: format!("/etc/NetworkManager/dispatcher.d/90-linerate-{}", wish.script_name()),
        mode: Mode::Program,
        contents: script(wish, &conditions, &set_up(wish)),
        needs_directory: false,
    }
}
