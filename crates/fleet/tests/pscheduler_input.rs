//! Input of pScheduler of any shape: the functions answer or refuse with a reason, and none panics.

use std::time::Duration;

use linerate_fleet::pscheduler::{
    LatencySamples, RunInput, Specification, TestKind, bucket_width, can_run, diagnose_test, latency_result,
    merged_results, run_duration, throughput_result, transfer_options,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Keys of specifications, runs and results.
const KEYS: [&str; 34] = [
    "schema",
    "dest",
    "source",
    "duration",
    "interval",
    "omit",
    "link-rtt",
    "parallel",
    "bandwidth",
    "burst-size",
    "count",
    "timeout",
    "deadline",
    "packet-count",
    "packet-interval",
    "packet-timeout",
    "bucket-width",
    "hops",
    "first-ttl",
    "wait",
    "sendwait",
    "hostnames",
    "as",
    "protocol",
    "reverse",
    "type",
    "spec",
    "test",
    "participant",
    "participant-data",
    "schedule",
    "start",
    "results",
    "succeeded",
];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0_u64..300).prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        prop::sample::select(vec![
            "PT1S",
            "P99999W",
            "PT0.000001S",
            "stamp",
            "icmp",
            "b",
            "",
            "2026-11-26T07:00:00Z",
            "throughput"
        ])
        .prop_map(Value::from),
    ]
}

fn object(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let entry = (prop::sample::select(KEYS.to_vec()), value);
    prop::collection::vec(entry, 0..12)
        .prop_map(|entries| Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()))
}

fn any_json() -> impl Strategy<Value = Value> {
    let nested = prop_oneof![scalar(), object(scalar()), prop::collection::vec(scalar(), 0..3).prop_map(Value::from)];
    object(nested)
}

/// Specification of a test whose keys are mostly the test's own.
fn test() -> impl Strategy<Value = Value> {
    (prop::sample::select(TestKind::ALL.to_vec()), object(scalar())).prop_map(|(kind, spec)| {
        let Value::Object(mut spec) = spec else { return Value::Null };
        spec.insert("dest".to_owned(), json!("b"));
        let defaults = match kind {
            TestKind::Rtt => json!({ "hostnames": false }),
            TestKind::Trace => json!({ "hostnames": false, "as": false }),
            TestKind::Latency => json!({ "protocol": "stamp" }),
            _ => json!({}),
        };
        spec.extend(defaults.as_object().cloned().unwrap_or_default());
        json!({ "type": kind.name(), "spec": Value::Object(spec) })
    })
}

proptest! {
    #[test]
    fn specifications_run_or_have_reasons(test in test()) {
        let answer = can_run(&test);
        match Specification::parse(&test) {
            Ok(specification) => {
                prop_assert_eq!(answer, json!({ "can-run": true }));
                prop_assert!(run_duration(&specification) >= Duration::from_secs(1));
                prop_assert_eq!(&transfer_options(&specification.values)[0], "-t");
                let samples = LatencySamples { delays_seconds: vec![0.0, 1e-9, 3.5, -2.0], sent: 4, ..LatencySamples::default() };
                let result = latency_result(&samples, bucket_width(&specification.values));
                let is_number = |key: &String| key.parse::<f64>().is_ok_and(f64::is_finite);
                prop_assert!(result["histogram-latency"].as_object().is_some_and(|counts| counts.keys().all(is_number)), "{}", result);
            }
            Err(reasons) => {
                prop_assert!(!reasons.is_empty() && reasons.iter().all(|reason| !reason.is_empty()));
                prop_assert_eq!(answer, json!({ "can-run": false, "reasons": reasons }));
            }
        }
    }

    #[test]
    fn any_input_is_answered(input in any_json(), test in test()) {
        let empty = |error: &String| error.is_empty();
        prop_assert!(!RunInput::parse(&input).is_err_and(|error| empty(&error)));
        prop_assert!(!throughput_result(&input, Duration::from_secs(1), "").is_err_and(|error| empty(&error)));
        for answer in [diagnose_test::spec_is_valid(&input), diagnose_test::limit_is_valid(&input)] {
            prop_assert!(answer["valid"] == true || answer["error"].as_str().is_some_and(|error| !error.is_empty()));
        }
        let shown = json!({ "result": input.clone() });
        for mime_type in ["text/plain", "text/html"] {
            let refused = diagnose_test::format_result(&shown, mime_type).err();
            prop_assert!(!refused.is_some_and(|error| empty(&error)));
        }
        // A success needs a participant's.
        let merged = merged_results(&json!({ "test": test, "results": [input, { "result": input.clone() }] }));
        if let Ok(merged) = merged {
            let has_success = input["result"]["succeeded"] == true || input["succeeded"] == true;
            prop_assert!(merged["succeeded"].is_boolean() && (has_success || merged["succeeded"] == false), "{}", merged);
        }
    }

    /// A specification of the command line gives the same command line.
    #[test]
    fn specifications_of_diagnose_survive_the_command_line(parallel in 1_u64..100, reverse: bool, window in 1_u64..1 << 40) {
        let spec = json!({ "dest": "b", "parallel": parallel, "reverse": reverse, "window-size": window, "schema": 1 });
        let arguments: Vec<String> = serde_json::from_value(diagnose_test::spec_to_cli(&spec).expect("valid")).expect("strings");
        let same: Map<String, Value> =
            serde_json::from_value(diagnose_test::cli_to_spec(&arguments).expect("valid")).expect("an object");
        prop_assert_eq!(Value::Object(same.into_iter().collect()), spec);
    }
}
