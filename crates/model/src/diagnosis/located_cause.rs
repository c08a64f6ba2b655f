//! Cause with its location, as documents have it: the location follows from the cause.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Cause, CauseLocation};

/// Keys of a cause in documents.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct LocatedCause {
    /// Cause.
    cause: Cause,
    /// Location of the cause.
    location: CauseLocation,
}

/// The key that is read.
#[derive(Deserialize)]
struct BareCause {
    cause: Cause,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(super) fn serialize<S: Serializer>(cause: &Cause, serializer: S) -> Result<S::Ok, S::Error> {
    LocatedCause { cause: *cause, location: cause.location() }.serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cause, D::Error> {
    BareCause::deserialize(deserializer).map(|read| read.cause)
}
