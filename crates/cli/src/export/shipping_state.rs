//! State of the shipping to a receiver, as notes and as metrics.

use std::sync::{Arc, Mutex, PoisonError};

use linerate_export::Exposition;
use linerate_units::WallTime;

use crate::console;

/// State that the shipper changes and the metrics show.
#[derive(Clone, Debug)]
pub(super) struct ShippingState {
    url: Arc<str>,
    counts: Arc<Mutex<ShippingCounts>>,
}

/// Figures of a receiver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ShippingCounts {
    accepted: usize,
    refused: usize,
    is_unavailable: bool,
    oldest_pending: Option<WallTime>,
}

impl ShippingState {
    pub(super) fn new(url: &str) -> Self {
        Self { url: url.into(), counts: Arc::default() }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Counts results that the receiver has, and notes the end of an outage.
    pub(super) fn accepted(&self, count: usize) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.accepted += count;
        if std::mem::take(&mut counts.is_unavailable) {
            console::note(&format!("{}: takes results again", self.url));
        }
    }

    pub(super) fn refused(&self, count: usize) {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).refused += count;
    }

    /// Notes the beginning of an outage.
    pub(super) fn unavailable(&self, reason: &str) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut counts.is_unavailable, true) {
            console::note(&format!("{}: {reason}; results stay in the log, and are sent later", self.url));
        }
    }

    pub(super) fn set_oldest_pending(&self, time: Option<WallTime>) {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).oldest_pending = time;
    }

    /// Results that the receiver has, and those that it refused.
    pub(super) fn counts(&self) -> (usize, usize) {
        let counts = self.snapshot();
        (counts.accepted, counts.refused)
    }

    /// Present figures.
    pub(super) fn snapshot(&self) -> ShippingCounts {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn expose(&self, page: &mut Exposition) {
        let counts = self.snapshot();
        let labels = [("receiver", &*self.url)];
        for (name, help, kind, value) in [
            ("linerate_export_up", "1 while the receiver takes results.", "gauge", usize::from(!counts.is_unavailable)),
            ("linerate_export_sent_results_total", "Results that the receiver took.", "counter", counts.accepted),
            ("linerate_export_refused_results_total", "Results that the receiver refused.", "counter", counts.refused),
        ] {
            page.family(name, help, kind);
            page.series(name, &labels, value);
        }
        if let Some(time) = counts.oldest_pending {
            let name = "linerate_export_oldest_pending_timestamp_seconds";
            page.family(name, "Time of the oldest result that the receiver does not have.", "gauge");
            page.series(name, &labels, time.since_unix_epoch().as_secs());
        }
    }
}
