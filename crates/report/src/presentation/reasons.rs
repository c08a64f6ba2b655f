//! Why a value is unknown.

use linerate_model::schema::path::Unknown;

use super::{Cell, Quantity};

/// When the document names no reason.
pub(crate) const NOT_SAID: &str = "not measured; the document names no reason";

/// The reasons that a document gives, by key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reasons<'a> {
    unknown: &'a [Unknown],
}

impl<'a> Reasons<'a> {
    pub(crate) const fn of(unknown: &'a [Unknown]) -> Self {
        Self { unknown }
    }

    /// Why `key` is unknown: its own reason, or that of the object around it.
    pub(crate) fn why(&self, key: &str) -> &'a str {
        self.said(key).unwrap_or(NOT_SAID)
    }

    /// The same, where the document says why.
    pub(crate) fn said(&self, key: &str) -> Option<&'a str> {
        let covers = |unknown: &&Unknown| {
            key.strip_prefix(unknown.key.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let longest = self.unknown.iter().filter(covers).max_by_key(|unknown| unknown.key.len());
        longest.map(|unknown| unknown.reason.as_str())
    }

    /// `value` in a cell, or why there is none.
    pub(crate) fn cell(&self, key: &str, value: Option<Quantity>) -> Cell {
        value.map_or_else(|| self.unknown(key), Cell::Value)
    }

    /// The same of words.
    pub(crate) fn text(&self, key: &str, value: Option<String>) -> Cell {
        value.map_or_else(|| self.unknown(key), Cell::Text)
    }

    pub(crate) fn unknown(&self, key: &str) -> Cell {
        Cell::Unknown(self.why(key).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_reason_counts() {
        let unknown = |key: &str, reason: &str| Unknown { key: key.to_owned(), reason: reason.to_owned() };
        let all = [unknown("down", "no answer"), unknown("down.mtu", "too small"), unknown("do", "no")];
        let reasons = Reasons::of(&all);
        assert_eq!(reasons.why("down.capacity"), "no answer");
        assert_eq!(reasons.why("down.mtu.bytes"), "too small");
        assert_eq!(reasons.why("downward"), NOT_SAID);
        assert_eq!(reasons.why("up"), NOT_SAID);
    }
}
