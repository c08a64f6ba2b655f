//! `linerate rollback`: the changes of linerate to this host, and the way back.

mod arguments;
mod document;
mod text;
mod trial;

use linerate_change::{ChangeError, ChangeId, Mode, Report, Store, latest_in_force, recover, roll_back, watch};
use linerate_sys::host_access::{Host, RealHost};
use linerate_sys::process::is_root;
use linerate_sys::signals::Interrupts;

pub(crate) use arguments::{RollbackArguments, TrialArguments};
pub(crate) use trial::run as run_trial;

use crate::console;
use crate::exit::Exit;

/// Does what was asked for.
pub(crate) fn run(arguments: &RollbackArguments) -> Exit {
    carry_out(arguments).unwrap_or_else(|error| failed(&error))
}

/// As `linerate rollback [ID]`, in text.
pub(crate) fn undo(id: Option<ChangeId>) -> Exit {
    run(&RollbackArguments { id, list: false, pending: false, dry_run: false, json: false, watch: None })
}

fn failed(error: &ChangeError) -> Exit {
    console::error(&error.to_string(), None);
    if error.needs_privilege() { Exit::Privilege } else { Exit::Unable }
}

fn carry_out(arguments: &RollbackArguments) -> Result<Exit, ChangeError> {
    let store = Store::from_environment()?;
    let host = RealHost;
    if arguments.list {
        return list(&store, &host, arguments.json);
    }
    // Half a rollback helps nobody: the first Ctrl-C lets it come to its end.
    let _interrupts = Interrupts::install()?;
    if let Some(id) = arguments.watch {
        return watch(&store, &host, id).map(|report| exit_of(report.as_slice()));
    }
    let mode = if arguments.dry_run { Mode::DryRun } else { Mode::ForReal };
    let reports = match (arguments.id, arguments.pending) {
        (Some(id), _) => vec![roll_back(&store, &host, id, mode, ASKED_FOR)?],
        (None, true) => take_back_pending(&store, &host, mode)?,
        (None, false) => match latest_in_force(&store, &host) {
            Ok(set) => vec![roll_back(&store, &host, set.id, mode, ASKED_FOR)?],
            Err(ChangeError::NothingInForce) => Vec::new(),
            Err(error) => return Err(error),
        },
    };
    show(&store, &reports, mode, arguments.json);
    Ok(exit_of(&reports))
}

const ASKED_FOR: &str = "asked for";

fn take_back_pending(store: &Store, host: &dyn Host, mode: Mode) -> Result<Vec<Report>, ChangeError> {
    if mode == Mode::ForReal {
        return recover(store, host);
    }
    let sets = linerate_change::pending(store, host)?;
    sets.iter().map(|set| roll_back(store, host, set.id, mode, ASKED_FOR)).collect()
}

fn exit_of(reports: &[Report]) -> Exit {
    match reports.iter().all(Report::is_clean) {
        true => Exit::Success,
        false if is_root() => Exit::Missed,
        false => Exit::Privilege,
    }
}

fn show(store: &Store, reports: &[Report], mode: Mode, json: bool) {
    let sets = |id: ChangeId| store.get(id).ok();
    if json {
        console::data(&format!("{:#}\n", document::of_reports(reports, mode)));
    } else if reports.is_empty() {
        console::note("nothing of linerate's is in force that could be taken back");
    } else {
        let style = console::data_style();
        for report in reports {
            console::data(&text::of_report(report, sets(report.id).as_ref(), mode, style));
        }
    }
}

/// What taking a set back did, as a person reads it.
pub(crate) fn text_of(store: &Store, report: &Report, mode: Mode) -> String {
    text::of_report(report, store.get(report.id).ok().as_ref(), mode, console::data_style())
}

/// The same as a document.
pub(crate) fn document_of(reports: &[Report], mode: Mode) -> serde_json::Value {
    document::of_reports(reports, mode)
}

fn list(store: &Store, host: &dyn Host, json: bool) -> Result<Exit, ChangeError> {
    let here = host.identity()?;
    let mut sets = store.list()?;
    sets.reverse();
    if json {
        console::data(&format!("{:#}\n", document::of_sets(&sets, &here)));
    } else if sets.is_empty() {
        console::note("linerate has changed nothing on this host");
    } else {
        console::data(&text::of_sets(&sets, &here, console::data_style()));
    }
    Ok(Exit::Success)
}
