//! Members of the fleet: an entry per agent, which ends with the TTL when its agent does.

use core::time::Duration;
use std::time::SystemTime;

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::GetStreamErrorKind;
use bytes::Bytes;
use futures_util::StreamExt as _;
use linerate_units::WallTime;
use serde::{Deserialize, Serialize};

use crate::connection::NatsFleet;
use crate::error::NatsError;
use crate::names;

const BUCKET: &str = "members";

/// Renewals of an entry within its TTL.
const RENEWALS: u32 = 3;

/// Difference of an agent's clock from the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// Time of the agent minus time of the server.
    pub offset_ns: i64,
    /// Largest error of it: half of the round trip.
    pub error_ns: u64,
}

impl ClockOffset {
    /// Offset from an entry that was written between two times of the agent.
    fn of(sent: WallTime, written: WallTime, answered: WallTime) -> Self {
        let [sent, written, answered] =
            [sent, written, answered].map(|time| i64::try_from(time.since_unix_epoch().as_nanos()).unwrap_or(i64::MAX));
        let half = (answered - sent).max(0) / 2;
        Self { offset_ns: sent + half - written, error_ns: half.unsigned_abs() }
    }

    /// Least difference that is certain.
    #[must_use]
    pub fn certain(&self) -> Duration {
        Duration::from_nanos(self.offset_ns.unsigned_abs().saturating_sub(self.error_ns))
    }
}

/// Entry of a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberRecord {
    /// Name of the address.
    pub name: String,
    /// Random number of the process.
    pub instance: String,
    /// Version of linerate.
    pub version: String,
    /// Clock, where it was compared.
    pub clock: Option<ClockOffset>,
}

/// Member in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedMember {
    /// Entry.
    pub record: MemberRecord,
    /// Time of its last renewal, by the clock of the server.
    pub seen: WallTime,
}

/// Membership of this agent.
#[derive(Debug)]
pub struct Membership {
    fleet: NatsFleet,
    stream: String,
    subject: String,
    ttl: Duration,
    revision: u64,
    record: MemberRecord,
}

impl NatsFleet {
    /// Joins the fleet. An entry of the same name that is not renewed within its TTL is that of an agent that ended.
    ///
    /// # Errors
    ///
    /// [`NatsError::NameTaken`] when another agent renews the entry.
    pub fn join(&self, record: MemberRecord) -> Result<Membership, NatsError> {
        let subject = self.bucket_subject(BUCKET, &names::token(&record.name)?);
        let stream = self.bucket_stream(BUCKET);
        let ttl = self.liveness()?;
        let mut membership = Membership { fleet: self.clone(), stream, subject, ttl, revision: 0, record };
        let mut seen = None;
        loop {
            let Some(other) = membership.write()? else {
                // The entry gets the clock that its first writing showed.
                membership.renew()?;
                return Ok(membership);
            };
            let (revision, taken) = (other.0, other.1);
            if seen.is_some_and(|seen| seen != revision) {
                return Err(taken);
            }
            seen = Some(revision);
            self.wait(async { tokio::time::sleep(membership.interval()).await });
        }
    }

    /// Time after which an agent that ended is a member no longer.
    pub fn liveness(&self) -> Result<Duration, NatsError> {
        let name = self.bucket_stream(BUCKET);
        self.retrying("looking for the members", || async {
            match self.context().get_stream(&name).await {
                Ok(stream) => Ok(stream.cached_info().config.max_age),
                Err(error) => match error.kind() {
                    GetStreamErrorKind::JetStream(answer) if answer.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                        Err(self.unprepared(&name))
                    }
                    _ => Err(self.failed("looking for the members", &error)),
                },
            }
        })
    }

    /// Members, by name. An entry that is not valid is left out: it is none of an agent.
    pub fn members(&self) -> Result<Vec<ListedMember>, NatsError> {
        let stream = self.bucket_stream(BUCKET);
        self.liveness()?;
        self.retrying("listing the members", || async {
            let found = self.context().get_stream_no_info(&stream).await;
            let found = found.map_err(|error| self.failed("listing the members", &error))?;
            let subjects = found.info_with_subjects(self.bucket_subject(BUCKET, ">")).await;
            let mut subjects = subjects.map_err(|error| self.failed("listing the members", &error))?;
            let mut members = Vec::new();
            while let Some(subject) = subjects.next().await {
                let (subject, _) = subject.map_err(|error| self.failed("listing the members", &error))?;
                let (_, Some(entry)) = self.entry(&stream, &subject).await? else { continue };
                let Ok(record) = serde_json::from_slice(&entry.value) else { continue };
                members.push(ListedMember { record, seen: entry.written });
            }
            members.sort_by(|one, other| one.record.name.cmp(&other.record.name));
            Ok(members)
        })
    }
}

impl Membership {
    /// Time from one renewal to the next.
    #[must_use]
    pub fn interval(&self) -> Duration {
        self.ttl / RENEWALS
    }

    /// Entry as last written.
    #[must_use]
    pub fn record(&self) -> &MemberRecord {
        &self.record
    }

    /// Renews the entry, and compares the clocks.
    ///
    /// # Errors
    ///
    /// [`NatsError::NameTaken`] when this agent was cut off for longer than the TTL, and another one took its name.
    pub fn renew(&mut self) -> Result<(), NatsError> {
        match self.write()? {
            None => Ok(()),
            Some((_, taken)) => Err(taken),
        }
    }

    /// Ends the membership at once.
    pub fn leave(self) -> Result<(), NatsError> {
        self.fleet.wait(self.fleet.delete(&self.stream, self.revision))
    }

    /// Writes the entry; returns the revision and the error of another agent's.
    fn write(&mut self) -> Result<Option<(u64, NatsError)>, NatsError> {
        let value =
            serde_json::to_vec(&self.record).map(Bytes::from).map_err(|error| NatsError::Setting(error.to_string()))?;
        let (fleet, stream, subject) = (self.fleet.clone(), self.stream.clone(), self.subject.clone());
        let (own, instance) = (self.revision, self.record.instance.clone());
        let written = fleet.retrying("renewing the membership", || async {
            let sent = now();
            if let Some(revision) = fleet.replace(&subject, value.clone(), own, None).await? {
                return Ok(Ok((revision, sent, now())));
            }
            // The entry ended by its TTL, a renewal was written whose answer was lost, or it is another agent's.
            let (revision, entry) = fleet.entry(&stream, &subject).await?;
            let other = entry.and_then(|entry| serde_json::from_slice::<MemberRecord>(&entry.value).ok());
            if let Some(other) = other.filter(|other| other.instance != instance) {
                return Ok(Err((revision, other)));
            }
            let sent = now();
            match fleet.replace(&subject, value.clone(), revision, None).await? {
                Some(revision) => Ok(Ok((revision, sent, now()))),
                None => Err(fleet.raced(&subject)),
            }
        })?;
        match written {
            Ok((revision, sent, answered)) => {
                self.revision = revision;
                let (_, entry) = fleet.retrying("comparing the clocks", || fleet.entry(&stream, &subject))?;
                let own = entry.filter(|entry| entry.revision == revision);
                self.record.clock = own.map(|entry| ClockOffset::of(sent, entry.written, answered));
                Ok(None)
            }
            Err((revision, MemberRecord { name, instance, version, .. })) => {
                Ok(Some((revision, NatsError::NameTaken { name, instance, version })))
            }
        }
    }
}

impl NatsFleet {
    fn raced(&self, subject: &str) -> NatsError {
        NatsError::Request {
            action: format!("writing {subject}"),
            server: self.servers().to_owned(),
            answer: "another client wrote it at the same time".to_owned(),
        }
    }
}

fn now() -> WallTime {
    WallTime::from_unix(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_compared_in_the_middle_of_the_round_trip() {
        let at = |milliseconds| WallTime::from_unix(Duration::from_millis(milliseconds));
        for (sent, written, answered, offset, error, certain) in [
            (1000, 1010, 1020, 0, 10, 0),
            (6000, 1010, 6020, 5000, 10, 4990),
            (1000, 6010, 1020, -5000, 10, 4990),
            // The clock was set back between.
            (1000, 1000, 500, 0, 0, 0),
        ] {
            let found = ClockOffset::of(at(sent), at(written), at(answered));
            assert_eq!((found.offset_ns, found.error_ns), (offset * 1_000_000, error * 1_000_000));
            assert_eq!(found.certain(), Duration::from_millis(certain));
        }
    }
}
