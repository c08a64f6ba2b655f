//! `linerate fleet members`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use clap::Args;
use linerate_documents::civil_time::rfc3339;
use linerate_documents::fleet_members::{self, FleetMember, FleetMembersDocument, MemberClock};
use linerate_nats::{ClockOffset, ListedMember};
use linerate_report::text::wrap_text;
use linerate_report::throughput_text::TextStyle;
use linerate_units::display;
use linerate_units::serde::nanoseconds;

use super::options::RequiredServers;
use super::{finish, published};
use crate::cmd::measurement::{DocumentKind, print_json};
use crate::console;
use crate::exit::ExitStatus;

/// `linerate fleet members`.
#[derive(Debug, Args)]
pub(crate) struct MembersArguments {
    /// Servers.
    #[command(flatten)]
    servers: RequiredServers,
    /// Print a JSON document (schema 1) instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &MembersArguments) -> ExitStatus {
    finish("members", list(arguments))
}

fn list(arguments: &MembersArguments) -> Result<(), String> {
    let fleet = arguments.servers.connect()?;
    let members = fleet.members().map_err(|error| error.to_string())?;
    let (_, description, timetable) = published(&fleet)?;
    let present: BTreeSet<&str> = members.iter().map(|member| &*member.record.name).collect();
    let missing: Vec<&str> = description
        .addresses
        .keys()
        .map(String::as_str)
        .filter(|name| description.is_measured(name) && description.has_agent(name) && !present.contains(name))
        .collect();
    if arguments.json {
        let document = FleetMembersDocument {
            schema: fleet_members::SCHEMA,
            members: members.into_iter().map(member).collect(),
            missing: missing.into_iter().map(str::to_owned).collect(),
            clock_guard_ns: nanoseconds(timetable.clock_guard),
        };
        print_json(DocumentKind::FleetMembers, &document);
    } else {
        console::data(&text(&members, &missing, timetable.clock_guard, console::data_style()));
    }
    Ok(())
}

fn member(ListedMember { record, seen }: ListedMember) -> FleetMember {
    FleetMember {
        name: record.name,
        instance: record.instance,
        version: record.version,
        seen_unix_ns: nanoseconds(seen.since_unix_epoch()),
        clock: record.clock.map(|clock| MemberClock { offset_ns: clock.offset_ns, error_ns: clock.error_ns }),
    }
}

fn text(members: &[ListedMember], missing: &[&str], guard: Duration, style: TextStyle) -> String {
    let mut text = String::new();
    let width = members.iter().map(|member| member.record.name.chars().count()).max().unwrap_or(0).max(6);
    if !members.is_empty() {
        let _ = writeln!(text, "{:width$}  {:19}  {:7}  CLOCK", "MEMBER", "SEEN (UTC)", "VERSION");
    }
    for ListedMember { record, seen } in members {
        let seen = rfc3339(*seen).trim_end_matches('Z').replace('T', " ");
        let _ =
            writeln!(text, "{:width$}  {seen:19}  {:7}  {}", record.name, record.version, clock(record.clock, guard));
    }
    if members.is_empty() {
        text.push_str("No agent runs.\n");
    }
    if !missing.is_empty() {
        let sentence = format!("Without an agent: {}", missing.join(", "));
        for line in wrap_text(&sentence, usize::from(style.width.get())) {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

/// Offset of a clock from the server's, with a mark when it is off by more than the guard.
fn clock(clock: Option<ClockOffset>, guard: Duration) -> String {
    let Some(clock) = clock else { return "unknown".to_owned() };
    let sign = if clock.offset_ns < 0 { '-' } else { '+' };
    let [offset, error] =
        [clock.offset_ns.unsigned_abs(), clock.error_ns].map(Duration::from_nanos).map(display::duration);
    let mark = if clock.certain() > guard { ", off" } else { "" };
    format!("{sign}{offset} ±{error}{mark}")
}

#[cfg(test)]
mod tests {
    use linerate_nats::MemberRecord;
    use linerate_units::WallTime;

    use super::*;

    #[test]
    fn a_list_names_clocks_that_are_off_and_missing_agents() {
        let member = |name: &str, clock| ListedMember {
            record: MemberRecord {
                name: name.to_owned(),
                instance: "1".to_owned(),
                version: "0.2.0".to_owned(),
                clock,
            },
            seen: WallTime::from_unix(Duration::from_secs(1_800_000_000)),
        };
        let offset = |offset_ns| Some(ClockOffset { offset_ns, error_ns: 200_000 });
        let members =
            [member("a", offset(-1_500_000)), member("berlin-east", offset(7_000_000_000)), member("c", None)];
        let expected = "\
MEMBER       SEEN (UTC)           VERSION  CLOCK
a            2027-01-15 08:00:00  0.2.0    -1.50 ms ±200 µs
berlin-east  2027-01-15 08:00:00  0.2.0    +7.00 s ±200 µs, off
c            2027-01-15 08:00:00  0.2.0    unknown
Without an agent: d, e
";
        let style = TextStyle::plain();
        assert_eq!(text(&members, &["d", "e"], Duration::from_secs(2), style), expected);
        assert_eq!(text(&[], &[], Duration::ZERO, style), "No agent runs.\n");
    }
}
