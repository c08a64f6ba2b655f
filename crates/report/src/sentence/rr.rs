//! Result of requests and responses in one sentence.

use core::fmt::Write as _;
use core::time::Duration;

use linerate_documents::rr::{RrDocument, RrSchedule};
use linerate_documents::run::FigureUnit;
use linerate_model::rr::RrMode;
use linerate_units::display;

use crate::presentation::Quantity;

/// Rate, median and 99th percentile, and what is missing.
#[must_use]
pub fn sentence(document: &RrDocument) -> String {
    let (Some(rate), Some(latency)) = (document.transactions_per_second, &document.latency) else {
        return "No transaction was completed.".to_owned();
    };
    let what = match document.mode {
        RrMode::Tcp => "TCP",
        RrMode::Connect => "TCP connection",
        RrMode::Udp => "UDP",
        RrMode::Tls => "TLS handshake",
        RrMode::Quic => "QUIC handshake",
    };
    let rate = Quantity::new(rate, FigureUnit::PerSecond).display_text();
    let time = |nanoseconds| display::duration(Duration::from_nanos(nanoseconds));
    let mut text = format!(
        "{rate} {what} transactions over {}, latency {} (median), {} (p99).",
        display::counted(document.flows, "flow"),
        time(latency.p50_ns),
        time(latency.p99_ns)
    );
    if document.schedule != RrSchedule::Closed && document.unfinished > 0 {
        let _ = write!(text, " {} were not complete at the end.", document.unfinished);
    }
    if let Some(lost) = document.lost.filter(|lost| *lost > 0) {
        let _ = write!(text, " {} lost.", Quantity::count(lost).display_text());
    }
    text
}
