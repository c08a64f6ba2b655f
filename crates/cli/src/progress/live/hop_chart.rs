//! Rounds of a hop over time: as bars in its row, and as a chart of round trips and probes without a reply.

use std::time::Duration;

use linerate_engine::path::{HopRound, HopsSnapshot};
use linerate_model::route::{HopReplies, PathHop};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};

use super::chart::{self, CurveLook, Panel, TimeAxis};
use super::curve::SampleCurve;
use super::draw::Look;
use super::label;
use crate::spark;

/// Fewest rounds that the axis of time spans.
const MIN_ROUNDS: u64 = 30;

/// Rounds of all hops, which share one axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundAxis {
    oldest: u64,
    newest: u64,
    interval: Duration,
}

impl RoundAxis {
    pub(super) fn of(snapshot: &HopsSnapshot) -> Self {
        let all = || snapshot.rounds.iter().flatten().map(|result| result.round);
        let newest = all().max().unwrap_or(0);
        let oldest = all().min().unwrap_or(0).min(newest.saturating_sub(MIN_ROUNDS));
        Self { oldest, newest, interval: Duration::from_nanos(snapshot.route.interval_ns) }
    }

    /// Time before the newest round.
    fn age(self, round: u64) -> Duration {
        self.interval.saturating_mul(u32::try_from(self.newest.saturating_sub(round)).unwrap_or(u32::MAX))
    }

    /// Seconds at the axis, which ends at 0; fewer rounds than it has places fill its right part.
    fn seconds(self, round: u64) -> f64 {
        -self.age(round).as_secs_f64()
    }

    fn times(self) -> TimeAxis {
        let span = self.interval.saturating_mul(u32::try_from(MIN_ROUNDS).unwrap_or(1)).max(self.age(self.oldest));
        TimeAxis {
            bounds: [-span.as_secs_f64(), 0.0],
            labels: [format!("{} ago", label::clock(span)), "now".to_owned()],
        }
    }
}

/// Bars of the latest rounds, from zero to the longest round trip among them; the last column is the newest round of all hops.
/// A probe without a reply is a mark, a round without a probe a gap.
pub(super) fn bars(results: &[HopRound], axis: RoundAxis, width: usize, look: Look) -> String {
    let columns = u64::try_from(width).unwrap_or(0);
    let after = (axis.newest + 1).checked_sub(columns);
    let lead = columns.saturating_sub(axis.newest + 1);
    let first = after.unwrap_or(0);
    let shown = &results[results.partition_point(|result| result.round < first)..];
    let longest = shown.iter().filter_map(|result| result.round_trip).max().unwrap_or_default().as_secs_f64();
    let cell = |column: u64| {
        let Some(round) = column.checked_sub(lead).map(|place| first + place) else { return ' ' };
        let Ok(place) = shown.binary_search_by_key(&round, |result| result.round) else { return ' ' };
        match shown[place].round_trip {
            Some(time) => spark::bar(time.as_secs_f64(), longest, look.unicode),
            None if look.unicode => '×',
            None => 'x',
        }
    };
    (0..columns).map(cell).collect()
}

/// Colour of probes without a reply: red where they are loss of the path.
fn unanswered_style(hop: &PathHop, look: Look) -> Style {
    match hop.replies {
        Some(HopReplies::Lossy) => look.colour(Color::Red),
        Some(HopReplies::Undecided) => look.colour(Color::Yellow),
        _ => Look::dim(),
    }
}

/// Draws the chart of a hop.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    (hop, results): (&PathHop, &[HopRound]),
    axis: RoundAxis,
    look: Look,
) {
    let (mut curve, mut unanswered) = (SampleCurve::default(), Vec::new());
    for result in results {
        if let Some(time) = result.round_trip {
            curve.push(axis.seconds(result.round), time.as_secs_f64());
        } else {
            curve.interrupt();
            unanswered.push(axis.seconds(result.round));
        }
    }
    let looks = CurveLook::all(look);
    let marks = looks.unanswered.in_style(unanswered_style(hop, look));
    let last = results.iter().rev().find_map(|result| result.round_trip);
    let mut legend: Vec<_> =
        last.into_iter().map(|time| (format!("RTT {}", label::time(time, look)), looks.rtt)).collect();
    if !unanswered.is_empty() {
        let meaning = hop.replies.map_or_else(String::new, |replies| format!(": {}", replies.title()));
        legend.push((format!("no reply {}/{}{meaning}", unanswered.len(), results.len()), marks));
    }
    let panel = Panel {
        title: format!("Hop {}", hop.distance),
        legend,
        curves: vec![(&curve, looks.rtt)],
        marks: (&unanswered, marks),
        format: label::axis_time,
        times: axis.times(),
        without_samples: if results.is_empty() { "no probe yet" } else { "this hop does not answer" },
    };
    chart::draw(frame, area, &panel);
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Look = Look { colour: false, unicode: true };

    fn results(milliseconds: &[Option<u64>]) -> Vec<HopRound> {
        let result =
            |(round, time): (u64, &Option<u64>)| HopRound { round, round_trip: time.map(Duration::from_millis) };
        (0..).zip(milliseconds).map(result).collect()
    }

    const fn axis(newest: u64) -> RoundAxis {
        RoundAxis { oldest: 0, newest, interval: Duration::from_secs(1) }
    }

    #[test]
    fn a_lost_round_is_a_mark_and_no_low_bar() {
        let rounds = results(&[Some(14), None, Some(7), Some(14), None]);
        assert_eq!(bars(&rounds, axis(4), 5, LOOK), "█×▅█×");
        assert_eq!(bars(&rounds, axis(4), 3, LOOK), "▅█×");
        assert_eq!(bars(&rounds, axis(4), 5, Look { unicode: false, ..LOOK }), "#x=#x");
    }

    #[test]
    fn rounds_of_all_hops_are_below_each_other() {
        let rounds = results(&[Some(14), Some(7)]);
        assert_eq!(bars(&rounds, axis(1), 5, LOOK), "   █▅", "the newest is at the right");
        assert_eq!(bars(&rounds, axis(3), 4, LOOK), "█▅  ", "this hop had no probe in the latest two rounds");
        assert_eq!(bars(&rounds, axis(3), 2, LOOK), "  ");
        assert_eq!(bars(&[], axis(0), 2, LOOK), "  ");
    }

    #[test]
    fn the_axis_ends_now_and_has_room_for_thirty_rounds() {
        assert_eq!(axis(10).times().labels, ["0:30 ago", "now"]);
        assert_eq!(axis(240).times().labels[0], "4:00 ago");
        assert!((axis(240).times().bounds[0] + 240.0).abs() < 1e-9);
        assert!((axis(240).seconds(180) + 60.0).abs() < 1e-9);
    }
}
