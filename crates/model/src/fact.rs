//! Facts of a host, and reasons why they could not be read.

use core::fmt;
use serde::{Deserialize, Serialize};

/// Fact that a host may or may not report. An unreadable fact has a reason; it is never an error and never zero.
///
/// In documents it is an object with `value`, and, where that is `null`, `obstacle` and `reason`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "FactFields<T>", from = "FactFields<T>", bound(serialize = "T: Clone + Serialize"))]
pub enum Fact<T> {
    /// Known value.
    Known(T),
    /// Unreadable.
    Unknown(UnreadFact),
}

/// Reason why a fact is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnreadFact {
    /// Kind of obstacle.
    pub obstacle: ReadObstacle,
    /// Attempted access and the kernel's error, as a sentence without a full stop.
    pub reason: String,
}

/// Obstacle to reading a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReadObstacle {
    /// This kernel, namespace, machine or driver does not have it.
    Absent,
    /// It exists, but reading it needs more privileges.
    Denied,
    /// Reading failed, or the value is invalid.
    Failed,
    /// No attempt was made.
    NotRead,
}

/// Fields of a fact in documents.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Fact_of_{T}"))]
struct FactFields<T> {
    /// Value; `null` where it is unknown.
    value: Option<T>,
    /// Obstacle, where it is unknown.
    obstacle: Option<ReadObstacle>,
    /// Attempted access and the kernel's error, where it is unknown.
    reason: Option<String>,
}

impl<T> From<Fact<T>> for FactFields<T> {
    fn from(fact: Fact<T>) -> Self {
        match fact {
            Fact::Known(value) => Self { value: Some(value), obstacle: None, reason: None },
            Fact::Unknown(UnreadFact { obstacle, reason }) => {
                Self { value: None, obstacle: Some(obstacle), reason: Some(reason) }
            }
        }
    }
}

impl<T> From<FactFields<T>> for Fact<T> {
    fn from(fields: FactFields<T>) -> Self {
        let unread = || UnreadFact {
            obstacle: fields.obstacle.unwrap_or(ReadObstacle::NotRead),
            reason: fields.reason.unwrap_or_else(|| "no reason was recorded".to_owned()),
        };
        fields.value.map_or_else(|| Self::Unknown(unread()), Self::Known)
    }
}

#[cfg(feature = "schema")]
impl<T: schemars::JsonSchema> schemars::JsonSchema for Fact<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        FactFields::<T>::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        FactFields::<T>::json_schema(generator)
    }
}

impl<T> Fact<T> {
    /// A fact that this kernel, namespace, machine or driver does not have.
    #[must_use]
    pub fn absent(reason: impl Into<String>) -> Self {
        Self::Unknown(UnreadFact { obstacle: ReadObstacle::Absent, reason: reason.into() })
    }

    /// A fact that needs more privileges.
    #[must_use]
    pub fn denied(reason: impl Into<String>) -> Self {
        Self::Unknown(UnreadFact { obstacle: ReadObstacle::Denied, reason: reason.into() })
    }

    /// A fact that could not be read.
    #[must_use]
    pub fn failed(reason: impl Into<String>) -> Self {
        Self::Unknown(UnreadFact { obstacle: ReadObstacle::Failed, reason: reason.into() })
    }

    /// Known value.
    pub const fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown(_) => None,
        }
    }

    /// Reason why it is unknown.
    pub const fn unread(&self) -> Option<&UnreadFact> {
        match self {
            Self::Known(_) => None,
            Self::Unknown(unread) => Some(unread),
        }
    }

    /// Applies a function to a known value.
    #[must_use]
    pub fn map<U>(self, of: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Self::Known(value) => Fact::Known(of(value)),
            Self::Unknown(unread) => Fact::Unknown(unread),
        }
    }
}

/// Unread fact.
impl<T> Default for Fact<T> {
    fn default() -> Self {
        Self::Unknown(UnreadFact { obstacle: ReadObstacle::NotRead, reason: "it was not read".to_owned() })
    }
}

impl fmt::Display for UnreadFact {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_is_not_zero() {
        let fact: Fact<u32> = Fact::absent("no such file");
        assert_eq!((fact.known(), fact.unread().map(|unread| unread.obstacle)), (None, Some(ReadObstacle::Absent)));
        assert_eq!(fact.map(|value| value + 1).known(), None);
        assert_eq!(Fact::Known(3).map(|value| value + 1), Fact::Known(4));
        assert_eq!(Fact::<u8>::default().unread().map(|unread| unread.obstacle), Some(ReadObstacle::NotRead));
    }
}
