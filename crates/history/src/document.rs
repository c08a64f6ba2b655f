//! Conversion between a run and its row in the file.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use linerate_documents::run::{FigureUnit, ImprovementDirection, RunDocument, RunKind, SCHEMA};
use linerate_documents::run_list::RunId;
use linerate_model::json;
use linerate_model::report::Outcome;
use linerate_units::WallTime;

use crate::HistoryError;

/// zlib level. The times of every series repeat in a document: it shrinks to a tenth or less.
const COMPRESSION: u32 = 5;

/// Encodes a run as compressed JSON.
pub(crate) fn encode(run: &RunDocument) -> Result<Vec<u8>, HistoryError> {
    let text = serde_json::to_string(run).map_err(|cause| HistoryError::Unwritable(cause.to_string()))?;
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(COMPRESSION));
    let written = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
    written.map_err(|cause| HistoryError::Unwritable(cause.to_string()))
}

/// Decodes the result of [`encode`].
pub(crate) fn decode(id: RunId, bytes: &[u8]) -> Result<RunDocument, HistoryError> {
    parse(&unpack(id, bytes)?).map_err(|detail| HistoryError::DamagedRun { id, detail })
}

/// Unpacks the JSON of a run; its checksum is verified.
pub(crate) fn unpack(id: RunId, bytes: &[u8]) -> Result<Vec<u8>, HistoryError> {
    let mut text = Vec::new();
    let unpacked = ZlibDecoder::new(bytes).read_to_end(&mut text);
    unpacked.map_err(|cause| {
        let detail = format!("its document cannot be unpacked: {cause}");
        HistoryError::DamagedRun { id, detail }
    })?;
    Ok(text)
}

/// Parses a run from JSON; the error describes the damage.
pub(crate) fn parse(text: &[u8]) -> Result<RunDocument, String> {
    let run: RunDocument = json::from_slice(text).map_err(|cause| cause.to_string())?;
    if run.schema > SCHEMA {
        return Err(format!("its schema is {}; this version supports up to {SCHEMA}", run.schema));
    }
    Ok(run)
}

/// Name of a command in JSON documents.
pub(crate) const fn kind_name(kind: RunKind) -> &'static str {
    match kind {
        RunKind::Throughput => "throughput",
        RunKind::Path => "path",
        RunKind::Load => "load",
        RunKind::Rfc6349 => "rfc6349",
        RunKind::Rr => "rr",
        RunKind::Diagnose => "diagnose",
        RunKind::Tune => "tune",
        RunKind::Doctor => "doctor",
        RunKind::Web => "web",
    }
}

/// Parses the name of a command.
pub(crate) fn parse_kind(name: &str) -> Option<RunKind> {
    RunKind::ALL.into_iter().find(|kind| kind_name(*kind) == name)
}

/// Name of an outcome in JSON documents.
pub(crate) const fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Complete => "complete",
        Outcome::Interrupted => "interrupted",
        Outcome::PeerTerminated => "peer_terminated",
        Outcome::Failed => "failed",
    }
}

/// Parses the name of an outcome.
pub(crate) fn parse_outcome(name: &str) -> Option<Outcome> {
    [Outcome::Complete, Outcome::Interrupted, Outcome::PeerTerminated, Outcome::Failed]
        .into_iter()
        .find(|outcome| outcome_name(*outcome) == name)
}

/// Name of a unit in JSON documents.
pub(crate) const fn unit_name(unit: FigureUnit) -> &'static str {
    match unit {
        FigureUnit::BitsPerSecond => "bit/s",
        FigureUnit::Bytes => "B",
        FigureUnit::Nanoseconds => "ns",
        FigureUnit::Share => "share",
        FigureUnit::Packets => "packets",
        FigureUnit::Segments => "segments",
        FigureUnit::RoundTripsPerMinute => "round-trips/min",
        FigureUnit::PerSecond => "1/s",
        FigureUnit::One => "1",
    }
}

/// Parses the name of a unit.
pub(crate) fn parse_unit(name: &str) -> Option<FigureUnit> {
    FigureUnit::ALL.into_iter().find(|unit| unit_name(*unit) == name)
}

/// Name of the better direction in JSON documents.
pub(crate) const fn better_name(better: ImprovementDirection) -> &'static str {
    match better {
        ImprovementDirection::Higher => "higher",
        ImprovementDirection::Lower => "lower",
        ImprovementDirection::Neither => "neither",
    }
}

/// Parses the name of the better direction.
pub(crate) fn parse_better(name: &str) -> Option<ImprovementDirection> {
    [ImprovementDirection::Higher, ImprovementDirection::Lower, ImprovementDirection::Neither]
        .into_iter()
        .find(|better| better_name(*better) == name)
}

/// Time as an `SQLite` integer: nanoseconds since 1970, up to the year 2262.
pub(crate) fn nanoseconds(time: WallTime) -> i64 {
    i64::try_from(time.since_unix_epoch().as_nanos()).unwrap_or(i64::MAX)
}

/// Number as an `SQLite` integer, saturating.
pub(crate) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns and documents use the same names.
    #[test]
    fn names_match_the_documents() {
        let name = |value: &dyn Fn() -> serde_json::Result<serde_json::Value>| {
            value().expect("a name").as_str().expect("a name").to_owned()
        };
        for kind in RunKind::ALL {
            assert_eq!(name(&|| serde_json::to_value(kind)), kind_name(kind));
            assert_eq!(parse_kind(kind_name(kind)), Some(kind));
        }
        for outcome in [Outcome::Complete, Outcome::Interrupted, Outcome::PeerTerminated, Outcome::Failed] {
            assert_eq!(name(&|| serde_json::to_value(outcome)), outcome_name(outcome));
            assert_eq!(parse_outcome(outcome_name(outcome)), Some(outcome));
        }
        for better in [ImprovementDirection::Higher, ImprovementDirection::Lower, ImprovementDirection::Neither] {
            assert_eq!(name(&|| serde_json::to_value(better)), better_name(better));
            assert_eq!(parse_better(better_name(better)), Some(better));
        }
        for text in ["bit/s", "B", "ns", "share", "packets", "segments", "round-trips/min", "1"] {
            let unit = parse_unit(text).expect("a unit");
            assert_eq!(name(&|| serde_json::to_value(unit)), text);
        }
    }

    #[test]
    fn damaged_documents_are_errors() {
        let id = RunId::new(3);
        assert!(matches!(decode(id, b"not packed"), Err(HistoryError::DamagedRun { .. })));
        assert!(matches!(decode(id, b""), Err(HistoryError::DamagedRun { .. })));
    }
}
