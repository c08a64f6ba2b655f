//! Traffic profiles, from their packets.

use core::time::Duration;

use linerate_analysis::ippm::{ClockRelation, RoundTrip};
use linerate_analysis::latency_under_load::{LatencyClass, LatencyGrade};
use linerate_analysis::traffic_profiles::TrafficProfile;
use linerate_model::load::PhaseKind;
use linerate_model::path::PeerKind;
use linerate_model::traffic_profile::{ProfileFigures, ProfileResult};
use linerate_units::{ByteCount, MonotonicTime, WallTime};

use crate::probe::messages::PacketRecord;

use super::super::evidence::LoadEvidence;
use super::super::profiles::{FlowEvidence, ProfileEvidence, ProfileTraffic};
use super::{IDLE, UP, class, judged, milliseconds, phases};

/// The far clock is this far ahead.
const AHEAD: Duration = Duration::from_secs(3600);

fn packet(sequence: u32, sent: Duration, arrived: Duration) -> PacketRecord {
    PacketRecord {
        sequence,
        sent: WallTime::from_unix(sent),
        arrived: WallTime::from_unix(arrived),
        size: ByteCount::new(172),
        time_to_live: None,
        type_of_service: None,
    }
}

/// 200 packets each 20 ms with this delay; every `lost`-th is missing, and the last arrived one is duplicated.
fn flow(delay: u64, lost: usize, is_up: bool) -> FlowEvidence {
    let one = |number: u32| {
        let sent = milliseconds(u64::from(number) * 20);
        let arrived = sent + milliseconds(delay);
        if is_up { packet(number, sent, arrived + AHEAD) } else { packet(number, sent + AHEAD, arrived) }
    };
    let mut packets: Vec<PacketRecord> = (0..200).map(one).collect();
    packets.retain(|packet| usize::try_from(packet.sequence).expect("small") % lost != 0);
    packets.extend(packets.last().copied());
    FlowEvidence { sent: 200, packets }
}

/// Clocks as far as a round trip of twice 10 ms shows them.
fn clocks() -> Option<ClockRelation> {
    let time = |milliseconds: u64| MonotonicTime::from_nanos(milliseconds * 1_000_000);
    let ahead = u64::try_from(AHEAD.as_millis()).expect("small");
    ClockRelation::of(&[RoundTrip {
        sent: time(0),
        far_received: time(10 + ahead),
        far_sent: time(10 + ahead),
        received: time(20),
    }])
}

fn result(
    profile: TrafficProfile,
    traffic: Vec<(PhaseKind, ProfileTraffic)>,
    clocks: Option<ClockRelation>,
) -> ProfileResult {
    let found = traffic.into_iter().map(|(phase, traffic)| {
        let window = if phase == PhaseKind::Idle { IDLE } else { UP };
        ProfileEvidence { profile, phase, window, traffic: Ok(traffic) }
    });
    let probes = class(LatencyClass::UdpBestEffort, [20, 20, 300]);
    let evidence = LoadEvidence { profiles: found.collect(), classes: vec![probes], clocks, ..phases() };
    judged(&evidence, PeerKind::Linerate).profiles.remove(0)
}

fn packets(up: FlowEvidence, down: FlowEvidence) -> ProfileTraffic {
    ProfileTraffic::Packets { up, down }
}

#[test]
fn a_call_has_delays_by_the_clocks_of_both_hosts() {
    let idle = packets(flow(40, 1000, true), flow(20, 1000, false));
    let loaded = packets(flow(900, 1000, true), flow(20, 10, false));
    let less = packets(flow(20, 1000, true), flow(800, 1000, false));
    let traffic = vec![(PhaseKind::Idle, idle), (PhaseKind::Up, loaded), (PhaseKind::Down, less)];
    let result = result(TrafficProfile::Voice, traffic, clocks());
    assert_eq!(result.phases[2].letter, Some(LatencyGrade::F));
    assert_eq!(
        (result.letter, result.phases[0].letter),
        (Some(LatencyGrade::F), Some(LatencyGrade::B)),
        "half a percent lost"
    );
    let up = result.phases[0].up.expect("packets");
    assert_eq!((up.sent, up.lost, up.late), (200, 1, Some(0)), "number 0 is missing, the duplicate does not count");
    assert_eq!(up.delay.map(|delay| delay.median), Some(milliseconds(40)));
    assert_eq!(up.delay_error_ns, Some(10_000_000), "half of the round trip");
    assert_eq!(result.phases[1].down.map(|down| (down.lost, down.late)), Some((20, Some(0))));
    let Some(ProfileFigures::Voice(voice)) = result.phases[0].figures else { panic!("{result:?}") };
    assert_eq!(voice.mouth_to_ear_ns, Some(50_000_000), "the mean of 40 and 20 ms, and a packet of 20 ms");
    assert!(voice.mos > 4.3 && result.lowest_score().is_some_and(|lowest| lowest < 2.5), "{result:?}");
    assert_eq!(result.worst().map(|phase| phase.kind), Some(PhaseKind::Up));
}

#[test]
fn a_game_needs_no_common_clock_and_a_call_does() {
    let traffic = || vec![(PhaseKind::Idle, packets(flow(30, 50, true), flow(20, 1000, false)))];
    let game = result(TrafficProfile::Game, traffic(), None);
    let Some(ProfileFigures::Game(figures)) = game.phases[0].figures else { panic!("{game:?}") };
    // Inputs arrive at 30 ms, the next update leaves at 40 ms and takes 20 ms. Four inputs are lost, and the last
    // two have no update after them.
    assert_eq!(figures.reaction.map(|reaction| reaction.median), Some(milliseconds(60)));
    let up = game.phases[0].up.expect("packets");
    assert_eq!((up.lost, up.late, up.delay), (4, Some(2), None));
    assert!((figures.missed_share - 6.0 / 200.0).abs() < 1e-9 && game.letter == Some(LatencyGrade::B), "{figures:?}");
    let voice = result(TrafficProfile::Voice, traffic(), None);
    assert_eq!((voice.letter, voice.lowest_score()), (None, None));
    assert!(voice.phases[0].perception.contains("clocks"), "{voice:?}");
}

#[test]
fn a_backup_is_compared_with_its_idle_rate() {
    let bulk = |bytes| ProfileTraffic::Bulk { payload: ByteCount::new(bytes), time: Duration::from_secs(1) };
    let traffic = vec![(PhaseKind::Idle, bulk(1_000_000)), (PhaseKind::Up, bulk(250_000))];
    let backup = result(TrafficProfile::Backup, traffic, clocks());
    let shares: Vec<Option<f64>> = backup
        .phases
        .iter()
        .map(|phase| match &phase.figures {
            Some(ProfileFigures::Backup(figures)) => figures.idle_share,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(shares, [Some(1.0), Some(0.25)]);
    // The probes of the idle window are as fast as the idle median.
    assert_eq!((backup.phases[0].letter, backup.phases[1].letter), (Some(LatencyGrade::APlus), None));
    assert!(backup.phases[1].perception.contains("25 % of its idle rate"), "{backup:?}");
}
