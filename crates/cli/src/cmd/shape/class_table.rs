//! Tables of traffic classes: their rates in a plan, and what each of them does.

use linerate_documents::shaper::{PlannedTrafficClass, TrafficClassIdentity, TrafficClassRates};
use linerate_documents::shaper_status::TrafficClassStatus;
use linerate_units::{BitRate, ByteCount, display};

use super::plan_text::PlanPage;

/// Most rows without `-v`.
const MAX_ROWS: usize = 10;

/// Width from which a row of the status has all columns.
const WIDE: usize = 78;

/// Appends the rates of the classes, the largest first.
pub(super) fn plan(page: &mut PlanPage, classes: &[PlannedTrafficClass], verbose: bool) {
    if classes.is_empty() {
        return;
    }
    let largest = |class: &PlannedTrafficClass| {
        let rates = [class.up, class.down].into_iter().flatten();
        rates.map(|rates| (rates.guaranteed_bits_per_second, rates.ceiling_bits_per_second)).fold((0.0, 0.0), larger)
    };
    let mut sorted: Vec<&PlannedTrafficClass> = classes.iter().collect();
    sorted.sort_by(|one, other| descending(largest(one), largest(other)));
    let label_width = page.width().saturating_sub(4 + 2 * 14);
    let row = |label: &str, up: &str, down: &str| format!("    {label:<label_width$}{up:>14}{down:>14}");
    page.line(&row_heading(2, &count(classes.len()), &row("", "up", "down")));
    for class in &sorted[..shown(sorted.len(), verbose)] {
        let cell = |rates: Option<TrafficClassRates>| rates.map_or("-".to_owned(), rates_argument);
        let label = label(page, &class.class, label_width, verbose);
        page.line(&row(&label, &cell(class.up), &cell(class.down)));
    }
    note_others(page, sorted.len(), verbose);
    page.paragraph(4, "A rate is guaranteed; behind a colon is the limit.");
}

/// Appends what the classes of one direction do, the busiest first.
pub(super) fn status(page: &mut PlanPage, classes: &[TrafficClassStatus], verbose: bool) {
    if classes.is_empty() {
        return;
    }
    let busiest = |class: &TrafficClassStatus| (class.carried_bits_per_second, class.rates.guaranteed_bits_per_second);
    let mut sorted: Vec<&TrafficClassStatus> = classes.iter().collect();
    sorted.sort_by(|one, other| descending(busiest(one), busiest(other)));
    let is_wide = page.width() >= WIDE;
    let label_width = page.width().saturating_sub(if is_wide { 65 } else { 47 }).max(8);
    let row = |label: &str, cells: [&str; 6]| {
        let [configured, rate, sent, packets, waiting, dropped] = cells;
        let counts = if is_wide { format!("{sent:>9}{packets:>9}") } else { String::new() };
        format!("    {label:<label_width$} {configured:>10}{rate:>13}{counts}{waiting:>10}{dropped:>9}")
    };
    let heading = row("", ["set", "rate", "sent", "packets", "waiting", "dropped"]);
    page.line(&row_heading(4, &count(classes.len()), &heading));
    for class in &sorted[..shown(sorted.len(), verbose)] {
        let known = |count: Option<u64>| count.map_or("-".to_owned(), |count| count.to_string());
        let size = |bytes: Option<u64>| bytes.map_or("-".to_owned(), |bytes| display::size(ByteCount::new(bytes)));
        let rate = display::rate(BitRate::from_bits_per_second(class.carried_bits_per_second));
        let label = label(page, &class.class, label_width, verbose);
        let cells = [
            rates_argument(class.rates),
            rate,
            size(class.sent_bytes),
            known(class.sent_packets),
            size(class.backlog_bytes),
            known(class.dropped),
        ];
        page.line(&row(&label, cells.each_ref().map(String::as_str)));
    }
    note_others(page, sorted.len(), verbose);
}

fn count(classes: usize) -> String {
    if classes == 1 { "1 class".to_owned() } else { format!("{classes} classes") }
}

/// Replaces the blank start of a heading by a title; the columns stay.
fn row_heading(indent: usize, title: &str, heading: &str) -> String {
    let start = format!("{:indent$}{title}", "");
    let rest: String = heading.chars().skip(start.chars().count()).collect();
    start + &rest
}

const fn shown(classes: usize, verbose: bool) -> usize {
    if verbose || classes <= MAX_ROWS { classes } else { MAX_ROWS }
}

fn note_others(page: &mut PlanPage, classes: usize, verbose: bool) {
    if shown(classes, verbose) < classes {
        page.line(&format!("    and {} more (-v)", classes - MAX_ROWS));
    }
}

fn larger(one: (f64, f64), other: (f64, f64)) -> (f64, f64) {
    if descending(one, other).is_gt() { other } else { one }
}

fn descending(one: (f64, f64), other: (f64, f64)) -> core::cmp::Ordering {
    other.0.total_cmp(&one.0).then(other.1.total_cmp(&one.1))
}

/// Name and selectors in this width, `ACME (group)` for a group. Longer ones have a line of their own with `-v`; without, only
/// the name or the first selector is named, and the number of the others.
fn label(page: &mut PlanPage, class: &TrafficClassIdentity, width: usize, verbose: bool) -> String {
    let name = class.name.as_deref();
    let whole = match (name, &class.selectors[..]) {
        (name, []) => format!("{} (group)", name.unwrap_or_default()),
        (name, selectors) => format!("{} {}", name.unwrap_or_default(), selectors.join(" ")).trim().to_owned(),
    };
    if whole.chars().count() <= width {
        return whole;
    }
    if verbose {
        page.paragraph(4, &whole);
        return String::new();
    }
    let first = name.or(class.selectors.first().map(String::as_str)).unwrap_or_default();
    let others = class.selectors.len() - usize::from(name.is_none() && !class.selectors.is_empty());
    let others = if others == 0 || name.is_some() { String::new() } else { format!(" +{others}") };
    let room = width.saturating_sub(others.len());
    let cut = if first.chars().count() > room {
        first.chars().take(room.saturating_sub(2)).collect::<String>() + ".."
    } else {
        first.to_owned()
    };
    cut + &others
}

/// Rates as `--class` takes them: `10M`, `2M:3M`.
fn rates_argument(rates: TrafficClassRates) -> String {
    let argument = |bits| display::rate_argument(BitRate::from_bits_per_second(bits));
    let (guaranteed, ceiling) = (argument(rates.guaranteed_bits_per_second), argument(rates.ceiling_bits_per_second));
    if guaranteed == ceiling { guaranteed } else { format!("{guaranteed}:{ceiling}") }
}
