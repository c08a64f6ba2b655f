//! Between a run and what the file holds of it.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use linerate_model::schema::run::{Better, Kind, RunDocument, SCHEMA, Unit};
use linerate_model::schema::throughput::Outcome;
use linerate_units::WallTime;

use crate::HistoryError;
use crate::id::RunId;

/// A document is JSON of which the times of every series repeat: it shrinks to a tenth or less.
const COMPRESSION: u32 = 5;

/// The run as compressed JSON.
pub(crate) fn encode(run: &RunDocument) -> Result<Vec<u8>, HistoryError> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(COMPRESSION));
    let mut buffered = std::io::BufWriter::new(&mut encoder);
    serde_json::to_writer(&mut buffered, run).map_err(|cause| HistoryError::Unwritable(cause.to_string()))?;
    buffered.flush().map_err(|cause| HistoryError::Unwritable(cause.to_string()))?;
    drop(buffered);
    encoder.finish().map_err(|cause| HistoryError::Unwritable(cause.to_string()))
}

/// The run that [`encode`] made `bytes` of.
pub(crate) fn decode(id: RunId, bytes: &[u8]) -> Result<RunDocument, HistoryError> {
    let damaged = |detail: String| HistoryError::DamagedRun { id, detail };
    let mut text = Vec::new();
    ZlibDecoder::new(bytes)
        .read_to_end(&mut text)
        .map_err(|cause| damaged(format!("its document cannot be unpacked: {cause}")))?;
    parse(&text).map_err(damaged)
}

/// A run from its JSON; else what is wrong with it.
pub(crate) fn parse(text: &[u8]) -> Result<RunDocument, String> {
    let run: RunDocument = serde_json::from_slice(text).map_err(|cause| cause.to_string())?;
    if run.schema > SCHEMA {
        return Err(format!("its schema is {}, and this linerate knows up to {SCHEMA}", run.schema));
    }
    Ok(run)
}

/// A command's name, as documents write it.
pub(crate) const fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Throughput => "throughput",
        Kind::Path => "path",
        Kind::Load => "load",
        Kind::Rfc6349 => "rfc6349",
        Kind::Diagnose => "diagnose",
        Kind::Tune => "tune",
        Kind::Doctor => "doctor",
    }
}

/// The command of that name.
pub(crate) fn kind_of(name: &str) -> Option<Kind> {
    Kind::ALL.into_iter().find(|kind| kind_name(*kind) == name)
}

/// How a run ended, as documents write it.
pub(crate) const fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Complete => "complete",
        Outcome::Interrupted => "interrupted",
        Outcome::PeerTerminated => "peer_terminated",
        Outcome::Failed => "failed",
    }
}

/// The end of that name.
pub(crate) fn outcome_of(name: &str) -> Option<Outcome> {
    [Outcome::Complete, Outcome::Interrupted, Outcome::PeerTerminated, Outcome::Failed]
        .into_iter()
        .find(|outcome| outcome_name(*outcome) == name)
}

/// A unit, as documents write it.
pub(crate) const fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::BitsPerSecond => "bit/s",
        Unit::Bytes => "B",
        Unit::Nanoseconds => "ns",
        Unit::Share => "share",
        Unit::Packets => "packets",
        Unit::Segments => "segments",
        Unit::RoundTripsPerMinute => "round-trips/min",
        Unit::One => "1",
    }
}

/// The unit of that name.
pub(crate) fn unit_of(name: &str) -> Option<Unit> {
    use Unit::{BitsPerSecond, Bytes, Nanoseconds, One, Packets, RoundTripsPerMinute, Segments, Share};
    [BitsPerSecond, Bytes, Nanoseconds, Share, Packets, Segments, RoundTripsPerMinute, One]
        .into_iter()
        .find(|unit| unit_name(*unit) == name)
}

/// Which way is good, as documents write it.
pub(crate) const fn better_name(better: Better) -> &'static str {
    match better {
        Better::Higher => "higher",
        Better::Lower => "lower",
        Better::Neither => "neither",
    }
}

/// The way of that name.
pub(crate) fn better_of(name: &str) -> Option<Better> {
    [Better::Higher, Better::Lower, Better::Neither].into_iter().find(|better| better_name(*better) == name)
}

/// A time as `SQLite`'s integers hold it: nanoseconds since 1970, up to the year 2262.
pub(crate) fn nanoseconds(time: WallTime) -> i64 {
    i64::try_from(time.since_unix_epoch().as_nanos()).unwrap_or(i64::MAX)
}

/// A number as `SQLite`'s integers hold it; beyond them, their largest.
pub(crate) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The columns and the documents use the same words.
    #[test]
    fn names_are_those_of_the_documents() {
        let word = |value: &dyn Fn() -> serde_json::Result<serde_json::Value>| {
            value().expect("a word").as_str().expect("a word").to_owned()
        };
        for kind in Kind::ALL {
            assert_eq!(word(&|| serde_json::to_value(kind)), kind_name(kind));
            assert_eq!(kind_of(kind_name(kind)), Some(kind));
        }
        for outcome in [Outcome::Complete, Outcome::Interrupted, Outcome::PeerTerminated, Outcome::Failed] {
            assert_eq!(word(&|| serde_json::to_value(outcome)), outcome_name(outcome));
            assert_eq!(outcome_of(outcome_name(outcome)), Some(outcome));
        }
        for better in [Better::Higher, Better::Lower, Better::Neither] {
            assert_eq!(word(&|| serde_json::to_value(better)), better_name(better));
            assert_eq!(better_of(better_name(better)), Some(better));
        }
        for name in ["bit/s", "B", "ns", "share", "packets", "segments", "round-trips/min", "1"] {
            let unit = unit_of(name).expect("a unit");
            assert_eq!(word(&|| serde_json::to_value(unit)), name);
        }
    }

    #[test]
    fn damage_is_told_from_nothing() {
        let id = RunId::new(3);
        assert!(matches!(decode(id, b"not packed"), Err(HistoryError::DamagedRun { .. })));
        assert!(matches!(decode(id, b""), Err(HistoryError::DamagedRun { .. })));
    }
}
