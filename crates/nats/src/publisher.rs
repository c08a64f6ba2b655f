//! Results on their way to the servers.

use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use bytes::Bytes;

use crate::compression;
use crate::connection::NatsFleet;
use crate::error::{NatsError, chain};
use crate::names;

/// Fate of a published result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The servers have it now.
    Delivered,
    /// They had it before: an earlier answer was lost.
    Duplicate,
}

/// Publisher of the results of one member.
#[derive(Clone, Debug)]
pub struct Publisher {
    fleet: NatsFleet,
    /// Token of the member's name.
    member: String,
}

impl NatsFleet {
    /// Publisher of the results of a member on this connection.
    ///
    /// # Errors
    ///
    /// A name that is empty or too long.
    pub fn publisher(&self, member: &str) -> Result<Publisher, NatsError> {
        Ok(Publisher { fleet: self.clone(), member: names::token(member)? })
    }
}

impl Publisher {
    /// Publishes one result and waits until the servers have stored it. After an error the same call may be repeated at any
    /// time: a result that is there already is a [`Delivery::Duplicate`].
    ///
    /// # Errors
    ///
    /// A transient one when the servers do not answer; a lasting one when the result is too large or the fleet was not
    /// published.
    pub fn publish(&self, id: &str, result: &[u8]) -> Result<Delivery, NatsError> {
        let fleet = &self.fleet;
        // With the member in both, no other one can take the place of its results.
        let token = format!("{}.{}", self.member, names::token(id)?);
        let subject = fleet.subject("result", &token);
        let mut headers = HeaderMap::new();
        headers.insert(NATS_MESSAGE_ID, token);
        let payload = match compression::compress(result) {
            Some(compressed) => {
                headers.insert(compression::ENCODING, compression::DEFLATE);
                Bytes::from(compressed)
            }
            None => Bytes::copy_from_slice(result),
        };
        let size = payload.len();
        let answer = fleet.wait(async {
            match fleet.context().publish_with_headers(subject, headers, payload).await {
                Ok(answer) => answer.await,
                Err(error) => Err(error),
            }
        });
        match answer {
            Ok(stored) if stored.duplicate => Ok(Delivery::Duplicate),
            Ok(_) => Ok(Delivery::Delivered),
            Err(error) if is_duplicate(&error) => Ok(Delivery::Duplicate),
            Err(error) => Err(self.error(id, size, &error)),
        }
    }

    fn error(&self, id: &str, bytes: usize, error: &PublishError) -> NatsError {
        let fleet = &self.fleet;
        match error.kind() {
            PublishErrorKind::MaxPayloadExceeded => NatsError::TooLarge {
                what: format!("the result {id:?}"),
                bytes,
                server: fleet.servers().to_owned(),
                limit: fleet.client().server_info().max_payload,
            },
            // Also the answer while the stream has no leader.
            PublishErrorKind::StreamNotFound => {
                fleet.failed(&format!("publishing the result {id:?} (linerate fleet publish makes its stream)"), error)
            }
            _ => fleet.failed(&format!("publishing the result {id:?}"), error),
        }
    }
}

/// True for the answer of a stream that has a message of this subject.
fn is_duplicate(error: &PublishError) -> bool {
    chain(error).contains("maximum messages per subject exceeded")
}
