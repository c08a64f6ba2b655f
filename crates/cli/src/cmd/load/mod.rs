//! `linerate load HOST`: delay while the path is full.

mod arguments;
mod document;
mod figures;
#[cfg(feature = "responsiveness")]
mod http;
#[cfg(not(feature = "responsiveness"))]
#[path = "no_http.rs"]
mod http;
mod progress;

use std::time::Duration;

use linerate_analysis::latency_under_load::LatencyGrade;
use linerate_analysis::traffic_profiles::TrafficProfile;
use linerate_engine::load::{self, LoadTestOptions, RequestTransport};
use linerate_engine::probe::ProbeTarget;
use linerate_model::load::{LoadDocument, PhaseKind};
use linerate_model::report::Outcome;
use linerate_model::traffic_profile::ProfileResult;
use linerate_units::{StreamCount, display};

pub(crate) use arguments::LoadArguments;
pub(crate) use progress::LoadProgressDisplay;

use crate::cmd::listen::DialedServer;
use crate::cmd::measurement::{hint_no_server, interrupts, quic_transactions, report_missed};
use crate::console;
use crate::exit::ExitStatus;

/// Measures, prints and records.
pub(crate) fn run(arguments: &LoadArguments) -> ExitStatus {
    let http = match http::test_of(arguments) {
        Ok(http) => http,
        Err(problem) => {
            console::error(&problem, None);
            return ExitStatus::Unable;
        }
    };
    let stop = match interrupts() {
        Ok(stop) => stop,
        Err(exit) => return exit,
    };
    let server = match arguments.listen.server(&arguments.common, stop) {
        Ok(server) => server,
        Err(exit) => return exit,
    };
    let dialed =
        server.map(|DialedServer { host, common }| LoadArguments { host: Some(host), common, ..arguments.clone() });
    let arguments = dialed.as_ref().unwrap_or(arguments);
    let surroundings = match &http {
        Some(test) => http::local_environment(arguments, test),
        None => arguments.common.local_environment(arguments.host()),
    };
    let planned: Vec<&str> = phases(arguments).into_iter().map(PhaseKind::name).collect();
    if let Err(exit) = arguments.common.draw("load", arguments.host(), arguments.live, &planned, stop) {
        return exit;
    }
    let mut display = LoadProgressDisplay::new(arguments.common.quiet);
    let options = options(arguments);
    let outcome = match &http {
        Some(test) => {
            let options = LoadTestOptions { target: http::target(arguments, test), ..options };
            http::run(&options, test, Some(stop), &mut |event| display.event(event))
        }
        None => load::run(&options, Some(stop), &mut |event| display.event(event)),
    };
    display.finish();
    crate::progress::close_picture();
    if let Some(error) = &outcome.error {
        console::error(&error.to_string(), None);
        if http.is_none() && !arguments.no_server && !arguments.common.dialed_in {
            hint_no_server(error, "measures the idle round trip by ICMP");
        }
    }
    let missed = missed_thresholds(arguments, &outcome.document);
    let exit = exit_of(&outcome.document, &missed);
    if exit != ExitStatus::Unable {
        arguments.common.print_and_record(&document::history_record(&outcome, surroundings));
    }
    if exit == ExitStatus::Missed {
        report_missed(&missed);
    }
    exit
}

/// Selected phases, each once, after the idle path.
fn phases(arguments: &LoadArguments) -> Vec<PhaseKind> {
    let mut phases = vec![PhaseKind::Idle];
    for phase in &arguments.phases {
        let kind = PhaseKind::from(*phase);
        if !phases.contains(&kind) {
            phases.push(kind);
        }
    }
    phases
}

/// Selected profiles, each once.
fn profiles(arguments: &LoadArguments) -> Vec<TrafficProfile> {
    let mut profiles = Vec::new();
    for profile in arguments.profile.iter().flat_map(|selected| selected.profiles()) {
        if !profiles.contains(profile) {
            profiles.push(*profile);
        }
    }
    profiles
}

/// Selected transports of requests, each once.
fn requests(arguments: &LoadArguments) -> Vec<RequestTransport> {
    let mut requests = Vec::new();
    for transport in arguments.probe.iter().copied().map(RequestTransport::from) {
        if !requests.contains(&transport) {
            requests.push(transport);
        }
    }
    requests
}

fn options(arguments: &LoadArguments) -> LoadTestOptions {
    let target = ProbeTarget { without_server: arguments.no_server, ..arguments.common.target(arguments.host()) };
    let usual = LoadTestOptions::new(target);
    LoadTestOptions {
        congestion_control: Some(arguments.congestion.clone()).filter(|name| name != "default"),
        connections: arguments.connections.map_or(usual.connections, StreamCount::new),
        phases: phases(arguments),
        idle_time: arguments.idle,
        load_time: arguments.time,
        ramp_limit: arguments.ramp,
        probe_interval: arguments.interval.unwrap_or(usual.probe_interval),
        spare_slow_paths: arguments.interval.is_none(),
        codepoints: arguments.l4s,
        profiles: profiles(arguments),
        requests: requests(arguments),
        quic: quic_transactions(),
        ..usual
    }
}

fn exit_of(document: &LoadDocument, missed: &[String]) -> ExitStatus {
    let measured = document.phases.iter().any(|phase| phase.classes.iter().any(|class| class.rtt.is_some()));
    match (document.termination.outcome(), measured) {
        (Outcome::Complete, true) if missed.is_empty() => ExitStatus::Success,
        (Outcome::Complete, true) => ExitStatus::Missed,
        (Outcome::Interrupted, _) | (_, true) => ExitStatus::Partial,
        _ => ExitStatus::Unable,
    }
}

/// Returns a line for each missed threshold; unknown figures miss it.
fn missed_thresholds(arguments: &LoadArguments, document: &LoadDocument) -> Vec<String> {
    let added = document.grade.as_ref().map(|grade| Duration::from_nanos(grade.added_ns));
    let most = arguments.max_added.and_then(|most| excess(added, most));
    let least = arguments.min_grade.and_then(|least| worse_grade(added, least));
    let score = arguments.min_mos.and_then(|least| lower_score(lowest_score(document), least));
    [most, least, score].into_iter().flatten().collect()
}

fn lowest_score(document: &LoadDocument) -> Option<f64> {
    document.profiles.iter().find_map(ProfileResult::lowest_score)
}

fn lower_score(lowest: Option<f64>, least: f64) -> Option<String> {
    match lowest {
        None => Some(format!("the mean opinion score is unknown (--min-mos {least})")),
        Some(lowest) if lowest < least => {
            Some(format!("a voice call has MOS {lowest:.2}, less than --min-mos {least}"))
        }
        Some(_) => None,
    }
}

const UNKNOWN: &str = "the added delay is unknown";

fn excess(added: Option<Duration>, most: Duration) -> Option<String> {
    let limit = display::duration(most);
    let Some(added) = added else { return Some(format!("{UNKNOWN} (--max-added {limit})")) };
    let more = added.saturating_sub(most);
    let text = || format!("the load adds {}, {} more than", display::duration(added), display::duration(more));
    (!more.is_zero()).then(|| format!("{} --max-added {limit}", text()))
}

fn worse_grade(added: Option<Duration>, least: LatencyGrade) -> Option<String> {
    let Some(added) = added else { return Some(format!("{UNKNOWN} (--min-grade {least})")) };
    let grade = LatencyGrade::of(added);
    let text =
        || format!("grade {grade} (the load adds {}) is worse than --min-grade {least}", display::duration(added));
    (grade > least).then(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missed_thresholds_say_by_how_much() {
        let milliseconds = Duration::from_millis;
        let missed = excess(Some(milliseconds(130)), milliseconds(30));
        assert_eq!(missed.as_deref(), Some("the load adds 130 ms, 100 ms more than --max-added 30.0 ms"));
        assert_eq!(excess(Some(milliseconds(30)), milliseconds(30)), None);
        assert!(excess(None, milliseconds(30)).is_some_and(|text| text.contains("unknown")));
        let best = LatencyGrade::of(Duration::ZERO);
        assert!(worse_grade(Some(milliseconds(1000)), best).is_some_and(|text| text.contains("--min-grade A+")));
        assert_eq!(worse_grade(Some(Duration::ZERO), best), None);
        assert!(lower_score(Some(2.1), 3.6).is_some_and(|text| text.contains("MOS 2.10, less than --min-mos 3.6")));
        assert_eq!((lower_score(Some(3.6), 3.6), lower_score(None, 1.0).is_some()), (None, true));
    }
}
