//! `OpenWrt`: a section of `/etc/config/linerate` for each interface, and two scripts that all sections share. The init
//! script of procd sets fixed rates up and keeps the processes of automatic ones; the hotplug script sets a shaper up again
//! when its interface has come up.

mod section;

use linerate_documents::shaper_persistence::{PersistenceStep, ShaperManager};
use linerate_shape::uci::{self, UciSection};
use linerate_sys::whole_file::FileMode;

use self::section::SectionOwner;
use super::changes::{CommandArguments, PersistentFileChange};
use super::hook::word;
use super::host::PersistenceHost;
use super::managers::{PersistenceManagerEntry, SharedFiles};
use super::request::PersistRequest;
use crate::shaping::error::ShapeError;

pub(super) const MANAGER: PersistenceManagerEntry = PersistenceManagerEntry {
    id: ShaperManager::Openwrt,
    title: "OpenWrt",
    choice: |place, wish| {
        let device = &wish.device;
        is_here(place).then(|| format!("netifd and procd of OpenWrt manage {device}"))
    },
    obstacle: |place| {
        (!is_here(place))
            .then(|| "this is no OpenWrt (no /etc/openwrt_release, nor /etc/rc.common and /etc/config)".to_owned())
    },
    files: |_| Vec::new(),
    unit: |_| None,
    runs_processes: true,
    shared: Some(&SHARED),
    notes: |wish| {
        let section = section::section_name(&wish.device);
        vec![
            format!(
                "Options of the shaper are in the section {section} of {CONFIG}: change them with `uci set` and `uci commit \
                 linerate`, then run `{INIT} reload`."
            ),
            format!(
                "sysupgrade keeps {CONFIG} only: list {}, {INIT} and {HOTPLUG} in /etc/sysupgrade.conf, or install linerate \
                 and run `persist` again after an upgrade.",
                wish.program
            ),
        ]
    },
};

static SHARED: SharedFiles = SharedFiles { to_persist, to_unpersist, commands };

const CONFIG: &str = "/etc/config/linerate";
const INIT: &str = "/etc/init.d/linerate";
const HOTPLUG: &str = "/etc/hotplug.d/iface/95-linerate";

/// Marker line of the scripts.
const MARK: &str = "# Made by linerate for the shapers of /etc/config/linerate.";

/// True on `OpenWrt`.
pub(super) fn is_here(place: &PersistenceHost) -> bool {
    place.has_file("/etc/openwrt_release") || place.has_file("/etc/rc.common") && place.has_directory("/etc/config")
}

fn scripts(wish: &PersistRequest) -> [(&'static str, String, FileMode); 2] {
    let head = format!(
        "{MARK}\n# `linerate shape DEV unpersist` of the last one removes it; `persist` rewrites it and discards manual \
         changes.\n\n"
    );
    let init = include_str!("init.sh").replace("@PROGRAM@", &word(&wish.program));
    [
        (INIT, format!("#!/bin/sh /etc/rc.common\n{head}{init}"), FileMode::Program),
        // hotplug-call sources it.
        (HOTPLUG, format!("{head}{}", include_str!("hotplug.sh")), FileMode::Plain),
    ]
}

fn is_own_script(contents: &str) -> bool {
    contents.lines().take(3).any(|line| line == MARK)
}

/// Configuration file.
struct Configuration {
    /// Content and mode; `None` without a file.
    file: Option<(String, FileMode)>,
    sections: Vec<UciSection>,
}

impl Configuration {
    fn read(place: &PersistenceHost) -> Result<Self, ShapeError> {
        let file = super::changes::read(place, CONFIG)?;
        let text = file.as_ref().map_or("", |(text, _)| text);
        let sections = uci::sections(text).map_err(|reason| {
            ShapeError::impossible(format!("cannot read {CONFIG}: {reason}; nothing was changed"))
                .with_advice("`uci show linerate` checks the file")
        })?;
        Ok(Self { file, sections })
    }

    fn text(&self) -> &str {
        self.file.as_ref().map_or("", |(text, _)| text)
    }

    fn section_of(&self, device: &str) -> Option<&UciSection> {
        section::of_device(&self.sections, device)
    }
}

fn to_persist(place: &PersistenceHost, wish: &PersistRequest) -> Result<Vec<PersistentFileChange>, ShapeError> {
    let configuration = Configuration::read(place)?;
    let entries = section::entries(wish);
    let previous = configuration.section_of(&wish.device);
    let name = previous.and_then(|one| one.name.clone()).unwrap_or_else(|| section::section_name(&wish.device));
    if let Some(previous) = previous {
        let is_lost = section::owner(previous) == SectionOwner::User
            && (previous.has_other_text || !section::is_equal(previous, &entries));
        if is_lost {
            return Err(edited(&name));
        }
    }
    let after = section::with_section(configuration.text(), previous, &name, &entries);
    let mut changes = vec![PersistentFileChange::to_edit(CONFIG, configuration.file, Some(after))];
    for (path, contents, mode) in scripts(wish) {
        changes.push(PersistentFileChange::to_write_shared(place, path, (contents, mode), is_own_script)?);
    }
    Ok(changes)
}

fn edited(name: &str) -> ShapeError {
    let text = format!("the section '{name}' of {CONFIG} is not as linerate wrote it; nothing was changed");
    ShapeError::impossible(text).with_advice(format!(
        "change it with `uci set linerate.{name}.OPTION=VALUE`, `uci commit linerate` and `{INIT} reload`; or start anew: `uci \
         delete linerate.{name}` and `uci commit linerate`, then run this again"
    ))
}

/// The section is removed, or switched off where the user has edited it; the scripts with the last one.
fn to_unpersist(place: &PersistenceHost, wish: &PersistRequest) -> Result<Vec<PersistentFileChange>, ShapeError> {
    let configuration = Configuration::read(place)?;
    let text = configuration.text();
    let Some(own) = configuration.section_of(&wish.device) else { return Ok(Vec::new()) };
    let after = match section::owner(own) {
        SectionOwner::Linerate => section::without_section(text, own),
        SectionOwner::User if section::is_enabled(own) => Some(section::switched_off(text, own)),
        SectionOwner::User => return Ok(Vec::new()),
    };
    let is_needed = |one: &UciSection| {
        one.kind == section::KIND
            && one != own
            && (section::is_enabled(one) || section::owner(one) == SectionOwner::Linerate)
    };
    let is_last = !configuration.sections.iter().any(is_needed);
    let mut changes = vec![PersistentFileChange::to_edit(CONFIG, configuration.file, after)];
    if is_last {
        for (path, ..) in scripts(wish) {
            changes.extend(PersistentFileChange::to_remove_shared(place, path, is_own_script)?);
        }
    }
    Ok(changes)
}

/// Commands before the changes of files, after them, and those that roll the former back.
fn commands(
    place: &PersistenceHost,
    wish: &PersistRequest,
    changes: &[PersistentFileChange],
) -> [Vec<CommandArguments>; 3] {
    let init = |words: &[&str]| [INIT].iter().chain(words).map(|word| (*word).to_owned()).collect::<CommandArguments>();
    let step = |path: &str| changes.iter().find(|change| change.path == path).map(|change| change.becomes);
    let section = section_of(place, &wish.device);
    match step(INIT) {
        Some(PersistenceStep::Removed) => {
            [vec![init(&["disable"]), init(&["release"])], Vec::new(), vec![init(&["enable"])]]
        }
        // Other sections remain; the shaper of this one stays active.
        None if step(CONFIG).is_some() && place.has_file(INIT) => {
            [vec![init(&["release", &section])], Vec::new(), Vec::new()]
        }
        None => Default::default(),
        Some(step) => {
            let mut after = vec![init(&["enable"])];
            if place.has_interface {
                after.push(init(&["start", &section]));
            }
            let undo = if step == PersistenceStep::Created { vec![init(&["disable"])] } else { Vec::new() };
            [Vec::new(), after, undo]
        }
    }
}

/// True when this change leaves the interface's section, switched off.
pub(super) fn keeps_section(change: &PersistentFileChange, wish: &PersistRequest) -> bool {
    let text = change.new.as_ref().filter(|_| change.path == CONFIG).map_or("", |(text, _)| text);
    uci::sections(text).is_ok_and(|sections| section::of_device(&sections, &wish.device).is_some())
}

/// Name of the interface's section.
fn section_of(place: &PersistenceHost, device: &str) -> String {
    let configuration = Configuration::read(place).ok();
    let found = configuration.as_ref().and_then(|one| one.section_of(device)).and_then(|one| one.name.clone());
    found.unwrap_or_else(|| section::section_name(device))
}

#[cfg(test)]
mod tests;
