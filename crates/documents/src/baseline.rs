//! Document of `linerate baseline --json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::nanoseconds;
use linerate_model::baseline::{DiskRates, HostBaseline, TimedTransfer};
use linerate_model::fact::Fact;

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// Host performance without a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BaselineDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Version of linerate that measured.
    pub linerate_version: String,
    /// Directory whose file system was measured.
    pub directory: String,
    /// True when that directory is in memory; `null` when unknown.
    pub in_memory: Option<bool>,
    /// TCP over the loopback device, as sent.
    pub loopback_sent: Fact<TransferDocument>,
    /// TCP over the loopback device, as received.
    pub loopback_received: Fact<TransferDocument>,
    /// Access past the page cache.
    pub direct: DiskDocument,
    /// Access through the page cache.
    pub cached: DiskDocument,
    /// Encryption by one thread, by the cipher's name.
    pub ciphers: BTreeMap<String, Fact<TransferDocument>>,
}

/// Access to a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DiskDocument {
    /// Memory to disk.
    pub write: Fact<TransferDocument>,
    /// Disk to memory.
    pub read: Fact<TransferDocument>,
    /// Disk to disk.
    pub copy: Fact<TransferDocument>,
}

/// Measured data transfer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TransferDocument {
    /// Throughput.
    pub bits_per_second: f64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Elapsed time.
    pub time_ns: u64,
    /// Share of one processor that the thread used; `null` for a transfer without a duration.
    pub processor_share: Option<f64>,
}

impl BaselineDocument {
    /// Creates the document of a baseline.
    #[must_use]
    pub fn new(version: &str, baseline: &HostBaseline) -> Self {
        Self {
            schema: SCHEMA,
            linerate_version: version.to_owned(),
            directory: baseline.directory.clone(),
            in_memory: baseline.is_in_memory,
            loopback_sent: transfer(&baseline.loopback.clone().map(|loopback| loopback.sent)),
            loopback_received: transfer(&baseline.loopback.clone().map(|loopback| loopback.received)),
            direct: (&baseline.direct).into(),
            cached: (&baseline.cached).into(),
            ciphers: baseline.ciphers.iter().map(|(name, fact)| (name.clone(), transfer(fact))).collect(),
        }
    }
}

impl From<&DiskRates> for DiskDocument {
    fn from(rates: &DiskRates) -> Self {
        Self { write: transfer(&rates.write), read: transfer(&rates.read), copy: transfer(&rates.copy) }
    }
}

/// Creates the document of a transfer, or hands on the reason why it is unknown.
fn transfer(fact: &Fact<TimedTransfer>) -> Fact<TransferDocument> {
    fact.clone().map(|transfer| TransferDocument {
        bits_per_second: transfer.rate().bits_per_second(),
        bytes: transfer.bytes.get(),
        time_ns: nanoseconds(transfer.time),
        processor_share: transfer.processor_share().map(linerate_units::Ratio::get),
    })
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use linerate_units::ByteCount;

    use super::*;

    #[test]
    fn missing_measurements_are_null_with_a_reason() {
        let passage = TimedTransfer {
            bytes: ByteCount::new(125),
            time: Duration::from_micros(1),
            processor_time: Duration::from_nanos(500),
        };
        let mut baseline =
            HostBaseline { ciphers: vec![("AES-128-GCM".to_owned(), Fact::Known(passage))], ..HostBaseline::default() };
        baseline.direct.write = Fact::absent("the file system takes no direct access");
        let document = serde_json::to_value(BaselineDocument::new("0.1.0", &baseline)).expect("plain data");
        assert_eq!(document["schema"], 1);
        assert_eq!(document["ciphers"]["AES-128-GCM"]["value"]["bits_per_second"], 1e9);
        assert_eq!(document["ciphers"]["AES-128-GCM"]["value"]["processor_share"], 0.5);
        assert!(document["direct"]["write"]["value"].is_null());
        assert_eq!(document["direct"]["write"]["reason"], "the file system takes no direct access");
        let back: BaselineDocument = serde_json::from_value(document).expect("its own shape");
        assert_eq!(back, BaselineDocument::new("0.1.0", &baseline));
    }
}
