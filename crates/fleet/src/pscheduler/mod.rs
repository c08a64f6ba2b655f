//! pScheduler's plug-in contract as computing code: the JSON that its methods read, and the JSON that they print.
//!
//! The tool `linerate` runs pScheduler's tests throughput, rtt, latency, mtu and trace, and a test of its own, `diagnose`
//! ([`diagnose_test`]). What measures is elsewhere: here are the specifications, durations, arguments and results.

pub mod diagnose_test;
mod duration;
mod merge;
mod probes;
mod run;
mod specification;
mod throughput;
mod transfer;

pub use duration::{DEFAULT_TRANSFER, SERVER_WAIT, run_duration};
pub use merge::merged_results;
pub use probes::{
    DEFAULT_COUNT, DEFAULT_HOPS, DEFAULT_PACKETS, HOPS_AT_ONCE, LatencySamples, RoundTrip, TraceHop, bucket_width,
    latency_result, mtu_result, packet_interval, packet_timeout, probe_wait, rtt_result, trace_result,
};
pub use run::{ParticipantRequest, RunInput, duration_answer, run_output};
pub use specification::{SpecValues, Specification, TestKind, can_run};
pub use throughput::throughput_result;
pub use transfer::transfer_options;

use core::time::Duration;
use serde_json::{Value, json};

/// Maintainer of both plug-ins, as pScheduler lists plug-ins.
fn maintainer() -> Value {
    json!({
        "name": "linerate",
        "email": "linerate@linerate.invalid",
        "href": "https://linerate.invalid/pscheduler",
    })
}

/// Description of the tool, for its method `enumerate`.
///
/// iperf3 has the preference 10: of the tools that all participants have, pScheduler takes the one that they prefer.
#[must_use]
pub fn tool_description(version: &str) -> Value {
    json!({
        "schema": 1,
        "name": "linerate",
        "description": "Measure a network path, and report what limits it",
        "version": version,
        "tests": TestKind::ALL.map(TestKind::name),
        "preference": 20,
        "maintainer": maintainer(),
    })
}

/// Duration of ISO 8601, in seconds with as many decimals as it takes: `PT0.0123S`.
#[must_use]
pub fn iso_text(duration: Duration) -> String {
    let nanoseconds = format!("{:09}", duration.subsec_nanos());
    let decimals = nanoseconds.trim_end_matches('0');
    let point = if decimals.is_empty() { "" } else { "." };
    format!("PT{}{point}{decimals}S", duration.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_they_are_read() {
        for (nanoseconds, text) in
            [(0, "PT0S"), (40_000_000_000, "PT40S"), (12_300_000, "PT0.0123S"), (1, "PT0.000000001S")]
        {
            let duration = Duration::from_nanos(nanoseconds);
            assert_eq!(iso_text(duration), text);
            assert_eq!(crate::iso_duration::parse(text), Some(duration));
        }
    }

    #[test]
    fn the_tool_has_its_tests_and_more_preference_than_iperf3() {
        let tool = tool_description("1.2.3");
        assert_eq!(tool["tests"], json!(["throughput", "rtt", "latency", "mtu", "trace", "diagnose"]));
        assert!(tool["preference"].as_i64().is_some_and(|preference| preference > 10));
        assert_eq!(tool["version"], "1.2.3");
    }
}
