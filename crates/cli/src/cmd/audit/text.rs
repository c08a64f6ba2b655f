//! Text output of an audit.

use std::fmt::Write as _;

use linerate_documents::audit::SeverityCounts;
use linerate_model::fact::ReadObstacle;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_report::escape;
use linerate_report::text::MAX_SUMMARY_LINES;
use linerate_report::throughput_text::TextStyle;

/// Indentation of a finding's text.
const INDENT: &str = "    ";
/// Width of the labels before evidence, source and remedy.
const LABEL_WIDTH: usize = 9;

/// Renders the whole audit: a one-line summary, the findings by severity, and the coverage.
pub(super) fn audit(host: &HostFacts, findings: &[AuditFinding], left_out: usize, style: TextStyle) -> String {
    let mut text = format!("{}\n\n", bold(&counts(findings), style));
    for severity in
        [FindingSeverity::Critical, FindingSeverity::Warning, FindingSeverity::Advice, FindingSeverity::Note]
    {
        let of_severity: Vec<&AuditFinding> = findings.iter().filter(|finding| finding.severity == severity).collect();
        if of_severity.is_empty() {
            continue;
        }
        text.push_str(&colour_by_severity(severity, &severity.name().to_uppercase(), style));
        text.push('\n');
        for finding in of_severity {
            push_finding(&mut text, finding, style);
        }
    }
    text.push_str(&dim_lines(&coverage_text(host, left_out), style));
    text
}

/// Findings of a summary at most; the remainder is counted.
const MAX_FINDINGS: usize = 8;
/// Width of the severity's column.
const SEVERITY_WIDTH: usize = 9;

/// Renders a summary of at most twelve lines: the gravest findings, a line each, and the first remedy.
pub(super) fn summary(host: &HostFacts, findings: &[AuditFinding], left_out: usize, style: TextStyle) -> String {
    // The rows begin with the first of all.
    let tally = if findings.is_empty() { counts(findings) } else { tally(findings) + "." };
    let mut text = format!("{}\n", bold(&tally, style));
    let end = |rows: usize| (rows, summary_end(host, findings, rows, left_out, style));
    let (rows, end) = (1..=MAX_FINDINGS.min(findings.len()))
        .rev()
        .map(end)
        .find(|(rows, end)| 1 + rows + end.lines().count() <= MAX_SUMMARY_LINES)
        .unwrap_or_else(|| end(0));
    for finding in findings.iter().take(rows) {
        push_row(&mut text, finding, style);
    }
    text + &end
}

/// Renders what follows the rows of a summary: the first remedy, and where the rest is.
fn summary_end(host: &HostFacts, findings: &[AuditFinding], rows: usize, left_out: usize, style: TextStyle) -> String {
    let mut text = String::new();
    if let Some(remedy) = findings.iter().find_map(|finding| finding.remedy.first()) {
        push(&mut text, "  First: ", &" ".repeat("  First: ".len()), remedy, style);
    }
    let mut hints = Vec::new();
    let more = findings.len() - rows;
    if more > 0 {
        hints.push(format!("{more} more"));
    }
    if left_out > 0 {
        hints.push(format!("{left_out} below --min-severity left out"));
    }
    hints.push("-v has the evidence, the sources and all remedies".to_owned());
    let hints = if findings.is_empty() && left_out == 0 { coverage_text(host, 0) } else { hints.join("; ") + "." };
    text.push_str(&dim_lines(&hints, style));
    text
}

/// Pushes a finding in one line.
fn push_row(text: &mut String, finding: &AuditFinding, style: TextStyle) {
    let width = usize::from(style.width.get()).clamp(40, 100);
    let severity = format!("{:SEVERITY_WIDTH$}", finding.severity.name());
    let room = width - 2 - SEVERITY_WIDTH;
    let whole = ascii(&escape::line(&format!("{}: {}", finding.rule, finding.text)), style);
    let cut = if whole.chars().count() > room {
        let sign = if style.unicode { "…" } else { "~" };
        format!("{}{sign}", whole.chars().take(room - 1).collect::<String>().trim_end())
    } else {
        whole
    };
    let _ = writeln!(text, "  {}{cut}", colour_by_severity(finding.severity, &severity, style));
}

/// Summary such as `2 critical, 1 warning, 3 advice; first of all sack-off`.
pub(super) fn counts(findings: &[AuditFinding]) -> String {
    match findings.first() {
        None => "Nothing found that slows transfers.".to_owned(),
        Some(first) => format!("{}; first of all {}.", tally(findings), first.rule),
    }
}

/// Numbers of findings by severity, such as `2 critical findings, 1 warning`.
fn tally(findings: &[AuditFinding]) -> String {
    let counts = SeverityCounts::of(findings);
    let plural = |count: u64, one: &str, many: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        more => Some(format!("{more} {many}")),
    };
    let parts: Vec<String> = [
        plural(counts.critical, "critical finding", "critical findings"),
        plural(counts.warning, "warning", "warnings"),
        plural(counts.advice, "piece of advice", "pieces of advice"),
        plural(counts.note, "note", "notes"),
    ]
    .into_iter()
    .flatten()
    .collect();
    parts.join(", ")
}

/// Pushes one finding: its rule and subject, the text, then labelled evidence, source, risk and remedy.
pub(super) fn push_finding(text: &mut String, finding: &AuditFinding, style: TextStyle) {
    let head = format!("  {}  {}\n", bold(&finding.rule, style), escape::line(&finding.subject));
    text.push_str(&head);
    push(text, INDENT, INDENT, &finding.text, style);
    for (index, note) in finding.notes.iter().enumerate() {
        push_labelled(text, if index == 0 { "also" } else { "" }, note, style);
    }
    for (index, evidence) in finding.evidence.iter().enumerate() {
        push_labelled(text, if index == 0 { "seen" } else { "" }, evidence, style);
    }
    push_labelled(text, "source", &finding.source, style);
    if !finding.risk.is_empty() {
        push_labelled(text, "risk", &finding.risk, style);
    }
    for (index, line) in finding.remedy.iter().enumerate() {
        let first = format!("{INDENT}{:LABEL_WIDTH$}", if index == 0 { "do" } else { "" });
        push(text, &first, &" ".repeat(first.len() + 2), line, style);
    }
    text.push('\n');
}

fn push_labelled(text: &mut String, label: &str, content: &str, style: TextStyle) {
    let first = format!("{INDENT}{label:LABEL_WIDTH$}");
    let rest = " ".repeat(first.len());
    push(text, &first, &rest, content, style);
}

/// Pushes text wrapped to the terminal's width; the first line has its own indentation.
pub(super) fn push(text: &mut String, first: &str, rest: &str, wrapped: &str, style: TextStyle) {
    let width = usize::from(style.width.get()).clamp(40, 100);
    let wrapped = ascii(&escape::line(wrapped), style);
    let (mut line, mut fresh) = (first.to_owned(), true);
    for word in wrapped.split(' ').filter(|word| !word.is_empty()) {
        if !fresh && line.chars().count() + 1 + word.chars().count() > width {
            text.push_str(line.trim_end());
            text.push('\n');
            rest.clone_into(&mut line);
            fresh = true;
        }
        if !fresh {
            line.push(' ');
        }
        line.push_str(word);
        fresh = false;
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

/// Coverage of the audit, in one or two lines.
fn coverage_text(host: &HostFacts, left_out: usize) -> String {
    let facts = host.listed();
    let known = facts.iter().filter(|(_, fact)| fact.known().is_some()).count();
    let denied = facts
        .iter()
        .filter(|(_, fact)| fact.unread().is_some_and(|unread| unread.obstacle == ReadObstacle::Denied))
        .count();
    let kernel = host.kernel.release.known().map_or("unknown", String::as_str);
    let mut lines = format!("Linux {kernel}: {known} facts read, {} absent or unreadable", facts.len() - known);
    if denied > 0 {
        let _ = write!(lines, " ({denied} need root)");
    }
    lines.push_str(" (--json has the reasons). Nothing was changed.");
    if left_out > 0 {
        let _ = write!(lines, " {left_out} below --min-severity left out.");
    }
    lines
}

fn dim_lines(lines: &str, style: TextStyle) -> String {
    let mut text = String::new();
    push(&mut text, "", "", lines, style);
    if style.colour { format!("\x1b[2m{}\x1b[0m\n", text.trim_end()) } else { text }
}

pub(super) fn bold(text: &str, style: TextStyle) -> String {
    if style.colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
}

fn colour_by_severity(severity: FindingSeverity, text: &str, style: TextStyle) -> String {
    let code = match severity {
        FindingSeverity::Critical => "1;31",
        FindingSeverity::Warning => "1;33",
        FindingSeverity::Advice => "1;36",
        FindingSeverity::Note => "1",
    };
    if style.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

/// Text for a terminal without Unicode.
pub(super) fn ascii(text: &str, style: TextStyle) -> String {
    if style.unicode || text.is_ascii() {
        return text.to_owned();
    }
    let likeness = |character: char| match character {
        '→' => '>',
        '…' => '.',
        'µ' => 'u',
        '–' | '−' => '-',
        other if other.is_ascii() => other,
        _ => '?',
    };
    text.chars().map(likeness).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_wider_than_the_terminal() {
        let mut text = String::new();
        push(&mut text, "  first ", "        ", &"word ".repeat(60), TextStyle::plain());
        assert!(text.lines().all(|line| line.len() <= 80 && !line.ends_with(' ')), "{text}");
        assert_eq!(text.split_whitespace().filter(|word| *word == "word").count(), 60);
    }

    #[test]
    fn the_summary_counts() {
        assert_eq!(counts(&[]), "Nothing found that slows transfers.");
    }
}
