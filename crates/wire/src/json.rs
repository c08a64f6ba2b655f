//! Strict parsing of small JSON objects, and serialisation as iperf3 does it.
//!
//! Parsing never builds a tree: an object is a list of keys and the raw text of their values, and each value is then
//! parsed as its required type. So a peer's document cannot allocate many times its own size.

use core::fmt;
use std::borrow::Cow;

use linerate_units::c_format;
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Levels of nesting accepted anywhere in a document.
const MAX_DEPTH: usize = 64;

/// Keys accepted in one object; iperf3 sends at most 40.
const MAX_KEYS: usize = 512;

/// Error in a peer's document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JsonError {
    #[error("is not JSON: {0}")]
    Syntax(String),
    #[error("is not a JSON object")]
    NotAnObject,
    #[error("is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    #[error("has no \"{0}\"")]
    Missing(&'static str),
    #[error("has \"{0}\" more than once")]
    Duplicate(&'static str),
    #[error("has a \"{key}\" that is not {expected}")]
    WrongType { key: &'static str, expected: &'static str },
}

/// Text of the document. Invalid UTF-8 is replaced: titles and server output are in the peer's locale.
pub(crate) fn text(document: &[u8]) -> Result<Cow<'_, str>, JsonError> {
    check_depth(document)?;
    Ok(String::from_utf8_lossy(document))
}

/// Limits the nesting of brackets outside strings: the parser skips unread values without checking their depth, which
/// protects their later readers.
fn check_depth(document: &[u8]) -> Result<(), JsonError> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in document {
        match (in_string, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => in_string = !in_string,
            (false, b'[' | b'{') => depth += 1,
            (false, b']' | b'}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(JsonError::TooDeep);
        }
    }
    Ok(())
}

/// A JSON object as keys and raw values.
#[derive(Debug)]
pub(crate) struct JsonObject<'a>(Vec<(String, &'a RawValue)>);

impl<'a> JsonObject<'a> {
    /// Parses `text` as an object.
    pub(crate) fn parse(text: &'a str) -> Result<Self, JsonError> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let object = deserializer.deserialize_any(ObjectVisitor).map_err(|error| syntax_error(&error))?;
        deserializer.end().map_err(|error| syntax_error(&error))?;
        object.ok_or(JsonError::NotAnObject)
    }

    /// Value of a key; `None` when it is absent. A duplicate key is refused: two parsers might not see the same value.
    pub(crate) fn get(&self, key: &'static str) -> Result<Option<&'a RawValue>, JsonError> {
        let mut values = self.0.iter().filter(|(name, _)| name == key).map(|(_, value)| *value);
        let first = values.next();
        if values.next().is_some() {
            return Err(JsonError::Duplicate(key));
        }
        Ok(first)
    }

    /// A whole number that fits 64 bits, signed or not.
    pub(crate) fn integer(&self, key: &'static str) -> Result<Option<i128>, JsonError> {
        self.typed(key, "a whole number", |raw| parse_whole_number(raw.get()))
    }

    /// A finite number.
    pub(crate) fn parse_number(&self, key: &'static str) -> Result<Option<f64>, JsonError> {
        self.typed(key, "a number", |raw| number(raw.get())?.as_f64().filter(|number| number.is_finite()))
    }

    /// A boolean.
    pub(crate) fn boolean(&self, key: &'static str) -> Result<Option<bool>, JsonError> {
        self.typed(key, "true or false", |raw| match raw.get() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        })
    }

    /// A string.
    pub(crate) fn string(&self, key: &'static str) -> Result<Option<String>, JsonError> {
        self.typed(key, "a string", |raw| {
            raw.get().starts_with('"').then(|| serde_json::from_str(raw.get()).ok()).flatten()
        })
    }

    /// The unparsed text of an object.
    pub(crate) fn object(&self, key: &'static str) -> Result<Option<&'a str>, JsonError> {
        self.typed(key, "an object", |raw| raw.get().starts_with('{').then_some(raw.get()))
    }

    /// Elements of an array of at most `limit` elements.
    pub(crate) fn array(&self, key: &'static str, limit: usize) -> Result<Option<Vec<&'a str>>, JsonError> {
        let Some(raw) = self.get(key)? else { return Ok(None) };
        if !raw.get().starts_with('[') {
            return Err(JsonError::WrongType { key, expected: "an array" });
        }
        let mut deserializer = serde_json::Deserializer::from_str(raw.get());
        deserializer.deserialize_seq(ArrayVisitor(limit)).map(Some).map_err(|error| syntax_error(&error))
    }

    fn typed<T>(
        &self,
        key: &'static str,
        expected: &'static str,
        read: impl FnOnce(&'a RawValue) -> Option<T>,
    ) -> Result<Option<T>, JsonError> {
        let Some(raw) = self.get(key)? else { return Ok(None) };
        read(raw).map(Some).ok_or(JsonError::WrongType { key, expected })
    }
}

/// Value of a required key, or the error for a missing key.
pub(crate) fn required<T>(key: &'static str, value: Option<T>) -> Result<T, JsonError> {
    value.ok_or(JsonError::Missing(key))
}

fn number(text: &str) -> Option<serde_json::Number> {
    text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
        .then(|| serde_json::from_str(text).ok())
        .flatten()
}

/// Parses a whole number: iperf3 prints it without a point, other programs as `1e3` or `1000.0`.
fn parse_whole_number(text: &str) -> Option<i128> {
    let number = number(text)?;
    if let Some(whole) = number.as_i128() {
        return Some(whole);
    }
    let double = number.as_f64()?;
    #[expect(clippy::cast_possible_truncation, reason = "whole, and within the range of i64")]
    (double.fract() == 0.0 && double.abs() < 9.2e18).then_some(double as i128)
}

fn syntax_error(error: &serde_json::Error) -> JsonError {
    JsonError::Syntax(error.to_string())
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Option<JsonObject<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            if entries.len() == MAX_KEYS {
                return Err(A::Error::custom(format_args!("more than {MAX_KEYS} keys in one object")));
            }
            entries.push(entry);
        }
        Ok(Some(JsonObject(entries)))
    }
}

struct ArrayVisitor(usize);

impl<'de> Visitor<'de> for ArrayVisitor {
    type Value = Vec<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut texts = Vec::new();
        while let Some(raw) = elements.next_element::<&RawValue>()? {
            if texts.len() == self.0 {
                return Err(A::Error::custom(format_args!("more than {} elements", self.0)));
            }
            texts.push(raw.get());
        }
        Ok(texts)
    }
}

/// Writes one object without white space, with keys in the order of the calls and numbers in cJSON's format, as iperf3
/// does.
#[derive(Debug)]
pub(crate) struct JsonWriter(String);

impl JsonWriter {
    pub(crate) fn new() -> Self {
        Self("{".to_owned())
    }

    pub(crate) fn raw(&mut self, key: &'static str, value: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push('"');
        self.0.push_str(key);
        self.0.push_str("\":");
        self.0.push_str(value);
    }

    pub(crate) fn integer(&mut self, key: &'static str, value: impl Into<i128>) {
        self.raw(key, &value.into().to_string());
    }

    pub(crate) fn format_double(&mut self, key: &'static str, value: f64) {
        self.raw(key, &double(value));
    }

    pub(crate) fn flag(&mut self, key: &'static str) {
        self.raw(key, "true");
    }

    pub(crate) fn string(&mut self, key: &'static str, value: &str) {
        let quoted = serde_json::to_string(value).expect("a string is JSON");
        self.raw(key, &quoted);
    }

    pub(crate) fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// Number as cJSON prints it: with 15 significant digits when they are exact, else with 17; `null` when it is not
/// finite.
fn double(value: f64) -> String {
    if !value.is_finite() {
        return "null".to_owned();
    }
    let short = c_format::general(value, 15);
    if short.parse() == Ok(value) { short } else { c_format::general(value, 17) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::excessive_precision, clippy::unreadable_literal, reason = "as captured")]
    fn doubles_are_printed_as_by_cjson() {
        for (value, text) in [
            (0.0, "0"),
            (95.653522831629971, "95.653522831629971"),
            (0.027258809922590738, "0.027258809922590738"),
            (1.00119, "1.00119"),
            (100.0, "100"),
            (0.1, "0.1"),
            (1e-7, "1e-07"),
            (-2.5, "-2.5"),
            (1e20, "1e+20"),
            (f64::NAN, "null"),
        ] {
            assert_eq!(double(value), text);
        }
    }

    #[test]
    fn whole_numbers() {
        for (text, value) in [
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("18446744073709551615", Some(i128::from(u64::MAX))),
            ("1e3", Some(1000)),
            ("2.0", Some(2)),
            ("1.5", None),
            ("1e400", None),
            ("1e19", None),
            ("true", None),
            ("\"1\"", None),
            ("[1]", None),
        ] {
            assert_eq!(parse_whole_number(text), value, "{text}");
        }
    }

    #[test]
    fn depth_is_counted_outside_strings() {
        assert_eq!(check_depth(br#"{"a":"[[[[\"[[[["}"#), Ok(()));
        assert_eq!(check_depth(&[b'['; 64]), Ok(()));
        assert_eq!(check_depth(&[b'['; 8000]), Err(JsonError::TooDeep));
    }

    #[test]
    fn only_objects_pass() {
        for text in ["[]", "5", "\"x\"", "null", "true"] {
            assert!(JsonObject::parse(text).is_err(), "{text}");
        }
        for text in ["", "{", "{\"a\":1", "{\"a\":1}x", "{\"\\u\":1}", "{\"\\ud83d\":1}", "{a:1}"] {
            assert!(matches!(JsonObject::parse(text), Err(JsonError::Syntax(_))), "{text}");
        }
        let object = JsonObject::parse(" {\"a\" : 1, \"b\\u0000\": [ ], \"a\": 2} ").expect("an object");
        assert_eq!(object.integer("a"), Err(JsonError::Duplicate("a")));
        assert_eq!(object.integer("b"), Ok(None));
    }
}
