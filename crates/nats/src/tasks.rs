//! Tasks: tests to run now, at a time or again and again.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use async_nats::HeaderMap;
use async_nats::header::{
    NATS_MESSAGE_ID, NATS_MESSAGE_TTL, NATS_ROLLUP, NATS_SCHEDULE, NATS_SCHEDULE_TARGET, NATS_SCHEDULE_TTL,
};
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::{AckKind, Acker};
use bytes::Bytes;
use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use crate::compare_and_set::whole_seconds;
use crate::connection::NatsFleet;
use crate::error::{NatsError, chain};
use crate::names;

const STREAM: &str = "tasks";

/// Time after which a task that no agent took is dropped.
const TASK_TIME: Duration = Duration::from_secs(24 * 3600);

/// Attempts after which a task is given up: an agent that it kills each time would do nothing else.
const MAX_ATTEMPTS: i64 = 20;

/// Signs of life within the time after which a task is given to the next agent.
const SIGNS_OF_LIFE: u32 = 4;

/// Test to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetTask {
    /// Unique identity.
    pub id: String,
    /// Name of the task in the description.
    pub task: String,
    /// Names of the addresses.
    pub addresses: [String; 2],
}

/// Time of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskTime {
    /// At once.
    Now,
    /// Once, at a time (RFC 3339).
    At(String),
    /// Again and again: `@every 15m`, `@hourly` or six fields from seconds to days of the week.
    Every(String),
}

/// Task of this agent.
pub struct ReceivedTask {
    /// Task.
    pub task: FleetTask,
    fleet: NatsFleet,
    acker: Arc<Acker>,
    signs_of_life: JoinHandle<()>,
}

impl fmt::Debug for ReceivedTask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ReceivedTask").field("task", &self.task).finish_non_exhaustive()
    }
}

/// Tasks of one address, one at a time.
#[derive(Debug)]
pub struct TaskQueue {
    fleet: NatsFleet,
    consumer: PullConsumer,
    ack_wait: Duration,
}

impl NatsFleet {
    /// Gives a task to the agent of the address `starter`. The same id twice is one task.
    pub fn assign(&self, task: &FleetTask, starter: &str, time: &TaskTime) -> Result<(), NatsError> {
        let target = self.subject("task", &names::token(starter)?);
        let payload =
            serde_json::to_vec(task).map(Bytes::from).map_err(|error| NatsError::Setting(error.to_string()))?;
        let mut headers = HeaderMap::new();
        let (subject, pattern) = match time {
            TaskTime::Now => {
                headers.insert(NATS_MESSAGE_ID, task.id.as_str());
                headers.insert(NATS_MESSAGE_TTL, whole_seconds(TASK_TIME));
                (target.clone(), None)
            }
            TaskTime::At(time) => (self.schedule_subject(task, Some(&task.id))?, Some(format!("@at {time}"))),
            TaskTime::Every(pattern) => (self.schedule_subject(task, None)?, Some(pattern.clone())),
        };
        if let Some(pattern) = &pattern {
            headers.insert(NATS_SCHEDULE, pattern.as_str());
            headers.insert(NATS_SCHEDULE_TARGET, target.as_str());
            headers.insert(NATS_SCHEDULE_TTL, whole_seconds(TASK_TIME));
            headers.insert(NATS_ROLLUP, "sub");
        }
        let action = format!("giving the task {:?} to {starter:?}", task.task);
        self.retrying(&action, || async {
            let sent = self.context().publish_with_headers(subject.clone(), headers.clone(), payload.clone()).await;
            let answer = match sent {
                Ok(answer) => answer.await,
                Err(error) => Err(error),
            };
            let Err(error) = answer else { return Ok(()) };
            Err(match (error.kind(), &pattern) {
                (PublishErrorKind::StreamNotFound, _) => self.unprepared(&self.stream_name(STREAM)),
                (_, Some(pattern)) if chain(&error).contains("schedules pattern") => NatsError::Setting(format!(
                    "{} refuses the schedule {pattern:?}: expected \"@every 15m\", \"@hourly\" or six fields from \
                     seconds to days of the week, such as \"0 30 6 * * *\"",
                    self.servers()
                )),
                _ => self.failed(&action, &error),
            })
        })
    }

    /// Ends the repetitions of a task between two addresses, in either order; returns their number.
    pub fn end_schedule(&self, task: &FleetTask) -> Result<u64, NatsError> {
        let subject = self.schedule_subject(task, None)?;
        self.retrying("ending the schedule", || async {
            let stream = self.context().get_stream_no_info(self.stream_name(STREAM)).await;
            let stream = stream.map_err(|error| self.failed("ending the schedule", &error))?;
            let purged = stream.purge().filter(subject.clone()).await;
            purged.map(|done| done.purged).map_err(|error| self.failed("ending the schedule", &error))
        })
    }

    /// Subject of a schedule: one for the repetitions of a pair's task, so that a further one replaces it.
    fn schedule_subject(&self, task: &FleetTask, id: Option<&str>) -> Result<String, NatsError> {
        let mut pair = task.addresses.clone();
        pair.sort();
        let parts = [&task.task, &pair[0], &pair[1]].map(|part| names::token(part));
        let [name, first, second] = parts;
        let once = id.map(names::token).transpose()?.map(|id| format!(".{id}")).unwrap_or_default();
        Ok(self.subject("schedule", &format!("{}.{}.{}{once}", name?, first?, second?)))
    }

    /// Queue of the tasks that an address starts.
    pub fn tasks(&self, address: &str) -> Result<TaskQueue, NatsError> {
        let token = names::token(address)?;
        let ack_wait = self.liveness()?;
        let config = pull::Config {
            durable_name: Some(token.clone()),
            filter_subject: self.subject("task", &token),
            ack_policy: AckPolicy::Explicit,
            ack_wait,
            max_ack_pending: 1,
            ..pull::Config::default()
        };
        let consumer = self.retrying("making the queue of tasks", || async {
            let stream = self.context().get_stream_no_info(self.stream_name(STREAM)).await;
            let stream = stream.map_err(|error| self.failed("making the queue of tasks", &error))?;
            stream.create_consumer(config.clone()).await.map_err(|error| match error.kind() {
                async_nats::jetstream::stream::ConsumerErrorKind::JetStream(answer)
                    if answer.error_code() == ErrorCode::STREAM_NOT_FOUND =>
                {
                    self.unprepared(&self.stream_name(STREAM))
                }
                _ => self.failed("making the queue of tasks", &error),
            })
        })?;
        Ok(TaskQueue { fleet: self.clone(), consumer, ack_wait })
    }
}

impl TaskQueue {
    /// Next task; `None` when none came within `wait`. A message that is no task, or that was tried too often, is dropped
    /// with an error.
    pub fn next(&self, wait: Duration) -> Result<Option<ReceivedTask>, NatsError> {
        let fleet = &self.fleet;
        fleet.wait(async {
            let batch = self.consumer.fetch().max_messages(1).expires(wait).messages().await;
            let mut batch = batch.map_err(|error| fleet.failed("waiting for a task", &error))?;
            let Some(message) = batch.next().await else { return Ok(None) };
            let message = message.map_err(|error| fleet.failed("waiting for a task", &*error))?;
            let attempts = message.info().map_or(1, |info| info.delivered);
            let (message, acker) = message.split();
            let reason = match serde_json::from_slice::<FleetTask>(&message.payload) {
                Ok(task) if attempts <= MAX_ATTEMPTS => return Ok(Some(self.received(task, acker))),
                Ok(task) => format!("its {MAX_ATTEMPTS} attempts ended with the agent: task {:?}", task.task),
                Err(error) => error.to_string(),
            };
            drop(acker.ack_with(AckKind::Term).await);
            let (what, server) = (format!("a message of {}", message.subject), fleet.servers().to_owned());
            Err(NatsError::Invalid { what, server, reason })
        })
    }

    fn received(&self, task: FleetTask, acker: Acker) -> ReceivedTask {
        let acker = Arc::new(acker);
        let (interval, sender) = (self.ack_wait / SIGNS_OF_LIFE, Arc::clone(&acker));
        let signs_of_life = self.fleet.handle().spawn(async move {
            loop {
                tokio::time::sleep(interval).await;
                drop(sender.ack_with(AckKind::Progress).await);
            }
        });
        ReceivedTask { task, fleet: self.fleet.clone(), acker, signs_of_life }
    }
}

impl ReceivedTask {
    /// Removes the task from the queue.
    pub fn finish(self) -> Result<(), NatsError> {
        self.fleet.retrying("finishing a task", || async {
            self.acker.double_ack().await.map_err(|error| self.fleet.failed("finishing a task", &*error))
        })
    }

    /// Gives the task back: the next agent of this address takes it.
    pub fn give_back(self) -> Result<(), NatsError> {
        self.fleet.wait(async {
            let given = self.acker.ack_with(AckKind::Nak(None)).await;
            given.map_err(|error| self.fleet.failed("giving a task back", &*error))
        })
    }
}

impl Drop for ReceivedTask {
    fn drop(&mut self) {
        self.signs_of_life.abort();
    }
}
