//! Plan of a path: plain data that a guest carries out in order.

use linerate_units::ByteCount;
use serde::{Deserialize, Serialize};

/// The namespace of the host that measures: the guest's initial one, so that settings of the whole system exist there.
pub const NEAR: &str = "near";

/// The namespace of the host at the other end.
pub const FAR: &str = "far";

/// The namespace of the links' queues and delays. It has no addresses.
pub const WIRE: &str = "wire";

/// Everything to set up, in the order of the fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathPlan {
    /// The path's name.
    pub path: String,
    /// Settings of the whole system (`net.ipv4.tcp_mem`, `net.core.rmem_max`, …), written before anything else. Only a
    /// guest with a kernel of its own can have them.
    pub system: Vec<SysctlSetting>,
    /// The namespaces; the first is [`NEAR`].
    pub namespaces: Vec<NamespacePlan>,
    /// Pairs of virtual Ethernet devices between them.
    pub pairs: Vec<DevicePair>,
    /// Names and addresses of the hosts, as lines of `/etc/hosts`.
    pub names: Vec<String>,
    /// Resources of the guest.
    pub sizing: GuestSizing,
    /// Other traffic on the path.
    pub traffic: Vec<TrafficPlan>,
    /// Changes while the path is active, in chronological order.
    pub changes: Vec<PlanChange>,
}

/// A network namespace and what is set up in it, in the order of the fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamespacePlan {
    /// Name, as `ip netns` shows it.
    pub name: String,
    /// Settings that each namespace has for itself.
    pub sysctls: Vec<SysctlSetting>,
    /// Devices whose segmentation and receive offloads are turned off, so that each packet is one packet on the path.
    pub without_offloads: Vec<String>,
    /// Lines for `ip -batch -`.
    pub ip: Vec<String>,
    /// Lines for `tc -batch -`.
    pub tc: Vec<String>,
    /// Seeds of `netem` disciplines, which the `tc` of older distributions cannot set.
    pub seeds: Vec<NetemSeed>,
    /// Arguments of the linerate server that runs here; `None` for none.
    pub server: Option<Vec<String>>,
}

/// A kernel setting by its name with dots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SysctlSetting {
    /// For example `net.ipv4.tcp_rmem`.
    pub key: String,
    /// Value as written to the file.
    pub value: String,
}

/// A pair of virtual Ethernet devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DevicePair {
    /// One end.
    pub a: DevicePairEnd,
    /// The other.
    pub b: DevicePairEnd,
}

/// One end of a pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DevicePairEnd {
    /// Namespace.
    pub namespace: String,
    /// Device, at most 15 characters.
    pub device: String,
    /// Hardware address: fixed, so that neighbour entries are static, and runs repeat.
    pub mac: String,
}

/// The seed of one `netem`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetemSeed {
    /// Device.
    pub device: String,
    /// The discipline's handle, for example `1:`; the root's is `1:` by convention.
    pub handle: String,
    /// Seed.
    pub seed: u64,
}

/// Resources of a guest, chosen so that its memory does not limit the path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestSizing {
    /// Memory of the guest, as its kernel counts it.
    #[serde(with = "byte_count")]
    pub memory: ByteCount,
    /// Maximum that the guest takes of it from the host: a page is taken when it is first written to, and no path fills
    /// all memory of its guest.
    #[serde(with = "byte_count")]
    pub taken: ByteCount,
    /// Derivation of the figures, in a sentence.
    pub reason: String,
}

/// A flow in addition to the measured one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficPlan {
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

/// A change of the path while it is active.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanChange {
    /// Namespace of the change.
    pub namespace: String,
    /// Virtual milliseconds after the set-up.
    pub at_milliseconds: u64,
    /// A line for `tc -batch -`.
    pub tc: String,
    /// Virtual milliseconds after which it is made again, and so on; `None` for once.
    pub repeat_milliseconds: Option<u64>,
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
