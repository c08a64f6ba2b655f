//! Selection of runs.

use core::num::NonZeroU32;

use linerate_documents::run::RunKind;
use linerate_units::WallTime;
use rusqlite::types::Value;

use crate::document::{kind_name, nanoseconds};

/// Selection of runs; a field of `None` selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only runs to this host, as the user wrote it.
    pub host: Option<String>,
    /// Only runs of this command.
    pub kind: Option<RunKind>,
    /// Only runs that began at this time or later.
    pub since: Option<WallTime>,
    /// Only runs that began before this time.
    pub until: Option<WallTime>,
    /// Only runs that did not complete: interrupted, terminated by the peer, or failed.
    pub failed: bool,
    /// Only runs with this tag.
    pub tag: Option<String>,
    /// Maximum number of runs, the latest ones.
    pub limit: Option<NonZeroU32>,
}

impl RunFilter {
    /// SQL condition and its parameters, in order, without the limit.
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

    /// SQL condition of the selected runs, with the limit, and its parameters.
    pub(crate) fn selection(&self) -> (String, Vec<Value>) {
        let (condition, mut values) = self.condition();
        if self.limit.is_none() {
            return (condition, values);
        }
        values.push(self.limit().into());
        let latest = format!("SELECT id FROM runs WHERE {condition} ORDER BY started_at_unix_ns DESC, id DESC LIMIT ?");
        (format!("id IN ({latest})"), values)
    }

    /// Limit for `SQLite`: negative for none.
    pub(crate) fn limit(&self) -> i64 {
        self.limit.map_or(-1, |limit| i64::from(limit.get()))
    }
}
