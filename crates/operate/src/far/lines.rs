//! Lines between two linerates: one JSON object each, with the version of the protocol.

use core::fmt;

use linerate_model::json;
use linerate_report::escape;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Version of the protocol.
pub(crate) const SCHEMA: u64 = 1;

/// Maximum line length in bytes.
pub(crate) const MAX_LINE_LENGTH: usize = 4 << 20;

/// Error in a protocol line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AgentProtocolError {
    /// Longer than [`MAX_LINE_LENGTH`].
    TooLong,
    /// Not a JSON object.
    NotJson(String),
    /// Other protocol version.
    Schema(Option<u64>),
    /// Unknown tag or key.
    Unknown(String),
}

impl fmt::Display for AgentProtocolError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(formatter, "a line of more than {} MiB", MAX_LINE_LENGTH >> 20),
            Self::NotJson(cause) => write!(formatter, "a line that is not a JSON object ({cause})"),
            Self::Schema(Some(found)) => {
                write!(formatter, "a line of schema {found} instead of {SCHEMA}: use the same version at both ends")
            }
            Self::Schema(None) => formatter.write_str("a line without a schema"),
            Self::Unknown(cause) => {
                write!(formatter, "a line unknown to this version ({cause}): use the same version at both ends")
            }
        }
    }
}

/// Encodes a message as one line with its line feed.
pub(crate) fn encode(message: &impl Serialize) -> Result<String, AgentProtocolError> {
    let value = json::to_value(message).map_err(|cause| AgentProtocolError::NotJson(cause.to_string()))?;
    let Value::Object(mut object) = value else { return Err(AgentProtocolError::NotJson("not an object".to_owned())) };
    object.insert("schema".to_owned(), SCHEMA.into());
    let line = Value::Object(object).to_string() + "\n";
    if line.len() > MAX_LINE_LENGTH { Err(AgentProtocolError::TooLong) } else { Ok(line) }
}

/// Decodes a line. All its texts are made safe for a terminal.
pub(crate) fn decode<T: DeserializeOwned>(line: &str) -> Result<T, AgentProtocolError> {
    let value: Value = serde_json::from_str(line).map_err(|cause| AgentProtocolError::NotJson(cause.to_string()))?;
    let Value::Object(mut object) = value else { return Err(AgentProtocolError::NotJson("not an object".to_owned())) };
    match object.remove("schema").map(|schema| schema.as_u64()) {
        Some(Some(SCHEMA)) => {}
        found => return Err(AgentProtocolError::Schema(found.flatten())),
    }
    let mut value = Value::Object(object);
    escape_texts(&mut value);
    json::from_value(value).map_err(|cause| AgentProtocolError::Unknown(escape::line(&cause.to_string()).into_owned()))
}

fn escape_texts(value: &mut Value) {
    match value {
        Value::String(text) => *text = escape::text(text).into_owned(),
        Value::Array(values) => values.iter_mut().for_each(escape_texts),
        Value::Object(object) => {
            let odd = object.keys().any(|key| escape::line(key) != *key);
            if odd {
                let keys = core::mem::take(object).into_iter();
                *object = keys.map(|(key, value)| (escape::line(&key).into_owned(), value)).collect();
            }
            object.values_mut().for_each(escape_texts);
        }
        _ => {}
    }
}

/// Assembles lines from received bytes.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer {
    /// Received bytes that are not consumed yet.
    pub(crate) bytes: Vec<u8>,
    /// Number of leading bytes known to have no line feed.
    looked: usize,
}

impl LineBuffer {
    /// Next complete line without its line feed; `None` when incomplete. Invalid UTF-8 is replaced.
    pub(crate) fn next(&mut self) -> Result<Option<String>, AgentProtocolError> {
        let end = self.bytes[self.looked..].iter().position(|byte| *byte == b'\n').map(|place| place + self.looked);
        self.looked = self.bytes.len();
        if end.unwrap_or(self.looked) >= MAX_LINE_LENGTH {
            return Err(AgentProtocolError::TooLong);
        }
        let Some(end) = end else { return Ok(None) };
        let line = String::from_utf8_lossy(&self.bytes[..end]).trim_end_matches('\r').to_owned();
        self.bytes.drain(..=end);
        self.looked = 0;
        Ok(Some(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_in_pieces() {
        let mut lines = LineBuffer::default();
        let mut taken = Vec::new();
        for piece in ["", "a", "b\r\n", "\nc\nd", "\n\u{fffd}", "e"] {
            lines.bytes.extend_from_slice(piece.as_bytes());
            while let Some(line) = lines.next().expect("short") {
                taken.push(line);
            }
        }
        assert_eq!(taken, ["ab", "", "c", "d"]);
        lines.bytes.resize(MAX_LINE_LENGTH, b'x');
        assert_eq!(lines.next(), Err(AgentProtocolError::TooLong));
        let mut lines = LineBuffer { bytes: vec![b'x'; MAX_LINE_LENGTH - 1], looked: 0 };
        assert_eq!(lines.next(), Ok(None));
        lines.bytes.push(b'\n');
        assert_eq!(lines.next().map(|line| line.map(|line| line.len())), Ok(Some(MAX_LINE_LENGTH - 1)));
    }
}
