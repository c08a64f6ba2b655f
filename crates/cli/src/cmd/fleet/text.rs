//! Text of `linerate fleet plan`.

use std::fmt::Write as _;
use std::time::Duration;

use linerate_documents::civil_time;
use linerate_fleet::{FleetCost, SessionDirections, SessionStart, TestSession, Timetable};
use linerate_report::text::wrap_text;
use linerate_report::throughput_text::TextStyle;
use linerate_units::display::counted;
use linerate_units::{WallTime, display};

/// Plan to show.
pub(super) struct ShownPlan<'a> {
    pub(super) title: Option<&'a str>,
    pub(super) timetable: &'a Timetable,
    pub(super) cost: &'a FleetCost,
    pub(super) starts: &'a [SessionStart<'a>],
    pub(super) from: WallTime,
}

/// Summary, and the starts.
pub(super) fn plan(plan: &ShownPlan<'_>, style: TextStyle) -> String {
    let width = usize::from(style.width.get());
    let mut text = String::new();
    for sentence in
        [extent(plan), cycle(plan.timetable), load(plan), data(plan.cost)].iter().filter(|one| !one.is_empty())
    {
        for line in wrap_text(sentence, width) {
            let _ = writeln!(text, "{line}");
        }
    }
    if !plan.starts.is_empty() {
        let _ = writeln!(text, "From {} UTC on:", date_and_time(plan.from));
    }
    for start in plan.starts {
        let _ = writeln!(text, "  {}", start_line(start));
    }
    text
}

fn extent(plan: &ShownPlan<'_>) -> String {
    let title = plan.title.map(|title| format!("{title}: ")).unwrap_or_default();
    let (exclusive, light) = (plan.timetable.sessions.len(), plan.timetable.light.len());
    let light =
        if light == 0 { String::new() } else { format!(", and {} without a slot", counted(light, "light test")) };
    format!(
        "{title}{}, {}, a host in one at a time{light}.",
        counted(plan.cost.hosts, "host"),
        counted(exclusive, "test")
    )
}

fn cycle(timetable: &Timetable) -> String {
    if timetable.sessions.is_empty() {
        return "No test fills a path: there is nothing to schedule.".to_owned();
    }
    let slots = timetable.rounds * timetable.laps;
    format!(
        "A cycle of {} of {} takes {}, and begins every {}.",
        counted(slots as usize, "slot"),
        display::duration(timetable.slot),
        length(timetable.cycle()),
        length(timetable.period)
    )
}

fn load(plan: &ShownPlan<'_>) -> String {
    if plan.timetable.sessions.is_empty() {
        return String::new();
    }
    let share =
        plan.cost.busy_ratio.map(|share| format!(", {} of the time", display::percent(share))).unwrap_or_default();
    format!(
        "At most {} at once; a host is in at most {} of a cycle{share}.",
        counted(plan.cost.concurrent, "test"),
        plan.cost.sessions_of_a_host
    )
}

fn data(cost: &FleetCost) -> String {
    let unknown = match cost.of_unknown_rate {
        0 => String::new(),
        count => format!(
            "{} of unknown rate: `_meta.linerate.rate` of an address is that of its link.",
            counted(count, "test")
        ),
    };
    match (cost.data.is_zero(), unknown.is_empty()) {
        (true, _) if cost.of_unknown_rate == 0 => String::new(),
        (true, _) => format!("Data of a cycle: {unknown}"),
        (false, true) => format!("Data of a cycle: at most {}.", display::size(cost.data)),
        (false, false) => format!("Data of a cycle: at most {}, and {unknown}", display::size(cost.data)),
    }
}

/// Time and session. A name that is cut short is another host's, so the line is never cut.
pub(super) fn start_line(start: &SessionStart<'_>) -> String {
    format!("{}  {}", date_and_time(start.at), session_line(start.session))
}

pub(super) fn session_line(session: &TestSession) -> String {
    let [first, second] = &session.addresses;
    let arrow = match session.directions {
        SessionDirections::Forward => "->",
        SessionDirections::Backward => "<-",
        SessionDirections::Both => "<->",
    };
    format!("{first} {arrow} {second}  {} ({})", session.kind, session.task)
}

fn date_and_time(time: WallTime) -> String {
    civil_time::rfc3339(time).trim_end_matches('Z').replace('T', " ")
}

/// Hours and minutes for what takes long.
fn length(time: Duration) -> String {
    display::duration(Duration::from_secs(time.as_secs()))
}

/// Number of copies on servers, at the beginning of a sentence.
#[cfg(feature = "nats")]
pub(super) fn copies(count: usize) -> String {
    match count {
        1 => "One copy".to_owned(),
        3 => "Three copies".to_owned(),
        count => format!("{count} copies"),
    }
}
