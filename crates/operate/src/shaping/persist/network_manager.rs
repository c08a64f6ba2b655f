//! `NetworkManager`: a dispatcher script (NetworkManager-dispatcher(8)), called with the interface and the event.

use linerate_documents::shaper_persistence::ShaperManager;
use linerate_model::host::managers::InterfaceManager;
use linerate_sys::whole_file::FileMode;

use super::hook::{script, set_up, word};
use super::managers::{PersistenceManagerEntry, PersistentFile};
use super::request::PersistRequest;

pub(super) const MANAGER: PersistenceManagerEntry = PersistenceManagerEntry {
    id: ShaperManager::NetworkManager,
    title: "NetworkManager",
    choice: |place, wish| {
        let owner = place.owner.as_ref().filter(|owner| owner.manager == InterfaceManager::NetworkManager)?;
        Some(format!("{} is managed by {} ({})", wish.device, owner.manager, owner.evidence))
    },
    obstacle: |place| {
        let is_there = place.has_directory("/etc/NetworkManager");
        (!is_there).then(|| "it is not installed (no /etc/NetworkManager)".to_owned())
    },
    files: |wish| vec![file(wish)],
    unit: |_| None,
    runs_processes: false,
    shared: None,
    notes: |_| Vec::new(),
};

/// Events after which the queueing may have changed: a new address reapplies the profile.
const EVENTS: &str = "up|dhcp4-change|dhcp6-change|vpn-up|reapply";

fn file(wish: &PersistRequest) -> PersistentFile {
    let device = word(&wish.device);
    let conditions =
        format!("[ \"$1\" = {device} ] || exit 0\ncase \"$2\" in\n    {EVENTS}) ;;\n    *) exit 0 ;;\nesac\n");
    PersistentFile {
        path: format!("/etc/NetworkManager/dispatcher.d/90-linerate-{}", wish.script_name()),
        mode: FileMode::Program,
        contents: script(wish, &conditions, &set_up(wish)),
        needs_directory: false,
    }
}
