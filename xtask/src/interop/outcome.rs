//! Observation of one run, and its comparison with the reference.

use std::collections::BTreeSet;

use serde_json::Value;

use super::cases::Case;

/// Class of a byte count, from the least to the most that a test can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ByteClass {
    Absent,
    Zero,
    Some,
    /// All bytes of `-n`.
    Complete,
}

impl ByteClass {
    fn name(self) -> &'static str {
        match self {
            Self::Absent => "not reported",
            Self::Zero => "0",
            Self::Some => "some",
            Self::Complete => "complete",
        }
    }
}

/// Message for a server that ends before it listens.
pub(super) const SERVER_REFUSAL: &str = "the server refuses its options";

/// Sums whose bytes are compared.
const SUMS: [&str; 4] = ["sum_sent", "sum_received", "sum_sent_bidir_reverse", "sum_received_bidir_reverse"];

/// Result of a client.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Observation {
    /// False after an exit status other than 0, and where the document has an error: 3.12 ends with 0 then.
    pub(super) is_successful: bool,
    /// `None` for a client that prints text.
    pub(super) bytes: Option<[ByteClass; 4]>,
    /// Paths of the keys of its document, or names of its events.
    pub(super) keys: BTreeSet<String>,
    /// First line of its messages.
    pub(super) message: String,
}

impl Observation {
    /// Reads the output of a client that ended with `status`; `None` for one that was killed.
    pub(super) fn of(case: &Case, status: Option<i32>, stdout: &str, stderr: &str) -> Self {
        let document: Option<Value> = (!case.prints_text()).then(|| serde_json::from_str(stdout).ok()).flatten();
        let error = document.as_ref().and_then(|document| document["error"].as_str());
        let complaint = stderr.lines().find(|line| !line.is_empty()).unwrap_or_default();
        let message = match status {
            None => "did not end",
            Some(_) => error.unwrap_or(complaint),
        };
        Self {
            is_successful: status == Some(0) && error.is_none(),
            bytes: document.as_ref().map(|document| SUMS.map(|sum| class(&document["end"][sum], case.bytes()))),
            keys: match &document {
                Some(document) => key_paths(document),
                None if case.prints_events() => events(stdout),
                None => BTreeSet::new(),
            },
            message: message.to_owned(),
        }
    }

    /// True when the program does not know an option of its command line.
    pub(super) fn lacks_option(&self) -> bool {
        const TEXTS: [&str; 4] = ["unrecognized option", "invalid option", "unexpected argument", SERVER_REFUSAL];
        !self.is_successful && TEXTS.iter().any(|text| self.message.contains(text)) && !self.message.contains("--nope")
    }

    /// Difference of `observed` from this reference: more bytes and keys are none.
    pub(super) fn difference(&self, observed: &Self) -> Option<String> {
        let status = |is_successful: bool| if is_successful { "succeeds" } else { "fails" };
        if self.is_successful != observed.is_successful {
            let message = [&observed.message, &self.message].into_iter().find(|message| !message.is_empty());
            let message = message.map(|message| format!(": {message}")).unwrap_or_default();
            return Some(format!(
                "{}, the reference {}{message}",
                status(observed.is_successful),
                status(self.is_successful)
            ));
        }
        for ((sum, reference), found) in
            SUMS.iter().zip(self.bytes?).zip(observed.bytes.unwrap_or([ByteClass::Absent; 4]))
        {
            if found < reference {
                return Some(format!("bytes of {sum}: {}, of the reference {}", found.name(), reference.name()));
            }
        }
        let missing: Vec<&str> = self.keys.difference(&observed.keys).map(String::as_str).collect();
        (!missing.is_empty()).then(|| format!("without {}", missing.join(", ")))
    }
}

fn class(sum: &Value, requested: Option<u64>) -> ByteClass {
    match sum["bytes"].as_u64() {
        None => ByteClass::Absent,
        Some(0) => ByteClass::Zero,
        Some(bytes) if requested.is_some_and(|requested| bytes >= requested) => ByteClass::Complete,
        Some(_) => ByteClass::Some,
    }
}

/// Paths of all keys; elements of an array share theirs.
fn key_paths(document: &Value) -> BTreeSet<String> {
    fn walk(value: &Value, at: &str, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                for (key, member) in members {
                    let path = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                    found.insert(path.clone());
                    walk(member, &path, found);
                }
            }
            Value::Array(elements) => elements.iter().for_each(|element| walk(element, at, found)),
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    walk(document, "", &mut found);
    found
}

/// Names of the events of `--json-stream`.
fn events(output: &str) -> BTreeSet<String> {
    let event = |line: &str| serde_json::from_str::<Value>(line).ok()?["event"].as_str().map(str::to_owned);
    output.lines().filter_map(event).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interop::cases::CASES;

    fn case(client: &str) -> &'static Case {
        CASES.iter().find(|case| case.client == client && case.server.is_empty()).expect("a case")
    }

    fn seen(client: &str, status: Option<i32>, stdout: &str, stderr: &str) -> Observation {
        Observation::of(case(client), status, stdout, stderr)
    }

    const WHOLE: &str = r#"{"start":{"version":"x"},"end":{"sum_sent":{"bytes":1},"sum_received":{"bytes":1}}}"#;

    #[test]
    fn fewer_bytes_and_keys_are_differences_and_more_are_none() {
        let reference = seen("-n 1", Some(0), WHOLE, "");
        let more = WHOLE.replace(r#""bytes":1}}"#, r#""bytes":131072,"more":1}}"#);
        assert_eq!(reference.difference(&seen("-n 1", Some(0), &more, "")), None);
        let zero = WHOLE.replace(r#""bytes":1}}"#, r#""bytes":0}}"#);
        let difference = reference.difference(&seen("-n 1", Some(0), &zero, "")).expect("fewer");
        assert_eq!(difference, "bytes of sum_received: 0, of the reference complete");
        let fewer = WHOLE.replace(r#""version":"x""#, "");
        assert_eq!(reference.difference(&seen("-n 1", Some(0), &fewer, "")).as_deref(), Some("without start.version"));
    }

    #[test]
    fn an_error_in_the_document_is_a_failure_whatever_the_status() {
        let failed = seen("-n 1", Some(0), r#"{"end":{},"error":"busy"}"#, "");
        assert!(!failed.is_successful && failed.message == "busy");
        let difference = seen("-n 1", Some(0), WHOLE, "").difference(&failed);
        assert_eq!(difference.as_deref(), Some("fails, the reference succeeds: busy"));
        assert_eq!(seen("-n 1", None, "", "").message, "did not end");
    }

    #[test]
    fn an_option_that_the_peer_lacks_is_recognised() {
        let lacking = seen("-m", Some(1), "", "iperf3: unrecognized option '--skip-rx-copy'\nUsage");
        assert!(lacking.lacks_option());
        assert!(!seen("--nope", Some(1), "", "iperf3: unrecognized option '--nope'").lacks_option());
        assert!(!seen("-n 1", Some(0), WHOLE, "").lacks_option());
    }

    #[test]
    fn events_are_compared_by_name() {
        let events = "{\"event\":\"start\",\"data\":{}}\n{\"event\":\"end\",\"data\":{}}\n";
        assert_eq!(seen("--json-stream", Some(0), events, "").keys, ["end", "start"].map(str::to_owned).into());
    }
}
