//! The programs that can set a shaper up, and which of them are to.

use linerate_sys::whole_file::Mode;

use super::super::error::ShapeError;
use super::place::Place;
use super::wish::Wish;
use super::{ifupdown, network_manager, networkd, ppp, systemd};

/// A program of a host that can have linerate set up a shaper.
#[derive(Debug)]
pub(super) struct Manager {
    /// As `--manager` takes it.
    pub(super) id: &'static str,
    /// Its name.
    pub(super) title: &'static str,
    /// Why it is to set up this shaper, where nobody says who is to; `None`: it is not.
    pub(super) choice: fn(&Place, &Wish) -> Option<String>,
    /// Why it cannot here; `None`: it can.
    pub(super) obstacle: fn(&Place) -> Option<String>,
    /// What it reads, wherever it might be.
    pub(super) files: fn(&Wish) -> Vec<PersistentFile>,
    /// The unit of systemd that is among them.
    pub(super) unit: fn(&Wish) -> Option<String>,
    /// What the reader should know.
    pub(super) notes: fn(&Wish) -> Vec<String>,
}

/// A file that has a shaper set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PersistentFile {
    /// Where, from the root.
    pub(super) path: String,
    /// Whether it can be run.
    pub(super) mode: Mode,
    /// What it has.
    pub(super) contents: String,
    /// Whether it is of use only where its directory is there already.
    pub(super) needs_directory: bool,
}

impl PersistentFile {
    /// Whether that host has a use for it.
    pub(super) fn is_wanted(&self, place: &Place) -> bool {
        let directory = self.path.rsplit_once('/').map_or("/", |(directory, _)| directory);
        !self.needs_directory || place.has_directory(directory)
    }
}

/// All of them. Of those with the same unit, the first that is chosen writes it.
pub(super) const MANAGERS: [&Manager; 5] =
    [&networkd::MANAGER, &systemd::MANAGER, &network_manager::MANAGER, &ifupdown::MANAGER, &ppp::MANAGER];

/// Those that are to set it up, and why: the one that is asked for; else all that say that it is theirs to do.
pub(super) fn choose(
    place: &Place,
    wish: &Wish,
    name: Option<&str>,
) -> Result<Vec<(&'static Manager, String)>, ShapeError> {
    if let Some(name) = name {
        return asked_for(place, wish, name).map(|manager| vec![(manager, "asked for".to_owned())]);
    }
    let can = |manager: &&&'static Manager| obstacle(manager, place, wish).is_none();
    let chosen = MANAGERS.iter().filter(can).filter_map(|manager| Some((*manager, (manager.choice)(place, wish)?)));
    let chosen: Vec<_> = chosen.collect();
    if chosen.is_empty() {
        let why: Vec<String> = MANAGERS
            .iter()
            .map(|manager| (manager.title, obstacle(manager, place, wish)))
            .map(|(title, obstacle)| format!("{title}: {}", obstacle.as_deref().unwrap_or("the interface is not its")))
            .collect();
        let device = &wish.device;
        let text =
            format!("nothing on this host that linerate knows would set up the shaper of {device}: {}", why.join("; "));
        let advice = format!("have what starts this host run: {}", command_line(wish));
        return Err(ShapeError::unable(text).with_advice(advice));
    }
    Ok(chosen)
}

/// Why it cannot here: what follows the line is a process that stays, and a script's ends.
fn obstacle(manager: &Manager, place: &Place, wish: &Wish) -> Option<String> {
    let ends = !wish.autorate.is_empty() && (manager.unit)(wish).is_none();
    (manager.obstacle)(place).or_else(|| {
        ends.then(|| "its scripts have to end, and --autorate goes on as long as the line is there".to_owned())
    })
}

fn command_line(wish: &Wish) -> String {
    let words = if wish.autorate.is_empty() { wish.set_up(&["--replace", "--quiet"]) } else { wish.set_up_and_stay() };
    linerate_sys::command::command_line(&wish.program, &words)
}

fn asked_for(place: &Place, wish: &Wish, name: &str) -> Result<&'static Manager, ShapeError> {
    let Some(manager) = MANAGERS.iter().find(|manager| manager.id == name) else {
        let names: Vec<_> = MANAGERS.iter().map(|manager| manager.id).collect();
        return Err(ShapeError::unable(format!(
            "{name} is no manager that linerate knows: there are {}",
            names.join(", ")
        )));
    };
    match obstacle(manager, place, wish) {
        None => Ok(manager),
        Some(obstacle) => Err(ShapeError::unable(format!("{} cannot set it up here: {obstacle}", manager.title))
            .with_advice("without --manager, linerate takes what this host has")),
    }
}
