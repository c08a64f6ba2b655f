use core::time::Duration;

use linerate_units::{PacketCount, Ratio};

use super::PacketFlow;
use crate::latency_under_load::LatencyGrade;

/// One-way delay that conversations bear without harm (ITU-T G.114 §4), and a frame's deadline.
const DEADLINE: Duration = Duration::from_millis(150);

/// Gap between two frames beyond the usual one from which users see a freeze (W3C webrtc-stats, `freezeCount`).
const FREEZE_EXCESS: Duration = Duration::from_millis(150);

/// One direction of a video call: frames that are shown or missing.
///
/// A frame is shown when all its packets arrive in time. Each frame counts by itself: retransmissions, which repair a
/// loss on short paths, and references between frames, which spread it, are both left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VideoStream {
    /// Frames sent.
    pub frames: u64,
    /// Frames of which a packet was lost.
    pub incomplete: u64,
    /// Complete frames after their deadline.
    pub late: u64,
    /// Freezes: gaps between shown frames of three times the usual one, and at least 150 ms longer than it.
    pub freezes: u64,
    /// Total duration of the freezes.
    pub frozen: Duration,
    /// Duration of all frames.
    pub time: Duration,
    /// Delays of the complete frames.
    pub delays: Vec<Duration>,
}

impl VideoStream {
    /// Deadline of a frame, from the sending of its first packet to the arrival of its last one.
    pub const DEADLINE: Duration = DEADLINE;

    /// Frames of a flow whose packets have these delays, in the order of sending; `None` for a lost packet. The packets of
    /// a frame leave together. `None` for a flow without frames.
    #[must_use]
    pub fn of(flow: &PacketFlow, packets: &[Option<Duration>]) -> Option<Self> {
        let frames = packets.chunks(usize::from(flow.burst.max(1)));
        let frames: Vec<Option<Duration>> = frames
            .map(|frame| frame.iter().try_fold(Duration::ZERO, |most, delay| Some(most.max((*delay)?))))
            .collect();
        let count = u32::try_from(frames.len()).ok().filter(|count| *count > 0)?;
        let is_shown = |frame: &Option<Duration>| frame.is_some_and(|delay| delay <= DEADLINE);
        let missing_runs =
            frames.chunk_by(|one, other| is_shown(one) == is_shown(other)).filter(|run| !is_shown(&run[0]));
        let gap = |missing: usize| flow.interval * (u32::try_from(missing).unwrap_or(u32::MAX) + 1);
        let longest_usual = (flow.interval * 3).max(flow.interval + FREEZE_EXCESS);
        let freezes: Vec<Duration> = missing_runs
            .map(|run| gap(run.len()))
            .filter(|gap| *gap >= longest_usual)
            .map(|gap| gap.saturating_sub(flow.interval))
            .collect();
        let delays: Vec<Duration> = frames.iter().copied().flatten().collect();
        Some(Self {
            frames: u64::from(count),
            incomplete: (frames.len() - delays.len()) as u64,
            late: delays.iter().filter(|delay| **delay > DEADLINE).count() as u64,
            freezes: freezes.len() as u64,
            frozen: freezes.iter().sum(),
            time: flow.interval * count,
            delays,
        })
    }

    /// Share of the frames that are not shown.
    #[must_use]
    pub fn missing_share(&self) -> Ratio {
        let number = |count: u64| PacketCount::new(count).as_f64();
        Ratio::of(number(self.incomplete + self.late), number(self.frames)).unwrap_or_default()
    }

    /// Share of the time in which the picture is frozen.
    #[must_use]
    pub fn frozen_share(&self) -> Ratio {
        Ratio::of(self.frozen.as_secs_f64(), self.time.as_secs_f64()).unwrap_or_default()
    }

    /// Grade by the frames that are missing: A up to 1 %, B up to 5 %, C up to 15 %, D up to 40 %; C at best with a freeze,
    /// D when the picture is frozen for more than 5 % of the time, F for more than 20 %.
    #[must_use]
    pub fn grade(&self) -> LatencyGrade {
        let by_frames = match self.missing_share().percent() {
            missing if missing <= 1.0 => LatencyGrade::A,
            missing if missing <= 5.0 => LatencyGrade::B,
            missing if missing <= 15.0 => LatencyGrade::C,
            missing if missing <= 40.0 => LatencyGrade::D,
            _ => LatencyGrade::F,
        };
        let by_freezes = match self.frozen_share().percent() {
            _ if self.freezes == 0 => LatencyGrade::A,
            frozen if frozen <= 5.0 => LatencyGrade::C,
            frozen if frozen <= 20.0 => LatencyGrade::D,
            _ => LatencyGrade::F,
        };
        by_frames.max(by_freezes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use linerate_units::ByteCount;

    const FLOW: PacketFlow = PacketFlow { size: ByteCount::new(1000), burst: 2, interval: Duration::from_millis(40) };

    fn stream(packets: &[Option<u64>]) -> VideoStream {
        let packets: Vec<Option<Duration>> = packets.iter().map(|delay| delay.map(Duration::from_millis)).collect();
        VideoStream::of(&FLOW, &packets).expect("frames")
    }

    #[test]
    fn a_frame_has_the_delay_of_its_last_packet() {
        let found = stream(&[Some(10), Some(30), None, Some(10), Some(20), Some(151), Some(150), Some(9)]);
        assert_eq!((found.frames, found.incomplete, found.late, found.freezes), (4, 1, 1, 0));
        assert_eq!(found.delays, [30, 151, 150].map(Duration::from_millis));
        assert_eq!(found.grade(), LatencyGrade::F, "half of the frames");
        assert_eq!(VideoStream::of(&FLOW, &[]), None);
    }

    #[test]
    fn a_gap_of_190_milliseconds_is_a_freeze() {
        // Four missing frames make a gap of 200 ms, three one of 160 ms.
        let with_gap = |missing: usize| {
            let mut packets = vec![Some(20); 400];
            packets[100..100 + 2 * missing].fill(None);
            stream(&packets)
        };
        let (short, long) = (with_gap(3), with_gap(4));
        assert_eq!((short.freezes, short.grade()), (0, LatencyGrade::B));
        assert_eq!((long.freezes, long.frozen, long.grade()), (1, Duration::from_millis(160), LatencyGrade::C));
        assert_eq!(stream(&[None; 100]).grade(), LatencyGrade::F);
        assert_eq!(stream(&[Some(20); 100]).grade(), LatencyGrade::A);
    }

    proptest! {
        #[test]
        fn losing_another_packet_is_never_better(
            packets in proptest::collection::vec(proptest::option::weighted(0.9, 1_u64..300), 2..200), place in 0_usize..1000
        ) {
            let before = stream(&packets);
            let mut fewer = packets;
            let place = place % fewer.len();
            fewer[place] = None;
            let after = stream(&fewer);
            prop_assert!(after.grade() >= before.grade());
            prop_assert!(after.frozen >= before.frozen && after.frozen <= after.time);
        }
    }
}
