use core::time::Duration;

use linerate_units::{BitRate, ByteCount};
use serde::{Deserialize, Serialize};

use crate::latency_under_load::LatencyGrade;

/// Traffic of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TrafficProfile {
    /// Telephone call: G.711 in packets of 20 ms over UDP, in both directions.
    Voice,
    /// Online game: 60 inputs and 60 updates a second over UDP.
    Game,
    /// Video call: 30 frames a second over UDP, in both directions.
    VideoCall,
    /// Video stream: segments over TCP, from the server.
    Streaming,
    /// Backup: bulk data on one TCP connection, to the server.
    Backup,
}

/// Packets of one direction: bursts of equal packets at equal intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketFlow {
    /// UDP payload of a packet.
    pub size: ByteCount,
    /// Packets that leave together.
    pub burst: u16,
    /// Time between two bursts.
    pub interval: Duration,
}

impl PacketFlow {
    const fn new(size: u64, burst: u16, interval: Duration) -> Self {
        Self { size: ByteCount::new(size), burst, interval }
    }

    /// Mean rate of the UDP payload.
    #[must_use]
    pub fn rate(&self) -> BitRate {
        ByteCount::new(self.size.get() * u64::from(self.burst)).rate_over(self.interval)
    }

    /// Packets of whole bursts in this time, at least one burst.
    #[must_use]
    pub fn packets_in(&self, time: Duration) -> u64 {
        let bursts = (time.as_nanos() / self.interval.as_nanos().max(1)).max(1);
        u64::try_from(bursts).unwrap_or(u64::MAX).saturating_mul(u64::from(self.burst))
    }
}

/// RFC 3551 §4.2: G.711 in packets of 20 ms, 160 bytes, after 12 bytes of RTP.
const VOICE: PacketFlow = PacketFlow::new(172, 1, Duration::from_millis(20));

/// Ticks of common servers: 60 to 64 a second. Clients send some tens of bytes, servers some hundred (Feng et al. 2002).
const GAME_TICK: Duration = Duration::from_nanos(16_666_667);
const GAME_INPUT: PacketFlow = PacketFlow::new(64, 1, GAME_TICK);
const GAME_UPDATE: PacketFlow = PacketFlow::new(200, 1, GAME_TICK);

/// 2.5 Mbit/s at 720p and packets of at most 1200 bytes, as libwebrtc has by default: 9 packets a frame.
const VIDEO_FRAME: PacketFlow = PacketFlow::new(1157, 9, Duration::from_nanos(33_333_333));

impl TrafficProfile {
    /// All profiles, in display order.
    pub const ALL: [Self; 5] = [Self::Voice, Self::Game, Self::VideoCall, Self::Streaming, Self::Backup];

    /// Name on command lines and in texts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Voice => "voice",
            Self::Game => "game",
            Self::VideoCall => "video-call",
            Self::Streaming => "streaming",
            Self::Backup => "backup",
        }
    }

    /// Packets to the far end and from it; `None` for profiles over TCP.
    #[must_use]
    pub const fn flows(self) -> Option<(PacketFlow, PacketFlow)> {
        match self {
            Self::Voice => Some((VOICE, VOICE)),
            Self::Game => Some((GAME_INPUT, GAME_UPDATE)),
            Self::VideoCall => Some((VIDEO_FRAME, VIDEO_FRAME)),
            Self::Streaming | Self::Backup => None,
        }
    }

    /// Time for which the profile runs next to a phase whose own time is `phase`: a stream needs several segments.
    #[must_use]
    pub fn duration(self, phase: Duration) -> Duration {
        if self == Self::Streaming { phase.max(SEGMENTS_TIME) } else { phase }
    }

    /// Perception of users at this grade.
    #[must_use]
    pub const fn perception(self, grade: LatencyGrade) -> &'static str {
        use LatencyGrade::{A, APlus, B, C, D, F};
        match (self, grade) {
            (Self::Voice, APlus | A) => "users very satisfied",
            (Self::Voice, B) => "users satisfied",
            (Self::Voice, C) => "some users dissatisfied",
            (Self::Voice, D) => "many users dissatisfied",
            (Self::Voice, F) => "nearly all users dissatisfied",
            (Self::Game, APlus | A) => "responsive",
            (Self::Game, B) => "playable",
            (Self::Game, C) => "noticeable lag",
            (Self::Game, D) => "lagging",
            (Self::Game | Self::VideoCall, F) => "unusable",
            (Self::VideoCall, APlus | A) => "smooth",
            (Self::VideoCall, B) => "nearly smooth",
            (Self::VideoCall, C) => "jerky",
            (Self::VideoCall, D) => "freezes",
            (Self::Streaming, APlus | A) => "starts at once, no stalls",
            (Self::Streaming, B) => "no stalls",
            (Self::Streaming, C) => "slow start or short stalls",
            (Self::Streaming, D) => "stalls",
            (Self::Streaming, F) => "unwatchable",
            (Self::Backup, APlus | A) => "others do not notice it",
            (Self::Backup, B) => "others hardly notice it",
            (Self::Backup, C) => "slows others",
            (Self::Backup, D) => "disturbs others",
            (Self::Backup, F) => "blocks others",
        }
    }
}

/// Shortest run of a stream: five segments of its content.
const SEGMENTS_TIME: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_have_the_rates_of_their_sources() {
        let rates = |profile: TrafficProfile| profile.flows().map(|(up, down)| (up.rate(), down.rate()));
        let kilobits = |rate: BitRate| (rate.bits_per_second() / 1e3).round();
        for (profile, up, down) in [
            (TrafficProfile::Voice, 69.0, 69.0),
            (TrafficProfile::Game, 31.0, 96.0),
            (TrafficProfile::VideoCall, 2499.0, 2499.0),
        ] {
            let (found_up, found_down) = rates(profile).expect("packets");
            assert_eq!((kilobits(found_up), kilobits(found_down)), (up, down), "{profile:?}");
        }
        assert_eq!(TrafficProfile::Backup.flows(), None);
        assert_eq!(VOICE.packets_in(Duration::from_secs(10)), 500);
        assert_eq!(VIDEO_FRAME.packets_in(Duration::from_secs(10)), 2700);
        assert_eq!(VIDEO_FRAME.packets_in(Duration::ZERO), 9);
    }

    #[test]
    fn a_stream_runs_for_five_segments_at_least() {
        let ten = Duration::from_secs(10);
        assert_eq!(TrafficProfile::Streaming.duration(ten), Duration::from_secs(20));
        assert_eq!(TrafficProfile::Voice.duration(ten), ten);
    }
}
