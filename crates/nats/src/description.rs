//! Description of the fleet on the servers.

use bytes::Bytes;

use crate::connection::NatsFleet;
use crate::error::NatsError;

const KEY: &str = "description";

/// Description with its revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDescription {
    /// Number that grows with each change.
    pub revision: u64,
    /// Text as published.
    pub text: String,
}

impl NatsFleet {
    /// Published description; `None` when there is none.
    pub fn description(&self) -> Result<Option<StoredDescription>, NatsError> {
        let (stream, subject) = self.place();
        let (_, entry) = self.retrying("reading the description", || self.entry(&stream, &subject))?;
        let Some(entry) = entry else { return Ok(None) };
        let text = String::from_utf8(entry.value.to_vec()).map_err(|error| NatsError::Invalid {
            what: "the description".to_owned(),
            server: self.servers().to_owned(),
            reason: error.to_string(),
        })?;
        Ok(Some(StoredDescription { revision: entry.revision, text }))
    }

    /// Publishes a description in place of the one with the revision `expected` (0: there is none).
    pub fn store_description(&self, text: &str, expected: u64) -> Result<u64, NatsError> {
        let (stream, subject) = self.place();
        let limit = self.client().server_info().max_payload;
        if text.len() >= limit {
            let (what, server) = ("the description".to_owned(), self.servers().to_owned());
            return Err(NatsError::TooLarge { what, bytes: text.len(), server, limit });
        }
        let value = Bytes::copy_from_slice(text.as_bytes());
        let written = self.retrying("publishing the description", || async {
            if let Some(revision) = self.replace(&subject, value.clone(), expected, None).await? {
                return Ok(Some(revision));
            }
            // An answer that was lost: the text is there already.
            let (_, entry) = self.entry(&stream, &subject).await?;
            Ok(entry.filter(|entry| entry.value == value).map(|entry| entry.revision))
        })?;
        written.ok_or(NatsError::Changed("the description"))
    }

    fn place(&self) -> (String, String) {
        (self.bucket_stream(KEY), self.bucket_subject(KEY, KEY))
    }
}
