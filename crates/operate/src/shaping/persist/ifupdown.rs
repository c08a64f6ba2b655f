//! ifupdown: scripts run after an interface is up and before it goes down (interfaces(5)).

use linerate_documents::shaper_persistence::ShaperManager;
use linerate_model::host::managers::InterfaceManager;
use linerate_sys::whole_file::FileMode;

use super::hook::{script, set_up, word};
use super::managers::{PersistenceManagerEntry, PersistentFile};
use super::request::PersistRequest;

pub(super) const MANAGER: PersistenceManagerEntry = PersistenceManagerEntry {
    id: ShaperManager::Ifupdown,
    title: "ifupdown",
    choice: |place, wish| {
        let owner = place.owner.as_ref().filter(|owner| owner.manager == InterfaceManager::Ifupdown)?;
        Some(format!("{} is managed by {} ({})", wish.device, owner.manager, owner.evidence))
    },
    obstacle: |place| {
        let is_there = place.has_directory("/etc/network/if-up.d");
        (!is_there).then(|| "it is not installed (no /etc/network/if-up.d)".to_owned())
    },
    files: |wish| vec![file(wish, "if-up.d", &set_up(wish)), file(wish, "if-down.d", &wish.take_down())],
    unit: |_| None,
    runs_processes: false,
    shared: None,
    notes: |_| Vec::new(),
};

fn file(wish: &PersistRequest, directory: &str, arguments: &[&str]) -> PersistentFile {
    let conditions = format!("[ \"$IFACE\" = {} ] || exit 0\n", word(&wish.device));
    PersistentFile {
        path: format!("/etc/network/{directory}/linerate-shape-{}", wish.script_name()),
        mode: FileMode::Program,
        contents: script(wish, &conditions, arguments),
        needs_directory: false,
    }
}
