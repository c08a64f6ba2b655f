//! Text output of the shapers of a host.

use linerate_documents::shaper_status::{DirectionStatus, ShaperStatus, ShaperStatusDocument};
use linerate_report::throughput_text::TextStyle;
use linerate_shape::back_ends::BackEndId;
use linerate_units::{BitRate, ByteCount, display};

use crate::cmd::shape::class_table;
use crate::cmd::shape::plan_text::PlanPage;

/// Width from which a row has all columns.
const WIDE: usize = 79;

/// Renders all shapers; with `verbose`, all of their traffic classes.
pub(super) fn of(document: &ShaperStatusDocument, style: TextStyle, verbose: bool) -> String {
    let mut page = PlanPage::new(style);
    for shaper in &document.shapers {
        shaper_text(&mut page, shaper, verbose);
    }
    page.text()
}

fn shaper_text(page: &mut PlanPage, shaper: &ShaperStatus, verbose: bool) {
    let back_end = shaper.back_end.map_or("unknown back end", BackEndId::name);
    page.heading(&format!("{}  {back_end}  (changes {})", shaper.device, shaper.changes));
    for direction in &shaper.directions {
        rates(page, direction);
        class_table::status(page, &direction.traffic_classes, verbose);
    }
    if let Some(share) = shaper.busiest_processor {
        page.paragraph(2, &format!("busiest processor {:.0} %", share * 100.0));
    }
    for text in &shaper.differences {
        page.entry(2, "differs", 11, text);
    }
    for text in &shaper.warnings {
        page.entry(2, "warning", 11, text);
    }
}

fn rate(bits: f64) -> String {
    display::rate(BitRate::from_bits_per_second(bits))
}

fn time(nanoseconds: u64) -> String {
    display::duration(core::time::Duration::from_nanos(nanoseconds))
}

fn rates(page: &mut PlanPage, direction: &DirectionStatus) {
    let realised = format!("{:.0} %", direction.realised * 100.0);
    page.line(&format!(
        "  {:<5}{} of {} ({realised}), on {}",
        direction.direction.name(),
        rate(direction.carried_bits_per_second),
        rate(direction.set_bits_per_second),
        direction.device
    ));
    let is_wide = page.width() >= WIDE;
    let row = |name: &str, cells: [&str; 6]| {
        let [rate, waiting, delay, longest, dropped, marked] = cells;
        if is_wide {
            format!("    {name:<12}{rate:>13}{waiting:>11}{delay:>11}{longest:>11}{dropped:>9}{marked:>8}")
        } else {
            format!("    {name:<12}{rate:>13}{waiting:>11}{delay:>11}{dropped:>9}")
        }
    };
    page.line(&row("", ["rate", "waiting", "delay", "longest", "dropped", "marked"]));
    for class in &direction.classes {
        let longest = class.peak_delay_ns.map_or_else(|| "-".to_owned(), time);
        let marked = class.marked.map_or_else(|| "-".to_owned(), |count| count.to_string());
        let (rate, delay) = (rate(class.carried_bits_per_second), time(class.delay_ns));
        let (waiting, dropped) = (display::size(ByteCount::new(class.backlog_bytes)), class.dropped.to_string());
        page.line(&row(class.name.title(), [&rate, &waiting, &delay, &longest, &dropped, &marked]));
    }
}
