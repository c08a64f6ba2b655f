//! What a path becomes before anything is touched: plain data that a guest carries out in order.

use linerate_units::ByteCount;
use serde::{Deserialize, Serialize};

/// The namespace of the host that measures: the guest's initial one, so that settings of the whole system exist there.
pub const NEAR: &str = "near";

/// The namespace of the host at the other end.
pub const FAR: &str = "far";

/// The namespace in which the links' queues and delays stand. Nobody's address is in it.
pub const WIRE: &str = "wire";

/// Everything to set up, in the order of the fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The path's name.
    pub path: String,
    /// Settings of the whole system (`net.ipv4.tcp_mem`, `net.core.rmem_max`, …), written before anything else. Only a
    /// guest with a kernel of its own can have them.
    pub system: Vec<Sysctl>,
    /// The namespaces; the first is [`NEAR`].
    pub namespaces: Vec<Namespace>,
    /// Pairs of virtual Ethernet devices between them.
    pub pairs: Vec<Pair>,
    /// Names and addresses of the hosts, as lines of `/etc/hosts`.
    pub names: Vec<String>,
    /// What the guest needs.
    pub sizing: Sizing,
    /// Other traffic on the path.
    pub traffic: Vec<Traffic>,
    /// What becomes different while the path stands, in the order of time.
    pub changes: Vec<Change>,
}

/// A network namespace and what is set up in it, in the order of the fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Namespace {
    /// Its name, as `ip netns` shows it.
    pub name: String,
    /// Settings that each namespace has for itself.
    pub sysctls: Vec<Sysctl>,
    /// Devices whose segmentation and receive offloads are turned off, so that each packet is one packet on the path.
    pub without_offloads: Vec<String>,
    /// Lines for `ip -batch -`.
    pub ip: Vec<String>,
    /// Lines for `tc -batch -`.
    pub tc: Vec<String>,
    /// Seeds of `netem` disciplines, which the `tc` of older distributions cannot set.
    pub seeds: Vec<Seed>,
    /// Arguments of the linerate server that runs here; `None` for none.
    pub server: Option<Vec<String>>,
}

/// A kernel setting by its name with dots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sysctl {
    /// For example `net.ipv4.tcp_rmem`.
    pub key: String,
    /// As it is written to the file.
    pub value: String,
}

/// A pair of virtual Ethernet devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// One end.
    pub a: PairEnd,
    /// The other.
    pub b: PairEnd,
}

/// One end of a pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairEnd {
    /// Namespace.
    pub namespace: String,
    /// Device, at most 15 characters.
    pub device: String,
    /// Hardware address: fixed, so that neighbour entries can be, and runs repeat.
    pub mac: String,
}

/// The seed of one `netem`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seed {
    /// Device.
    pub device: String,
    /// The discipline's handle, for example `1:`; the root's is `1:` by convention.
    pub handle: String,
    /// Its seed.
    pub seed: u64,
}

/// What a guest needs so that its memory is not what limits the path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sizing {
    /// Memory of the guest, as its kernel counts it.
    #[serde(with = "byte_count")]
    pub memory: ByteCount,
    /// What of it the guest takes from the host at most: a page is taken when it is first written to, and no path fills
    /// all that its guest may have.
    #[serde(with = "byte_count")]
    pub taken: ByteCount,
    /// Where the figures come from, in a sentence.
    pub reason: String,
}

/// A flow besides the one that is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// Namespace of the side that opens the flow.
    pub client: String,
    /// Arguments of the linerate process there.
    pub client_arguments: Vec<String>,
    /// Namespace of the other side.
    pub server: String,
    /// Arguments of the linerate process there.
    pub server_arguments: Vec<String>,
    /// Virtual milliseconds after the set-up at which the client starts.
    pub start_milliseconds: u64,
}

/// A change of the path while it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Namespace in which it is made.
    pub namespace: String,
    /// Virtual milliseconds after the set-up.
    pub at_milliseconds: u64,
    /// A line for `tc -batch -`.
    pub tc: String,
}

/// Sizes cross to the guest as numbers of bytes.
mod byte_count {
    use linerate_units::ByteCount;
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    pub(super) fn serialize<S: Serializer>(size: &ByteCount, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(size.get())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteCount, D::Error> {
        u64::deserialize(deserializer).map(ByteCount::new)
    }
}
