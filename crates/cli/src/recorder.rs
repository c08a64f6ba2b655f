//! Recording of runs: in the user's history, or, within the lab, for the host.

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linerate_documents::run::{LabPath, RunDocument};
use linerate_history::{History, HistoryError, HistoryLocation, RunId};
use linerate_lab::plan::FAR;
use linerate_model::json;
use linerate_sys::clock;
use linerate_units::WallTime;

use crate::cmd::history::note_deleted;
use crate::console;

/// Environment variable with the file for runs, in a guest of the lab: the user's history is the host's and must not be
/// written there.
pub(crate) const RESULT_FILE: &str = "LINERATE_RESULT_FILE";

/// Environment variable with the name of the emulated path, in a guest of the lab.
pub(crate) const PATH_NAME: &str = "LINERATE_LAB_PATH";

/// Environment variable with the time on the host at the start of a guest of the lab, in nanoseconds since 1970: the
/// guest's clock starts at the same moment in every session.
pub(crate) const START_TIME: &str = "LINERATE_LAB_START";

/// Time of a run for display: in a guest of the lab, the time on the host at its start.
pub(crate) fn display_time(at: WallTime) -> WallTime {
    let start = std::env::var(START_TIME).ok().and_then(|text| text.parse().ok());
    start.map_or(at, |start| WallTime::from_unix(Duration::from_nanos(start)))
}

/// Display name of the remote host: on an emulated path, that path.
pub(crate) fn display_host(host: &str) -> String {
    match std::env::var(PATH_NAME) {
        Ok(name) if host == FAR && !name.is_empty() => format!("lab:{name}"),
        _ => host.to_owned(),
    }
}

/// Run as the user requested it.
pub(crate) fn for_display(run: &RunDocument) -> RunDocument {
    let arguments = run.arguments.iter().map(|argument| display_host(argument)).collect();
    RunDocument { host: display_host(&run.host), arguments, ..run.clone() }
}

/// Set by `--no-history`.
static HISTORY_DISABLED: AtomicBool = AtomicBool::new(false);

/// Disables recording from here on.
pub(crate) fn forbid() {
    HISTORY_DISABLED.store(true, Ordering::Relaxed);
}

/// Records a finished run and prints its number, unless `quietly`. An unwritable history is only a warning: the
/// measurement is complete.
pub(crate) fn keep(run: &RunDocument, quietly: bool) {
    record_with_page(run, quietly, None);
}

/// Records a finished run without a note; returns its number.
pub(crate) fn keep_silently(run: &RunDocument) -> Option<RunId> {
    if HISTORY_DISABLED.load(Ordering::Relaxed) {
        return None;
    }
    if std::env::var_os(RESULT_FILE).is_some_and(|file| !file.is_empty()) {
        keep(run, true);
        return None;
    }
    store(run).unwrap_or_else(|error| {
        warn(&explained(&error));
        None
    })
}

/// True when runs can be recorded: recording is not disabled, and the user has a place for the history.
#[cfg(feature = "web")]
pub(crate) fn is_possible() -> bool {
    !HISTORY_DISABLED.load(Ordering::Relaxed)
        && matches!(HistoryLocation::from_environment(), Ok(HistoryLocation::File(_)))
}

/// HTML page of a run.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum RunPage {
    /// New file of this name.
    Named(PathBuf),
    /// New file named after the run.
    Usual,
}

impl RunPage {
    fn file(&self, run: &RunDocument) -> PathBuf {
        match self {
            Self::Named(file) => file.clone(),
            Self::Usual => {
                let plain =
                    |letter: char| if letter.is_ascii_alphanumeric() || ".-".contains(letter) { letter } else { '-' };
                let host: String = run.host.chars().map(plain).collect();
                let at = WallTime::from_unix(Duration::from_nanos(run.started_at_unix_ns));
                format!("linerate-{host}-{}.html", clock::format_utc(at, "%Y%m%dT%H%M%SZ")).into()
            }
        }
    }
}

/// Same as [`keep`], and writes the run's page; a guest of the lab leaves that to the host.
pub(crate) fn record_with_page(run: &RunDocument, quietly: bool, page: Option<&RunPage>) {
    let is_disabled = HISTORY_DISABLED.load(Ordering::Relaxed);
    let for_host = std::env::var_os(RESULT_FILE).filter(|file| !file.is_empty() && (page.is_some() || !is_disabled));
    if let Some(file) = for_host {
        if let Err(problem) = append_for_host(Path::new(&file), run, quietly, page) {
            warn(&problem);
        }
        return;
    }
    write_page(run, page);
    if is_disabled {
        return;
    }
    match store(run) {
        Ok(Some(id)) if !quietly => console::note(&format!("kept as run {id} (`linerate history show {id}`)")),
        Ok(_) => {}
        Err(error) => warn(&explained(&error)),
    }
}

fn write_page(run: &RunDocument, page: Option<&RunPage>) {
    let Some(file) = page.map(|page| page.file(run)) else { return };
    let html = linerate_report::html::render(&[linerate_report::presentation::present(run)]);
    let opened = OpenOptions::new().write(true).create_new(true).open(&file);
    match opened.and_then(|mut open| open.write_all(html.as_bytes())) {
        Ok(()) => console::note(&format!("report written to {}", file.display())),
        Err(cause) => console::note(&format!(
            "warning: the report was not written to {}: {} (--html selects another file)",
            file.display(),
            linerate_sys::describe_os_error(&cause)
        )),
    }
}

/// Error of the history with its advice.
pub(crate) fn explained(error: &HistoryError) -> String {
    match error.advice() {
        Some(advice) => format!("{error}\n{advice}"),
        None => error.to_string(),
    }
}

fn warn(problem: &str) {
    console::note(&format!("warning: this run is not in the history: {problem}"));
}

/// Stores the run; `None` when the history is switched off.
fn store(run: &RunDocument) -> Result<Option<RunId>, HistoryError> {
    let HistoryLocation::File(file) = HistoryLocation::from_environment()? else { return Ok(None) };
    let mut history = History::open(&file)?;
    let id = history.add(run)?;
    match history.delete_excess() {
        Ok(deleted) => note_deleted(deleted),
        Err(error) => console::note(&format!("warning: the history's size limit: {}", explained(&error))),
    }
    Ok(Some(id))
}

/// Appends the run to the file that the host reads.
fn append_for_host(file: &Path, run: &RunDocument, quietly: bool, page: Option<&RunPage>) -> Result<(), String> {
    let line = serde_json::to_string(&OutgoingRun { quietly, page, run }).map_err(|cause| cause.to_string())?;
    let opened = OpenOptions::new().create(true).append(true).open(file);
    let written = opened.and_then(|mut open| open.write_all(format!("{line}\n").as_bytes()));
    written.map_err(|cause| format!("writing {}: {}", file.display(), linerate_sys::describe_os_error(&cause)))
}

/// Directory for the runs of a guest of the lab, or of another process. It is removed on drop.
#[derive(Debug)]
pub(crate) struct GuestMailbox {
    directory: PathBuf,
}

impl GuestMailbox {
    /// Creates a directory that only this user can read; `None` with a warning when that fails, and without a history,
    /// unless `for_pages`: a page of a run is written on this host.
    pub(crate) fn new(for_pages: bool) -> Option<Self> {
        // A guest within a guest sends its runs to the outermost host: there is no history in between.
        let is_off = HISTORY_DISABLED.load(Ordering::Relaxed)
            || matches!(HistoryLocation::from_environment(), Ok(HistoryLocation::Off));
        if is_off && !for_pages {
            return None;
        }
        let mut random = [0; 8];
        let made = linerate_sys::host::random_bytes(&mut random).map_err(|cause| cause.to_string()).and_then(|()| {
            let name = format!("linerate-runs-{:016x}", u64::from_ne_bytes(random));
            let directory = std::env::temp_dir().join(name);
            let created = DirBuilder::new().mode(0o700).create(&directory);
            created
                .map(|()| Self { directory: directory.clone() })
                .map_err(|cause| format!("making {}: {}", directory.display(), linerate_sys::describe_os_error(&cause)))
        });
        made.map_err(|problem| warn(&problem)).ok()
    }

    /// Directory that the guest may write.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Environment variable for the guest.
    pub(crate) fn variable(&self) -> (String, String) {
        (RESULT_FILE.to_owned(), self.file().to_string_lossy().into_owned())
    }

    fn file(&self) -> PathBuf {
        self.directory.join("runs.jsonl")
    }

    /// Runs that were sent so far, for a reader that records them itself.
    pub(crate) fn runs(&self) -> Vec<RunDocument> {
        let text = std::fs::read_to_string(self.file()).unwrap_or_default();
        let incoming = text.lines().filter_map(|line| json::from_str::<IncomingRun>(line).ok());
        incoming.map(|incoming| incoming.run).collect()
    }

    /// Records the guest's runs as runs on this emulated path, at this host's time: the guest's clock starts at the
    /// same moment in every session. `typed` is the command line on this host, where that is the run's own.
    pub(crate) fn empty(&self, path: &LabPath, started_at: WallTime, typed: Option<&[String]>) {
        let text = match std::fs::read_to_string(self.file()) {
            Ok(text) => text,
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return,
            Err(cause) => {
                return warn(&format!("reading the runs of the guest: {}", linerate_sys::describe_os_error(&cause)));
            }
        };
        let mut first = None;
        for line in text.lines() {
            match json::from_str::<IncomingRun>(line) {
                Ok(IncomingRun { quietly, page, mut run }) => {
                    let first = *first.get_or_insert(run.started_at_unix_ns);
                    convert_to_host_run(&mut run, path, started_at, first);
                    if let Some(typed) = typed {
                        run.arguments = typed.to_vec();
                    }
                    record_with_page(&run, quietly, page.as_ref());
                }
                Err(cause) => warn(&format!("reading the runs of the guest: {cause}")),
            }
        }
    }
}

impl Drop for GuestMailbox {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Run sent by a guest.
#[derive(serde::Serialize)]
struct OutgoingRun<'a> {
    quietly: bool,
    page: Option<&'a RunPage>,
    run: &'a RunDocument,
}

/// Run received from a guest.
#[derive(serde::Deserialize)]
struct IncomingRun {
    quietly: bool,
    #[serde(default)]
    page: Option<RunPage>,
    run: RunDocument,
}

/// Converts a guest's run to one of this host.
fn convert_to_host_run(run: &mut RunDocument, path: &LabPath, started_at: WallTime, first: u64) {
    let start = u64::try_from(started_at.since_unix_epoch().as_nanos()).unwrap_or(u64::MAX);
    run.started_at_unix_ns = start.saturating_add(run.started_at_unix_ns.saturating_sub(first));
    run.host = format!("lab:{}", path.name);
    // Argument as typed on this host.
    for argument in run.arguments.iter_mut().filter(|argument| *argument == FAR) {
        argument.clone_from(&run.host);
    }
    run.environment.lab = Some(path.clone());
}
