//! JSON, read and written the same way for all types.
//!
//! A text becomes a [`Value`] first, and the value the type. serde generates code for each pair of a type and a reader,
//! so that every further reader, and every kind of input that a reader accepts, is a copy of all documents in the
//! program. This reader accepts structures as objects only, never as arrays of their values. Its errors name the key.

mod error;
mod reader;
mod strict;
#[cfg(test)]
mod tests;
mod variant;
mod write;

use serde::de::DeserializeOwned;
use serde_json::Value;

pub use self::error::JsonError;
use self::reader::ValueReader;
use self::strict::Strict;
pub use self::write::{to_string_pretty, to_value};

/// Reads a type from a JSON text. A duplicate key is an error: two readers might not see the same value.
pub fn from_slice<T: DeserializeOwned>(text: &[u8]) -> Result<T, JsonError> {
    from_value(parse(text)?)
}

fn parse(text: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(text).map(|Strict(value)| value)
}

/// Reads a type from a JSON text.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, JsonError> {
    from_slice(text.as_bytes())
}

/// Reads a type from a value.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, JsonError> {
    T::deserialize(ValueReader(value))
}
