//! Text output of the shapers of a host.

use linerate_documents::shaper_status::{DirectionStatus, ShaperStatus, ShaperStatusDocument};
use linerate_report::throughput_text::TextStyle;
use linerate_shape::back_ends::BackEndId;
use linerate_units::{BitRate, ByteCount, display};

use crate::cmd::shape::plan_text::PlanPage;

/// Renders all shapers.
pub(super) fn of(document: &ShaperStatusDocument, style: TextStyle) -> String {
    let mut page = PlanPage::new(style);
    for shaper in &document.shapers {
        shaper_text(&mut page, shaper);
    }
    page.text()
}

fn shaper_text(page: &mut PlanPage, shaper: &ShaperStatus) {
    let back_end = shaper.back_end.map_or("unknown back end", BackEndId::name);
    page.heading(&format!("{}  {back_end}  (changes {})", shaper.device, shaper.changes));
    for direction in &shaper.directions {
        rates(page, direction);
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
    page.line(&format!(
        "    {:<12}{:>13}{:>11}{:>11}{:>11}{:>9}{:>8}",
        "", "rate", "waiting", "delay", "longest", "dropped", "marked"
    ));
    for class in &direction.classes {
        let longest = class.peak_delay_ns.map_or_else(|| "-".to_owned(), time);
        let marked = class.marked.map_or_else(|| "-".to_owned(), |count| count.to_string());
        page.line(&format!(
            "    {:<12}{:>13}{:>11}{:>11}{longest:>11}{:>9}{marked:>8}",
            class.name.title(),
            rate(class.carried_bits_per_second),
            display::size(ByteCount::new(class.backlog_bytes)),
            time(class.delay_ns),
            class.dropped,
        ));
    }
}
