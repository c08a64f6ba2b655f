//! Reasons for unknown values.

use linerate_model::path::UnknownValue;

use super::{Quantity, TableCell};

/// Reason when the document names none.
pub(crate) const NO_REASON_RECORDED: &str = "not measured; no reason recorded";

/// Reasons of a document, by key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnknownReasons<'a> {
    unknown: &'a [UnknownValue],
}

impl<'a> UnknownReasons<'a> {
    pub(crate) const fn of(unknown: &'a [UnknownValue]) -> Self {
        Self { unknown }
    }

    /// Reason why `key` is unknown: its own, or that of the enclosing object.
    pub(crate) fn reason(&self, key: &str) -> &'a str {
        self.recorded(key).unwrap_or(NO_REASON_RECORDED)
    }

    /// Recorded reason for `key`, if any.
    pub(crate) fn recorded(&self, key: &str) -> Option<&'a str> {
        let covers = |unknown: &&UnknownValue| {
            key.strip_prefix(unknown.key.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let longest = self.unknown.iter().filter(covers).max_by_key(|unknown| unknown.key.len());
        longest.map(|unknown| unknown.reason.as_str())
    }

    /// Cell of `value`, or of the reason why it is unknown.
    pub(crate) fn cell(&self, key: &str, value: Option<Quantity>) -> TableCell {
        value.map_or_else(|| self.unknown(key), TableCell::Value)
    }

    /// Cell of a text, or of the reason why it is unknown.
    pub(crate) fn text(&self, key: &str, value: Option<String>) -> TableCell {
        value.map_or_else(|| self.unknown(key), TableCell::Text)
    }

    pub(crate) fn unknown(&self, key: &str) -> TableCell {
        TableCell::Unknown(self.reason(key).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_reason_counts() {
        let unknown = |key: &str, reason: &str| UnknownValue { key: key.to_owned(), reason: reason.to_owned() };
        let all = [unknown("down", "no answer"), unknown("down.mtu", "too small"), unknown("do", "no")];
        let reasons = UnknownReasons::of(&all);
        assert_eq!(reasons.reason("down.capacity"), "no answer");
        assert_eq!(reasons.reason("down.mtu.bytes"), "too small");
        assert_eq!(reasons.reason("downward"), NO_REASON_RECORDED);
        assert_eq!(reasons.reason("up"), NO_REASON_RECORDED);
    }
}
