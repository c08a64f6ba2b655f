//! Page of the latest results, which follows the log.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use linerate_export::{Exposition, LatestResults};
use linerate_history::result_log::{ResultLog, ResultReceiver};
use linerate_sys::clock::realtime_now;
use linerate_sys::whole_file::{self, FileMode};
use linerate_units::WallTime;

use super::LOG_INTERVAL;
use super::end_signal::EndSignal;
use super::shipping_state::ShippingState;
use crate::console;

/// Age of the oldest results that have metrics after a start.
const MAX_AGE: Duration = Duration::from_secs(2 * 24 * 3600);

/// Results that are read at once.
const BATCH: usize = 64;

/// Latest results, and the state of the shipping.
#[derive(Debug)]
pub(super) struct LatestPage {
    log: ResultLog,
    latest: Mutex<LatestResults>,
    textfile: Option<PathBuf>,
    shipping: Option<ShippingState>,
}

impl LatestPage {
    /// Page without results yet. The text file is written once, so that one that cannot be written is an error at the start.
    pub(super) fn new(
        log: &ResultLog,
        textfile: Option<PathBuf>,
        shipping: Option<ShippingState>,
    ) -> Result<Self, String> {
        let is_read = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "prom");
        if let Some(file) = textfile.as_ref().filter(|file| !is_read(file)) {
            let file = file.display();
            return Err(format!(
                "--textfile {file}: node_exporter reads files whose names end in .prom; use {file}.prom"
            ));
        }
        let page = Self { log: log.clone(), latest: Mutex::default(), textfile, shipping };
        page.write().map(|()| page)
    }

    pub(super) fn text(&self) -> String {
        let mut page = Exposition::default();
        page.family("linerate_build_info", "Version of linerate.", "gauge");
        page.series("linerate_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).expose(&mut page);
        if let Some(shipping) = &self.shipping {
            shipping.expose(&mut page);
        }
        page.finish()
    }

    /// Reads the log until the end.
    pub(super) fn follow(&self, signal: &EndSignal) {
        let oldest = WallTime::from_unix(realtime_now().since_unix_epoch().saturating_sub(MAX_AGE));
        let mut receiver = ResultReceiver::of_days_since(&self.log, oldest);
        let (mut error, mut shipped) = (None, None);
        loop {
            let is_ending = signal.deadline().is_some();
            let is_changed = match self.read(&mut receiver) {
                Ok(count) => count > 0,
                Err(reason) => {
                    note_once(&mut error, Some(reason));
                    false
                }
            };
            let shipping = self.shipping.as_ref().map(ShippingState::snapshot);
            if is_changed || shipping != shipped {
                shipped = shipping;
                note_once(&mut error, self.write().err());
            }
            match (is_changed, is_ending) {
                (true, _) => {}
                (false, true) => return,
                (false, false) => signal.wait(LOG_INTERVAL),
            }
        }
    }

    /// Adds the next results, and returns their number.
    fn read(&self, receiver: &mut ResultReceiver) -> Result<usize, String> {
        let pending = receiver.pending(BATCH).map_err(|error| error.to_string())?;
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        for one in &pending {
            latest.add(&one.result);
        }
        if let Some(last) = pending.last() {
            receiver.advance(last).map_err(|error| error.to_string())?;
        }
        Ok(pending.len())
    }

    fn write(&self) -> Result<(), String> {
        let Some(file) = &self.textfile else { return Ok(()) };
        let written = whole_file::replace(file, &self.text(), FileMode::Plain);
        written.map_err(|error| format!("--textfile: {error}"))
    }
}

/// Notes an error when it begins.
fn note_once(known: &mut Option<String>, error: Option<String>) {
    if let Some(reason) = error.as_ref().filter(|_| known.is_none()) {
        console::note(reason);
    }
    *known = error;
}
