//! systemd-networkd, netplan's too: the same unit, after networkd.
//!
//! networkd's own sections for queueing disciplines (`[CAKE]` and others, systemd.network(5)) shape egress only: none
//! redirects received packets. It removes addresses, routes, neighbours and rules that are not in its files, but no
//! queueing disciplines.

use linerate_documents::shaper_persistence::ShaperManager;
use linerate_model::host::managers::InterfaceManager;

use super::host::PersistenceHost;
use super::managers::PersistenceManagerEntry;
use super::request::PersistRequest;
use super::systemd;

pub(super) const MANAGER: PersistenceManagerEntry = PersistenceManagerEntry {
    id: ShaperManager::Networkd,
    title: "systemd-networkd",
    choice: |place, wish| {
        let owner = place.owner.as_ref().filter(|_| owns(place))?;
        let (device, manager, evidence) = (&wish.device, owner.manager, &owner.evidence);
        Some(format!("{device} is managed by {manager} ({evidence}); the unit starts after systemd-networkd"))
    },
    obstacle: systemd::obstacle,
    files: |wish| vec![systemd::unit_file(wish, &["systemd-networkd.service"])],
    runs_processes: true,
    shared: None,
    unit: |wish| Some(systemd::unit_name(wish)),
    notes,
};

/// True when networkd manages the interface. netplan configures networkd as often as `NetworkManager`; the facts name
/// netplan where networkd runs it.
pub(super) fn owns(place: &PersistenceHost) -> bool {
    let manager = place.owner.as_ref().map(|owner| owner.manager);
    matches!(manager, Some(InterfaceManager::Networkd | InterfaceManager::Netplan))
}

fn notes(wish: &PersistRequest) -> Vec<String> {
    let device = &wish.device;
    vec![format!(
        "systemd-networkd leaves foreign queueing disciplines alone; its own sections ([CAKE] and others) shape only \
         egress of {device}, so linerate's unit is used: no .network file of {device} may have such a section"
    )]
}
