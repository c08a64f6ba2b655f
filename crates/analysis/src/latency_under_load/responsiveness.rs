use core::time::Duration;

use serde::{Deserialize, Serialize};

/// Method of measuring the responsiveness, by the document that defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ResponsivenessMethod {
    /// Version 09 of the IPPM draft, over TCP without TLS.
    #[serde(rename = "draft-ietf-ippm-responsiveness-09")]
    Draft09,
    /// The same over HTTP/2 with TLS, as networkQuality and goresponsiveness measure.
    #[serde(rename = "draft-ietf-ippm-responsiveness-09-http2")]
    Draft09Http2,
}

impl ResponsivenessMethod {
    /// Display text.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Draft09 => "draft-ietf-ippm-responsiveness-09, over TCP without TLS",
            Self::Draft09Http2 => "draft-ietf-ippm-responsiveness-09, over HTTP/2 with TLS",
        }
    }
}

/// Share of samples that the trimmed mean keeps ("TMP").
const TRIMMED_MEAN_PERCENT: usize = 95;

/// Probe on a connection of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignProbe {
    /// Time from the first SYN to the established connection.
    pub tcp: Duration,
    /// Time of the TLS handshake; `None` without TLS.
    pub tls: Option<Duration>,
    /// Time from the request to its answer.
    pub request: Duration,
}

/// Rating of a responsiveness, as printed by implementations of the draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResponsivenessRating {
    /// Below 300 round trips per minute: 200 ms and more each.
    Poor,
    /// Below 1000: 60 ms and more.
    Fair,
    /// Below 6000: 10 ms and more.
    Good,
    /// 6000 and more.
    Excellent,
}

/// Responsiveness under working conditions in round trips per minute ("RPM").
///
/// Figures of different tools are not comparable: handshakes, loads and averages differ. Without TLS the connection's
/// handshake and the request are averaged over two, not three, as the draft specifies for TCP alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Responsiveness {
    /// Round trips per minute of separate connections; `None` when there were none.
    pub foreign: Option<f64>,
    /// Round trips per minute on the connections that generate the load; `None` when there were none.
    pub loaded: Option<f64>,
    /// Mean of both, called RPM in the draft.
    pub round_trips_per_minute: Option<f64>,
}

impl Responsiveness {
    /// Computes the responsiveness from the probes of the last four intervals.
    #[must_use]
    pub fn of(foreign: &[ForeignProbe], loaded: &[Duration]) -> Self {
        let part = |times: Vec<Duration>| trimmed_mean(&times).map(|mean| mean.as_secs_f64());
        let tcp = part(foreign.iter().map(|probe| probe.tcp).collect());
        let tls = part(foreign.iter().filter_map(|probe| probe.tls).collect());
        let request = part(foreign.iter().map(|probe| probe.request).collect());
        let parts: Vec<f64> = [tcp, tls, request].into_iter().flatten().collect();
        let foreign = crate::statistics::SampleSummary::of(&parts).and_then(|summary| per_minute(summary.mean));
        let loaded = part(loaded.to_vec()).and_then(per_minute);
        let both = foreign.zip(loaded).map(|(foreign, loaded)| f64::midpoint(foreign, loaded));
        Self { foreign, loaded, round_trips_per_minute: both.or(foreign).or(loaded) }
    }

    /// Rating; `None` without probes.
    #[must_use]
    pub fn rating(&self) -> Option<ResponsivenessRating> {
        self.round_trips_per_minute.map(|round_trips| match round_trips {
            few if few < 300.0 => ResponsivenessRating::Poor,
            some if some < 1000.0 => ResponsivenessRating::Fair,
            many if many < 6000.0 => ResponsivenessRating::Good,
            _ => ResponsivenessRating::Excellent,
        })
    }
}

/// Mean without the largest 5 % of the samples ("single-sided trimmed mean"); `None` without samples.
#[must_use]
pub fn trimmed_mean(samples: &[Duration]) -> Option<Duration> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let kept = (sorted.len() * TRIMMED_MEAN_PERCENT).div_ceil(100);
    crate::statistics::SampleSummary::of(&sorted[..kept]).map(|summary| summary.mean)
}

fn per_minute(seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| 60.0 / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn the_formula_with_and_without_tls() {
        let probe = |tls| ForeignProbe { tcp: ms(20), tls, request: ms(40) };
        // Separate 60000 / ((20 + 60 + 40) / 3) = 1500, loaded 60000 / 100 = 600.
        let with = Responsiveness::of(&[probe(Some(ms(60))); 10], &[ms(100); 10]);
        assert_eq!((with.foreign, with.loaded, with.round_trips_per_minute), (Some(1500.0), Some(600.0), Some(1050.0)));
        // Without TLS: 60000 / ((20 + 40) / 2) = 2000.
        let without = Responsiveness::of(&[probe(None)], &[ms(100)]);
        assert_eq!((without.foreign, without.rating()), (Some(2000.0), Some(ResponsivenessRating::Good)));
        let alone = Responsiveness::of(&[], &[ms(300)]);
        assert_eq!((alone.round_trips_per_minute, alone.rating()), (Some(200.0), Some(ResponsivenessRating::Poor)));
        assert_eq!(Responsiveness::of(&[], &[]).rating(), None);
    }

    #[test]
    fn the_worst_twentieth_is_left_out() {
        let mut samples = vec![ms(10); 95];
        samples.extend([ms(1000); 5]);
        assert_eq!(trimmed_mean(&samples), Some(ms(10)));
        // Of fewer than twenty none is left out.
        assert_eq!(trimmed_mean(&[ms(10), ms(30)]), Some(ms(20)));
        assert_eq!(trimmed_mean(&[]), None);
    }

    #[test]
    fn ratings_begin_at_their_thresholds() {
        let rating = |micros| Responsiveness::of(&[], &[Duration::from_micros(micros)]).rating();
        assert_eq!(
            [201_000, 200_000, 60_001, 60_000].map(rating),
            [
                Some(ResponsivenessRating::Poor),
                Some(ResponsivenessRating::Fair),
                Some(ResponsivenessRating::Fair),
                Some(ResponsivenessRating::Good)
            ]
        );
        assert_eq!(rating(10_000), Some(ResponsivenessRating::Excellent));
    }
}
