//! Conclusions about profiles from their packets: no clocks, no sockets.

use core::time::Duration;

use linerate_analysis::ippm::ClockRelation;
use linerate_analysis::latency_under_load::{LatencyClass, LatencyGrade};
use linerate_analysis::statistics::SampleSummary;
use linerate_analysis::traffic_profiles::{
    GameInput, GameSession, GameUpdate, PlayedVoice, StreamingFigures, TrafficProfile, VideoStream, VoiceCall,
};
use linerate_model::direction::Direction;
use linerate_model::load::PhaseKind;
use linerate_model::summary::DurationDistribution;
use linerate_model::traffic_profile::{
    BackupFigures, GameFigures, ProfileFigures, ProfilePackets, ProfilePhase, ProfileResult, StreamingResult,
    VideoCallFigures, VideoFigures, VoiceDirection, VoiceFigures,
};
use linerate_units::serde::nanoseconds;
use linerate_units::{BitRate, ByteCount, MonotonicTime, WallTime, display};

use super::super::evidence::{CountingWindow, LoadEvidence};
use super::super::summary::round_trips;
use super::super::verdict::rest;
use super::{FlowEvidence, ProfileEvidence, ProfileTraffic};

/// Reason why packets have no one-way delays.
const NO_CLOCKS: &str = "no UDP probe was answered, so that the clocks of the hosts cannot be compared";

/// Results of all profiles, in the order in which they ran first.
pub(in super::super) fn results(evidence: &LoadEvidence, started: MonotonicTime) -> Vec<ProfileResult> {
    let mut profiles: Vec<TrafficProfile> = Vec::new();
    for found in &evidence.profiles {
        if !profiles.contains(&found.profile) {
            profiles.push(found.profile);
        }
    }
    let result = |profile: TrafficProfile| {
        let of = evidence.profiles.iter().filter(|found| found.profile == profile);
        let phases: Vec<ProfilePhase> = of.map(|found| describe(evidence, found, started)).collect();
        let letter = phases.iter().filter_map(|phase| phase.letter).max();
        ProfileResult { profile, letter, phases }
    };
    profiles.into_iter().map(result).collect()
}

/// Conclusion about the traffic of a profile in a phase.
struct Conclusion {
    letter: Option<LatencyGrade>,
    /// Perception, where it does not follow from the letter.
    text: Option<String>,
    packets: Option<(ProfilePackets, ProfilePackets)>,
    figures: Option<ProfileFigures>,
}

impl Conclusion {
    fn graded(letter: LatencyGrade, figures: &ProfileFigures) -> Self {
        Self { letter: Some(letter), text: None, packets: None, figures: Some(*figures) }
    }

    fn unknown(reason: &str) -> Self {
        Self { letter: None, text: Some(reason.to_owned()), packets: None, figures: None }
    }
}

fn describe(evidence: &LoadEvidence, found: &ProfileEvidence, started: MonotonicTime) -> ProfilePhase {
    let conclusion = match &found.traffic {
        Err(reason) => Conclusion::unknown(reason),
        Ok(ProfileTraffic::Packets { up, down }) => packets(evidence, found.profile, up, down),
        Ok(ProfileTraffic::Stream(figures)) => stream(figures),
        Ok(ProfileTraffic::Bulk { payload, time }) => backup(evidence, found, *payload, *time),
    };
    let perceived = conclusion.letter.map(|letter| found.profile.perception(letter).to_owned());
    ProfilePhase {
        kind: found.phase,
        start_ns: nanoseconds(found.window.from.since(started)),
        end_ns: nanoseconds(found.window.to.since(started)),
        letter: conclusion.letter,
        perception: conclusion.text.or(perceived).unwrap_or_default(),
        up: conclusion.packets.map(|(up, _)| up),
        down: conclusion.packets.map(|(_, down)| down),
        figures: conclusion.figures,
    }
}

fn packets(
    evidence: &LoadEvidence,
    profile: TrafficProfile,
    sent_up: &FlowEvidence,
    sent_down: &FlowEvidence,
) -> Conclusion {
    let clocks = evidence.clocks.as_ref();
    let (up, down) = (delays(sent_up, Direction::Up, clocks), delays(sent_down, Direction::Down, clocks));
    let (mut packets_up, mut packets_down) = (counts(sent_up, &up, clocks), counts(sent_down, &down, clocks));
    let mut conclusion = match profile {
        TrafficProfile::Game => {
            let session = game_session(sent_up, sent_down);
            packets_up.late = Some(session.missed().saturating_sub(packets_up.lost));
            game(&session)
        }
        _ if clocks.is_none() => Conclusion::unknown(NO_CLOCKS),
        TrafficProfile::VideoCall => {
            let Some((flow_up, flow_down)) = profile.flows() else { return Conclusion::unknown(NO_CLOCKS) };
            let in_time = |delays: &[Option<Duration>]| {
                delays.iter().flatten().filter(|delay| **delay > VideoStream::DEADLINE).count() as u64
            };
            (packets_up.late, packets_down.late) = (Some(in_time(&up)), Some(in_time(&down)));
            match (VideoStream::of(&flow_up, &up), VideoStream::of(&flow_down, &down)) {
                (Some(up), Some(down)) => video_call(&up, &down),
                _ => Conclusion::unknown("a direction sent no frame"),
            }
        }
        _ => {
            let call = VoiceCall::of(&up, &down);
            let late = |played: Option<PlayedVoice>| Some(played.map_or(0, |played| played.late));
            (packets_up.late, packets_down.late) = (late(call.up), late(call.down));
            voice(&call)
        }
    };
    conclusion.packets = Some((packets_up, packets_down));
    conclusion
}

/// One-way delays by number; `None` for a lost packet, and for all without a relation of the clocks.
fn delays(flow: &FlowEvidence, direction: Direction, clocks: Option<&ClockRelation>) -> Vec<Option<Duration>> {
    let mut delays = vec![None; usize::try_from(flow.sent).unwrap_or(0)];
    let Some(clocks) = clocks else { return delays };
    for packet in &flow.packets {
        let Some(delay) = usize::try_from(packet.sequence).ok().and_then(|number| delays.get_mut(number)) else {
            continue;
        };
        let (sent, arrived) = (monotonic(packet.sent), monotonic(packet.arrived));
        let found = match direction {
            Direction::Up => clocks.delay_to_far(sent, arrived),
            Direction::Down => clocks.delay_to_near(sent, arrived),
        };
        // The first of duplicates counts; negative delays are within the error of the clocks.
        delay.get_or_insert(found.allow_zero());
    }
    delays
}

/// Civil time as a monotonic time: only differences are meaningful.
fn monotonic(time: WallTime) -> MonotonicTime {
    MonotonicTime::from_nanos(nanoseconds(time.since_unix_epoch()))
}

fn counts(flow: &FlowEvidence, delays: &[Option<Duration>], clocks: Option<&ClockRelation>) -> ProfilePackets {
    let mut arrived: Vec<u32> = flow.packets.iter().map(|packet| packet.sequence).collect();
    arrived.retain(|sequence| u64::from(*sequence) < flow.sent);
    arrived.sort_unstable();
    arrived.dedup();
    let mut known: Vec<Duration> = delays.iter().copied().flatten().collect();
    ProfilePackets {
        sent: flow.sent,
        lost: flow.sent - arrived.len() as u64,
        late: None,
        delay: DurationDistribution::of(&mut known),
        delay_error_ns: clocks.map(|clocks| nanoseconds(clocks.error_bound)),
    }
}

fn voice(call: &VoiceCall) -> Conclusion {
    let direction = |played: Option<PlayedVoice>| {
        let heard = played?;
        Some(VoiceDirection {
            mos: call.rating(played).mean_opinion_score(),
            playout_ns: nanoseconds(heard.playout),
            missing_share: heard.loss().get(),
            burst_ratio: heard.burst_ratio.get(),
        })
    };
    let rating = call.worse_rating();
    let figures = VoiceFigures {
        mos: rating.mean_opinion_score(),
        r_factor: rating.get().max(0.0),
        mouth_to_ear_ns: call.delay().map(nanoseconds),
        up: direction(call.up),
        down: direction(call.down),
    };
    Conclusion::graded(call.grade(), &ProfileFigures::Voice(figures))
}

fn game_session(up: &FlowEvidence, down: &FlowEvidence) -> GameSession {
    let mut inputs: Vec<GameInput> = Vec::new();
    let mut numbered: Vec<_> = up.packets.iter().collect();
    numbered.sort_by_key(|packet| (packet.sequence, packet.arrived));
    numbered.dedup_by_key(|packet| packet.sequence);
    for packet in numbered {
        let (sent, arrived) = (packet.sent.since_unix_epoch(), packet.arrived.since_unix_epoch());
        inputs.push(GameInput { sent, arrived: Some(arrived) });
    }
    let lost = usize::try_from(up.sent).unwrap_or(0).saturating_sub(inputs.len());
    inputs.extend((0..lost).map(|_| GameInput { sent: Duration::ZERO, arrived: None }));
    let update = |packet: &crate::probe::messages::PacketRecord| GameUpdate {
        sent: packet.sent.since_unix_epoch(),
        arrived: packet.arrived.since_unix_epoch(),
    };
    GameSession::of(&inputs, &down.packets.iter().map(update).collect::<Vec<_>>())
}

fn game(session: &GameSession) -> Conclusion {
    let Some((letter, missed)) = session.grade().zip(session.missed_share()) else {
        return Conclusion::unknown("no input was sent");
    };
    let mut reactions: Vec<Duration> = session.reactions.iter().copied().flatten().collect();
    let figures = GameFigures {
        reaction: DurationDistribution::of(&mut reactions),
        deadline_ns: nanoseconds(GameSession::DEADLINE),
        missed_share: missed.get(),
    };
    Conclusion::graded(letter, &ProfileFigures::Game(figures))
}

fn video_call(up: &VideoStream, down: &VideoStream) -> Conclusion {
    let figures = VideoCallFigures { up: video(up), down: video(down) };
    Conclusion::graded(up.grade().max(down.grade()), &ProfileFigures::VideoCall(figures))
}

fn video(stream: &VideoStream) -> VideoFigures {
    let minutes = stream.time.as_secs_f64() / 60.0;
    let freezes = ByteCount::new(stream.freezes).as_f64();
    VideoFigures {
        frames: stream.frames,
        incomplete: stream.incomplete,
        late: stream.late,
        deadline_ns: nanoseconds(VideoStream::DEADLINE),
        freezes_per_minute: freezes / minutes,
        frozen_share: stream.frozen_share().get(),
        delay: DurationDistribution::of(&mut stream.delays.clone()),
    }
}

fn stream(figures: &StreamingFigures) -> Conclusion {
    let result = StreamingResult {
        startup_ns: figures.startup.map(nanoseconds),
        segments: figures.segments,
        mean_bits_per_second: figures.mean_rate.map(BitRate::bits_per_second),
        stalls: figures.stalls,
        stalled_share: figures.stalled_share().get(),
    };
    Conclusion::graded(figures.grade(), &ProfileFigures::Streaming(result))
}

/// A backup is graded by the delay that it adds to others on the idle path; next to a load by nothing: it has its share.
fn backup(evidence: &LoadEvidence, found: &ProfileEvidence, payload: ByteCount, time: Duration) -> Conclusion {
    let goodput = payload.rate_over(time);
    let idle = evidence.profiles.iter().find_map(|other| match &other.traffic {
        Ok(ProfileTraffic::Bulk { payload, time }) if other.phase == PhaseKind::Idle => Some(payload.rate_over(*time)),
        _ => None,
    });
    let idle_share = idle.and_then(|idle| goodput / idle);
    let added = added_delay(evidence, found.window);
    let figures = ProfileFigures::Backup(BackupFigures {
        goodput_bits_per_second: goodput.bits_per_second(),
        idle_share: idle_share.map(linerate_units::Ratio::get),
        added_p95_ns: added,
    });
    if found.phase == PhaseKind::Idle {
        let Some(added) = added else { return Conclusion { figures: Some(figures), ..Conclusion::unknown(NO_CLOCKS) } };
        return Conclusion::graded(LatencyGrade::of(Duration::from_nanos(u64::try_from(added).unwrap_or(0))), &figures);
    }
    let share = idle_share.map(|share| format!(", {:.0} % of its idle rate", share.percent()));
    let text = format!("{}{}", display::rate(goodput), share.unwrap_or_default());
    Conclusion { letter: None, text: Some(text), packets: None, figures: Some(figures) }
}

fn added_delay(evidence: &LoadEvidence, window: CountingWindow) -> Option<i64> {
    let idle = rest(evidence, LatencyClass::UdpBestEffort).summary?.median;
    let class = evidence.class(LatencyClass::UdpBestEffort)?;
    let loaded = SampleSummary::of(&round_trips(&class.within(window)))?.p95;
    nanoseconds(loaded).cast_signed().checked_sub(nanoseconds(idle).cast_signed())
}
