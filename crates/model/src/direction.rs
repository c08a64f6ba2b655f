//! Direction of data.

use serde::{Deserialize, Serialize};

/// Direction of data between two hosts, seen from the one that asks: the client of a measurement, the near host of an
/// emulated path, or the host whose link is shaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Away from it: from the client to the server.
    Up,
    /// Towards it: from the server to the client.
    Down,
}

impl Direction {
    /// Both directions.
    pub const BOTH: [Self; 2] = [Self::Up, Self::Down];

    /// Name: `up` or `down`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}
