//! Table of the hops of a path, with a bar from the best to the worst round trip of each.

use std::time::Duration;

use linerate_model::route::{HopAddress, HopReplies, PathHop, RouteReport};
use linerate_report::sentence::route;
use linerate_units::{Ratio, display};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::draw::Look;
use super::label::{cut, part_of};

/// Width of a figure.
const FIGURE: usize = 9;

/// Figures from left to right; those at the end are left out where the terminal is narrow.
const HEADINGS: [&str; 7] = ["No reply", "Loss", "Median", "Last", "Worst", "Best", "Jitter"];

/// Smallest width of addresses, and of the bars.
const MIN_ADDRESS: usize = 18;
const MIN_BAR: usize = 16;

/// Columns of a table of this width.
struct TableLayout {
    address: usize,
    figures: usize,
    bar: usize,
}

impl TableLayout {
    fn new(width: usize, longest: usize) -> Self {
        let left = width.saturating_sub(3 + MIN_ADDRESS);
        let figures = (left / FIGURE).min(HEADINGS.len());
        let spare = left - figures * FIGURE;
        let bar = if spare >= MIN_BAR + 2 { (spare - 2).min(40) } else { 0 };
        let address = (MIN_ADDRESS + spare - if bar > 0 { bar + 2 } else { 0 }).min(longest.max(MIN_ADDRESS));
        Self { address, figures, bar }
    }
}

/// Draws the table; the last hops stay in view.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, hops: &[PathHop], look: Look) {
    let names = hops.iter().flat_map(|hop| &hop.addresses).map(|one| title(one).chars().count());
    let layout = TableLayout::new(usize::from(area.width), names.max().unwrap_or(0) + 1);
    let longest = hops.iter().filter_map(|hop| hop.rtt.as_ref()).map(|rtt| rtt.max).max().unwrap_or_default();
    let mut rows: Vec<Line<'_>> = hops.iter().flat_map(|hop| lines(hop, &layout, longest, look)).collect();
    let space = usize::from(area.height).saturating_sub(1);
    let excess = rows.len().saturating_sub(space);
    rows.drain(..excess);
    rows.insert(0, heading(&layout));
    frame.render_widget(Paragraph::new(rows), area);
}

fn heading(layout: &TableLayout) -> Line<'static> {
    let figures: Vec<String> = HEADINGS[..layout.figures].iter().map(|name| format!("{name:>FIGURE$}")).collect();
    let figures = figures.concat();
    Line::styled(format!(" # {:<1$}{figures}", "Address", layout.address), Look::dim())
}

/// First the address that answered most, with the figures, then the others.
fn lines(hop: &PathHop, layout: &TableLayout, longest: Duration, look: Look) -> Vec<Line<'static>> {
    let fit = |text: &str| {
        let text = cut(text, layout.address.saturating_sub(1), look);
        format!("{text}{}", " ".repeat(layout.address - text.chars().count()))
    };
    let first = hop.addresses.first().map_or_else(|| "*".to_owned(), title);
    let style = colour(hop, look);
    let mut spans = vec![Span::raw(format!("{:>2} {}", hop.distance, fit(&first)))];
    for figure in &figures(hop, look)[..layout.figures] {
        spans.push(Span::styled(format!("{figure:>FIGURE$}"), style));
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
pub(super) fn verdict_line(hops: &[PathHop], report: &RouteReport, width: usize, look: Look) -> Line<'static> {
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
            (layout.figures, layout.bar)
        });
        assert_eq!(widths, [(4, 0), (6, 0), (7, 0), (7, 40)]);
        for width in 30..200 {
            let layout = TableLayout::new(width, 40);
            let used = 3 + layout.address + layout.figures * FIGURE + if layout.bar > 0 { layout.bar + 2 } else { 0 };
            assert!(used <= width, "{used} of {width}");
        }
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
