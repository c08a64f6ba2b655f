//! Shell script of a plan that needs only `ip` and `tc`.

use core::fmt::Write as _;
use linerate_model::direction::Direction;

use linerate_units::display;

use crate::link::AccessLink;
use crate::plan::{AggregatedPackets, CodepointTable, PlanCommand, PlannedObject, ShaperPlan, TcParent};

/// Input for `tc -batch`, without the leading `tc`: the plan's `tc` commands, in order. The intermediate device has to
/// exist before.
#[must_use]
pub fn batch(plan: &ShaperPlan) -> String {
    let commands = plan.steps.iter().map(|step| step.part.command()).filter(|command| command.program == "tc");
    commands.fold(String::new(), |mut text, command| {
        let line = command.to_string();
        text.push_str(line.strip_prefix("tc ").unwrap_or(&line));
        text.push('\n');
        text
    })
}

/// Returns a commented script for `sh` with the arguments `start` (or none), `stop` and `status`.
///
/// It removes the objects of an earlier run, refuses to replace a foreign queueing discipline, rolls everything back
/// when a step fails, and does not need linerate.
#[must_use]
pub fn script(plan: &ShaperPlan, line: &AccessLink) -> String {
    let mut text = head(plan, line);
    text.push_str(&stop(plan));
    text.push_str(&guard(plan));
    text.push_str(&start(plan));
    text.push_str(&status(plan));
    text.push_str(TAIL);
    text
}

/// Appends wrapped comment lines; line feeds in the text become spaces.
fn comment(text: &mut String, words: &str) {
    let mut column = usize::MAX;
    for word in words.split_whitespace() {
        if column.saturating_add(word.len()) >= 100 {
            if column != usize::MAX {
                text.push('\n');
            }
            text.push('#');
            column = 1;
        }
        text.push(' ');
        text.push_str(word);
        column += 1 + word.len();
    }
    text.push('\n');
}

fn head(plan: &ShaperPlan, line: &AccessLink) -> String {
    let mut text = "#!/bin/sh\n".to_owned();
    let rate = |direction| line.rate(direction).map_or("unchanged".to_owned(), display::rate);
    let (up, down) = (rate(Direction::Up), rate(Direction::Down));
    comment(&mut text, &format!("Shapes {}: {up} up, {down} down, with {}.", plan.device, plan.back_end));
    let back_end = plan.back_end.back_end();
    comment(&mut text, back_end.explanation);
    comment(&mut text, &format!("Source: {}.", back_end.citation));
    for entry in &plan.prediction.classes {
        let (direction, class) = (entry.load.name(), entry.importance.name());
        comment(&mut text, &format!("Expected while {direction} is full, {class}: {}.", entry.arithmetic));
    }
    for note in &plan.notes {
        comment(&mut text, note);
    }
    text.push_str(
        "#\n# Arguments: start (or none), stop, status. FORCE=1 replaces a foreign queueing discipline.\n\nset -eu\n\n",
    );
    if !plan.offloads.is_empty() {
        let _ = writeln!(
            text,
            "# Settings before start; only root may write here.\noffloads=/run/line-shaper.{}\n",
            plan.device
        );
    }
    text
}

fn quiet(text: &mut String, command: &PlanCommand) {
    let _ = writeln!(text, "\t{command} 2>/dev/null || :");
}

fn stop(plan: &ShaperPlan) -> String {
    let mut text = String::new();
    if !plan.offloads.is_empty() {
        text.push_str(KEEP_OUT);
    }
    text.push_str("# Rolls back the changes of start; no changes are no error.\nstop() {\n");
    for command in plan.removal() {
        quiet(&mut text, &command);
    }
    if !plan.offloads.is_empty() {
        text.push_str(RESTORE_OFFLOADS);
    }
    text.push_str("}\n\n");
    text
}

/// Guard against foreign disciplines: the kernel's own have the handle `0:`; the script's have known kinds and handles.
fn guard(plan: &ShaperPlan) -> String {
    let mut text = "# Exits when there is a foreign queueing discipline.\nguard() {\n".to_owned();
    text.push_str("\t[ \"${FORCE:-0}\" = 0 ] || return 0\n");
    let root = plan.disciplines().find(|one| one.device == plan.device && one.parent == TcParent::Root);
    let device = PlanCommand::tc(["qdisc", "show", "dev", &plan.device]);
    let ours = root.map_or("qdisc nothing".to_owned(), |root| format!("qdisc {} {}", root.kind, root.handle));
    let _ =
        writeln!(text, "\tforeign=$({device} | grep ' root ' | grep -v -e '^qdisc [a-z_]* 0: ' -e '^{ours} ' || :)");
    if plan.disciplines().any(|one| one.parent == TcParent::Ingress) {
        let known = plan.intermediate.as_deref().unwrap_or("police");
        let filters = PlanCommand::tc(["filter", "show", "dev", &plan.device, "parent", "ffff:"]);
        let _ = writeln!(
            text,
            "\tif [ -z \"$foreign\" ] && {device} | grep -q -e '^qdisc ingress ' -e '^qdisc clsact '; then"
        );
        let _ =
            writeln!(text, "\t\t{filters} | grep -q -F '{}' || foreign='qdisc ingress'\n\tfi", known.replace('\'', ""));
    }
    text.push_str("\tif [ -n \"$foreign\" ]; then\n");
    let _ = writeln!(text, "\t\tprintf '%s\\n' \"foreign queueing discipline: $foreign\" 'FORCE=1 replaces it' >&2");
    text.push_str("\t\texit 1\n\tfi\n}\n\n");
    text
}

fn start(plan: &ShaperPlan) -> String {
    let mut text =
        "start() {\n\tguard\n\tstop\n\t# When a step fails, the previous ones are rolled back.\n\ttrap stop EXIT\n"
            .to_owned();
    text.push_str(&switch_off(plan));
    let mut last = None;
    for step in &plan.steps {
        if last != Some(&step.reason) {
            let _ = writeln!(text, "\t# {}: {}.", step.direction.name(), step.reason);
            last = Some(&step.reason);
        }
        let _ = writeln!(text, "\t{}", step.part.command());
    }
    if let Some(table) = &plan.table {
        let _ = writeln!(text, "\t# up: {}.", CodepointTable::REASON);
        for command in table.commands() {
            let _ = writeln!(text, "\t{command}");
        }
    }
    text.push_str("\ttrap - EXIT\n}\n\n");
    text
}

/// Changes only what is not so yet, and records it for stop.
const KEEP_OUT: &str = "\
# Arguments: interface. At most one segment per packet that this host sends.
limit_segments() {
\tsegments=$(ip -d link show dev \"$1\" | sed -n 's/.* gso_max_segs \\([0-9]*\\).*/\\1/p')
\tif [ \"${segments:-1}\" -gt 1 ]; then
\t\tprintf '%s segments %s\\n' \"$1\" \"$segments\" >>\"$offloads\"
\t\tip link set dev \"$1\" gso_max_segs 1
\tfi
}

# Arguments: interface. Received packets are not merged.
switch_gro_off() {
\tif ! command -v ethtool >/dev/null 2>&1; then
\t\tprintf '%s\\n' \"ethtool is missing: generic receive offload of $1 is unchanged\" >&2
\telif ethtool -k \"$1\" | grep -q '^generic-receive-offload: on'; then
\t\tprintf '%s gro on\\n' \"$1\" >>\"$offloads\"
\t\tethtool -K \"$1\" gro off
\tfi
}

";

const RESTORE_OFFLOADS: &str = "\
\t# Only what start has changed is restored.
\tif [ -f \"$offloads\" ]; then
\t\twhile read -r device feature value; do
\t\t\tif [ \"$feature\" = segments ]; then
\t\t\t\tip link set dev \"$device\" gso_max_segs \"$value\" 2>/dev/null || :
\t\t\telse
\t\t\t\tethtool -K \"$device\" \"$feature\" \"$value\" 2>/dev/null || :
\t\t\tfi
\t\tdone <\"$offloads\"
\t\trm -f \"$offloads\"
\tfi
";

fn switch_off(plan: &ShaperPlan) -> String {
    plan.offloads.iter().fold(String::new(), |mut text, offload| {
        let program = match offload.aggregates {
            AggregatedPackets::Sent => "limit_segments",
            AggregatedPackets::Received => "switch_gro_off",
        };
        let call = PlanCommand { program, words: vec![offload.device.clone()] };
        let _ = writeln!(text, "\t# {}.\n\t{call}", offload.reason);
        text
    })
}

fn status(plan: &ShaperPlan) -> String {
    let mut text = "status() {\n".to_owned();
    let devices = [Some(plan.device.as_str()), plan.intermediate.as_deref()];
    for device in devices.into_iter().flatten() {
        for kind in ["qdisc", "class"] {
            let _ = writeln!(text, "\t{}", PlanCommand::tc(["-s", kind, "show", "dev", device]));
        }
    }
    if plan
        .steps
        .iter()
        .any(|step| matches!(&step.part, PlannedObject::Filter(filter) if filter.parent == TcParent::Ingress))
    {
        let _ =
            writeln!(text, "\t{}", PlanCommand::tc(["-s", "filter", "show", "dev", &plan.device, "parent", "ffff:"]));
    }
    if let Some(table) = &plan.table {
        let _ = writeln!(text, "\t{}", PlanCommand::nft(["list", "table", "inet", &table.name()]));
    }
    text.push_str("}\n\n");
    text
}

const TAIL: &str = "case \"${1:-start}\" in\n\
                    start) start ;;\n\
                    stop) stop ;;\n\
                    status) status ;;\n\
                    *)\n\
                    \tprintf '%s\\n' \"usage: $0 [start|stop|status]\" >&2\n\
                    \texit 2\n\
                    \t;;\n\
                    esac\n";
