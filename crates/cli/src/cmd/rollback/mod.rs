//! `linerate rollback`: changes that linerate made on this host, and their rollback.

mod arguments;
mod document;
mod text;
mod trial;

use linerate_change::{
    ChangeError, ChangeId, ChangeStore, RollbackMode, RollbackReport, latest_in_effect, recover, roll_back, unfinished,
    watch,
};
use linerate_documents::change_reports::ChangeReportsDocument;
use linerate_sys::host_access::{HostAccess, RealHost};
use linerate_sys::process::is_root;
use linerate_sys::signals::InterruptSignals;

pub(crate) use arguments::{RollbackArguments, TrialArguments};
pub(crate) use trial::run as run_trial;

use crate::cmd::measurement::{DocumentKind, print_json};
use crate::console;
use crate::exit::ExitStatus;

/// Runs the selected action.
pub(crate) fn run(arguments: &RollbackArguments) -> ExitStatus {
    execute(arguments).unwrap_or_else(|error| report_error(&error))
}

/// Same as `linerate rollback [ID]`, with text output.
pub(crate) fn roll_back_changes(id: Option<ChangeId>) -> ExitStatus {
    run(&RollbackArguments { id, list: false, pending: false, dry_run: false, json: false, watch: None })
}

fn report_error(error: &ChangeError) -> ExitStatus {
    console::error(&error.to_string(), None);
    if error.needs_privilege() { ExitStatus::Privilege } else { ExitStatus::Unable }
}

fn execute(arguments: &RollbackArguments) -> Result<ExitStatus, ChangeError> {
    let store = ChangeStore::from_environment()?;
    let host = RealHost;
    if arguments.list {
        return list(&store, &host, arguments.json);
    }
    // A partial rollback is worse than none or a complete one: the first Ctrl-C lets it finish.
    let _interrupts = InterruptSignals::install()?;
    if let Some(id) = arguments.watch {
        return watch(&store, &host, id).map(|report| exit_of(report.as_slice()));
    }
    let mode = if arguments.dry_run { RollbackMode::DryRun } else { RollbackMode::ForReal };
    let reports = match (arguments.id, arguments.pending) {
        (Some(id), _) => vec![roll_back(&store, &host, id, mode, REQUESTED_REASON)?],
        (None, true) => roll_back_pending(&store, &host, mode)?,
        (None, false) => match latest_in_effect(&store, &host) {
            Ok(set) => vec![roll_back(&store, &host, set.id, mode, REQUESTED_REASON)?],
            Err(ChangeError::NothingInForce) => Vec::new(),
            Err(error) => return Err(error),
        },
    };
    if reports.is_empty() {
        store.check_readable()?;
    }
    show(&store, &reports, mode, arguments.json);
    store.check_readable()?;
    Ok(exit_of(&reports))
}

const REQUESTED_REASON: &str = "requested by the user";

fn roll_back_pending(
    store: &ChangeStore,
    host: &dyn HostAccess,
    mode: RollbackMode,
) -> Result<Vec<RollbackReport>, ChangeError> {
    if mode == RollbackMode::ForReal {
        return recover(store, host);
    }
    let sets = unfinished(store, host)?;
    sets.iter().map(|set| roll_back(store, host, set.id, mode, REQUESTED_REASON)).collect()
}

fn exit_of(reports: &[RollbackReport]) -> ExitStatus {
    match reports.iter().all(RollbackReport::is_clean) {
        true => ExitStatus::Success,
        false if is_root() => ExitStatus::Missed,
        false => ExitStatus::Privilege,
    }
}

fn show(store: &ChangeStore, reports: &[RollbackReport], mode: RollbackMode, json: bool) {
    let sets = |id: ChangeId| store.get(id).ok();
    if json {
        print_json(DocumentKind::ChangeReports, &document::reports_document(reports, mode));
    } else if reports.is_empty() {
        console::note("no changes of linerate are in effect");
    } else {
        let style = console::data_style();
        for report in reports {
            console::data(&text::report_text(report, sets(report.id).as_ref(), mode, style));
        }
    }
}

/// Text report of a rollback.
pub(crate) fn report_text(store: &ChangeStore, report: &RollbackReport, mode: RollbackMode) -> String {
    text::report_text(report, store.get(report.id).ok().as_ref(), mode, console::data_style())
}

/// JSON report of rollbacks.
pub(crate) fn reports_document(reports: &[RollbackReport], mode: RollbackMode) -> ChangeReportsDocument {
    document::reports_document(reports, mode)
}

fn list(store: &ChangeStore, host: &dyn HostAccess, json: bool) -> Result<ExitStatus, ChangeError> {
    let here = host.identity()?;
    let mut sets = store.list()?;
    sets.reverse();
    if json {
        print_json(DocumentKind::ChangeSets, &document::sets_document(&sets, &here));
    } else if sets.is_empty() {
        console::note("linerate has made no changes on this host");
    } else {
        console::data(&text::sets_text(&sets, &here, console::data_style()));
    }
    Ok(ExitStatus::Success)
}
