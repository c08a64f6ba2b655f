//! pppd: scripts that it runs when a connection has got its addresses (pppd(8), "SCRIPTS"); each time that it dials, the
//! interface is a new one.

use linerate_sys::whole_file::Mode;

use super::hook::{script, set_up, word};
use super::managers::{Manager, PersistentFile};
use super::wish::Wish;

pub(super) const MANAGER: Manager = Manager {
    id: "ppp",
    title: "pppd",
    choice: |_, wish| {
        let is_ppp = wish.device.starts_with("ppp");
        is_ppp.then(|| format!("{} is made anew by pppd each time that it dials", wish.device))
    },
    obstacle: |place| {
        let is_there = place.has_directory("/etc/ppp/ip-up.d");
        (!is_there)
            .then(|| "it is not installed, or runs no scripts of others (there is no /etc/ppp/ip-up.d)".to_owned())
    },
    files: |wish| vec![file(wish, "ip-up.d"), file(wish, "ipv6-up.d")],
    unit: |_| None,
    notes: |_| Vec::new(),
};

fn file(wish: &Wish, directory: &str) -> PersistentFile {
    let conditions = format!("[ \"${{PPP_IFACE:-$1}}\" = {} ] || exit 0\n", word(&wish.device));
    PersistentFile {
        path: format!("/etc/ppp/{directory}/linerate-shape-{}", wish.script_name()),
        mode: Mode::Program,
        contents: script(wish, &conditions, &set_up(wish)),
        needs_directory: true,
    }
}
