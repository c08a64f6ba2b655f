//! Managers that can set a shaper up, and their selection.

use linerate_documents::shaper_persistence::ShaperManager;
use linerate_sys::whole_file::FileMode;

use super::super::error::ShapeError;
use super::changes::{CommandArguments, PersistentFileChange};
use super::host::PersistenceHost;
use super::request::PersistRequest;
use super::{ifupdown, network_manager, networkd, openwrt, ppp, systemd};

/// A manager that can run linerate to set up a shaper.
#[derive(Debug)]
pub(super) struct PersistenceManagerEntry {
    /// Value for `--manager`.
    pub(super) id: ShaperManager,
    /// Display name.
    pub(super) title: &'static str,
    /// Reason to choose it by default for this shaper; `None`: not chosen.
    pub(super) choice: fn(&PersistenceHost, &PersistRequest) -> Option<String>,
    /// Obstacle on this host; `None`: usable.
    pub(super) obstacle: fn(&PersistenceHost) -> Option<String>,
    /// Files that it reads, in all possible places.
    pub(super) files: fn(&PersistRequest) -> Vec<PersistentFile>,
    /// The systemd unit among them.
    pub(super) unit: fn(&PersistRequest) -> Option<String>,
    /// True when it can keep a process running, as automatic rates need.
    pub(super) runs_processes: bool,
    /// Files for all interfaces together; `None` without any.
    pub(super) shared: Option<&'static SharedFiles>,
    /// Notes shown to the user.
    pub(super) notes: fn(&PersistRequest) -> Vec<String>,
}

/// Files of a manager that several interfaces share.
#[derive(Debug)]
pub(super) struct SharedFiles {
    /// Changes that set this interface's shaper up.
    pub(super) to_persist: fn(&PersistenceHost, &PersistRequest) -> Result<Vec<PersistentFileChange>, ShapeError>,
    /// Changes that leave it out.
    pub(super) to_unpersist: fn(&PersistenceHost, &PersistRequest) -> Result<Vec<PersistentFileChange>, ShapeError>,
    /// Commands before these changes and after them, and those that roll the former back.
    pub(super) commands: fn(&PersistenceHost, &PersistRequest, &[PersistentFileChange]) -> [Vec<CommandArguments>; 3],
}

/// A file that sets a shaper up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PersistentFile {
    /// Absolute path.
    pub(super) path: String,
    /// File mode.
    pub(super) mode: FileMode,
    /// Content.
    pub(super) contents: String,
    /// True when it is useful only in an existing directory.
    pub(super) needs_directory: bool,
}

impl PersistentFile {
    /// True when the host uses such a file.
    pub(super) fn is_wanted(&self, place: &PersistenceHost) -> bool {
        let directory = self.path.rsplit_once('/').map_or("/", |(directory, _)| directory);
        !self.needs_directory || place.has_directory(directory)
    }
}

/// All managers. Of those with the same unit, the first chosen writes it.
pub(super) const MANAGERS: [&PersistenceManagerEntry; 6] = [
    &openwrt::MANAGER,
    &networkd::MANAGER,
    &systemd::MANAGER,
    &network_manager::MANAGER,
    &ifupdown::MANAGER,
    &ppp::MANAGER,
];

const fn entry(id: ShaperManager) -> &'static PersistenceManagerEntry {
    match id {
        ShaperManager::Openwrt => &openwrt::MANAGER,
        ShaperManager::Networkd => &networkd::MANAGER,
        ShaperManager::Systemd => &systemd::MANAGER,
        ShaperManager::NetworkManager => &network_manager::MANAGER,
        ShaperManager::Ifupdown => &ifupdown::MANAGER,
        ShaperManager::Ppp => &ppp::MANAGER,
    }
}

/// Selects managers, with reasons: the requested one, else all that choose this shaper.
pub(super) fn choose(
    place: &PersistenceHost,
    wish: &PersistRequest,
    requested: Option<ShaperManager>,
) -> Result<Vec<(&'static PersistenceManagerEntry, String)>, ShapeError> {
    if let Some(id) = requested {
        return requested_manager(place, wish, id).map(|manager| vec![(manager, "requested".to_owned())]);
    }
    let can = |manager: &&&'static PersistenceManagerEntry| obstacle(manager, place, wish).is_none();
    let chosen = MANAGERS.iter().filter(can).filter_map(|manager| Some((*manager, (manager.choice)(place, wish)?)));
    let chosen: Vec<_> = chosen.collect();
    if chosen.is_empty() {
        let why: Vec<String> = MANAGERS
            .iter()
            .map(|manager| (manager.title, obstacle(manager, place, wish)))
            .map(|(title, obstacle)| {
                format!("{title}: {}", obstacle.as_deref().unwrap_or("it does not manage the interface"))
            })
            .collect();
        let device = &wish.device;
        let text = format!("no known manager of this host can set up the shaper of {device}: {}", why.join("; "));
        let advice = format!("run this at boot: {}", command_line(wish));
        return Err(ShapeError::impossible(text).with_advice(advice));
    }
    Ok(chosen)
}

/// Obstacle for this request: --autorate needs a long-running process, which a script cannot be.
fn obstacle(manager: &PersistenceManagerEntry, place: &PersistenceHost, wish: &PersistRequest) -> Option<String> {
    let ends = !wish.autorate.is_empty() && !manager.runs_processes;
    (manager.obstacle)(place)
        .or_else(|| ends.then(|| "its scripts have to end, and --autorate keeps running".to_owned()))
}

fn command_line(wish: &PersistRequest) -> String {
    let words = if wish.autorate.is_empty() { wish.set_up(&["--replace", "--quiet"]) } else { wish.set_up_and_stay() };
    linerate_sys::command::command_line(&wish.program, &words)
}

fn requested_manager(
    place: &PersistenceHost,
    wish: &PersistRequest,
    id: ShaperManager,
) -> Result<&'static PersistenceManagerEntry, ShapeError> {
    let manager = entry(id);
    match obstacle(manager, place, wish) {
        None => Ok(manager),
        Some(obstacle) => {
            Err(ShapeError::impossible(format!("{} cannot set the shaper up here: {obstacle}", manager.title))
                .with_advice("omit --manager to choose one automatically"))
        }
    }
}
