//! Errors that name the key.

use core::fmt;

use serde::de::{Error as _, Expected, Unexpected};
use serde_json::Value;

/// Error of a JSON text: its syntax, or a value that does not fit, with its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError(Box<ErrorParts>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct ErrorParts {
    /// Key with its parents, for example `runs[0].streams`; empty for the whole.
    key: String,
    text: String,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.key.is_empty() {
            write!(f, "{}: ", self.0.key)?;
        }
        f.write_str(&self.0.text)
    }
}

impl core::error::Error for JsonError {}

impl serde::de::Error for JsonError {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self(Box::new(ErrorParts { key: String::new(), text: text.to_string() }))
    }
}

impl From<serde_json::Error> for JsonError {
    fn from(error: serde_json::Error) -> Self {
        Self::custom(error)
    }
}

impl JsonError {
    /// Adds the parent of the key.
    #[cold]
    pub(super) fn below(mut self, parent: &str) -> Self {
        let key = &mut self.0.key;
        let separator = if key.is_empty() || key.starts_with('[') { "" } else { "." };
        *key = format!("{parent}{separator}{key}");
        self
    }

    /// Adds the index of an item.
    #[cold]
    pub(super) fn at_index(self, index: usize) -> Self {
        self.below(&format!("[{index}]"))
    }

    /// Error of a value of another type.
    #[cold]
    pub(super) fn unexpected(value: &Value, expected: &dyn Expected) -> Self {
        let found = match value {
            Value::Null => Unexpected::Unit,
            Value::Bool(value) => Unexpected::Bool(*value),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => Unexpected::Unsigned(number),
                (None, Some(number)) => Unexpected::Signed(number),
                (None, None) => Unexpected::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => Unexpected::Str(text),
            Value::Array(_) => Unexpected::Seq,
            Value::Object(_) => Unexpected::Map,
        };
        Self::invalid_type(found, expected)
    }
}
