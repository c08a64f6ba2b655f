//! Page of the results of the last days, made when it is asked for.

use jiff::tz::TimeZone;
use linerate_fleet::unusual_figures;
use linerate_history::result_log::{RecentPage, ResultLog};
use linerate_report::fleet;
use linerate_sys::clock::{monotonic_now, realtime_now};

/// Page that is made anew at most every few seconds.
#[derive(Debug)]
pub(super) struct LivePage {
    log: ResultLog,
    page: RecentPage,
}

impl LivePage {
    pub(super) fn new(log: &ResultLog) -> Self {
        Self { log: log.clone(), page: RecentPage::default() }
    }

    /// The page.
    ///
    /// # Errors
    ///
    /// A sentence when the log cannot be read.
    pub(super) fn html(&self) -> Result<String, String> {
        let page = self.page.html(&self.log, (monotonic_now(), realtime_now()), |results| {
            fleet::page("The last two days", results, &unusual_figures(results, &TimeZone::system()))
        });
        page.map_err(|error| error.to_string())
    }
}
