use core::time::Duration;

/// The version of the draft whose formulas these are.
pub const DRAFT: &str = "draft-ietf-ippm-responsiveness-09";

/// The share of readings that the trimmed mean keeps ("TMP").
const TRIMMED_MEAN_PERCENT: usize = 95;

/// A probe on a connection of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignProbe {
    /// From the first SYN to the established connection.
    pub tcp: Duration,
    /// The TLS handshake; `None` without TLS.
    pub tls: Option<Duration>,
    /// From the request to its answer.
    pub request: Duration,
}

/// Rating of a responsiveness, as implementations of the draft print it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rating {
    /// Below 300 round trips per minute: 200 ms and more each.
    Poor,
    /// Below 1000: 60 ms and more.
    Fair,
    /// Below 6000: 10 ms and more.
    Good,
    /// 6000 and more.
    Excellent,
}

/// Responsiveness under working conditions: how many round trips fit in a minute ("RPM").
///
/// Figures of different tools cannot be compared: handshakes, loads and averages differ. Without TLS the connection's
/// handshake and the request are averaged over two, not three, as the draft has it for TCP alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Responsiveness {
    /// Round trips per minute of connections of their own; `None` when there were none.
    pub foreign: Option<f64>,
    /// Round trips per minute on the connections that make the load; `None` when there were none.
    pub loaded: Option<f64>,
    /// The mean of both: what the draft calls RPM.
    pub round_trips_per_minute: Option<f64>,
}

impl Responsiveness {
    /// The responsiveness of the probes of the last four intervals.
    #[must_use]
    pub fn of(foreign: &[ForeignProbe], loaded: &[Duration]) -> Self {
        let part = |times: Vec<Duration>| trimmed_mean(&times).map(|mean| mean.as_secs_f64());
        let tcp = part(foreign.iter().map(|probe| probe.tcp).collect());
        let tls = part(foreign.iter().filter_map(|probe| probe.tls).collect());
        let request = part(foreign.iter().map(|probe| probe.request).collect());
        let parts: Vec<f64> = [tcp, tls, request].into_iter().flatten().collect();
        let foreign = crate::statistics::Summary::of(&parts).and_then(|summary| per_minute(summary.mean));
        let loaded = part(loaded.to_vec()).and_then(per_minute);
        let both = foreign.zip(loaded).map(|(foreign, loaded)| f64::midpoint(foreign, loaded));
        Self { foreign, loaded, round_trips_per_minute: both.or(foreign).or(loaded) }
    }

    /// The rating; `None` without probes.
    #[must_use]
    pub fn rating(&self) -> Option<Rating> {
        self.round_trips_per_minute.map(|round_trips| match round_trips {
            few if few < 300.0 => Rating::Poor,
            some if some < 1000.0 => Rating::Fair,
            many if many < 6000.0 => Rating::Good,
            _ => Rating::Excellent,
        })
    }
}

/// The mean without the largest 5 % of the readings ("single-sided trimmed mean"); `None` of none.
#[must_use]
pub fn trimmed_mean(readings: &[Duration]) -> Option<Duration> {
    let mut sorted = readings.to_vec();
    sorted.sort_unstable();
    let kept = (sorted.len() * TRIMMED_MEAN_PERCENT).div_ceil(100);
    crate::statistics::Summary::of(&sorted[..kept]).map(|summary| summary.mean)
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
        // Foreign 60000 / ((20 + 60 + 40) / 3) = 1500, loaded 60000 / 100 = 600.
        let with = Responsiveness::of(&[probe(Some(ms(60))); 10], &[ms(100); 10]);
        assert_eq!((with.foreign, with.loaded, with.round_trips_per_minute), (Some(1500.0), Some(600.0), Some(1050.0)));
        // Without TLS: 60000 / ((20 + 40) / 2) = 2000.
        let without = Responsiveness::of(&[probe(None)], &[ms(100)]);
        assert_eq!((without.foreign, without.rating()), (Some(2000.0), Some(Rating::Good)));
        let alone = Responsiveness::of(&[], &[ms(300)]);
        assert_eq!((alone.round_trips_per_minute, alone.rating()), (Some(200.0), Some(Rating::Poor)));
        assert_eq!(Responsiveness::of(&[], &[]).rating(), None);
    }

    #[test]
    fn the_worst_twentieth_is_left_out() {
        let mut readings = vec![ms(10); 95];
        readings.extend([ms(1000); 5]);
        assert_eq!(trimmed_mean(&readings), Some(ms(10)));
        // Of fewer than twenty none is left out.
        assert_eq!(trimmed_mean(&[ms(10), ms(30)]), Some(ms(20)));
        assert_eq!(trimmed_mean(&[]), None);
    }

    #[test]
    fn ratings_begin_where_they_say() {
        let rating = |micros| Responsiveness::of(&[], &[Duration::from_micros(micros)]).rating();
        assert_eq!(
            [201_000, 200_000, 60_001, 60_000].map(rating),
            [Some(Rating::Poor), Some(Rating::Fair), Some(Rating::Fair), Some(Rating::Good)]
        );
        assert_eq!(rating(10_000), Some(Rating::Excellent));
    }
}
