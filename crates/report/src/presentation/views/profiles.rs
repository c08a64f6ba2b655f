//! Tables of traffic profiles next to a load.

use core::time::Duration;

use linerate_documents::run::FigureUnit;
use linerate_model::load::LoadDocument;
use linerate_model::summary::DurationDistribution;
use linerate_model::traffic_profile::{
    BackupFigures, GameFigures, ProfileFigures, ProfilePackets, ProfilePhase, StreamingResult, VideoCallFigures,
    VideoFigures, VoiceFigures,
};

use super::load::phase_name;
use crate::presentation::{Quantity, ReportTable, TableCell, as_f64};

/// Grade of each profile in each phase, and the figure behind it.
pub(super) fn grades(document: &LoadDocument) -> Option<ReportTable> {
    let columns = ["Profile, load", "Grade", "Perception", "Main figure", "Further figures"];
    let mut table = ReportTable::new("profiles", "Traffic profiles", &columns);
    for (result, phase) in phases(document) {
        let label = format!("{result}, {}", phase_name(phase.kind));
        let grade = match phase.letter {
            Some(letter) => TableCell::text(letter.letter()),
            None if phase.figures.is_some() => TableCell::Nothing,
            None => TableCell::Unknown(phase.perception.clone()),
        };
        let Some(figures) = &phase.figures else {
            table.push_row(label, vec![grade]);
            continue;
        };
        let (main, further) = figure_cells(figures);
        table.push_row(label, vec![grade, TableCell::text(&phase.perception), main, TableCell::text(further)]);
    }
    table.note = Some(
        "Each profile runs alone next to the load of the phase, marked as best effort; bounds of the grades are in \
         docs/load.md."
            .to_owned(),
    );
    table.non_empty()
}

/// Packets of each profile over UDP, by direction.
pub(super) fn packets(document: &LoadDocument) -> Option<ReportTable> {
    let columns = ["Profile, load, direction", "Sent", "Lost", "Late", "median", "p95", "p99"];
    let mut table = ReportTable::new("profile_packets", "Packets of the profiles, one-way delay", &columns);
    let mut error = None;
    for (result, phase) in phases(document) {
        for (direction, packets) in [("up", &phase.up), ("down", &phase.down)] {
            let Some(packets) = packets else { continue };
            error = error.max(packets.delay_error_ns);
            table.push_row(format!("{result}, {}, {direction}", phase_name(phase.kind)), packet_cells(packets));
        }
    }
    let error = error.map_or_else(
        || "The clocks of the hosts could not be compared.".to_owned(),
        |error| {
            let error = Quantity::nanoseconds(error).display_text();
            format!("Delays by the clocks of both hosts, whose offset is known to {error}.")
        },
    );
    table.note = Some(error);
    table.non_empty()
}

fn phases(document: &LoadDocument) -> impl Iterator<Item = (&'static str, &ProfilePhase)> {
    document.profiles.iter().flat_map(|result| result.phases.iter().map(|phase| (result.profile.name(), phase)))
}

fn packet_cells(packets: &ProfilePackets) -> Vec<TableCell> {
    let delay = |of: fn(&DurationDistribution) -> Duration| {
        let reason = || TableCell::Unknown("no packet with a known one-way delay".to_owned());
        packets.delay.as_ref().map_or_else(reason, |delay| TableCell::Value(Quantity::duration(of(delay))))
    };
    let count = |count: u64| TableCell::Value(Quantity::count(count));
    vec![
        count(packets.sent),
        count(packets.lost),
        packets.late.map_or(TableCell::Nothing, count),
        delay(|delay| delay.median),
        delay(|delay| delay.p95),
        delay(|delay| delay.p99),
    ]
}

/// Figure that decides the grade, and the others as text.
fn figure_cells(figures: &ProfileFigures) -> (TableCell, String) {
    match figures {
        ProfileFigures::Voice(voice) => voice_cells(voice),
        ProfileFigures::Game(game) => game_cells(game),
        ProfileFigures::VideoCall(video) => video_cells(video),
        ProfileFigures::Streaming(stream) => stream_cells(stream),
        ProfileFigures::Backup(backup) => backup_cells(backup),
    }
}

fn voice_cells(voice: &VoiceFigures) -> (TableCell, String) {
    let main = qualified(voice.mos, FigureUnit::One, format!("MOS {:.2}", voice.mos));
    let missing = [voice.up, voice.down].into_iter().flatten().map(|heard| heard.missing_share).fold(0.0, f64::max);
    let delay = voice.mouth_to_ear_ns.map_or_else(
        || "nothing heard in a direction".to_owned(),
        |delay| format!("{} from mouth to ear", Quantity::nanoseconds(delay).display_text()),
    );
    (main, format!("R {:.1}, {delay}, {} missing", voice.r_factor, Quantity::share(missing).display_text()))
}

fn game_cells(game: &GameFigures) -> (TableCell, String) {
    let deadline = Quantity::nanoseconds(game.deadline_ns).display_text();
    let missed = Quantity::share(game.missed_share);
    let reaction = game.reaction.map_or_else(
        || "no reaction".to_owned(),
        |reaction| {
            let [median, p95] = [reaction.median, reaction.p95].map(|time| Quantity::duration(time).display_text());
            format!("reaction {median}, p95 {p95}")
        },
    );
    (TableCell::Qualified(missed, format!("{} above {deadline}", missed.display_text())), reaction)
}

fn video_cells(video: &VideoCallFigures) -> (TableCell, String) {
    let share = |picture: &VideoFigures| as_f64(picture.incomplete + picture.late) / as_f64(picture.frames.max(1));
    let missing = Quantity::share(share(&video.up).max(share(&video.down)));
    let picture = |picture: &VideoFigures, name: &str| {
        let frozen = Quantity::share(picture.frozen_share).display_text();
        format!("{name} {:.0} freezes/min, {frozen} frozen", picture.freezes_per_minute)
    };
    let further = format!("{}; {}", picture(&video.up, "up"), picture(&video.down, "down"));
    (TableCell::Qualified(missing, format!("{} of the frames missing", missing.display_text())), further)
}

fn stream_cells(stream: &StreamingResult) -> (TableCell, String) {
    let stalled = Quantity::share(stream.stalled_share);
    let main = match stream.startup_ns {
        None => TableCell::text("did not start"),
        Some(_) => TableCell::Qualified(stalled, format!("{} stalled", stalled.display_text())),
    };
    let startup = stream.startup_ns.map(|time| format!("startup {}", Quantity::nanoseconds(time).display_text()));
    let rate = stream.mean_bits_per_second.map(|rate| Quantity::bits_per_second(rate).display_text());
    let stalls = Some(format!("{} stalls", stream.stalls));
    (main, [startup, rate, stalls].into_iter().flatten().collect::<Vec<_>>().join(", "))
}

fn backup_cells(backup: &BackupFigures) -> (TableCell, String) {
    let added = backup.added_p95_ns.map(|added| format!("{} (p95)", Quantity::signed_nanoseconds(added).signed_text()));
    (
        TableCell::Value(Quantity::bits_per_second(backup.goodput_bits_per_second)),
        added.map_or_else(String::new, |added| format!("round trips of others {added}")),
    )
}

fn qualified(value: f64, unit: FigureUnit, text: String) -> TableCell {
    TableCell::Qualified(Quantity::new(value, unit), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_call_and_a_stream_that_never_starts_are_described() {
        let voice = VoiceFigures { mos: 1.0, r_factor: 0.0, mouth_to_ear_ns: None, up: None, down: None };
        let (main, further) = voice_cells(&voice);
        assert_eq!((main.display_text().as_ref(), further.contains("nothing heard")), ("MOS 1.00", true));
        let stream = StreamingResult {
            startup_ns: None,
            segments: 0,
            mean_bits_per_second: None,
            stalls: 0,
            stalled_share: 0.0,
        };
        assert_eq!(stream_cells(&stream), (TableCell::text("did not start"), "0 stalls".to_owned()));
    }
}
