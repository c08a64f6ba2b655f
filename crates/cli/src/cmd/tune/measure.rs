//! One transfer of a trial, as the judge wants it.

use std::time::Duration;

use linerate_engine::diagnose::DiagnoseOutcome;
use linerate_model::diagnosis::Observation;
use linerate_model::formulas::slow_start_time;
use linerate_model::parameters::{EndCondition, TestParameters};
use linerate_rules::diagnosis::Evidence;
use linerate_rules::judge::Measurement;
use linerate_rules::tuning::Inputs;
use linerate_units::{ByteCount, Mss, Ratio};

/// Slow start is left out twice over, and a test lasts ten times as long (tuning practice of RFC 6349 §3.3.2, and what
/// `linerate calc slow-start` says).
const OMITTED: u32 = 2;
const LASTING: u32 = 10;

/// No transfer of a trial is shorter or longer than this, unless the user says so.
const SHORTEST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(30);

/// Other traffic on the interface up to this share of the transfer's own changes nothing.
const OTHERS: f64 = 0.1;
/// … and up to this much per second: neighbours, routing, a shell.
const FEW: ByteCount = ByteCount::new(125_000);

/// What headers and framing add at most to the payload of a segment: IPv6 with TCP and its options, Ethernet.
const AROUND: f64 = 40.0 + 60.0 + 18.0;

/// The transfer of a trial: long enough for what the path is to carry, without its slow start.
pub(super) fn transfer(asked: &TestParameters, inputs: &Inputs) -> TestParameters {
    let mut parameters = asked.clone();
    if let EndCondition::Time(given) = parameters.end {
        let start = slow_start(inputs).unwrap_or_default();
        parameters.omit = parameters.omit.max(whole_seconds(start * OMITTED));
        parameters.end = EndCondition::Time(given.max(whole_seconds((start * LASTING).clamp(SHORTEST, LONGEST))));
    }
    parameters
}

/// iperf3's protocol has whole seconds.
fn whole_seconds(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs() + u64::from(time.subsec_nanos() > 0))
}

/// How long slow start takes until it fills the path.
fn slow_start(inputs: &Inputs) -> Option<Duration> {
    let round_trip = inputs.path.round_trip?;
    let rate = [&inputs.path.out, &inputs.path.back].into_iter().filter_map(|way| way.capacity).max()?;
    slow_start_time(rate, round_trip, inputs.seen.segment.unwrap_or(Mss::new(1448)))
}

/// How long it takes, from connecting to the last report.
pub(super) fn length(parameters: &TestParameters) -> Duration {
    parameters.end.time_limit().unwrap_or(LONGEST) + parameters.omit
}

/// What a transfer says to the judge; `None` when nothing came about.
pub(super) fn measurement(outcome: &DiagnoseOutcome) -> Option<Measurement> {
    // What the connections saw of the path themselves, not what was measured of it before.
    let observation = Observation { path: None, ..outcome.observation.clone()? };
    let evidence = Evidence::of(&observation);
    Some(Measurement {
        goodput: observation.goodput(),
        round_trip_p95: evidence.loaded.map(|(_, high)| high),
        base_round_trip: evidence.base,
        retransmitted: evidence.retransmitted,
        processor: processor(&observation),
        disturbed: disturbance(outcome, &observation),
    })
}

/// The busiest thread that moved the data.
fn processor(observation: &Observation) -> Option<Ratio> {
    let shares = observation.connections.iter().flat_map(|one| [one.sender_processor, one.receiver_processor]);
    shares.flatten().max()
}

/// What else went on.
fn disturbance(outcome: &DiagnoseOutcome, observation: &Observation) -> Option<String> {
    if let Some(error) = &outcome.error {
        return Some(error.to_string());
    }
    let far = outcome.report.as_ref().and_then(|report| report.far.as_ref());
    if far.is_some_and(|far| far.overlapping_tests > 0) {
        return Some("another test ran at the far end at the same time".to_owned());
    }
    other_traffic(outcome, observation)
}

/// Other traffic on the sender's interface.
fn other_traffic(outcome: &DiagnoseOutcome, observation: &Observation) -> Option<String> {
    let (_, sent) = observation.sender.as_ref()?.interface_bytes?;
    let last = observation.connections.iter().map(|connection| connection.sender.last());
    let own: Option<Vec<ByteCount>> = last.map(|moment| moment?.socket.info.bytes_sent).collect();
    let own: ByteCount = own?.into_iter().sum();
    let segment = Evidence::of(observation).segment?.byte_count().as_f64();
    let allowed = own.as_f64() * (1.0 + AROUND / segment.max(1.0)) * (1.0 + OTHERS);
    let other = ByteCount::from_f64((ByteCount::new(sent).as_f64() - allowed).max(0.0));
    let few = FEW * length(&outcome.parameters).as_secs().max(1);
    (other > few).then(|| "other traffic used the sender's interface at the same time".to_owned())
}
