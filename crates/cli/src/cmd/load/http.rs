//! `linerate load https://…`: the test over HTTP/2.

use linerate_engine::load::{LoadEvent, LoadTestOptions, LoadTestOutcome};
use linerate_engine::probe::ProbeTarget;
use linerate_engine::surroundings::LocalEnvironment;
use linerate_sys::signals::InterruptSignals;
use linerate_web::responsiveness::{self, HttpTestOptions, HttpsUrl};

use super::LoadArguments;
use crate::cmd::measurement::family;

/// Beginning of a host that is a URL.
pub(crate) const SCHEME: &str = "https://";

/// Test that a URL in place of the host asks for; `None` for any other host.
pub(super) fn test_of(arguments: &LoadArguments) -> Result<Option<HttpTestOptions>, String> {
    let names_web = [SCHEME, "http://"].iter().any(|scheme| arguments.host().starts_with(scheme));
    if !names_web {
        return match arguments.also_host.first() {
            Some(_) => Err("--also-host needs the URL of a responsiveness server, https://…".to_owned()),
            None => Ok(None),
        };
    }
    let unusable = [
        ("--port", arguments.common.port.is_some(), "the URL has the port"),
        ("-P", arguments.connections.is_some(), "connections are added until the load is stable"),
        ("--interval", arguments.interval.is_some(), "probes follow the capacity"),
        ("--no-server", arguments.no_server, "an HTTP server is measured"),
        ("--l4s", arguments.l4s, "an HTTP server answers no probes over UDP"),
        ("--probe", !arguments.probe.is_empty(), "its own probes are requests over TLS"),
        ("--profile", !arguments.profile.is_empty(), "it needs a linerate at the far end"),
        ("--max-added", arguments.max_added.is_some(), "it needs probes over UDP"),
        ("--min-grade", arguments.min_grade.is_some(), "it needs probes over UDP"),
    ];
    if let Some((option, _, reason)) = unusable.iter().find(|(_, is_given, _)| *is_given) {
        return Err(format!("{option} does not apply to a URL: {reason}"));
    }
    let url = HttpsUrl::parse_configuration(arguments.host())?;
    Ok(Some(HttpTestOptions { url, other_hosts: arguments.also_host.clone() }))
}

/// Target of the test.
pub(super) fn target(arguments: &LoadArguments, test: &HttpTestOptions) -> ProbeTarget {
    ProbeTarget { port: test.url.port, ..arguments.common.target(arguments.host()) }
}

/// This host's environment and route to the server.
pub(super) fn local_environment(arguments: &LoadArguments, test: &HttpTestOptions) -> LocalEnvironment {
    LocalEnvironment::read(&test.url.host, test.url.port, family(&arguments.common.network))
}

/// Runs the test.
pub(super) fn run(
    options: &LoadTestOptions,
    test: &HttpTestOptions,
    stop: Option<InterruptSignals>,
    observer: &mut dyn FnMut(&LoadEvent),
) -> LoadTestOutcome {
    responsiveness::run(options, test, stop, observer)
}
