//! What was read of a host, or why it could not be.

use core::fmt;

/// Something that a host may or may not tell. What cannot be read is a fact with a reason, never an error and never zero.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Fact<T> {
    /// This is so.
    Known(T),
    /// It could not be read.
    Unknown(Unread),
}

/// Why a fact is not known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Unread {
    /// What kind of obstacle.
    pub obstacle: Obstacle,
    /// What was tried and what the kernel said, as a sentence without a full stop.
    pub reason: String,
}

/// What stands between a reader and a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Obstacle {
    /// This kernel, namespace, machine or driver has no such thing.
    Absent,
    /// It is there, but may not be read without further rights.
    Denied,
    /// Reading it went wrong, or what was read makes no sense.
    Failed,
    /// Nobody has tried.
    NotRead,
}

impl<T> Fact<T> {
    /// A fact that this kernel, namespace, machine or driver does not have.
    #[must_use]
    pub fn absent(reason: impl Into<String>) -> Self {
        Self::Unknown(Unread { obstacle: Obstacle::Absent, reason: reason.into() })
    }

    /// A fact that needs further rights.
    #[must_use]
    pub fn denied(reason: impl Into<String>) -> Self {
        Self::Unknown(Unread { obstacle: Obstacle::Denied, reason: reason.into() })
    }

    /// A fact that could not be read.
    #[must_use]
    pub fn failed(reason: impl Into<String>) -> Self {
        Self::Unknown(Unread { obstacle: Obstacle::Failed, reason: reason.into() })
    }

    /// What is known.
    pub const fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown(_) => None,
        }
    }

    /// Why it is not known.
    pub const fn unread(&self) -> Option<&Unread> {
        match self {
            Self::Known(_) => None,
            Self::Unknown(unread) => Some(unread),
        }
    }

    /// What follows from it, if it is known.
    #[must_use]
    pub fn map<U>(self, of: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Self::Known(value) => Fact::Known(of(value)),
            Self::Unknown(unread) => Fact::Unknown(unread),
        }
    }
}

/// Nobody has tried to read it.
impl<T> Default for Fact<T> {
    fn default() -> Self {
        Self::Unknown(Unread { obstacle: Obstacle::NotRead, reason: "it was not read".to_owned() })
    }
}

impl fmt::Display for Unread {
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
        assert_eq!((fact.known(), fact.unread().map(|unread| unread.obstacle)), (None, Some(Obstacle::Absent)));
        assert_eq!(fact.map(|value| value + 1).known(), None);
        assert_eq!(Fact::Known(3).map(|value| value + 1), Fact::Known(4));
        assert_eq!(Fact::<u8>::default().unread().map(|unread| unread.obstacle), Some(Obstacle::NotRead));
    }
}
