//! Which runs are meant.

use core::num::NonZeroU32;

use linerate_model::schema::run::Kind;
use linerate_units::WallTime;
use rusqlite::types::Value;

use crate::document::{kind_name, nanoseconds};

/// Which runs are meant; what is `None` does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only those to this host, as it was written.
    pub host: Option<String>,
    /// Only those of this command.
    pub kind: Option<Kind>,
    /// Only those that began at this time or later.
    pub since: Option<WallTime>,
    /// Only those that began before this time.
    pub until: Option<WallTime>,
    /// Only those that did not end as asked: interrupted, broken off, failed.
    pub failed: bool,
    /// Only those with this tag.
    pub tag: Option<String>,
    /// At most so many, the latest ones.
    pub limit: Option<NonZeroU32>,
}

impl Filter {
    /// The condition for SQL and its parameters, in order; the limit is not in it.
    pub(crate) fn condition(&self) -> (String, Vec<Value>) {
        let mut terms = vec!["1"];
        let mut values = Vec::new();
        if let Some(host) = &self.host {
            terms.push("host = ?");
            values.push(Value::Text(host.clone()));
        }
        if let Some(kind) = self.kind {
            terms.push("kind = ?");
            values.push(Value::Text(kind_name(kind).to_owned()));
        }
        if let Some(since) = self.since {
            terms.push("started_at_unix_ns >= ?");
            values.push(Value::Integer(nanoseconds(since)));
        }
        if let Some(until) = self.until {
            terms.push("started_at_unix_ns < ?");
            values.push(Value::Integer(nanoseconds(until)));
        }
        if self.failed {
            terms.push("outcome <> 'complete'");
        }
        if let Some(tag) = &self.tag {
            terms.push("id IN (SELECT run FROM tags WHERE text = ?)");
            values.push(Value::Text(tag.clone()));
        }
        (terms.join(" AND "), values)
    }

    /// The limit as `SQLite` has it: negative for none.
    pub(crate) fn limit(&self) -> i64 {
        self.limit.map_or(-1, |limit| i64::from(limit.get()))
    }
}
