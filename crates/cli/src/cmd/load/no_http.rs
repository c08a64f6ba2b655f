//! `linerate load https://…` of a build without feature `responsiveness`: there is no such test.

use linerate_engine::load::{LoadEvent, LoadTestOptions, LoadTestOutcome};
use linerate_engine::probe::ProbeTarget;
use linerate_engine::surroundings::LocalEnvironment;
use linerate_sys::signals::InterruptSignals;

use super::LoadArguments;

/// Test over HTTP/2, of which there is none.
pub(super) enum HttpTestOptions {}

pub(super) fn test_of(arguments: &LoadArguments) -> Result<Option<HttpTestOptions>, String> {
    if arguments.host().starts_with("https://") {
        return Err("this linerate is built without tests over HTTP/2 (feature responsiveness)".to_owned());
    }
    Ok(None)
}

pub(super) fn target(_: &LoadArguments, test: &HttpTestOptions) -> ProbeTarget {
    match *test {}
}

pub(super) fn local_environment(_: &LoadArguments, test: &HttpTestOptions) -> LocalEnvironment {
    match *test {}
}

pub(super) fn run(
    _: &LoadTestOptions,
    test: &HttpTestOptions,
    _: Option<InterruptSignals>,
    _: &mut dyn FnMut(&LoadEvent),
) -> LoadTestOutcome {
    match *test {}
}
