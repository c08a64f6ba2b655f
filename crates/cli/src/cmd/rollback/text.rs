//! What people read.

use std::fmt::Write as _;

use linerate_change::{Back, ChangeSet, Item, Listed, Mode, Phase, Report, TargetReport, shown};
use linerate_model::change::Target;
use linerate_report::escape;
use linerate_report::throughput_text::Style;
use linerate_sys::clock::format_utc;
use linerate_sys::host_access::Identity;
use linerate_units::WallTime;

fn moment(time: WallTime) -> String {
    format_utc(time, "%Y-%m-%d %H:%M UTC")
}

fn bold(text: &str, style: Style) -> String {
    if style.colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
}

/// A value of this target on one line.
fn value_of(target: &Target, text: Option<&str>) -> String {
    value(text.map(|text| shown(target, text)).as_deref())
}

/// A value on one line; the queueing disciplines of an interface have several.
fn value(text: Option<&str>) -> String {
    let lines = text.unwrap_or("nothing").lines().map(|line| escape::line(line.trim_start_matches("# ")).into_owned());
    lines.collect::<Vec<_>>().join("; ")
}

/// The sets with their changes.
pub(super) fn of_sets(sets: &[Listed], here: &Identity, style: Style) -> String {
    let mut text = String::new();
    for (index, (id, set)) in sets.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        match set {
            Ok(set) => of_set(&mut text, set, here, style),
            Err(error) => {
                let _ = writeln!(text, "{}", bold(&format!("{id}  unreadable"), style));
                let _ = writeln!(text, "   {error}");
            }
        }
    }
    text
}

fn of_set(text: &mut String, set: &ChangeSet, here: &Identity, style: Style) {
    let state = set.state(here).words();
    let head = format!("{}  {}  {state}", set.id, moment(set.begun_at));
    let _ = writeln!(text, "{}  {}", bold(&head, style), escape::line(&set.purpose));
    for item in &set.items {
        of_item(text, item, style);
    }
    if let Some(file) = set.file.as_ref().filter(|file| !file.is_back) {
        let _ = writeln!(text, "   in {}", file.path.display());
    }
    if let Some((_, warnings)) = &set.kept {
        for warning in warnings {
            let _ = writeln!(text, "   warning: {}", escape::line(warning));
        }
    }
    if let Some((time, _, reason)) = &set.closed {
        let _ = writeln!(text, "   taken back {}: {}", moment(*time), escape::line(reason));
    }
}

fn of_item(text: &mut String, item: &Item, style: Style) {
    let arrow = if style.unicode { "→" } else { "->" };
    let phase = match item.phase {
        Phase::Planned => "not tried",
        Phase::NoNeed => "was so before",
        Phase::Refused => "refused",
        Phase::Attempted | Phase::TakingBack { .. } => "interrupted",
        Phase::InForce { .. } => "in force",
        Phase::Back => "back",
        Phase::Replaced => "replaced by a later one",
    };
    let target = &item.change.target;
    let (from, to) = (value_of(target, item.change.from.as_deref()), value_of(target, Some(&item.change.to)));
    let _ = writeln!(text, "   {} ({phase})", escape::line(&item.change.target.to_string()));
    let _ = writeln!(text, "      {from} {arrow} {to}");
    if !item.message.is_empty() && !matches!(item.phase, Phase::Back) {
        let _ = writeln!(text, "      {}", escape::line(&item.message));
    }
}

/// What taking a set back did.
pub(super) fn of_report(report: &Report, set: Option<&ChangeSet>, mode: Mode, style: Style) -> String {
    let mut text = String::new();
    let about =
        set.map_or_else(String::new, |set| format!(" ({}, {})", escape::line(&set.purpose), moment(set.begun_at)));
    let outcome = match mode {
        Mode::DryRun => "what would be done",
        Mode::ForReal => report.state.words(),
    };
    let _ = writeln!(text, "{}", bold(&format!("Changes {}{about}: {outcome}", report.id), style));
    for target in &report.targets {
        of_target(&mut text, target, mode);
    }
    if let Some(file) = &report.file {
        let _ = writeln!(text, "  {}: {}", file.path.display(), escape::line(&file.message));
    }
    for note in &report.notes {
        let _ = writeln!(text, "  {}", escape::line(note));
    }
    text
}

fn of_target(text: &mut String, target: &TargetReport, mode: Mode) {
    let name = target.target.to_string();
    let name = escape::line(&name);
    let from = value_of(&target.target, target.from.as_deref());
    let result = match (&target.result, mode) {
        (Back::Restored, Mode::ForReal) => format!("restored to {from}"),
        (Back::Restored, Mode::DryRun) => format!("would be restored to {from}"),
        (other, _) => escape::line(&other.shown(&target.target).to_string()).into_owned(),
    };
    let _ = writeln!(text, "  {name}: {result}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_on_one_line() {
        assert_eq!(value(None), "nothing");
        assert_eq!(value(Some("# made by the kernel: fq")), "made by the kernel: fq");
        assert_eq!(value(Some("qdisc a\nqdisc b")), "qdisc a; qdisc b");
        assert!(!value(Some("a\x1b[31m")).contains('\x1b'));
    }
}
