//! Text output of `linerate rollback`.

use std::fmt::Write as _;

use linerate_change::{
    ChangePhase, ChangeSet, ListedChangeSet, PlannedChange, RestoreOutcome, RollbackMode, RollbackReport, TargetReport,
    shown,
};
use linerate_model::change::ChangeTarget;
use linerate_report::escape;
use linerate_report::throughput_text::TextStyle;
use linerate_sys::clock::format_utc;
use linerate_sys::host_access::HostIdentity;
use linerate_units::WallTime;

fn moment(time: WallTime) -> String {
    format_utc(time, "%Y-%m-%d %H:%M UTC")
}

fn bold(text: &str, style: TextStyle) -> String {
    if style.colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
}

/// Value of this target on one line.
fn target_value(target: &ChangeTarget, text: Option<&str>) -> String {
    value(text.map(|text| shown(target, text)).as_deref())
}

/// Value on one line; the queueing disciplines of an interface take several.
fn value(text: Option<&str>) -> String {
    let lines = text.unwrap_or("nothing").lines().map(|line| escape::line(line.trim_start_matches("# ")).into_owned());
    lines.collect::<Vec<_>>().join("; ")
}

/// Lists the sets with their changes.
pub(super) fn sets_text(sets: &[ListedChangeSet], here: &HostIdentity, style: TextStyle) -> String {
    let mut text = String::new();
    for (index, (id, set)) in sets.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        match set {
            Ok(set) => push_set(&mut text, set, here, style),
            Err(error) => {
                let _ = writeln!(text, "{}", bold(&format!("{id}  unreadable"), style));
                let _ = writeln!(text, "   {error}");
            }
        }
    }
    text
}

fn push_set(text: &mut String, set: &ChangeSet, here: &HostIdentity, style: TextStyle) {
    let state = set.state(here).label();
    let head = format!("{}  {}  {state}", set.id, moment(set.begun_at));
    let _ = writeln!(text, "{}  {}", bold(&head, style), escape::line(&set.purpose));
    for item in &set.items {
        push_item(text, item, style);
    }
    if let Some(file) = set.file.as_ref().filter(|file| !file.is_reverted) {
        let _ = writeln!(text, "   in {}", file.path.display());
    }
    if let Some((_, warnings)) = &set.kept {
        for warning in warnings {
            let _ = writeln!(text, "   warning: {}", escape::line(warning));
        }
    }
    if let Some((time, _, reason)) = &set.closed {
        let _ = writeln!(text, "   rolled back {}: {}", moment(*time), escape::line(reason));
    }
}

fn push_item(text: &mut String, item: &PlannedChange, style: TextStyle) {
    let arrow = if style.unicode { "→" } else { "->" };
    let phase = item.phase.name().label();
    let target = &item.change.target;
    let (from, to) = (target_value(target, item.change.from.as_deref()), target_value(target, Some(&item.change.to)));
    let _ = writeln!(text, "   {} ({phase})", escape::line(&item.change.target.to_string()));
    let _ = writeln!(text, "      {from} {arrow} {to}");
    if !item.message.is_empty() && !matches!(item.phase, ChangePhase::Back) {
        let _ = writeln!(text, "      {}", escape::line(&item.message));
    }
}

/// Text report of a rollback.
pub(super) fn report_text(
    report: &RollbackReport,
    set: Option<&ChangeSet>,
    mode: RollbackMode,
    style: TextStyle,
) -> String {
    let mut text = String::new();
    let about =
        set.map_or_else(String::new, |set| format!(" ({}, {})", escape::line(&set.purpose), moment(set.begun_at)));
    let outcome = match mode {
        RollbackMode::DryRun => "dry run",
        RollbackMode::ForReal => report.state.label(),
    };
    let _ = writeln!(text, "{}", bold(&format!("Changes {}{about}: {outcome}", report.id), style));
    for target in &report.targets {
        push_target(&mut text, target, mode);
    }
    if let Some(file) = &report.file {
        let _ = writeln!(text, "  {}: {}", file.path.display(), escape::line(&file.message));
    }
    for note in &report.notes {
        let _ = writeln!(text, "  {}", escape::line(note));
    }
    text
}

fn push_target(text: &mut String, target: &TargetReport, mode: RollbackMode) {
    let name = target.target.to_string();
    let name = escape::line(&name);
    let from = target_value(&target.target, target.from.as_deref());
    let result = match (&target.result, mode) {
        (RestoreOutcome::Restored, RollbackMode::ForReal) => format!("restored to {from}"),
        (RestoreOutcome::Restored, RollbackMode::DryRun) => format!("would be restored to {from}"),
        (other, _) => escape::line(&other.with_display_values(&target.target).to_string()).into_owned(),
    };
    let _ = writeln!(text, "  {name}: {result}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fit_on_one_line() {
        assert_eq!(value(None), "nothing");
        assert_eq!(value(Some("# made by the kernel: fq")), "made by the kernel: fq");
        assert_eq!(value(Some("qdisc a\nqdisc b")), "qdisc a; qdisc b");
        assert!(!value(Some("a\x1b[31m")).contains('\x1b'));
    }
}
