//! Results as a reader receives them.

use core::fmt;
use core::time::Duration;

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::message::{AckKind, Acker};
use async_nats::jetstream::stream::ConsumerErrorKind;
use bytes::Bytes;
use futures_util::StreamExt as _;

use crate::compression;
use crate::connection::NatsFleet;
use crate::error::NatsError;
use crate::names;

const STREAM: &str = "results";

/// Time after which results that were not acknowledged are received once more.
const ACK_WAIT: Duration = Duration::from_secs(10);

/// Result that a reader received, and has to acknowledge.
pub struct ReceivedResult {
    /// Identity.
    pub id: String,
    /// Member that published it.
    pub publisher: String,
    /// One JSON object.
    pub bytes: Bytes,
    acker: Acker,
}

impl fmt::Debug for ReceivedResult {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ReceivedResult").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Reader of results, whose place the servers keep.
#[derive(Debug)]
pub struct ResultReader {
    fleet: NatsFleet,
    consumer: PullConsumer,
}

impl NatsFleet {
    /// Reader of this name: each name receives all results.
    pub fn reader(&self, name: &str) -> Result<ResultReader, NatsError> {
        let config = pull::Config {
            durable_name: Some(names::token(name)?),
            ack_policy: AckPolicy::Explicit,
            ack_wait: ACK_WAIT,
            max_ack_pending: 1000,
            ..pull::Config::default()
        };
        let action = "asking for the results";
        let consumer = self.retrying(action, || async {
            let stream = self.context().get_stream_no_info(self.stream_name(STREAM)).await;
            let stream = stream.map_err(|error| self.failed(action, &error))?;
            stream.create_consumer(config.clone()).await.map_err(|error| match error.kind() {
                ConsumerErrorKind::JetStream(answer) if answer.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                    self.unprepared(&self.stream_name(STREAM))
                }
                _ => self.failed(action, &error),
            })
        })?;
        Ok(ResultReader { fleet: self.clone(), consumer })
    }
}

impl ResultReader {
    /// Next results, at most `count`, those that came within `wait`.
    pub fn next(&self, count: usize, wait: Duration) -> Result<Vec<ReceivedResult>, NatsError> {
        let fleet = &self.fleet;
        fleet.wait(async {
            let batch = self.consumer.fetch().max_messages(count).expires(wait).messages().await;
            let mut batch = batch.map_err(|error| fleet.failed("receiving results", &error))?;
            let mut results = Vec::new();
            while let Some(message) = batch.next().await {
                match message {
                    Ok(message) => {
                        let (message, acker) = message.split();
                        let mut tokens = message.subject.rsplit('.');
                        let mut name = || {
                            let token = tokens.next().unwrap_or_default();
                            names::name(token).unwrap_or_else(|| token.to_owned())
                        };
                        let (id, publisher) = (name(), name());
                        let is_compressed =
                            message.headers.as_ref().is_some_and(|all| all.get(compression::ENCODING).is_some());
                        let bytes = if is_compressed {
                            // What is not valid is no result, as its reader will find.
                            compression::decompress(&message.payload).map_or(message.payload, Bytes::from)
                        } else {
                            message.payload
                        };
                        results.push(ReceivedResult { id, publisher, bytes, acker });
                    }
                    // Those that came are whole; the error is met again.
                    Err(_) if !results.is_empty() => break,
                    Err(error) => return Err(fleet.failed("receiving results", &*error)),
                }
            }
            Ok(results)
        })
    }

    /// Acknowledges results, and waits until the servers know of it.
    pub fn acknowledge(&self, results: &[ReceivedResult]) -> Result<(), NatsError> {
        self.fleet.wait(async {
            let Some((last, others)) = results.split_last() else { return Ok(()) };
            let failed = |error: async_nats::Error| self.fleet.failed("acknowledging results", &*error);
            for result in others {
                result.acker.ack_with(AckKind::Ack).await.map_err(failed)?;
            }
            last.acker.double_ack().await.map_err(failed)
        })
    }
}
