//! Page of the results of the last days, made when it is asked for.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use linerate_documents::fleet_result::FleetResult;
use linerate_history::result_log::{ResultLog, ResultReceiver};
use linerate_report::fleet;
use linerate_sys::clock::{monotonic_now, realtime_now};
use linerate_units::{MonotonicTime, WallTime};

/// Age of the oldest results on the page.
const MAX_AGE: Duration = Duration::from_secs(2 * 24 * 3600);

/// Largest number of results on the page.
const MAX_RESULTS: usize = 50_000;

/// Time for which a page is the same: rendering takes a while, and clients may ask often.
const LIFETIME: Duration = Duration::from_secs(10);

/// Page that is made anew at most every few seconds.
#[derive(Debug)]
pub(super) struct LivePage {
    log: ResultLog,
    /// Last page, and the time at which it was made.
    last: Mutex<Option<(MonotonicTime, String)>>,
}

impl LivePage {
    pub(super) fn new(log: &ResultLog) -> Self {
        Self { log: log.clone(), last: Mutex::default() }
    }

    /// The page; clients that come while it is made wait for it.
    ///
    /// # Errors
    ///
    /// A sentence when the log cannot be read.
    pub(super) fn html(&self) -> Result<String, String> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let now = monotonic_now();
        if let Some((_, page)) = last.as_ref().filter(|(made, _)| now < *made + LIFETIME) {
            return Ok(page.clone());
        }
        let oldest = WallTime::from_unix(realtime_now().since_unix_epoch().saturating_sub(MAX_AGE));
        let receiver = ResultReceiver::of_days_since(&self.log, oldest);
        let pending = receiver.pending(MAX_RESULTS).map_err(|error| error.to_string())?;
        let mut results: Vec<FleetResult> = pending.into_iter().map(|logged| logged.result).collect();
        results.sort_by(|one, other| (one.at_unix_ns, &one.id).cmp(&(other.at_unix_ns, &other.id)));
        results.dedup_by(|one, other| one.id == other.id);
        let page = fleet::page("The last two days", &results);
        *last = Some((monotonic_now(), page.clone()));
        Ok(page)
    }
}
