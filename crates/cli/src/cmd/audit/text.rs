//! An audit as a person reads it.

use std::fmt::Write as _;

use linerate_model::fact::Obstacle;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::schema::audit::Counts;
use linerate_report::escape;
use linerate_report::throughput_text::Style;

/// Where the text of a finding begins.
const INDENT: &str = "    ";
/// Columns of the words before evidence, source and remedy.
const LABEL: usize = 9;

/// The whole audit: a summary in one line, the findings by severity, and what was looked at.
pub(super) fn audit(host: &HostFacts, findings: &[Finding], left_out: usize, style: Style) -> String {
    let mut text = format!("{}\n\n", bold(&summary(findings), style));
    for severity in [Severity::Critical, Severity::Warning, Severity::Advice, Severity::Note] {
        let of_severity: Vec<&Finding> = findings.iter().filter(|finding| finding.severity == severity).collect();
        if of_severity.is_empty() {
            continue;
        }
        text.push_str(&paint(severity, &severity.name().to_uppercase(), style));
        text.push('\n');
        for finding in of_severity {
            push_finding(&mut text, finding, style);
        }
    }
    text.push_str(&dim_lines(&closing(host, left_out), style));
    text
}

/// `2 critical, 1 warning, 3 advice: the gravest is sack-off`.
fn summary(findings: &[Finding]) -> String {
    let counts = Counts::of(findings);
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
    match findings.first() {
        None => "Nothing found that slows transfers.".to_owned(),
        Some(first) => format!("{}; first of all {}.", parts.join(", "), first.rule),
    }
}

/// One finding: its rule and subject, what is wrong, and behind a word each: what was seen, who says so, the risk, what to do.
pub(super) fn push_finding(text: &mut String, finding: &Finding, style: Style) {
    let head = format!("  {}  {}\n", bold(&finding.rule, style), escape::line(&finding.subject));
    text.push_str(&head);
    push(text, INDENT, INDENT, &finding.text, style);
    for (index, evidence) in finding.evidence.iter().enumerate() {
        push_labelled(text, if index == 0 { "seen" } else { "" }, evidence, style);
    }
    push_labelled(text, "source", &finding.source, style);
    if !finding.risk.is_empty() {
        push_labelled(text, "risk", &finding.risk, style);
    }
    for (index, line) in finding.remedy.iter().enumerate() {
        let first = format!("{INDENT}{:LABEL$}", if index == 0 { "do" } else { "" });
        push(text, &first, &" ".repeat(first.len() + 2), line, style);
    }
    text.push('\n');
}

fn push_labelled(text: &mut String, label: &str, words: &str, style: Style) {
    let first = format!("{INDENT}{label:LABEL$}");
    let rest = " ".repeat(first.len());
    push(text, &first, &rest, words, style);
}

/// Adds words in lines no wider than the terminal, the first with another beginning than the rest.
pub(super) fn push(text: &mut String, first: &str, rest: &str, words: &str, style: Style) {
    let width = usize::from(style.width.get()).clamp(40, 100);
    let words = ascii(&escape::line(words), style);
    let (mut line, mut fresh) = (first.to_owned(), true);
    for word in words.split(' ').filter(|word| !word.is_empty()) {
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

/// What was looked at, in one or two lines.
fn closing(host: &HostFacts, left_out: usize) -> String {
    let facts = host.listed();
    let known = facts.iter().filter(|(_, fact)| fact.known().is_some()).count();
    let denied = facts
        .iter()
        .filter(|(_, fact)| fact.unread().is_some_and(|unread| unread.obstacle == Obstacle::Denied))
        .count();
    let kernel = host.kernel.release.known().map_or("unknown", String::as_str);
    let mut lines = format!("Linux {kernel}: {known} facts read, {} not there or not to be read", facts.len() - known);
    if denied > 0 {
        let _ = write!(lines, " ({denied} need root)");
    }
    lines.push_str(" (--json has the reasons). Nothing was changed.");
    if left_out > 0 {
        let _ = write!(lines, " {left_out} below --min-severity left out.");
    }
    lines
}

fn dim_lines(words: &str, style: Style) -> String {
    let mut text = String::new();
    push(&mut text, "", "", words, style);
    if style.colour { format!("\x1b[2m{}\x1b[0m\n", text.trim_end()) } else { text }
}

pub(super) fn bold(text: &str, style: Style) -> String {
    if style.colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
}

fn paint(severity: Severity, text: &str, style: Style) -> String {
    let code = match severity {
        Severity::Critical => "1;31",
        Severity::Warning => "1;33",
        Severity::Advice => "1;36",
        Severity::Note => "1",
    };
    if style.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

/// Text for a terminal without Unicode.
pub(super) fn ascii(text: &str, style: Style) -> String {
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
        push(&mut text, "  first ", "        ", &"word ".repeat(60), Style::plain());
        assert!(text.lines().all(|line| line.len() <= 80 && !line.ends_with(' ')), "{text}");
        assert_eq!(text.split_whitespace().filter(|word| *word == "word").count(), 60);
    }

    #[test]
    fn the_summary_counts() {
        assert_eq!(summary(&[]), "Nothing found that slows transfers.");
    }
}
