//! Streams and buckets on the servers.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::{CreateStreamError, CreateStreamErrorKind, GetStreamErrorKind};
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};

use crate::connection::NatsFleet;
use crate::error::{NatsError, chain};

/// Copies of each stream where the cluster has servers for them.
const REPLICAS: usize = 3;

/// Time that results stay on the servers; agents and readers have files of their own.
const RESULT_TIME: Duration = Duration::from_secs(30 * 24 * 3600);

/// Time within which the servers know the ids of messages besides their subjects.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);

/// Descriptions that are kept.
const DESCRIPTIONS: i64 = 10;

/// Streams and buckets after [`NatsFleet::prepare`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedStorage {
    /// Names of those that were not there before.
    pub created: Vec<String>,
    /// Least number of copies of a stream.
    pub replicas: usize,
    /// Answer of the server to the wish for three copies, where it refused.
    pub refusal: Option<String>,
}

/// Names of streams and subjects of a fleet.
impl NatsFleet {
    pub(crate) fn stream_name(&self, part: &str) -> String {
        format!("{}-{part}", self.fleet())
    }

    /// Stream of a bucket, named as clients of buckets expect it.
    pub(crate) fn bucket_stream(&self, part: &str) -> String {
        format!("KV_{}-{part}", self.fleet())
    }

    pub(crate) fn bucket_subject(&self, part: &str, key: &str) -> String {
        format!("$KV.{}-{part}.{key}", self.fleet())
    }

    pub(crate) fn subject(&self, part: &str, token: &str) -> String {
        format!("{}.{part}.{token}", self.fleet())
    }

    /// Makes the streams and buckets that are missing, and more copies where the cluster has become larger. `liveness` is the
    /// time after which an agent that ended is a member no longer, and its task is given to the next.
    pub fn prepare(&self, liveness: Duration) -> Result<PreparedStorage, NatsError> {
        let mut prepared = PreparedStorage { created: Vec::new(), replicas: REPLICAS, refusal: None };
        for config in self.streams(liveness) {
            let (making, is_new) = (format!("making the stream {:?}", config.name), AtomicBool::new(false));
            let (replicas, refusal) = self.retrying(&making, || self.ensure(&config, &is_new))?;
            prepared.replicas = prepared.replicas.min(replicas);
            prepared.refusal = prepared.refusal.or(refusal);
            if is_new.into_inner() {
                prepared.created.push(config.name);
            }
        }
        Ok(prepared)
    }

    fn streams(&self, liveness: Duration) -> [Config; 5] {
        let bucket = |part: &str| Config {
            name: self.bucket_stream(part),
            subjects: vec![self.bucket_subject(part, ">")],
            max_messages_per_subject: 1,
            discard: DiscardPolicy::New,
            allow_rollup: true,
            allow_direct: true,
            ..base()
        };
        let stream = |part: &str| Config { name: self.stream_name(part), ..base() };
        let tasks = vec![self.subject("task", "*"), self.subject("schedule", ">")];
        [
            Config { max_messages_per_subject: DESCRIPTIONS, ..bucket("description") },
            Config { max_age: liveness, duplicate_window: liveness.min(DUPLICATE_WINDOW), ..bucket("members") },
            Config { allow_message_ttl: true, ..bucket("locks") },
            Config {
                subjects: tasks,
                retention: RetentionPolicy::WorkQueue,
                allow_message_ttl: true,
                allow_message_schedules: true,
                allow_rollup: true,
                ..stream("tasks")
            },
            Config {
                // The publisher, and the id.
                subjects: vec![self.subject("result", "*.*")],
                max_messages_per_subject: 1,
                discard: DiscardPolicy::New,
                discard_new_per_subject: true,
                max_age: RESULT_TIME,
                ..stream("results")
            },
        ]
    }

    /// Copies of a stream, and the refusal of more. Sets `is_new` for one that was missing: an earlier attempt may have made it,
    /// whose answer did not come.
    async fn ensure(&self, config: &Config, is_new: &AtomicBool) -> Result<(usize, Option<String>), NatsError> {
        let existing = match self.context().get_stream(&config.name).await {
            Ok(stream) => Some(stream.cached_info().config.num_replicas),
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(answer) if answer.error_code() == ErrorCode::STREAM_NOT_FOUND => None,
                _ => return Err(self.failed(&format!("looking for the stream {:?}", config.name), &error)),
            },
        };
        if existing.is_none() {
            is_new.store(true, Ordering::Relaxed);
        }
        let mut refusal = None;
        let counts = [REPLICAS, existing.unwrap_or(1)];
        for replicas in if existing >= Some(REPLICAS) { &counts[1..] } else { &counts[..] } {
            let wanted = Config { num_replicas: *replicas, ..config.clone() };
            let done = match existing {
                None => self.context().create_stream(&wanted).await.map(drop),
                Some(_) => self.context().update_stream(&wanted).await.map(drop),
            };
            match done {
                Ok(()) => return Ok((*replicas, refusal)),
                Err(error) if *replicas > existing.unwrap_or(1) && is_for_replicas(&error) => {
                    refusal = Some(chain(&error));
                }
                Err(error) => return Err(self.refused(&config.name, &error)),
            }
        }
        Ok((existing.unwrap_or(1), refusal))
    }

    fn refused(&self, name: &str, error: &CreateStreamError) -> NatsError {
        match error.kind() {
            CreateStreamErrorKind::JetStream(answer) if answer.error_code() != ErrorCode::CLUSTER_NOT_AVAILABLE => {
                NatsError::Invalid {
                    what: format!("the stream {name:?}"),
                    server: self.servers().to_owned(),
                    reason: chain(error),
                }
            }
            _ => self.failed(&format!("making the stream {name:?}"), error),
        }
    }
}

fn base() -> Config {
    Config {
        max_messages: -1,
        max_bytes: -1,
        storage: StorageType::File,
        duplicate_window: DUPLICATE_WINDOW,
        ..Config::default()
    }
}

/// True for an answer to the number of copies: no cluster, or too few servers of it.
fn is_for_replicas(error: &CreateStreamError) -> bool {
    let CreateStreamErrorKind::JetStream(answer) = error.kind() else { return false };
    let codes =
        [ErrorCode::STREAM_REPLICAS_NOT_SUPPORTED, ErrorCode::CLUSTER_NO_PEERS, ErrorCode::INSUFFICIENT_RESOURCES];
    codes.contains(&answer.error_code())
}
