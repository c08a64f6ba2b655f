//! `linerate doctor --check`: requirements of this host, in one table.

use std::fmt::Write as _;

use linerate_change::ChangeStore;
use linerate_documents::host_check::{CheckGroup, CheckedItem, HostCheckDocument};
use linerate_history::{History, HistoryLocation};
use linerate_lab::check;
use linerate_model::lab_check::{BackEndReport, CheckOutcome};
use linerate_report::text::{MAX_SUMMARY_LINES, wrap_text};
use linerate_report::throughput_text::TextStyle;
use linerate_sys::{distribution, host, process};

use crate::cmd::measurement::{DocumentKind, print_json};
use crate::console;
use crate::exit::ExitStatus;

/// Column at which the text of an item begins.
const TEXT_COLUMN: usize = 32;

/// Tries what linerate needs on this host and prints the result. Missed when safe changes are not possible.
pub(super) fn run(json: bool, verbose: bool) -> ExitStatus {
    let (store, program) = match (ChangeStore::from_environment(), process::own_program()) {
        (Ok(store), Ok(program)) => (store, program),
        (Err(error), _) => return unable(&error.to_string()),
        (_, Err(error)) => return unable(&error.to_string()),
    };
    let mut items = linerate_operate::check::check_host(&store, &program);
    items.extend(lab());
    items.push(history());
    let version = env!("CARGO_PKG_VERSION");
    let document = HostCheckDocument::new(version, Some(host::kernel_release()), distribution::pretty_name(), items);
    if json {
        print_json(DocumentKind::HostCheck, &document);
    } else if verbose {
        console::data(&table(&document, console::data_style()));
    } else {
        console::data(&summary(&document, console::data_style()));
    }
    if document.can_change_safely { ExitStatus::Success } else { ExitStatus::Missed }
}

fn unable(text: &str) -> ExitStatus {
    console::error(text, None);
    ExitStatus::Unable
}

fn lab() -> [CheckedItem; 2] {
    let report = check::check();
    let consequence = "no `linerate lab run` with it";
    [
        lab_item("lab: User-Mode Linux", &report.user_mode_linux, consequence),
        lab_item("lab: namespaces", &report.namespaces, consequence),
    ]
}

/// A back end of the lab, with the first requirement that it lacks.
fn lab_item(name: &str, report: &BackEndReport, consequence: &str) -> CheckedItem {
    if report.works {
        return CheckedItem::working(CheckGroup::Commands, name, "");
    }
    let lacking = report.items.iter().filter(|item| item.required).find_map(|item| match &item.outcome {
        CheckOutcome::Missing { what, way_out } => Some((what.clone(), way_out.clone())),
        CheckOutcome::Works { .. } | CheckOutcome::NotTried { .. } => None,
    });
    let (what, remedy) = lacking.unwrap_or_else(|| ("`linerate lab check` has the reasons".to_owned(), String::new()));
    let remedy = Some(remedy).filter(|remedy| !remedy.is_empty());
    CheckedItem::missing(CheckGroup::Commands, name, what, consequence).with_remedy(remedy)
}

fn history() -> CheckedItem {
    let opened = HistoryLocation::from_environment().and_then(|location| match location.file() {
        Some(file) => History::open(file).map(|_| file.display().to_string()),
        None => Ok("switched off".to_owned()),
    });
    let remedy = opened.as_ref().err().and_then(linerate_history::HistoryError::advice);
    let consequence = "finished runs are not recorded; measuring works";
    CheckedItem::tried(CheckGroup::Commands, "history", opened, consequence).with_remedy(remedy)
}

/// The verdict and what does not work, needed items first, in at most twelve lines.
fn summary(document: &HostCheckDocument, style: TextStyle) -> String {
    let mut text = headline(document, style).replacen(": ", ":\n  ", 1) + "\n";
    let mut missing = String::new();
    for is_needed in [true, false] {
        for group in document.items.chunk_by(|one, other| one.group == other.group) {
            for (row, names) in missing_rows(group).iter().filter(|(row, _)| row.needed == is_needed) {
                write_short(&mut missing, row, names, style);
            }
        }
    }
    let room = MAX_SUMMARY_LINES.saturating_sub(text.lines().count() + 1);
    let count = missing.lines().count();
    let shown = if count > room { room - 1 } else { room };
    for line in missing.lines().take(shown) {
        let _ = writeln!(text, "{line}");
    }
    if count > shown {
        let _ = writeln!(text, "  … {} more", count - shown);
    }
    text + "-v has what works, and each consequence and remedy.\n"
}

/// Appends items that do not work in one line: their remedy where they are needed, else their consequence.
fn write_short(text: &mut String, item: &CheckedItem, names: &[String], style: TextStyle) {
    let mark = if item.needed { "NO" } else { "no" };
    let first = if item.needed { &item.remedy } else { &item.consequence };
    let reason = first.as_ref().unwrap_or(&item.detail).replace('\n', "; ");
    // Of several, the last word: "queueing discipline cake, queueing discipline codel" is too long.
    let short = |name: &String| name.rsplit(' ').next().unwrap_or_default().to_owned();
    let name =
        if names.len() == 1 { item.name.clone() } else { names.iter().map(short).collect::<Vec<_>>().join(", ") };
    let line = format!("  {mark:<4}{name}: {reason}");
    let width = usize::from(style.width.get());
    let mut shown = line.clone();
    if line.chars().count() > width {
        shown = line.chars().take(width.saturating_sub(1)).collect::<String>() + "…";
    }
    let _ = writeln!(text, "{}", if style.unicode { shown } else { shown.replace('…', "~") });
}

fn headline(document: &HostCheckDocument, style: TextStyle) -> String {
    let (good, bad, plain) = if style.colour { ("\x1b[32m", "\x1b[31m", "\x1b[0m") } else { ("", "", "") };
    let known = [&document.distribution, &document.kernel.as_ref().map(|kernel| format!("Linux {kernel}"))];
    let host: Vec<&str> = known.into_iter().flatten().map(String::as_str).collect();
    let verdict = if document.can_change_safely {
        format!("{good}everything that safe changes need works{plain}")
    } else {
        let unmet = document.items.iter().filter(|item| item.needed && !item.works).count();
        format!("{bad}{unmet} of the requirements of safe changes are missing{plain}")
    };
    format!("{}: {verdict}", host.join(", "))
}

fn table(document: &HostCheckDocument, style: TextStyle) -> String {
    let mut text = headline(document, style) + "\n";
    for group in document.items.chunk_by(|one, other| one.group == other.group) {
        let _ = writeln!(text, "\n{}", group[0].group.title());
        write_working(&mut text, group, style);
        write_missing(&mut text, group, style);
    }
    text
}

/// The names of the items that work; details where they are of interest.
fn write_working(text: &mut String, group: &[CheckedItem], style: TextStyle) {
    let working: Vec<String> = group.iter().filter(|item| item.works).map(working_text).collect();
    if !working.is_empty() {
        write_wrapped(text, "yes", "works", &working.join("; "), style);
    }
}

fn working_text(item: &CheckedItem) -> String {
    let is_plain = item.detail.is_empty() || item.group == CheckGroup::TrafficControl && item.name != "shaper";
    if is_plain { item.name.clone() } else { format!("{} ({})", item.name, item.detail) }
}

fn write_missing(text: &mut String, group: &[CheckedItem], style: TextStyle) {
    for (row, _) in missing_rows(group) {
        write_item(text, &row, style);
    }
}

/// The items that do not work, with the names; those with the same consequence and remedy share a row.
fn missing_rows(group: &[CheckedItem]) -> Vec<(CheckedItem, Vec<String>)> {
    let mut rows: Vec<(CheckedItem, Vec<String>)> = Vec::new();
    for item in group.iter().filter(|item| !item.works) {
        let is_alike = |(other, _): &&mut (CheckedItem, Vec<String>)| {
            (&other.consequence, &other.remedy, other.needed) == (&item.consequence, &item.remedy, item.needed)
        };
        match rows.iter_mut().find(is_alike) {
            Some((row, names)) => {
                let first = if names.len() == 1 { format!("{}: {}", row.name, row.detail) } else { row.detail.clone() };
                row.detail = format!("{first}; {}: {}", item.name, item.detail);
                names.push(item.name.clone());
                row.name = format!("{} kinds", names.len());
            }
            None => rows.push((item.clone(), vec![item.name.clone()])),
        }
    }
    rows
}

fn write_item(text: &mut String, item: &CheckedItem, style: TextStyle) {
    let mark = if item.needed { "NO" } else { "no" };
    let consequence = item.consequence.as_deref().map(|text| format!("\nconsequence: {text}")).unwrap_or_default();
    let remedy = item.remedy.as_deref().map(|text| format!("\nremedy: {text}")).unwrap_or_default();
    write_wrapped(text, mark, &item.name, &format!("{}{consequence}{remedy}", item.detail.replace('\n', "; ")), style);
}

fn write_wrapped(text: &mut String, mark: &str, name: &str, detail: &str, style: TextStyle) {
    let width = usize::from(style.width.get()).saturating_sub(TEXT_COLUMN);
    let mut head = format!("  {mark:<4}{name:<width$}", width = TEXT_COLUMN - 6);
    if head.chars().count() >= TEXT_COLUMN && !head.ends_with(' ') {
        let _ = writeln!(text, "{head}");
        head = " ".repeat(TEXT_COLUMN);
    }
    for line in wrap_text(detail, width) {
        let _ = writeln!(text, "{}", format!("{head}{line}").trim_end());
        head = " ".repeat(TEXT_COLUMN);
    }
}

#[cfg(test)]
mod tests {
    use linerate_report::throughput_text::TerminalWidth;

    use super::*;

    fn document(items: Vec<CheckedItem>) -> HostCheckDocument {
        HostCheckDocument::new("0.1.0", Some("4.18.0".into()), Some("Some Linux 8".into()), items)
    }

    fn style() -> TextStyle {
        TextStyle { colour: false, ..console::data_style() }
    }

    #[test]
    fn what_is_missing_has_its_consequence_and_remedy() {
        let tc = CheckedItem::missing(CheckGroup::Changes, "tc", "not installed", "no `shape`")
            .with_remedy("install it: `dnf install iproute-tc`".to_owned())
            .needed();
        let root = CheckedItem::working(CheckGroup::Changes, "root", "").needed();
        let text = table(&document(vec![root, tc]), style());
        assert!(text.starts_with("Some Linux 8, Linux 4.18.0: 1 of the requirements"), "{text}");
        assert!(text.contains("  NO  tc") && text.contains("consequence: no `shape`"), "{text}");
        assert!(text.contains("dnf install iproute-tc") && text.contains("  yes works"), "{text}");
    }

    #[test]
    fn items_with_the_same_remedy_share_a_row() {
        let item = |name: &str| {
            CheckedItem::missing(CheckGroup::TrafficControl, name, "unknown", "another one is used")
                .with_remedy("install modules".to_owned())
        };
        let text = table(&document(vec![item("cake"), item("codel"), item("fq_pie")]), style());
        assert!(text.contains("  no  3 kinds"), "{text}");
        assert!(text.contains("cake: unknown; codel: unknown;") && text.contains("fq_pie: unknown"), "{text}");
        assert_eq!(text.matches("install modules").count(), 1, "{text}");
    }

    #[test]
    fn a_host_with_everything_is_told_so_in_a_few_lines() {
        let item = |name: &str| CheckedItem::working(CheckGroup::TrafficControl, name, "attached");
        let text = table(&document(vec![item("cake"), item("htb")]), style());
        assert!(text.contains("everything that safe changes need works"), "{text}");
        assert!(text.contains("cake; htb") && text.lines().count() == 4, "{text}");
    }

    #[test]
    fn the_summary_has_what_is_needed_first_in_twelve_lines() {
        let of_kind = |number: usize| {
            let consequence = format!("consequence {number}, which is long enough to go beyond the line's end here");
            CheckedItem::missing(CheckGroup::TrafficControl, format!("kind {number}"), "unknown", consequence)
        };
        let tc = CheckedItem::missing(CheckGroup::Changes, "tc", "not installed", "no `shape`")
            .with_remedy("install it: `dnf install iproute-tc`".to_owned())
            .needed();
        let items: Vec<CheckedItem> = (0..20).map(of_kind).chain([tc]).collect();
        for width in [60, 80] {
            let style = TextStyle { width: TerminalWidth::new(width), ..style() };
            let text = summary(&document(items.clone()), style);
            assert!(text.lines().count() <= 12, "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= usize::from(width)), "{text}");
            assert!(text.contains("  NO  tc: install it: `dnf install iproute-tc`\n  no  kind 0: "), "{text}");
            assert!(text.contains("more\n"), "{text}");
        }
        assert_eq!(summary(&document(vec![]), style()).lines().count(), 3);
        let alike =
            |name: &str| CheckedItem::missing(CheckGroup::TrafficControl, format!("kind {name}"), "unknown", "none");
        let text = summary(&document(vec![alike("cake"), alike("codel")]), style());
        assert!(text.contains("\n  no  cake, codel: none\n"), "{text}");
    }

    #[test]
    fn a_back_end_of_the_lab_names_its_first_lack() {
        let report = check::check();
        for back_end in [&report.user_mode_linux, &report.namespaces] {
            let item = lab_item("lab", back_end, "none");
            assert_eq!(item.works, back_end.works);
            assert!(item.works || !item.detail.is_empty(), "{item:?}");
        }
    }
}
