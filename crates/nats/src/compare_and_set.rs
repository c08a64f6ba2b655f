//! Entries of buckets: read from the leader, and written only over the revision that was read.
//!
//! The client library's bucket is not used: it loses the TTL of an entry that is made anew after a deletion, and reads from
//! copies that may be behind.

use core::time::Duration;

use async_nats::HeaderMap;
use async_nats::header::{NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, NATS_MESSAGE_TTL};
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::stream::{DeleteMessageErrorKind, LastRawMessageErrorKind};
use bytes::Bytes;
use linerate_units::WallTime;

use crate::connection::NatsFleet;
use crate::error::NatsError;

/// Entry of a bucket.
#[derive(Clone, Debug)]
pub(crate) struct BucketEntry {
    pub(crate) revision: u64,
    /// Time by the clock of the server.
    pub(crate) written: WallTime,
    pub(crate) value: Bytes,
}

/// Headers by which tools mark an entry as deleted.
const DELETION_MARKS: [&str; 2] = ["KV-Operation", "Nats-Marker-Reason"];

impl NatsFleet {
    /// Last entry of a subject; the revision alone when it was deleted by other tools.
    pub(crate) async fn entry(&self, stream: &str, subject: &str) -> Result<(u64, Option<BucketEntry>), NatsError> {
        let found = self.context().get_stream_no_info(stream).await;
        let found = found.map_err(|error| self.failed("reading an entry", &error))?;
        let message = match found.get_last_raw_message_by_subject(subject).await {
            Ok(message) => message,
            Err(error) => {
                return match error.kind() {
                    LastRawMessageErrorKind::NoMessageFound => Ok((0, None)),
                    LastRawMessageErrorKind::JetStream(answer)
                        if answer.error_code() == ErrorCode::STREAM_NOT_FOUND =>
                    {
                        Err(self.unprepared(stream))
                    }
                    _ => Err(self.failed(&format!("reading {subject}"), &error)),
                };
            }
        };
        if DELETION_MARKS.iter().any(|mark| message.headers.get(*mark).is_some()) {
            return Ok((message.sequence, None));
        }
        let written = u64::try_from(message.time.unix_timestamp_nanos()).unwrap_or_default();
        let entry = BucketEntry {
            revision: message.sequence,
            written: WallTime::from_unix(Duration::from_nanos(written)),
            value: message.payload,
        };
        Ok((message.sequence, Some(entry)))
    }

    /// Writes an entry over the given revision (0: there is none); returns the new one, `None` when another client was first.
    pub(crate) async fn replace(
        &self,
        subject: &str,
        value: Bytes,
        expected: u64,
        ttl: Option<Duration>,
    ) -> Result<Option<u64>, NatsError> {
        let mut headers = HeaderMap::new();
        headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, expected.to_string());
        if let Some(ttl) = ttl {
            headers.insert(NATS_MESSAGE_TTL, whole_seconds(ttl));
        }
        let sent = self.context().publish_with_headers(subject.to_owned(), headers, value).await;
        let answer = match sent {
            Ok(answer) => answer.await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(written) => Ok(Some(written.sequence)),
            Err(error) => match error.kind() {
                PublishErrorKind::WrongLastSequence => Ok(None),
                // Most often the bucket has no leader at the moment: a server of it was lost.
                _ => Err(self.failed(&format!("writing {subject}"), &error)),
            },
        }
    }

    /// Deletes a revision; one that is not there any more is no error.
    pub(crate) async fn delete(&self, stream: &str, revision: u64) -> Result<(), NatsError> {
        let found = self.context().get_stream_no_info(stream).await;
        let found = found.map_err(|error| self.failed("deleting an entry", &error))?;
        match found.delete_message(revision).await {
            Ok(_) => Ok(()),
            Err(error) => match error.kind() {
                // Its TTL was first.
                DeleteMessageErrorKind::JetStream(answer) if answer.code() < 500 || is_gone(&answer) => Ok(()),
                _ => Err(self.failed("deleting an entry", &error)),
            },
        }
    }

    pub(crate) fn unprepared(&self, stream: &str) -> NatsError {
        NatsError::Unprepared { server: self.servers().to_owned(), stream: stream.to_owned() }
    }
}

/// Error of a sequence without a message.
const NO_MESSAGE: ErrorCode = ErrorCode(10043);

/// Error of a deletion that failed in the store.
const DELETE_FAILED: ErrorCode = ErrorCode(10057);

fn is_gone(answer: &async_nats::jetstream::Error) -> bool {
    [NO_MESSAGE, DELETE_FAILED].contains(&answer.error_code())
}

/// TTL as the servers read it: whole seconds, at least one.
pub(crate) fn whole_seconds(ttl: Duration) -> String {
    ttl.as_millis().div_ceil(1000).max(1).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_are_whole_seconds_and_never_shorter() {
        for (milliseconds, text) in [(0, "1"), (1, "1"), (1000, "1"), (1001, "2"), (40_500, "41")] {
            assert_eq!(whole_seconds(Duration::from_millis(milliseconds)), text);
        }
    }
}
