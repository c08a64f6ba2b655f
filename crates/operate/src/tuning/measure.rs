//! Transfers of a trial, and their measurements for the judge.

use std::time::Duration;

use linerate_analysis::formulas::slow_start_time;
use linerate_engine::diagnose::DiagnoseOutcome;
use linerate_model::diagnosis::TransferObservation;
use linerate_model::parameters::{EndCondition, TestParameters};
use linerate_rules::diagnosis::TransferEvidence;
use linerate_rules::judge::TransferMeasurement;
use linerate_rules::tuning::TuningInputs;
use linerate_units::{ByteCount, Mss, Ratio};

/// Slow-start times to omit, and the duration of a test in omitted times (tuning practice of RFC 6349 §3.3.2, and
/// `linerate calc slow-start`).
const OMITTED_SLOW_STARTS: u32 = 2;
const DURATION_FACTOR: u32 = 10;

/// Minimum and maximum duration of a trial's transfer, unless given by the user.
const MIN_TRANSFER_TIME: Duration = Duration::from_secs(5);
const MAX_TRANSFER_TIME: Duration = Duration::from_secs(30);

/// Tolerated traffic of others on the interface, as a share of the transfer's own.
const MAX_OTHER_TRAFFIC_SHARE: f64 = 0.1;
/// Tolerated traffic of others per second: neighbours, routing, a shell.
const MAX_OTHER_TRAFFIC_PER_SECOND: ByteCount = ByteCount::new(125_000);

/// Maximum header bytes per segment: IPv6, TCP with options, Ethernet.
const MAX_HEADER_BYTES: f64 = 40.0 + 60.0 + 18.0;

/// Parameters of a trial's transfer: long enough for the path's bandwidth-delay product, without slow start.
pub(super) fn transfer(asked: &TestParameters, inputs: &TuningInputs) -> TestParameters {
    let mut parameters = asked.clone();
    if let EndCondition::Time(given) = parameters.end {
        let start = slow_start(inputs).unwrap_or_default();
        parameters.omit = parameters.omit.max(whole_seconds(start * OMITTED_SLOW_STARTS));
        parameters.end = EndCondition::Time(
            given.max(whole_seconds((start * DURATION_FACTOR).clamp(MIN_TRANSFER_TIME, MAX_TRANSFER_TIME))),
        );
    }
    parameters
}

/// Rounds up to whole seconds, as iperf3's protocol requires.
fn whole_seconds(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs() + u64::from(time.subsec_nanos() > 0))
}

/// Duration of slow start until it fills the path.
fn slow_start(inputs: &TuningInputs) -> Option<Duration> {
    let round_trip = inputs.path.round_trip?;
    let rate = [&inputs.path.out, &inputs.path.back].into_iter().filter_map(|way| way.capacity).max()?;
    slow_start_time(rate, round_trip, inputs.seen.segment.unwrap_or(Mss::new(1448)))
}

/// Duration from connecting to the last report.
pub(super) fn length(parameters: &TestParameters) -> Duration {
    parameters.end.time_limit().unwrap_or(MAX_TRANSFER_TIME) + parameters.omit
}

/// Measurement of a transfer; `None` when it failed.
pub(super) fn measurement(outcome: &DiagnoseOutcome) -> Option<TransferMeasurement> {
    // The connections' own samples of the path, not the earlier measurement.
    let observation = TransferObservation { path: None, ..outcome.observation.clone()? };
    let evidence = TransferEvidence::from_observation(&observation);
    Some(TransferMeasurement {
        goodput: observation.goodput(),
        round_trip_p95: evidence.loaded.map(|(_, high)| high),
        base_round_trip: evidence.base,
        retransmitted: evidence.retransmitted,
        processor: processor(&observation),
        disturbed: disturbance(outcome, &observation),
    })
}

/// Utilisation of the busiest data thread.
fn processor(observation: &TransferObservation) -> Option<Ratio> {
    let shares = observation.connections.iter().flat_map(|one| [one.sender_processor, one.receiver_processor]);
    shares.flatten().max()
}

/// Disturbance of the measurement.
fn disturbance(outcome: &DiagnoseOutcome, observation: &TransferObservation) -> Option<String> {
    if let Some(error) = &outcome.error {
        return Some(error.to_string());
    }
    let far = outcome.report.as_ref().and_then(|report| report.far.as_ref());
    if far.is_some_and(|far| far.overlapping_tests > 0) {
        return Some("another test ran at the far end concurrently".to_owned());
    }
    other_traffic(outcome, observation)
}

/// Traffic of others on the sender's interface.
fn other_traffic(outcome: &DiagnoseOutcome, observation: &TransferObservation) -> Option<String> {
    let (_, sent) = observation.sender.as_ref()?.interface_bytes?;
    let last = observation.connections.iter().map(|connection| connection.sender.last());
    let own: Option<Vec<ByteCount>> = last.map(|moment| moment?.socket.info.bytes_sent).collect();
    let own: ByteCount = own?.into_iter().sum();
    let segment = TransferEvidence::from_observation(observation).segment?.byte_count().as_f64();
    let allowed = own.as_f64() * (1.0 + MAX_HEADER_BYTES / segment.max(1.0)) * (1.0 + MAX_OTHER_TRAFFIC_SHARE);
    let other = ByteCount::from_f64((ByteCount::new(sent).as_f64() - allowed).max(0.0));
    let few = MAX_OTHER_TRAFFIC_PER_SECOND * length(&outcome.parameters).as_secs().max(1);
    (other > few).then(|| "other traffic used the sender's interface concurrently".to_owned())
}
