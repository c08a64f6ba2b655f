//! The document of `linerate baseline --json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::nanoseconds;
use crate::baseline::{Baseline, DiskRates, Passage};
use crate::fact::Fact;

/// Version of the shape.
pub const SCHEMA: u32 = 1;

/// What a host can do without a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BaselineDocument {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The linerate that measured.
    pub linerate_version: String,
    /// The directory whose file system was tried.
    pub directory: String,
    /// Whether that is in memory; `null` when that is not known.
    pub in_memory: Option<bool>,
    /// Over the loopback device, as sent.
    pub loopback_sent: PassageDocument,
    /// Over the loopback device, as received.
    pub loopback_received: PassageDocument,
    /// Past the page cache.
    pub direct: DiskDocument,
    /// Through the page cache.
    pub cached: DiskDocument,
    /// By one thread, by the cipher's name.
    pub ciphers: BTreeMap<String, PassageDocument>,
}

/// Access to a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DiskDocument {
    /// Memory to disk.
    pub write: PassageDocument,
    /// Disk to memory.
    pub read: PassageDocument,
    /// Disk to disk.
    pub copy: PassageDocument,
}

/// Data that passed; all `null` but the last when it was not measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PassageDocument {
    /// How fast.
    pub bits_per_second: Option<f64>,
    /// How much.
    pub bytes: Option<u64>,
    /// In which time.
    pub time_ns: Option<u64>,
    /// Share of one processor that the thread took.
    pub processor_share: Option<f64>,
    /// Why it was not measured.
    pub unknown_because: Option<String>,
}

impl BaselineDocument {
    /// The document of a baseline.
    #[must_use]
    pub fn new(version: &str, baseline: &Baseline) -> Self {
        Self {
            schema: SCHEMA,
            linerate_version: version.to_owned(),
            directory: baseline.directory.clone(),
            in_memory: baseline.is_in_memory,
            loopback_sent: (&baseline.loopback.clone().map(|loopback| loopback.sent)).into(),
            loopback_received: (&baseline.loopback.clone().map(|loopback| loopback.received)).into(),
            direct: (&baseline.direct).into(),
            cached: (&baseline.cached).into(),
            ciphers: baseline.ciphers.iter().map(|(name, fact)| (name.clone(), fact.into())).collect(),
        }
    }
}

impl From<&DiskRates> for DiskDocument {
    fn from(rates: &DiskRates) -> Self {
        Self { write: (&rates.write).into(), read: (&rates.read).into(), copy: (&rates.copy).into() }
    }
}

impl From<&Fact<Passage>> for PassageDocument {
    fn from(fact: &Fact<Passage>) -> Self {
        match fact {
            Fact::Known(passage) => Self {
                bits_per_second: Some(passage.rate().bits_per_second()),
                bytes: Some(passage.bytes.get()),
                time_ns: Some(nanoseconds(passage.time)),
                processor_share: passage.processor_share().map(linerate_units::Ratio::get),
                unknown_because: None,
            },
            Fact::Unknown(unread) => Self { unknown_because: Some(unread.reason.clone()), ..Self::default() },
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use linerate_units::ByteCount;

    use super::*;

    #[test]
    fn what_was_not_measured_is_null_with_a_reason() {
        let passage = Passage {
            bytes: ByteCount::new(125),
            time: Duration::from_micros(1),
            processor_time: Duration::from_nanos(500),
        };
        let mut baseline =
            Baseline { ciphers: vec![("AES-128-GCM".to_owned(), Fact::Known(passage))], ..Baseline::default() };
        baseline.direct.write = Fact::absent("the file system takes no direct access");
        let document = serde_json::to_value(BaselineDocument::new("0.1.0", &baseline)).expect("plain data");
        assert_eq!(document["schema"], 1);
        assert_eq!(document["ciphers"]["AES-128-GCM"]["bits_per_second"], 1e9);
        assert_eq!(document["ciphers"]["AES-128-GCM"]["processor_share"], 0.5);
        assert!(document["direct"]["write"]["bytes"].is_null());
        assert_eq!(document["direct"]["write"]["unknown_because"], "the file system takes no direct access");
        let back: BaselineDocument = serde_json::from_value(document).expect("its own shape");
        assert_eq!(back, BaselineDocument::new("0.1.0", &baseline));
    }
}
