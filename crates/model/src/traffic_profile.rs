//! Results of traffic profiles next to a load: what their users perceive.

pub use linerate_analysis::traffic_profiles::TrafficProfile;
use serde::{Deserialize, Serialize};

use super::load::{LatencyGrade, PhaseKind};
use super::summary::DurationDistribution;

/// Result of a profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProfileResult {
    /// Profile.
    pub profile: TrafficProfile,
    /// Grade of the worst phase; `None` when no phase has a grade.
    pub letter: Option<LatencyGrade>,
    /// Results in the order of the phases.
    pub phases: Vec<ProfilePhase>,
}

impl ProfileResult {
    /// Phase with the worst grade; of several, that with the lowest score, or the first one.
    #[must_use]
    pub fn worst(&self) -> Option<&ProfilePhase> {
        let worst = self.phases.iter().filter(|phase| phase.letter.is_some() && phase.letter == self.letter);
        let score = |phase: &ProfilePhase| phase.score().unwrap_or_default();
        worst.min_by(|one, other| score(one).total_cmp(&score(other)))
    }

    /// Lowest mean opinion score of the phases; `None` for other profiles than voice.
    #[must_use]
    pub fn lowest_score(&self) -> Option<f64> {
        self.phases.iter().filter_map(ProfilePhase::score).min_by(f64::total_cmp)
    }
}

/// Result of a profile next to the load of one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProfilePhase {
    /// Load of the phase.
    pub kind: PhaseKind,
    /// Start, in nanoseconds since the measurement began.
    pub start_ns: u64,
    /// End, in nanoseconds since the measurement began.
    pub end_ns: u64,
    /// Grade; `None` for a backup next to a load, and when the profile could not be measured.
    pub letter: Option<LatencyGrade>,
    /// Perception of users, or the reason why it is unknown.
    pub perception: String,
    /// Packets to the far end; `None` for profiles over TCP.
    pub up: Option<ProfilePackets>,
    /// Packets from the far end; `None` for profiles over TCP.
    pub down: Option<ProfilePackets>,
    /// Figures of the profile; `None` when it could not be measured.
    pub figures: Option<ProfileFigures>,
}

impl ProfilePhase {
    /// Mean opinion score; `None` for other profiles than voice.
    #[must_use]
    pub fn score(&self) -> Option<f64> {
        match &self.figures {
            Some(ProfileFigures::Voice(voice)) => Some(voice.mos),
            _ => None,
        }
    }
}

/// Packets of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProfilePackets {
    /// Packets sent.
    pub sent: u64,
    /// Packets that did not arrive.
    pub lost: u64,
    /// Packets that arrived too late: after their playout (voice), after 150 ms (video call), or without an update within
    /// 100 ms (inputs of a game); `None` for updates of a game, and without one-way delays.
    pub late: Option<u64>,
    /// One-way delays of the packets that arrived; `None` without packets, and when the clocks could not be compared.
    pub delay: Option<DurationDistribution>,
    /// Largest error of the delays, by the offset of the clocks.
    pub delay_error_ns: Option<u64>,
}

/// Figures of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ProfileFigures {
    /// Telephone call.
    Voice(VoiceFigures),
    /// Online game.
    Game(GameFigures),
    /// Video call.
    VideoCall(VideoCallFigures),
    /// Video stream.
    Streaming(StreamingResult),
    /// Backup.
    Backup(BackupFigures),
}

/// Figures of a telephone call, by the E-model (ITU-T G.107).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VoiceFigures {
    /// Mean opinion score of the worse direction, 1 to 4.5.
    pub mos: f64,
    /// Rating R of the worse direction, 93.2 at best; 0 when nothing was heard.
    pub r_factor: f64,
    /// One-way delay from mouth to ear, the mean of both directions; `None` when nothing arrived in a direction.
    pub mouth_to_ear_ns: Option<u64>,
    /// Speech that the far end hears; `None` when nothing arrived.
    pub up: Option<VoiceDirection>,
    /// Speech that this end hears; `None` when nothing arrived.
    pub down: Option<VoiceDirection>,
}

/// Speech of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VoiceDirection {
    /// Mean opinion score, 1 to 4.5.
    pub mos: f64,
    /// Time from sending to playing: the one that gives the best score.
    pub playout_ns: u64,
    /// Share of the packets that were lost or arrived after their playout.
    pub missing_share: f64,
    /// Mean length of runs of such packets, relative to random loss; 1 at least.
    pub burst_ratio: f64,
}

/// Figures of an online game.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GameFigures {
    /// Time from an input to the first update that the server sent after its arrival; `None` when none came.
    pub reaction: Option<DurationDistribution>,
    /// Deadline of a reaction.
    pub deadline_ns: u64,
    /// Share of the inputs without a reaction within the deadline.
    pub missed_share: f64,
}

/// Figures of a video call.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VideoCallFigures {
    /// Picture that the far end sees.
    pub up: VideoFigures,
    /// Picture that this end sees.
    pub down: VideoFigures,
}

/// Picture of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VideoFigures {
    /// Frames sent.
    pub frames: u64,
    /// Frames of which a packet was lost.
    pub incomplete: u64,
    /// Complete frames after their deadline.
    pub late: u64,
    /// Deadline of a frame.
    pub deadline_ns: u64,
    /// Freezes per minute (W3C webrtc-stats).
    pub freezes_per_minute: f64,
    /// Share of the time in which the picture was frozen.
    pub frozen_share: f64,
    /// One-way delays of the complete frames; `None` without one.
    pub delay: Option<DurationDistribution>,
}

/// Figures of a video stream.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StreamingResult {
    /// Time until the first segment was complete; `None` when none was.
    pub startup_ns: Option<u64>,
    /// Complete segments of 4 s.
    pub segments: u64,
    /// Mean bit rate of the segments; `None` without any.
    pub mean_bits_per_second: Option<f64>,
    /// Interruptions of the playback.
    pub stalls: u64,
    /// Share of the time since the start of playback in which it was interrupted.
    pub stalled_share: f64,
}

/// Figures of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BackupFigures {
    /// Payload rate.
    pub goodput_bits_per_second: f64,
    /// The same as a share of its rate in the idle phase; `None` without that.
    pub idle_share: Option<f64>,
    /// 95th percentile of the round trips while it ran, less the idle median; `None` without round trips.
    pub added_p95_ns: Option<i64>,
}
