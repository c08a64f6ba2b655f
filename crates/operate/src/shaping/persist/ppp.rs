//! pppd: scripts run when a connection has its addresses (pppd(8), "SCRIPTS"); each dial creates a new interface.

use linerate_documents::shaper_persistence::ShaperManager;
use linerate_sys::whole_file::FileMode;

use super::hook::{script, set_up, word};
use super::managers::{PersistenceManagerEntry, PersistentFile};
use super::request::PersistRequest;

pub(super) const MANAGER: PersistenceManagerEntry = PersistenceManagerEntry {
    id: ShaperManager::Ppp,
    title: "pppd",
    choice: |place, wish| {
        // pppd's interfaces are netifd's on OpenWrt.
        let is_ppp = wish.device.starts_with("ppp") && !super::openwrt::is_here(place);
        is_ppp.then(|| format!("pppd creates {} anew at each dial", wish.device))
    },
    obstacle: |place| {
        let is_there = place.has_directory("/etc/ppp/ip-up.d");
        (!is_there).then(|| "it is not installed, or runs no foreign scripts (no /etc/ppp/ip-up.d)".to_owned())
    },
    files: |wish| vec![file(wish, "ip-up.d"), file(wish, "ipv6-up.d")],
    unit: |_| None,
    runs_processes: false,
    shared: None,
    notes: |_| Vec::new(),
};

fn file(wish: &PersistRequest, directory: &str) -> PersistentFile {
    let conditions = format!("[ \"${{PPP_IFACE:-$1}}\" = {} ] || exit 0\n", word(&wish.device));
    PersistentFile {
        path: format!("/etc/ppp/{directory}/linerate-shape-{}", wish.script_name()),
        mode: FileMode::Program,
        contents: script(wish, &conditions, &set_up(wish)),
        needs_directory: true,
    }
}
