//! Rate at which the sender's kernel saw data delivered within a round trip: the path carried it, so that a lower mean is
//! not the path's.

use linerate_model::diagnosis::ObservedConnection;
use linerate_model::tcp_info::TcpInfo;
use linerate_units::{BitRate, CompactSort};

use super::evidence::TransferEvidence;
use super::losses::flight;
use super::path_loss::OwnLoss;
use super::rules::is_path_shared;
use super::steady::steady_moments;

/// Delivery rate as a multiple of the mean from which the path carries more than the transfer: full paths of
/// docs/truth-random.md stay below, since nothing passes them faster.
const MIN_EXCESS: f64 = 1.25;
/// The same of a sender that is often out of data, whose acknowledgements tell of bursts.
const MIN_EXCESS_OF_BURSTS: f64 = 1.1;
/// Share of the time in pauses between writes up to which the path is full.
const MAX_PAUSE: f64 = 0.05;

impl TransferEvidence<'_> {
    /// Returns the rate that the connections together reached in a tenth of their samples (`tcpi_delivery_rate`, the rate over a
    /// round trip): acknowledgements that arrive together do not raise it. Moments at which the application limited one of them
    /// do not count; `None` where there are no others.
    pub(super) fn delivery_peak(&self) -> Option<BitRate> {
        self.peak(|info| info.delivery_rate_application_limited != Some(true))
    }

    /// Upper tenth of the sums over the connections: their peaks need not fall together.
    fn peak(&self, counts: fn(&TcpInfo) -> bool) -> Option<BitRate> {
        let each: Vec<Vec<Option<BitRate>>> =
            self.observation.connections.iter().map(|connection| delivery_rates(connection, counts)).collect();
        let moments = each.iter().map(Vec::len).min()?;
        let sum =
            |index: usize| each.iter().map(|rates| rates[index].map(BitRate::bits_per_second)).sum::<Option<f64>>();
        let mut sums: Vec<f64> = (0..moments).filter_map(sum).collect();
        sums.sort_compactly_by(f64::total_cmp);
        let peak = sums.get(sums.len() * (OUTER - 1) / OUTER).copied().filter(|rate| *rate > 0.0);
        peak.map(BitRate::from_bits_per_second)
    }

    /// True when data leaves in bursts, which pass the path faster than the mean: the path idles between them.
    pub(super) fn idles_between_bursts(&self) -> bool {
        let is_faster = || self.peak(|_| true).is_some_and(|peak| peak > self.steady * MIN_EXCESS_OF_BURSTS);
        let pauses = || self.is_send_buffer_overfull() && self.pause_of_writes() > MAX_PAUSE;
        self.is_often_idle() && (pauses() || is_faster())
    }

    /// Share of the time between two writes of which all is in flight at once: a round trip at rest.
    fn pause_of_writes(&self) -> f64 {
        let writes = self.largest_in_flight.zip(self.base);
        writes.map_or(0.0, |(write, base)| (self.steady * base).as_f64() / write.as_f64().max(1.0))
    }

    /// True when data passed the path much faster than the transfer did in the mean: then the transfer does not fill it.
    /// Where other traffic comes and goes, it may fill it all the same.
    pub(super) fn passes_faster(&self) -> bool {
        !is_path_shared(self) && self.delivery_peak().is_some_and(|peak| peak > self.steady * MIN_EXCESS)
    }
}

/// Windows at any of which losses fall, as a multiple of the smallest of them: the response to a loss halves a window at most
/// (RFC 5681 section 3.1), so that those of a buffer of one size differ less.
const MIN_SPREAD: f64 = 2.2;
/// Lowest and highest share of the samples that the spread leaves out.
const OUTER: usize = 10;

impl TransferEvidence<'_> {
    /// True when the windows differ more than a buffer of one size makes them, and data passed faster at times: then losses
    /// fall at any window, by chance. Only where the path was not measured, which tells more.
    pub(super) fn loses_at_any_window(&self) -> bool {
        let is_open = self.capacity.is_none() && self.own_loss() == OwnLoss::Unknown;
        let loses = self.late_retransmits.is_some_and(|count| !count.is_zero());
        is_open && loses && self.passes_faster() && self.observation.connections.iter().all(varies)
    }
}

/// True when the windows of one connection vary so.
fn varies(connection: &ObservedConnection) -> bool {
    let mut flights: Vec<f64> = steady_moments(&connection.sender).iter().filter_map(flight).collect();
    flights.sort_compactly_by(f64::total_cmp);
    let (low, high) = (flights.get(flights.len() / OUTER), flights.get(flights.len() * (OUTER - 1) / OUTER));
    low.zip(high).is_some_and(|(low, high)| *high > MIN_SPREAD * low)
}

/// Delivery rates of one connection in its second half; `None` at moments that do not count.
fn delivery_rates(connection: &ObservedConnection, counts: fn(&TcpInfo) -> bool) -> Vec<Option<BitRate>> {
    let infos = steady_moments(&connection.sender).iter().map(|moment| &moment.socket.info);
    infos.map(|info| info.delivery_rate.filter(|_| counts(info))).collect()
}
