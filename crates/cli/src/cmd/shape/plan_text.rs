//! Text output of a plan.

use linerate_model::direction::Direction;
use std::fmt::Write as _;

use super::class_table;

use linerate_documents::shaper::{MtuAdvice, PredictedDelay, ShaperDocument, ShaperOutcome};
use linerate_report::text::{MAX_SUMMARY_LINES, wrap_text};
use linerate_report::throughput_text::TextStyle;
use linerate_shape::link::AccessLink;
use linerate_shape::plan::{CodepointTable, FilterProtocol, IngressControl, PlannedObject, ShaperPlan};
use linerate_units::display;

/// Maximum width of a line, also on wider terminals.
const MAX_WIDTH: usize = 100;

/// Text page of paragraphs and tables, fitted to the terminal.
pub(crate) struct PlanPage {
    text: String,
    width: usize,
    style: TextStyle,
}

impl PlanPage {
    pub(crate) fn new(style: TextStyle) -> Self {
        Self { text: String::new(), width: usize::from(style.width.get()).clamp(40, MAX_WIDTH), style }
    }

    /// Width in columns.
    pub(crate) const fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn paragraph(&mut self, indent: usize, words: &str) {
        for line in wrap_text(words, self.width.saturating_sub(indent).max(20)) {
            let _ = writeln!(self.text, "{:indent$}{line}", "");
        }
    }

    /// Appends a label with a paragraph indented to `column`.
    pub(crate) fn entry(&mut self, indent: usize, head: &str, column: usize, words: &str) {
        let lines = wrap_text(words, self.width.saturating_sub(column).max(20));
        for (number, line) in lines.iter().enumerate() {
            let head = if number == 0 { head } else { "" };
            let room = column.saturating_sub(indent + 1);
            let _ = writeln!(self.text, "{:indent$}{head:<room$} {line}", "");
        }
    }

    pub(crate) fn heading(&mut self, words: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let words = if self.style.colour { format!("\x1b[1m{words}\x1b[0m") } else { words.to_owned() };
        let _ = writeln!(self.text, "{words}");
    }

    pub(crate) fn line(&mut self, words: &str) {
        let _ = writeln!(self.text, "{words}");
    }

    pub(crate) fn text(self) -> String {
        with_terminal_signs(self.text, self.style)
    }
}

/// Replaces signs that the terminal lacks.
pub(crate) fn with_terminal_signs(text: String, style: TextStyle) -> String {
    if style.unicode {
        return text;
    }
    let plain = |sign: char| match sign {
        'µ' => 'u',
        '−' => '-',
        sign if sign.is_ascii() => sign,
        _ => '?',
    };
    text.chars().map(plain).collect()
}

/// Renders the plan without its commands.
pub(crate) fn plan(document: &ShaperDocument, plan: &ShaperPlan, line: &AccessLink, style: TextStyle) -> String {
    let mut page = PlanPage::new(style);
    page.heading(&format!("{}: {}", plan.device, rates(line)));
    page.entry(2, "with", 12, plan.back_end.name());
    class_table::plan(&mut page, &document.traffic_classes, true);
    for rejected in &document.rejected {
        page.entry(2, "not", 12, &format!("{}: {}", rejected.back_end, rejected.reason));
    }
    for direction in Direction::BOTH {
        tree(&mut page, plan, direction);
    }
    if let IngressControl::Uncontrolled(why) = &plan.receiving {
        page.heading("Down: not controlled");
        page.paragraph(2, why);
    }
    if !plan.offloads.is_empty() {
        page.heading("Limited while the shaper is active");
        for offload in &plan.offloads {
            page.entry(2, offload.aggregates.setting(), 16, &offload.reason);
        }
    }
    if let Some(table) = &plan.table {
        page.heading(&format!("Table {} of nftables while the shaper is active", table.name()));
        page.paragraph(2, CodepointTable::REASON);
    }
    delays(&mut page, document);
    advice(&mut page, &document.advice);
    if !document.notes.is_empty() {
        page.heading("Notes");
        for note in &document.notes {
            page.paragraph(2, note);
        }
    }
    page.text()
}

/// Renders the rates and the back end.
pub(crate) fn head(plan: &ShaperPlan, line: &AccessLink, style: TextStyle) -> String {
    let mut page = PlanPage::new(style);
    page.heading(&format!("{}: {}", plan.device, rates(line)));
    page.entry(2, "with", 12, plan.back_end.name());
    page.text()
}

/// Renders the plan in at most twelve lines and those of the traffic classes: rates, back end, expected delays, notes.
pub(crate) fn summary(document: &ShaperDocument, plan: &ShaperPlan, line: &AccessLink, style: TextStyle) -> String {
    let mut page = PlanPage::new(style);
    page.heading(&format!("{}: {}", plan.device, rates(line)));
    page.entry(2, "with", 12, plan.back_end.name());
    let head_lines = page.text.lines().count();
    class_table::plan(&mut page, &document.traffic_classes, false);
    let class_lines = page.text.lines().count() - head_lines;
    let mut end = PlanPage::new(style);
    if document.outcome == ShaperOutcome::Planned {
        end.paragraph(2, "Nothing was changed. -v prints the plan with each command, --script a script.");
    } else {
        let device = &plan.device;
        end.paragraph(2, &format!("Next: `linerate shape {device} status` shows what it does."));
    }
    let end = end.text();
    let mut parts = Vec::new();
    if let IngressControl::Uncontrolled(why) = &plan.receiving {
        parts.push(("down", format!("not controlled: {why}")));
    }
    parts.extend(document.notes.iter().map(|note| ("note", note.clone())));
    let first = document.prediction.first().map(|one| one.importance);
    let interactive = document.prediction.iter().filter(|one| Some(one.importance) == first && !one.l4s);
    parts.extend(interactive.map(|one| {
        let l4s = document.prediction.iter().find(|other| other.l4s && other.load == one.load);
        ("expected", l4s.map_or_else(|| expected(one), |l4s| expected_of_both(l4s, one)))
    }));
    for (head, text) in parts {
        let mut part = PlanPage::new(style);
        part.entry(2, head, 12, &text);
        let part = part.text();
        if page.text.lines().count() + part.lines().count() + end.lines().count() <= MAX_SUMMARY_LINES + class_lines {
            page.text.push_str(&part);
        }
    }
    page.text() + &end
}

/// Expected delay of the first class in one sentence.
fn expected(one: &PredictedDelay) -> String {
    let time = |nanoseconds| display::duration(core::time::Duration::from_nanos(nanoseconds));
    let added = if one.includes_idle { "" } else { " more than idle" };
    format!(
        "{} packets wait {} on average, {} at most{added} ({} full)",
        one.importance.name(),
        time(one.mean_ns),
        time(one.longest_ns),
        one.load.name()
    )
}

/// Expected delays of a dual queue in one sentence: no packet has another one.
fn expected_of_both(l4s: &PredictedDelay, classic: &PredictedDelay) -> String {
    let time = |nanoseconds| display::duration(core::time::Duration::from_nanos(nanoseconds));
    let added = if l4s.includes_idle { "" } else { " more than idle" };
    format!(
        "packets with ECT(1) wait {} on average, {} at most{added}; all others {} and {} ({} full)",
        time(l4s.mean_ns),
        time(l4s.longest_ns),
        time(classic.mean_ns),
        time(classic.longest_ns),
        l4s.load.name()
    )
}

/// Formats `220 kbit/s up, 850 kbit/s down`.
pub(crate) fn rates(line: &AccessLink) -> String {
    let one = |direction: Direction| match line.rate(direction) {
        Some(rate) => format!("{} {}", display::rate(rate), direction.name()),
        None => format!("{} unchanged", direction.name()),
    };
    format!("{}, {}", one(Direction::Up), one(Direction::Down))
}

fn tree(page: &mut PlanPage, plan: &ShaperPlan, direction: Direction) {
    let steps = plan.steps.iter().filter(|step| step.direction == direction);
    let Some(device) = plan.shaped_device(direction).or(Some(plan.device.as_str())) else { return };
    let (mut lines, mut protocols, mut leaves) = (Vec::new(), Vec::new(), 0_usize);
    for step in steps {
        match &step.part {
            PlannedObject::Discipline(one) => {
                let rate = one.rate.map_or_else(String::new, |rate| format!(" {}", display::rate(rate)));
                // Hashed leaves are identical: only one is listed.
                leaves += usize::from(one.kind == "bfifo");
                if leaves <= 1 || one.kind != "bfifo" {
                    lines.push((format!("{}{rate}", one.kind), step.reason.clone()));
                }
            }
            // They have a table of their own.
            PlannedObject::Class(class) if class.traffic_class.is_some() => {}
            PlannedObject::Class(class) if class.importance.is_some() || class.ceiling.is_none() => {
                let ceiling = class.ceiling.map_or_else(String::new, |rate| format!(", up to {}", display::rate(rate)));
                let name = class.importance.map_or("all", linerate_shape::policy::TrafficImportance::name);
                let text = format!("{}{ceiling}: {}", display::rate(class.rate), step.reason);
                if !lines.iter().any(|(head, _)| head == name) {
                    lines.push((name.to_owned(), text));
                }
            }
            PlannedObject::Filter(filter) => protocols.push(filter.protocol),
            _ => {}
        }
    }
    if lines.is_empty() {
        return;
    }
    let name = if direction == Direction::Up { "Up" } else { "Down" };
    page.heading(&format!("{name}, on {device}"));
    for (head, text) in lines {
        page.entry(2, &head, 23, &text);
    }
    if leaves > 1 {
        page.paragraph(2, &format!("{leaves} such queues; a flow's addresses and ports select its queue"));
    }
    if !protocols.is_empty() {
        let filters = display::counted(protocols.len(), "filter");
        page.paragraph(2, &format!("{filters}, {}", families(&protocols)));
    }
}

/// Families that filters of these protocols see.
fn families(protocols: &[FilterProtocol]) -> &'static str {
    match protocols {
        [FilterProtocol::Ipv4, others @ ..] if others.iter().all(|one| *one == FilterProtocol::Ipv4) => "for IPv4 only",
        [FilterProtocol::Ipv6, others @ ..] if others.iter().all(|one| *one == FilterProtocol::Ipv6) => "for IPv6 only",
        _ => "for IPv4 and IPv6",
    }
}

fn delays(page: &mut PlanPage, document: &ShaperDocument) {
    if document.prediction.is_empty() {
        return;
    }
    let added = document.prediction.iter().any(|one| !one.includes_idle);
    page.heading(if added {
        "Expected delay while four flows fill the link, in addition to the idle link's"
    } else {
        "Expected delay while four flows fill the link"
    });
    page.line(&format!(
        "  {:<21}{:>11}{:>11}{:>15}{:>15}",
        "full, class", "mean", "longest", "one packet", "a bulk flow"
    ));
    for one in &document.prediction {
        page.line(&delay(one));
    }
}

fn delay(one: &PredictedDelay) -> String {
    let time = |nanoseconds| display::duration(core::time::Duration::from_nanos(nanoseconds));
    let class = if one.l4s { "ECT(1)" } else { one.importance.name() };
    let name = format!("{}, {class}", one.load.name());
    let (mean, longest) = (time(one.mean_ns), time(one.longest_ns));
    format!("  {name:<21}{mean:>11}{longest:>11}{:>15}{:>15}", time(one.packet_ns), time(one.own_queue_ns))
}

fn advice(page: &mut PlanPage, offers: &[MtuAdvice]) {
    if offers.is_empty() {
        return;
    }
    page.heading("Option: smaller packets (--route-mtu) reduce serialisation delay here");
    for offer in offers {
        let gain = display::duration(core::time::Duration::from_nanos(offer.mean_gain_ns));
        let longest = display::duration(core::time::Duration::from_nanos(offer.longest_gain_ns));
        let cost = offer.goodput_cost * 100.0;
        let words = format!(
            "mean delay -{gain}, longest -{longest}, goodput -{cost:.0} % in one direction, more when both are full"
        );
        page.entry(2, &format!("{} {} B", offer.direction.name(), offer.mtu), 14, &words);
    }
}

/// Renders the commands, each with its reason.
pub(crate) fn commands(document: &ShaperDocument, style: TextStyle) -> String {
    let mut page = PlanPage::new(style);
    page.heading("Equivalent commands");
    let mut last = "";
    for step in &document.steps {
        if step.reason != last {
            page.paragraph(2, &format!("# {}", step.reason));
            last = &step.reason;
        }
        page.line(&format!("  {}", step.command));
    }
    page.text()
}
