//! systemd-networkd, netplan's too: the same unit, after networkd.
//!
//! networkd has sections for queueing disciplines of its own (`[CAKE]` and others, systemd.network(5)), which hold what an interface sends and
//! nothing that it receives: there is none that redirects. It takes away addresses, routes, neighbours and rules that
//! are not in its files, but no queueing disciplines.

use linerate_model::host::managers::InterfaceManager;

use super::managers::Manager;
use super::place::Place;
use super::systemd;
use super::wish::Wish;

pub(super) const MANAGER: Manager = Manager {
    id: "networkd",
    title: "systemd-networkd",
    choice: |place, wish| {
        let owner = place.owner.as_ref().filter(|_| owns(place))?;
        let (device, manager, evidence) = (&wish.device, owner.manager, &owner.evidence);
        Some(format!("{device} belongs to {manager} ({evidence}); the unit starts after systemd-networkd"))
    },
    obstacle: systemd::obstacle,
    files: |wish| vec![systemd::unit_file(wish, &["systemd-networkd.service"])],
    unit: |wish| Some(systemd::unit_name(wish)),
    notes,
};

/// Whether the interface is networkd's. What netplan writes is for networkd as often as for `NetworkManager`; the facts
/// say netplan where networkd runs it.
pub(super) fn owns(place: &Place) -> bool {
    let manager = place.owner.as_ref().map(|owner| owner.manager);
    matches!(manager, Some(InterfaceManager::Networkd | InterfaceManager::Netplan))
}

fn notes(wish: &Wish) -> Vec<String> {
    let device = &wish.device;
    vec![format!(
        "systemd-networkd leaves queueing disciplines that it did not set alone; its own sections ([CAKE] and others) can \
         hold only what {device} sends, so linerate's unit does it: let no .network file of {device} have such a section"
    )]
}
