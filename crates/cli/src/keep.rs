//! Keeping what was measured: in the user's history, or, within the lab, for the host around it.

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linerate_history::{History, HistoryError, Location, RunId};
use linerate_lab::plan::FAR;
use linerate_model::schema::run::{LabPath, RunDocument};
use linerate_sys::clock;
use linerate_units::WallTime;

use crate::console;

/// The environment variable that names the file for runs, where this process is a guest of the lab: the user's history is
/// the host's, and not to be written there.
pub(crate) const RESULT_FILE: &str = "LINERATE_RESULT_FILE";

/// The environment variable that names the emulated path, where this process is a guest of the lab.
pub(crate) const PATH_NAME: &str = "LINERATE_LAB_PATH";

/// The far end as a person knows it: on an emulated path, that path.
pub(crate) fn shown_host(host: &str) -> String {
    match std::env::var(PATH_NAME) {
        Ok(name) if host == FAR && !name.is_empty() => format!("lab:{name}"),
        _ => host.to_owned(),
    }
}

/// The run as a person asked for it.
pub(crate) fn as_shown(run: &RunDocument) -> RunDocument {
    let words = run.arguments.iter().map(|word| shown_host(word)).collect();
    RunDocument { host: shown_host(&run.host), arguments: words, ..run.clone() }
}

/// Whether `--no-history` was given.
static FORBIDDEN: AtomicBool = AtomicBool::new(false);

/// From here on, nothing is kept.
pub(crate) fn forbid() {
    FORBIDDEN.store(true, Ordering::Relaxed);
}

/// Keeps a finished run, and says under which number, unless `quietly`. A history that cannot be written is a warning: the
/// measurement has been made, and shown.
pub(crate) fn keep(run: &RunDocument, quietly: bool) {
    keep_with_page(run, quietly, None);
}

/// A page (HTML) of a run.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Page {
    /// In a new file of this name.
    Named(PathBuf),
    /// In a new file, named after the run.
    Usual,
}

impl Page {
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

/// As [`keep`], and writes the run's page; a guest of the lab leaves that to the host around it.
pub(crate) fn keep_with_page(run: &RunDocument, quietly: bool, page: Option<&Page>) {
    if FORBIDDEN.load(Ordering::Relaxed) {
        return write_page(run, page);
    }
    if let Some(file) = std::env::var_os(RESULT_FILE).filter(|file| !file.is_empty()) {
        if let Err(problem) = hand_over(Path::new(&file), run, quietly, page) {
            warn(&problem);
        }
        return;
    }
    write_page(run, page);
    match store(run) {
        Ok(Some(id)) if !quietly => console::note(&format!("kept as run {id} (`linerate history show {id}`)")),
        Ok(_) => {}
        Err(error) => warn(&explained(&error)),
    }
}

fn write_page(run: &RunDocument, page: Option<&Page>) {
    let Some(file) = page.map(|page| page.file(run)) else { return };
    let html = linerate_report::html::render(&[linerate_report::presentation::present(run)]);
    let opened = OpenOptions::new().write(true).create_new(true).open(&file);
    match opened.and_then(|mut open| open.write_all(html.as_bytes())) {
        Ok(()) => console::note(&format!("report written to {}", file.display())),
        Err(cause) => console::note(&format!(
            "warning: the report was not written to {}: {} (--html names another file)",
            file.display(),
            linerate_sys::describe_os_error(&cause)
        )),
    }
}

/// The text of an error of the history with its way out.
pub(crate) fn explained(error: &HistoryError) -> String {
    match error.advice() {
        Some(advice) => format!("{error}\n{advice}"),
        None => error.to_string(),
    }
}

fn warn(problem: &str) {
    console::note(&format!("warning: this run is not in the history: {problem}"));
}

/// `None` when the history is switched off.
fn store(run: &RunDocument) -> Result<Option<RunId>, HistoryError> {
    let Location::File(file) = Location::from_environment()? else { return Ok(None) };
    History::open(&file)?.add(run).map(Some)
}

/// Appends the run to the file that the host around reads.
fn hand_over(file: &Path, run: &RunDocument, quietly: bool, page: Option<&Page>) -> Result<(), String> {
    let line = serde_json::to_string(&Leaving { quietly, page, run }).map_err(|cause| cause.to_string())?;
    let opened = OpenOptions::new().create(true).append(true).open(file);
    let written = opened.and_then(|mut open| open.write_all(format!("{line}\n").as_bytes()));
    written.map_err(|cause| format!("writing {}: {}", file.display(), linerate_sys::describe_os_error(&cause)))
}

/// A directory in which a guest of the lab leaves its runs. It is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Mailbox {
    directory: PathBuf,
}

impl Mailbox {
    /// Makes one that only this user can read; `None` when nothing is to be kept, or with a warning when that fails.
    pub(crate) fn new() -> Option<Self> {
        // A guest within a guest leaves its runs with the outermost host's: there is no history in between.
        if FORBIDDEN.load(Ordering::Relaxed) || matches!(Location::from_environment(), Ok(Location::Off)) {
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

    /// The directory, which the guest may write.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The variable that tells the guest of it.
    pub(crate) fn variable(&self) -> (String, String) {
        (RESULT_FILE.to_owned(), self.file().to_string_lossy().into_owned())
    }

    fn file(&self) -> PathBuf {
        self.directory.join("runs.jsonl")
    }

    /// Keeps what the guest has left: as runs on this emulated path, at this host's time. The guest's clock begins with the
    /// same moment in every session.
    pub(crate) fn empty(&self, path: &LabPath, started_at: WallTime) {
        let text = match std::fs::read_to_string(self.file()) {
            Ok(text) => text,
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return,
            Err(cause) => {
                return warn(&format!("reading what the guest left: {}", linerate_sys::describe_os_error(&cause)));
            }
        };
        let mut first = None;
        for line in text.lines() {
            match serde_json::from_str::<Left>(line) {
                Ok(Left { quietly, page, mut run }) => {
                    let first = *first.get_or_insert(run.started_at_unix_ns);
                    adopt(&mut run, path, started_at, first);
                    keep_with_page(&run, quietly, page.as_ref());
                }
                Err(cause) => warn(&format!("reading what the guest left: {cause}")),
            }
        }
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// A run on its way out of a guest.
#[derive(serde::Serialize)]
struct Leaving<'a> {
    quietly: bool,
    page: Option<&'a Page>,
    run: &'a RunDocument,
}

/// A run that a guest has left.
#[derive(serde::Deserialize)]
struct Left {
    quietly: bool,
    #[serde(default)]
    page: Option<Page>,
    run: RunDocument,
}

/// Makes a guest's run one of this host.
fn adopt(run: &mut RunDocument, path: &LabPath, started_at: WallTime, first: u64) {
    let start = u64::try_from(started_at.since_unix_epoch().as_nanos()).unwrap_or(u64::MAX);
    run.started_at_unix_ns = start.saturating_add(run.started_at_unix_ns.saturating_sub(first));
    run.host = format!("lab:{}", path.name);
    // As it would be typed here.
    for word in run.arguments.iter_mut().filter(|word| *word == FAR) {
        word.clone_from(&run.host);
    }
    run.environment.lab = Some(path.clone());
}
