//! Page of the results of the last days, made when it is asked for.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use linerate_documents::fleet_result::FleetResult;
use linerate_units::{MonotonicTime, WallTime};

use super::{ResultLog, ResultLogError};

/// Age of the oldest results on the page.
const MAX_AGE: Duration = Duration::from_secs(2 * 24 * 3600);

/// Largest number of results on the page.
const MAX_RESULTS: usize = 50_000;

/// Time for which a page is the same: rendering takes a while, and clients may ask often.
const LIFETIME: Duration = Duration::from_secs(10);

/// Page that is made anew at most every few seconds.
#[derive(Debug, Default)]
pub struct RecentPage {
    /// Last page, and the time at which it was made.
    last: Mutex<Option<(MonotonicTime, String)>>,
}

impl RecentPage {
    /// The page of a log at a time, by both clocks; clients that come while it is made wait for it.
    ///
    /// # Errors
    ///
    /// [`ResultLogError`] when the log cannot be read.
    pub fn html(
        &self,
        log: &ResultLog,
        (now, wall): (MonotonicTime, WallTime),
        render: impl FnOnce(&[FleetResult]) -> String,
    ) -> Result<String, ResultLogError> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, page)) = last.as_ref().filter(|(made, _)| now < *made + LIFETIME) {
            return Ok(page.clone());
        }
        let oldest = WallTime::from_unix(wall.since_unix_epoch().saturating_sub(MAX_AGE));
        let page = render(&log.read_latest(oldest, MAX_RESULTS)?.results);
        *last = Some((now, page.clone()));
        Ok(page)
    }
}
