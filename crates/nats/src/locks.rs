//! Locks of hosts and uplinks, so that no two tests to run now use the same at once.
//!
//! A lock lasts as long as its test may take: when the agent is killed, its test may still run, and no other takes the host.

use core::time::Duration;

use bytes::Bytes;

use crate::connection::NatsFleet;
use crate::error::NatsError;
use crate::names;

const BUCKET: &str = "locks";

/// Locks that this process holds, until their TTL or [`HeldLocks::release`].
#[derive(Debug)]
#[must_use = "the locks stay until their TTL"]
pub struct HeldLocks {
    fleet: NatsFleet,
    revisions: Vec<u64>,
}

impl NatsFleet {
    /// Takes all of these locks or none; `None` when another holder has one. They are taken in order of name.
    ///
    /// `holder` is unique for the test: a lock of the same holder is its own, from an attempt whose answer was lost.
    pub fn lock(&self, resources: &[String], holder: &str, ttl: Duration) -> Result<Option<HeldLocks>, NatsError> {
        let mut ordered = resources.to_vec();
        ordered.sort();
        ordered.dedup();
        let mut held = HeldLocks { fleet: self.clone(), revisions: Vec::new() };
        for resource in &ordered {
            match self.lock_one(resource, holder, ttl) {
                Ok(Some(revision)) => held.revisions.push(revision),
                Ok(None) => {
                    held.release()?;
                    return Ok(None);
                }
                Err(error) => {
                    drop(held.release());
                    return Err(error);
                }
            }
        }
        Ok(Some(held))
    }

    fn lock_one(&self, resource: &str, holder: &str, ttl: Duration) -> Result<Option<u64>, NatsError> {
        let (stream, subject) = (self.bucket_stream(BUCKET), self.bucket_subject(BUCKET, &names::token(resource)?));
        let value = Bytes::copy_from_slice(holder.as_bytes());
        self.retrying(&format!("locking {resource}"), || async {
            let (revision, entry) = self.entry(&stream, &subject).await?;
            match entry {
                Some(entry) if entry.value == value => Ok(Some(entry.revision)),
                Some(_) => Ok(None),
                None => self.replace(&subject, value.clone(), revision, Some(ttl)).await,
            }
        })
    }
}

impl HeldLocks {
    /// Releases the locks.
    pub fn release(mut self) -> Result<(), NatsError> {
        let stream = self.fleet.bucket_stream(BUCKET);
        for revision in core::mem::take(&mut self.revisions) {
            self.fleet.retrying("releasing a lock", || self.fleet.delete(&stream, revision))?;
        }
        Ok(())
    }
}
