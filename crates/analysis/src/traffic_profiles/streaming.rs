use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Ratio};

use crate::latency_under_load::LatencyGrade;

/// Content of a segment; services use 2 to 6 s.
pub const SEGMENT_TIME: Duration = Duration::from_secs(4);

/// Sizes of a segment at the bit rates 0.5, 1, 2.5 and 5 Mbit/s. Services ask for the highest at 1080p (Netflix: 5 Mbit/s).
pub const LADDER: [ByteCount; 4] =
    [ByteCount::new(250_000), ByteCount::new(500_000), ByteCount::new(1_250_000), ByteCount::new(2_500_000)];

/// Index of the first segment's size.
const FIRST_RATE: usize = 1;

/// Share of the last segment's throughput that the next segment's rate may have.
const RATE_MARGIN: f64 = 0.8;

/// Content that the player keeps ahead.
const MAX_AHEAD: Duration = Duration::from_secs(12);

/// Startup times: viewers begin to leave after 2 s (Krishnan and Sitaraman 2012), and bear at most a few.
const MAX_PROMPT_STARTUP: Duration = Duration::from_secs(2);
const MAX_STARTUP: Duration = Duration::from_secs(5);

/// Segment to request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MediaSegment {
    /// Bit rate.
    pub rate: BitRate,
    /// Size.
    pub size: ByteCount,
}

impl MediaSegment {
    fn new(size: ByteCount) -> Self {
        Self { rate: size.rate_over(SEGMENT_TIME), size }
    }
}

/// Player of a video stream: requests a segment at a time, at a rate that the last one's throughput allows, and plays from
/// the first complete segment on. All times are since the first request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamingPlayer {
    startup: Option<Duration>,
    /// Time until which the content suffices.
    content_until: Duration,
    stalls: u64,
    stalled: Duration,
    /// Rates of the complete segments, in bit/s.
    rates: Vec<f64>,
    throughput: Option<BitRate>,
}

impl StreamingPlayer {
    /// Time of the next request: at once, or when there is space for a segment.
    #[must_use]
    pub fn next_request(&self) -> Duration {
        (self.content_until + SEGMENT_TIME).saturating_sub(MAX_AHEAD)
    }

    /// Segment of the next request.
    #[must_use]
    pub fn segment(&self) -> MediaSegment {
        let Some(throughput) = self.throughput else { return MediaSegment::new(LADDER[FIRST_RATE]) };
        let fits = |segment: &MediaSegment| segment.rate <= throughput * RATE_MARGIN;
        LADDER.into_iter().rev().map(MediaSegment::new).find(fits).unwrap_or(MediaSegment::new(LADDER[0]))
    }

    /// Notes that a segment requested at one time was complete at another.
    pub fn complete(&mut self, segment: MediaSegment, requested: Duration, now: Duration) {
        if self.startup.is_none() {
            self.startup = Some(now);
            self.content_until = now;
        }
        if now > self.content_until {
            self.stalls += 1;
            self.stalled += now.saturating_sub(self.content_until);
            self.content_until = now;
        }
        self.content_until += SEGMENT_TIME;
        self.rates.push(segment.rate.bits_per_second());
        self.throughput = Some(segment.size.rate_over(now.saturating_sub(requested).max(Duration::from_micros(1))));
    }

    /// Figures at the end of the run.
    #[must_use]
    pub fn finish(mut self, end: Duration) -> StreamingFigures {
        if self.startup.is_some() && end > self.content_until {
            self.stalls += 1;
            self.stalled += end.saturating_sub(self.content_until);
        }
        let count = u32::try_from(self.rates.len()).unwrap_or(u32::MAX);
        let mean = self.rates.iter().sum::<f64>() / f64::from(count.max(1));
        StreamingFigures {
            startup: self.startup,
            segments: u64::from(count),
            mean_rate: (count > 0).then(|| BitRate::from_bits_per_second(mean)),
            stalls: self.stalls,
            stalled: self.stalled,
            time: end.saturating_sub(self.startup.unwrap_or(end)),
        }
    }
}

/// Experience of a viewer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamingFigures {
    /// Time until the first segment was complete; `None` when none was.
    pub startup: Option<Duration>,
    /// Complete segments.
    pub segments: u64,
    /// Mean bit rate of the segments; `None` without any.
    pub mean_rate: Option<BitRate>,
    /// Interruptions.
    pub stalls: u64,
    /// Total duration of the interruptions.
    pub stalled: Duration,
    /// Time from the start of playback to the end of the run.
    pub time: Duration,
}

impl StreamingFigures {
    /// Share of the time in which playback was interrupted.
    #[must_use]
    pub fn stalled_share(&self) -> Ratio {
        Ratio::of(self.stalled.as_secs_f64(), self.time.as_secs_f64()).unwrap_or_default()
    }

    /// Grade: A without stalls, with a startup of up to 2 s and half of the highest rate on average; B without stalls and
    /// up to 5 s; C when at most 2 % of the time is stalled, D 10 %; F above, and when playback never started.
    #[must_use]
    pub fn grade(&self) -> LatencyGrade {
        let Some(startup) = self.startup else { return LatencyGrade::F };
        let is_sharp =
            self.mean_rate.is_some_and(|rate| rate * 2.0 >= MediaSegment::new(LADDER[LADDER.len() - 1]).rate);
        match self.stalled_share().percent() {
            _ if self.stalls == 0 && startup <= MAX_PROMPT_STARTUP && is_sharp => LatencyGrade::A,
            _ if self.stalls == 0 && startup <= MAX_STARTUP => LatencyGrade::B,
            stalled if stalled <= 2.0 => LatencyGrade::C,
            stalled if stalled <= 10.0 => LatencyGrade::D,
            _ => LatencyGrade::F,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Stream for 20 s over a link of this many Mbit/s.
    fn stream(megabits: f64) -> StreamingFigures {
        let end = Duration::from_secs(20);
        let mut player = StreamingPlayer::default();
        let mut now = Duration::ZERO;
        loop {
            let requested = now.max(player.next_request());
            let segment = player.segment();
            let took = segment.size / BitRate::from_bits_per_second(megabits * 1e6);
            now = requested + took.unwrap_or(end);
            if now > end {
                return player.finish(end);
            }
            player.complete(segment, requested, now);
        }
    }

    #[test]
    fn a_fast_link_reaches_the_highest_rate_without_stalls() {
        let found = stream(50.0);
        // The first segment has 4 Mbit.
        assert_eq!(found.startup, Some(Duration::from_millis(80)));
        assert_eq!((found.stalls, found.grade()), (0, LatencyGrade::A));
        // 12 s ahead and 20 s played: seven segments.
        assert_eq!(found.segments, 7);
        assert!((found.mean_rate.expect("segments").bits_per_second() - 31e6 / 7.0).abs() < 1.0, "{found:?}");
    }

    #[test]
    fn a_slow_link_plays_a_lower_rate_and_a_slower_one_stalls() {
        let slow = stream(1.5);
        assert_eq!((slow.stalls, slow.grade()), (0, LatencyGrade::B), "{slow:?}");
        let slower = stream(0.4);
        assert_eq!((slower.startup, slower.grade()), (Some(Duration::from_secs(10)), LatencyGrade::F), "{slower:?}");
        assert_eq!((slower.stalls, slower.stalled), (2, Duration::from_secs(2)), "{slower:?}");
        assert_eq!((stream(0.1).startup, stream(0.1).grade()), (None, LatencyGrade::F));
    }

    proptest! {
        #[test]
        fn a_viewer_is_never_stalled_for_longer_than_the_run(megabits in 0.05..20.0_f64) {
            let found = stream(megabits);
            prop_assert!(found.stalled <= found.time && found.time <= Duration::from_secs(20));
            prop_assert!(found.stalled_share().get() <= 1.0);
        }
    }
}
