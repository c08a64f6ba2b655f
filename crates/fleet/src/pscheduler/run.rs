//! Input and output of a run.

use core::time::Duration;

use jiff::Timestamp;
use linerate_units::WallTime;
use serde_json::{Value, json};

use super::iso_text;
use super::specification::Specification;
use crate::iso_duration;

/// Input of the method `participant-data`, and the first part of that of `run`.
#[derive(Clone, Debug, PartialEq)]
pub struct ParticipantRequest {
    /// Test.
    pub test: Specification,
    /// Participant: 0 is the source, 1 the destination.
    pub participant: u64,
}

impl ParticipantRequest {
    /// Reads `{"test": …, "participant": …}`.
    pub fn parse(input: &Value) -> Result<Self, String> {
        let test = input.get("test").ok_or("the input has no \"test\"")?;
        let test = Specification::parse(test).map_err(|reasons| reasons.join("; "))?;
        let participant = input.get("participant").and_then(Value::as_u64);
        let participant = participant.ok_or("the input has no \"participant\" number")?;
        if participant >= participants(&test) {
            return Err(format!("a test {} has no participant {participant}", test.kind.name()));
        }
        Ok(Self { test, participant })
    }
}

/// Number of participants.
const fn participants_of(is_alone: bool) -> u64 {
    if is_alone { 1 } else { 2 }
}

fn participants(test: &Specification) -> u64 {
    participants_of(test.is_alone())
}

/// Input of the method `run`.
#[derive(Clone, Debug, PartialEq)]
pub struct RunInput {
    /// Test and participant.
    pub request: ParticipantRequest,
    /// Data of all participants, as [`ParticipantRequest`] got them.
    pub participant_data: Vec<Value>,
    /// Scheduled start.
    pub start: WallTime,
    /// Time from the start to the end of the slot; `None` where the schedule has none.
    pub slot: Option<Duration>,
}

impl RunInput {
    /// Reads the input; an error names the missing part.
    pub fn parse(input: &Value) -> Result<Self, String> {
        let request = ParticipantRequest::parse(input)?;
        let data = input.get("participant-data").and_then(Value::as_array);
        let participant_data = data.ok_or("the input has no array \"participant-data\"")?.clone();
        let expected = participants(&request.test);
        if participant_data.len() as u64 != expected {
            let count = participant_data.len();
            return Err(format!(
                "a test {} needs data of {expected} participants, not {count}",
                request.test.kind.name()
            ));
        }
        let schedule = input.get("schedule").ok_or("the input has no \"schedule\"")?;
        let start = schedule.get("start").and_then(Value::as_str).ok_or("the schedule has no \"start\"")?;
        let slot = match schedule.get("duration").and_then(Value::as_str) {
            Some(text) => {
                Some(iso_duration::parse(text).ok_or_else(|| format!("{text:?} is no duration of a schedule"))?)
            }
            None => None,
        };
        Ok(Self { request, participant_data, start: start_time(start)?, slot })
    }
}

fn start_time(text: &str) -> Result<WallTime, String> {
    let refused = || format!("the start {text:?} is no time with an offset from UTC, such as 2026-11-26T06:00:00Z");
    let time: Timestamp = text.parse().map_err(|_| refused())?;
    Duration::try_from(time.as_duration()).map(WallTime::from_unix).map_err(|_| refused())
}

/// Output of the method `run`.
#[must_use]
pub fn run_output(outcome: Result<Value, String>, diagnostics: &str) -> Value {
    let (result, error) = match outcome {
        Ok(result) => (result, Value::Null),
        Err(error) => (Value::Null, Value::String(error)),
    };
    json!({ "schema": 1, "succeeded": error.is_null(), "diags": diagnostics, "error": error, "result": result })
}

/// Answer of the method `duration`.
#[must_use]
pub fn duration_answer(test: &Specification) -> Value {
    json!({ "duration": iso_text(super::run_duration(test)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input() -> Value {
        json!({
            "schema": 1, "schedule": { "start": "2026-11-26T07:00:00+01:00", "duration": "PT19S" },
            "test": { "type": "throughput", "spec": { "dest": "192.0.2.1" } },
            "participant": 1, "participant-data": [{}, { "port": 5201 }], "limits-passed": []
        })
    }

    #[test]
    fn runs_are_read_with_their_time() {
        let run = RunInput::parse(&input()).expect("a run");
        assert_eq!(run.start.since_unix_epoch().as_secs(), 1_795_672_800);
        assert_eq!((run.slot, run.request.participant), (Some(Duration::from_secs(19)), 1));
    }

    #[test]
    fn missing_parts_are_named() {
        for (path, value, part) in [
            ("/test", Value::Null, "no type"),
            ("/participant", json!(2), "no participant 2"),
            ("/participant", json!("0"), "no \"participant\" number"),
            ("/participant-data", json!({}), "no array \"participant-data\""),
            ("/participant-data", json!([{}]), "needs data of 2 participants, not 1"),
            ("/schedule", json!({}), "no \"start\""),
            ("/schedule/start", json!("2026-11-26T07:00:00"), "no time with an offset"),
            ("/schedule/start", json!("1900-01-01T00:00:00Z"), "no time with an offset"),
            ("/schedule/duration", json!("19"), "no duration"),
        ] {
            let mut input = input();
            *input.pointer_mut(path).expect("it is there") = value;
            let error = RunInput::parse(&input).expect_err("a part is missing");
            assert!(error.contains(part), "{part}: {error}");
        }
    }
}
