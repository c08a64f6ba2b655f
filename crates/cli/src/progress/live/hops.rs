//! Table of the hops of a path, with the latest rounds of each and a bar from its best to its worst round trip, and the
//! chart of one hop.

use std::time::Duration;

use linerate_model::route::{HopAddress, HopReplies, PathHop};
use linerate_report::sentence::route;
use linerate_units::{Ratio, display};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::draw::Look;
use super::hop_chart::{self, RoundAxis};
use super::label::{cut, part_of};
use super::state::HopsView;

/// Width of a figure.
const FIGURE: usize = 9;

/// Figures from left to right; those at the end are left out where the terminal is narrow.
const HEADINGS: [&str; 7] = ["No reply", "Loss", "Median", "Last", "Worst", "Best", "Jitter"];

/// Smallest width of addresses, of the bars of rounds, and of those from the best to the worst round trip.
const MIN_ADDRESS: usize = 18;
const MIN_ROUNDS: usize = 10;
const MIN_BAR: usize = 16;

/// Largest width of the bars.
const MAX_ROUNDS: usize = 30;
const MAX_BAR: usize = 40;

/// Fewest figures next to the bars of rounds.
const MIN_FIGURES: usize = 3;

/// Smallest and largest height of the chart, and the smallest of the table above it.
const MIN_CHART: u16 = 9;
const MAX_CHART: u16 = 16;
const MIN_TABLE: u16 = 4;

/// Columns of a table of this width; 0 is none.
struct TableLayout {
    address: usize,
    figures: usize,
    rounds: usize,
    bar: usize,
}

impl TableLayout {
    fn new(width: usize, longest: usize) -> Self {
        const GAP: usize = 2;
        let left = width.saturating_sub(3 + MIN_ADDRESS);
        let has_rounds = left >= GAP + MIN_ROUNDS + MIN_FIGURES * FIGURE;
        let least = if has_rounds { GAP + MIN_ROUNDS } else { 0 };
        let figures = ((left - least) / FIGURE).min(HEADINGS.len());
        let mut spare = left - least - figures * FIGURE;
        let mut use_of_spare = |most: usize| {
            let used = spare.min(most);
            spare -= used;
            used
        };
        let address = MIN_ADDRESS + use_of_spare(longest.saturating_sub(MIN_ADDRESS));
        let rounds = if has_rounds { MIN_ROUNDS + use_of_spare(MAX_ROUNDS - MIN_ROUNDS) } else { 0 };
        let bar = use_of_spare(GAP + MAX_BAR);
        Self { address, figures, rounds, bar: if bar >= GAP + MIN_BAR { bar - GAP } else { 0 } }
    }
}

/// Draws the table, and below it the chart of the selected hop, or of the last one where the whole table leaves enough lines.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, view: &HopsView, look: Look) {
    let hops = &view.snapshot.hops;
    let names = hops.iter().flat_map(|hop| &hop.addresses).map(|one| title(one).chars().count());
    let layout = TableLayout::new(usize::from(area.width), names.max().unwrap_or(0) + 1);
    let longest = hops.iter().filter_map(|hop| hop.rtt.as_ref()).map(|rtt| rtt.max).max().unwrap_or_default();
    let axis = RoundAxis::of(&view.snapshot);
    let rows: Vec<Vec<Line<'_>>> = (0..)
        .zip(hops)
        .map(|(place, hop)| {
            let results = view.snapshot.rounds.get(place).map_or(&[][..], Vec::as_slice);
            lines(hop, &layout, (longest, &hop_chart::bars(results, axis, layout.rounds, look)), look)
        })
        .collect();
    let whole = u16::try_from(rows.iter().map(Vec::len).sum::<usize>() + 1).unwrap_or(u16::MAX);
    let chart = chart_height(area.height, whole, view.is_selected());
    let charted = view.charted().filter(|_| chart > 0);
    let [table, chart] = Layout::vertical([Constraint::Min(1), Constraint::Length(chart)]).areas(area);
    table_rows(frame, table, (heading(&layout), rows), charted, look);
    if let Some(place) = charted {
        let results = view.snapshot.rounds.get(place).map_or(&[][..], Vec::as_slice);
        hop_chart::draw(frame, chart, (&hops[place], results), axis, look);
    }
}

/// Lines for the chart; 0 is none.
fn chart_height(height: u16, table: u16, is_selected: bool) -> u16 {
    let left = height.saturating_sub(table);
    if left >= MIN_CHART {
        left.min(MAX_CHART)
    } else if is_selected {
        height.saturating_sub(MIN_TABLE).min(MIN_CHART)
    } else {
        0
    }
}

/// Draws the rows with a mark at the hop of the chart, which stays in view; else the last hops do.
fn table_rows(
    frame: &mut Frame<'_>,
    area: Rect,
    (heading, rows): (Line<'static>, Vec<Vec<Line<'static>>>),
    charted: Option<usize>,
    look: Look,
) {
    let before = charted.map(|place| rows[..place].iter().map(Vec::len).sum::<usize>());
    let mut rows: Vec<Line<'_>> = rows.into_iter().flatten().collect();
    if let Some(number) = before.and_then(|row| rows[row].spans.first_mut()) {
        *number = Span::styled(format!("{}{}", number.content.trim_end(), look.pick("▸", ">")), Look::bold());
    }
    let space = usize::from(area.height).saturating_sub(1);
    let excess = rows.len().saturating_sub(space);
    rows.drain(..excess.min(before.unwrap_or(excess)));
    rows.insert(0, heading);
    frame.render_widget(Paragraph::new(rows), area);
}

fn heading(layout: &TableLayout) -> Line<'static> {
    let figures: Vec<String> = HEADINGS[..layout.figures].iter().map(|name| format!("{name:>FIGURE$}")).collect();
    let figures = figures.concat();
    let rounds = if layout.rounds > 0 { "  Rounds" } else { "" };
    let width = if layout.bar > 0 { layout.rounds + 2 } else { 0 };
    let rounds = format!("{rounds:<width$}");
    let bar = if layout.bar > 0 { "  Best to worst" } else { "" };
    Line::styled(format!(" # {:<1$}{figures}{rounds}{bar}", "Address", layout.address), Look::dim())
}

/// First the address that answered most, with the figures, then the others.
fn lines(hop: &PathHop, layout: &TableLayout, (longest, rounds): (Duration, &str), look: Look) -> Vec<Line<'static>> {
    let fit = |text: &str| {
        let text = cut(text, layout.address.saturating_sub(1), look);
        format!("{text}{}", " ".repeat(layout.address - text.chars().count()))
    };
    let first = hop.addresses.first().map_or_else(|| "*".to_owned(), title);
    let style = colour(hop, look);
    let mut spans = vec![Span::raw(format!("{:>2} ", hop.distance)), Span::raw(fit(&first))];
    for figure in &figures(hop, look)[..layout.figures] {
        spans.push(Span::styled(format!("{figure:>FIGURE$}"), style));
    }
    if layout.rounds > 0 {
        spans.push(Span::raw("  "));
        spans.push(Span::styled(rounds.to_owned(), style));
    }
    if layout.bar > 0 {
        spans.push(Span::raw("  "));
        spans.push(Span::styled(bar(hop, layout.bar, longest, look), look.colour(Color::Blue)));
    }
    let others = hop.addresses.iter().skip(1).map(|one| Line::styled(format!("   {}", fit(&title(one))), Look::dim()));
    [Line::from(spans)].into_iter().chain(others).collect()
}

/// Name or address, and the autonomous system.
fn title(one: &HopAddress) -> String {
    let system = one.autonomous_system.as_ref().map_or_else(String::new, |system| format!(" AS{}", system.number));
    format!("{}{system}", one.name.as_ref().unwrap_or(&one.address))
}

fn figures(hop: &PathHop, look: Look) -> [String; HEADINGS.len()] {
    let nothing = || look.pick("–", "-").to_owned();
    let share = |share: Option<f64>| share.and_then(Ratio::new).map_or_else(nothing, display::percent);
    let time = |time: Option<Duration>| time.map_or_else(nothing, display::duration);
    let rtt = hop.rtt.as_ref();
    let is_loss = matches!(hop.replies, Some(HopReplies::Complete | HopReplies::Lossy));
    [
        share(hop.unanswered),
        share(hop.unanswered.filter(|_| is_loss)),
        time(rtt.map(|rtt| rtt.median)),
        time(hop.last_ns.map(Duration::from_nanos)),
        time(rtt.map(|rtt| rtt.max)),
        time(rtt.map(|rtt| rtt.min)),
        time(hop.jitter_ns.map(Duration::from_nanos)),
    ]
}

/// Red is loss of the path; a hop that limits its answers is none.
fn colour(hop: &PathHop, look: Look) -> Style {
    match hop.replies {
        Some(HopReplies::Lossy) => look.colour(Color::Red),
        Some(HopReplies::Undecided) => look.colour(Color::Yellow),
        Some(HopReplies::Complete) => look.colour(Color::Green),
        _ => Look::dim(),
    }
}

/// Line from the best to the worst round trip, with a dot at the median; its whole width is the longest of all hops.
fn bar(hop: &PathHop, width: usize, longest: Duration, look: Look) -> String {
    let Some(rtt) = hop.rtt.as_ref().filter(|_| !longest.is_zero()) else { return String::new() };
    let place = |time: Duration| part_of(width - 1, time.as_secs_f64() / longest.as_secs_f64());
    let (best, median, worst) = (place(rtt.min), place(rtt.median), place(rtt.max));
    let cell = |column: usize| match column {
        _ if column == median => look.pick("●", "o"),
        _ if (best..=worst).contains(&column) => look.pick("━", "="),
        _ => " ",
    };
    (0..=worst).map(cell).collect()
}

/// Result so far.
pub(super) fn verdict_line(view: &HopsView, width: usize, look: Look) -> Line<'static> {
    let (hops, report) = (&view.snapshot.hops, &view.snapshot.route);
    let text = cut(&format!("{} rounds: {}", report.rounds, route::sentence(hops, report)), width, look);
    Line::styled(text, look.colour(Color::Yellow))
}

#[cfg(test)]
mod tests {
    use linerate_model::summary::DurationDistribution;

    use super::*;

    const LOOK: Look = Look { colour: false, unicode: true };

    fn hop(distance: u8, milliseconds: u64, replies: HopReplies) -> PathHop {
        let mut times: Vec<Duration> = (0..5).map(|step| Duration::from_millis(milliseconds + step)).collect();
        PathHop {
            distance,
            rtt: DurationDistribution::of(&mut times),
            unanswered: Some(0.25),
            replies: Some(replies),
            addresses: vec![HopAddress { address: format!("192.0.2.{distance}"), ..HopAddress::default() }],
            ..PathHop::default()
        }
    }

    #[test]
    fn only_persistent_loss_is_a_loss() {
        assert_eq!(figures(&hop(1, 1, HopReplies::Limited), LOOK)[..2], ["25.0 %", "–"]);
        assert_eq!(figures(&hop(1, 1, HopReplies::Lossy), LOOK)[..2], ["25.0 %", "25.0 %"]);
    }

    #[test]
    fn columns_follow_the_width() {
        let widths = [60, 80, 100, 160].map(|width| {
            let layout = TableLayout::new(width, 15);
            (layout.figures, layout.rounds, layout.bar)
        });
        assert_eq!(widths, [(3, 10, 0), (5, 12, 0), (7, 14, 0), (7, 30, 40)]);
        assert_eq!(TableLayout::new(45, 15).rounds, 0, "figures go first");
        for width in 30..200 {
            let layout = TableLayout::new(width, 40);
            let bars: usize = [layout.rounds, layout.bar].into_iter().filter(|bar| *bar > 0).map(|bar| bar + 2).sum();
            let used = 3 + layout.address + layout.figures * FIGURE + bars;
            assert!(used <= width, "{used} of {width}");
        }
    }

    #[test]
    fn the_chart_has_what_the_table_leaves_and_a_selected_hop_always_has_one() {
        assert_eq!(chart_height(19, 5, false), 14);
        assert_eq!(chart_height(40, 5, false), MAX_CHART);
        assert_eq!((chart_height(19, 12, false), chart_height(19, 12, true)), (0, MIN_CHART));
        assert_eq!((chart_height(11, 12, true), chart_height(3, 12, true)), (7, 0));
    }

    #[test]
    fn the_bar_ends_at_the_longest_round_trip() {
        let far = hop(2, 20, HopReplies::Complete);
        let longest = Duration::from_millis(24);
        assert_eq!(bar(&far, 25, longest, LOOK).chars().count(), 25);
        let near = bar(&hop(1, 1, HopReplies::Complete), 25, longest, LOOK);
        assert_eq!(near, " ━━●━━");
    }
}
