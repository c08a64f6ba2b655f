//! Shipping of a log to an OpenTelemetry receiver: each result at least once, in the order of the log.
//!
//! The position in the log moves only behind results that the receiver has, or refuses for good while it takes others. Nothing
//! is kept in memory but one batch.

use std::collections::HashSet;
use std::time::Duration;

use linerate_documents::fleet_result::FleetResult;
use linerate_export::{OtlpResource, logs_request, metrics_request};
use linerate_history::result_log::{LoggedResult, ResultLog, ResultReceiver};
use linerate_sys::clock::{monotonic_now, realtime_now};
use linerate_sys::file_lock::{self, FileLock};
use linerate_sys::host;
use linerate_units::{MonotonicTime, WallTime};

use super::arguments::OtlpArguments;
use super::otlp_client::{Delivery, OtlpClient};
use super::shipping_state::ShippingState;
use crate::console;

/// Largest number of results, and of bytes of them, in one request. Receivers take 20 MiB by default, some 4.
const MAX_BATCH: usize = 16;
const MAX_BATCH_BYTES: usize = 2 << 20;

/// Longest wait for an answer.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);

/// First and longest pause between attempts; each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(300);

/// Attempts after which an error within the receiver counts as a refusal of what was sent.
const MAX_FAILURES: u32 = 5;

/// State of the shipping after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShippingStep {
    /// The receiver has all that the log has.
    Complete,
    /// A batch was shipped; there may be more.
    Progress,
    /// The receiver takes nothing now: try again after this time.
    Pause(Duration),
}

/// Shipping of one log to one receiver.
#[derive(Debug)]
pub(super) struct OtlpShipper {
    client: OtlpClient,
    receiver: ResultReceiver,
    resource: OtlpResource,
    /// Identities of results whose log records the receiver has, while their metrics are not shipped.
    logged: HashSet<String>,
    /// Notes that were written: each is written once.
    noted: HashSet<String>,
    failures: u32,
    state: ShippingState,
    _lock: FileLock,
}

/// Name of a receiver in the log: one per URL.
fn receiver_name(url: &str) -> String {
    let plain = url.split("://").last().unwrap_or_default();
    let readable: String =
        plain.chars().map(|one| if one.is_ascii_alphanumeric() { one } else { '-' }).take(60).collect();
    // FNV-1a: distinguishes URLs that differ in other characters only.
    let hash = url
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("otlp-{readable}-{hash:016x}")
}

impl OtlpShipper {
    /// Shipper from the position of this URL on; `None` while another process ships this log to it.
    pub(super) fn open(
        arguments: &OtlpArguments,
        log: &ResultLog,
        state: ShippingState,
    ) -> Result<Option<Self>, String> {
        let Some(url) = &arguments.url else { return Ok(None) };
        let client = OtlpClient::new(url, &arguments.headers)?;
        let name = receiver_name(url.text());
        let lock = log.directory().join(format!("{name}.lock"));
        let Some(lock) = file_lock::try_lock(&lock).map_err(|error| error.to_string())? else { return Ok(None) };
        let receiver = ResultReceiver::open(log, &name).map_err(|error| error.to_string())?;
        Ok(Some(Self {
            client,
            receiver,
            resource: OtlpResource { host: Some(host::host_name()), version: env!("CARGO_PKG_VERSION") },
            logged: HashSet::new(),
            noted: HashSet::new(),
            failures: 0,
            state,
            _lock: lock,
        }))
    }

    /// Ships one batch, with no request that lasts beyond a deadline.
    pub(super) fn ship(&mut self, deadline: Option<MonotonicTime>) -> ShippingStep {
        let batch = match self.receiver.pending(MAX_BATCH) {
            Ok(pending) => limited(pending),
            Err(error) => return self.pause(&error.to_string(), None),
        };
        self.state.set_oldest_pending(batch.first().map(|one| one.result.at()));
        let Some(last) = batch.last().cloned() else { return ShippingStep::Complete };
        let all: Vec<&LoggedResult> = batch.iter().collect();
        match self.deliver(&all, deadline) {
            Delivery::Accepted(_) => self.accept(&last, batch.len()),
            Delivery::Refused(reason) => self.ship_singly(&batch, &reason, deadline),
            Delivery::Failed(reason) if self.failures >= MAX_FAILURES => self.ship_singly(&batch, &reason, deadline),
            Delivery::Failed(reason) | Delivery::Absent(reason) => self.pause(&reason, None),
            Delivery::Unavailable(reason, after) => self.pause(&reason, after),
        }
    }

    /// Ships each result of a refused batch alone. Those that are refused are passed over when the receiver takes others, or
    /// understands requests at all.
    fn ship_singly(&mut self, batch: &[LoggedResult], reason: &str, deadline: Option<MonotonicTime>) -> ShippingStep {
        let mut refused: Vec<&LoggedResult> = Vec::new();
        for one in batch {
            // The answer to a batch of one is known.
            let delivery =
                if batch.len() == 1 { Delivery::Refused(reason.to_owned()) } else { self.deliver(&[one], deadline) };
            match delivery {
                Delivery::Accepted(_) => {
                    self.pass_over(&refused, reason);
                    refused.clear();
                    self.accept(one, 1);
                }
                Delivery::Refused(_) | Delivery::Failed(_) => refused.push(one),
                Delivery::Absent(reason) => return self.pause(&reason, None),
                Delivery::Unavailable(reason, after) => return self.pause(&reason, after),
            }
        }
        let Some(last) = refused.last() else { return ShippingStep::Progress };
        if !self.is_understood(deadline) {
            return self.pause(reason, None);
        }
        self.pass_over(&refused, reason);
        self.advance(last);
        ShippingStep::Progress
    }

    /// True when the receiver accepts requests without results: then it is not at fault itself, as one that wants another format.
    fn is_understood(&mut self, deadline: Option<MonotonicTime>) -> bool {
        let logs = logs_request(&self.resource, &[], WallTime::default()).to_string();
        let metrics = metrics_request(&self.resource, &[]).to_string();
        let answers = [("/v1/logs", logs), ("/v1/metrics", metrics)].map(|(to, body)| self.post(to, &body, deadline));
        let is_accepted = |answer: &Delivery| matches!(answer, Delivery::Accepted(_));
        let is_absent = |answer: &Delivery| matches!(answer, Delivery::Absent(_));
        answers.iter().any(is_accepted) && answers.iter().all(|answer| is_accepted(answer) || is_absent(answer))
    }

    /// Posts log records, then metrics. Of a receiver for one of them only, the other one is left out.
    fn deliver(&mut self, batch: &[&LoggedResult], deadline: Option<MonotonicTime>) -> Delivery {
        let lines: Vec<(&FleetResult, String)> = batch
            .iter()
            .filter(|one| !self.logged.contains(&one.result.id))
            .map(|one| (&one.result, String::from_utf8_lossy(&one.line).into_owned()))
            .collect();
        let records: Vec<(&FleetResult, &str)> = lines.iter().map(|(result, line)| (*result, line.as_str())).collect();
        let logs = if records.is_empty() {
            Delivery::Accepted(None)
        } else {
            self.post("/v1/logs", &logs_request(&self.resource, &records, realtime_now()).to_string(), deadline)
        };
        match &logs {
            Delivery::Accepted(_) => self.logged.extend(records.iter().map(|(result, _)| result.id.clone())),
            Delivery::Absent(_) => {}
            _ => return logs,
        }
        let results: Vec<&FleetResult> = batch.iter().map(|one| &one.result).collect();
        let metrics = self.post("/v1/metrics", &metrics_request(&self.resource, &results).to_string(), deadline);
        match (logs, metrics) {
            (Delivery::Absent(reason), Delivery::Accepted(_)) => self.note_absent("/v1/logs", &reason),
            (Delivery::Accepted(_), Delivery::Absent(reason)) => self.note_absent("/v1/metrics", &reason),
            (_, metrics) => return metrics,
        }
        Delivery::Accepted(None)
    }

    fn post(&mut self, endpoint: &str, body: &str, deadline: Option<MonotonicTime>) -> Delivery {
        let left = deadline.map_or(REQUEST_LIMIT, |deadline| deadline.since(monotonic_now()).min(REQUEST_LIMIT));
        if left.is_zero() {
            return Delivery::Unavailable("this command ends".to_owned(), None);
        }
        let delivery = self.client.post(endpoint, body, left, realtime_now());
        if let Delivery::Accepted(Some(warning)) = &delivery {
            self.note(&format!("{endpoint}: {warning}"));
        }
        delivery
    }

    fn note_absent(&mut self, endpoint: &str, reason: &str) {
        self.note(&format!("{endpoint}: {reason}; results are sent without it"));
    }

    /// Writes a note that was not written yet.
    fn note(&mut self, text: &str) {
        // Texts of a receiver that never repeats itself are bounded.
        if self.noted.len() < MAX_BATCH && self.noted.insert(text.to_owned()) {
            console::note(&format!("{}{text}", self.state.url()));
        }
    }

    fn accept(&mut self, last: &LoggedResult, count: usize) -> ShippingStep {
        self.failures = 0;
        self.state.accepted(count);
        self.advance(last);
        ShippingStep::Progress
    }

    /// Moves the position. When that fails, the one in memory has moved, and the results are repeated only after a restart.
    fn advance(&mut self, last: &LoggedResult) {
        self.logged.clear();
        if let Err(error) = self.receiver.advance(last) {
            self.note(&format!(": {error}; after a restart, results are sent twice"));
        }
    }

    fn pass_over(&mut self, refused: &[&LoggedResult], reason: &str) {
        if let Some(first) = refused.first() {
            self.state.refused(refused.len());
            let id = &first.result.id;
            self.note(&format!(": {reason} for the result {id}: it stays in the log, and is passed over"));
        }
    }

    fn pause(&mut self, reason: &str, after: Option<Duration>) -> ShippingStep {
        self.state.unavailable(reason);
        let own = FIRST_PAUSE.saturating_mul(1 << self.failures.min(16)).min(MAX_PAUSE);
        self.failures = self.failures.saturating_add(1);
        ShippingStep::Pause(after.unwrap_or_default().max(spread(own)))
    }
}

/// Pause between three quarters and five quarters of a time: the hosts of a fleet do not come back together.
fn spread(pause: Duration) -> Duration {
    let mut random = [128];
    // Without random bytes all pauses are equal.
    let _ = host::random_bytes(&mut random);
    pause * 3 / 4 + pause / 2 * u32::from(random[0]) / 255
}

/// First results of a batch that fit into a request.
fn limited(mut pending: Vec<LoggedResult>) -> Vec<LoggedResult> {
    let mut size = 0;
    let count = pending.iter().take_while(|one| {
        size += one.line.len();
        size <= MAX_BATCH_BYTES
    });
    let count = count.count().max(1);
    pending.truncate(count);
    pending
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_url_has_a_position_of_its_own() {
        let names = ["http://a:1", "http://a-1", "https://a:1", "http://a:1/x"].map(receiver_name);
        let distinct: HashSet<&String> = names.iter().collect();
        assert_eq!(distinct.len(), names.len(), "{names:?}");
        let is_plain = |name: &String| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        assert!(names.iter().all(is_plain) && receiver_name(&"x/".repeat(999)).len() < 100, "{names:?}");
    }

    #[test]
    fn pauses_differ_and_have_bounds() {
        let pauses: Vec<Duration> = (0..100).map(|_| spread(Duration::from_secs(4))).collect();
        assert!(pauses.iter().all(|pause| (3..=5).contains(&pause.as_secs())), "{pauses:?}");
        assert!(pauses.iter().any(|pause| *pause != pauses[0]), "{pauses:?}");
    }
}
