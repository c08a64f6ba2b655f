//! Table of a responsiveness test over HTTP/2.

use linerate_documents::run::FigureUnit;
use linerate_model::load::LoadDocument;

use super::load::phase_name;
use crate::presentation::{Quantity, ReportTable, TableCell};

/// Parts of the responsiveness in each phase.
pub(super) fn parts(document: &LoadDocument) -> Option<ReportTable> {
    let http = document.http.as_ref()?;
    let columns = [
        "Load",
        "RPM, new",
        "RPM, loaded",
        "TCP",
        "TLS",
        "HTTP, new",
        "HTTP, loaded",
        "Connections",
        "Goodput",
        "Responsiveness",
    ];
    let mut table = ReportTable::new("http_load", "Parts of the responsiveness", &columns);
    for phase in &http.phases {
        let unknown = || TableCell::Unknown("no probe of this kind was answered".to_owned());
        let time = |time: Option<u64>| time.map_or_else(unknown, |time| TableCell::Value(Quantity::nanoseconds(time)));
        let rate = |value: Option<f64>| {
            value.map_or_else(unknown, |value| TableCell::Value(Quantity::new(value, FigureUnit::RoundTripsPerMinute)))
        };
        table.push_row(
            phase_name(phase.kind),
            vec![
                rate(phase.foreign_round_trips_per_minute),
                rate(phase.loaded_round_trips_per_minute),
                time(phase.tcp_handshake_ns),
                time(phase.tls_handshake_ns),
                time(phase.foreign_request_ns),
                time(phase.loaded_request_ns),
                TableCell::Value(Quantity::count(phase.connections)),
                TableCell::text(format!("{} confidence", phase.goodput_confidence)),
                TableCell::text(format!("{} confidence", phase.responsiveness_confidence)),
            ],
        );
    }
    table.note = Some(format!(
        "Over HTTP/2 and TLS {} to {}. Times are means of the last four seconds without the largest 5 %.",
        http.tls_version, http.address
    ));
    table.non_empty()
}
