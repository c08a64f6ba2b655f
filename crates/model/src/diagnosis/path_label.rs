//! Built-in cause of an emulated path: the ground truth for a diagnosis.

use core::fmt;

use serde::{Deserialize, Serialize};

macro_rules! labels {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// The one cause that a path is built around.
        ///
        /// A diagnosis of the path must come to this verdict, and to no other.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum PathLabel {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $variant,)+
        }

        impl PathLabel {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Name in a description.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// Meaning, in a sentence.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+).trim(),)+ }
            }
        }
    };
}

labels! {
    /// Nothing holds the path back: a test fills the link, and its queue stays short.
    None = "none",
    /// The link is full: nothing on the hosts would change it.
    LinkRate = "link-rate",
    /// The largest receive buffer (`tcp_rmem`) allows less than the bandwidth-delay product.
    ReceiveWindow = "receive-window",
    /// The receiver's kernel does not grow receive buffers (`tcp_moderate_rcvbuf` = 0).
    AutotuningOff = "autotuning-off",
    /// The largest send buffer (`tcp_wmem`) holds less than the bandwidth-delay product.
    SendBuffer = "send-buffer",
    /// An application fixed its socket's buffers (`SO_RCVBUF`, `SO_SNDBUF`), and so turned off their growth.
    SocketBuffer = "socket-buffer",
    /// Packets are lost at random, each on its own.
    Loss = "loss",
    /// Packets are lost in bursts.
    BurstyLoss = "bursty-loss",
    /// Packets overtake each other.
    Reordering = "reordering",
    /// Packets arrive twice.
    Duplication = "duplication",
    /// Packets arrive damaged, and their checksum has the host discard them.
    Corruption = "corruption",
    /// A token bucket drops what exceeds a rate; there is no queue.
    Policer = "policer",
    /// Packets above a size vanish silently: path MTU discovery never hears of it.
    BlackHole = "black-hole",
    /// The receiving application reads more slowly than the path delivers.
    SlowReader = "slow-reader",
    /// The sending application has nothing to send at times.
    Application = "application",
    /// The sending application writes at a rate of its own, below that of the path.
    ApplicationPacing = "application-pacing",
    /// A rate set on the socket (`SO_MAX_PACING_RATE`).
    SocketPacing = "socket-pacing",
    /// A rate set in the sending host's queueing discipline.
    SenderQueue = "sender-queue",
    /// The memory of all TCP sockets together (`tcp_mem`) is exhausted.
    KernelMemory = "kernel-memory",
    /// The bottleneck's buffer is too small for the sender's bursts or its halved window.
    BufferTooSmall = "buffer-too-small",
    /// The bottleneck's buffer is so large that a full link means seconds of delay.
    Bufferbloat = "bufferbloat",
    /// Selective acknowledgements are off.
    SackOff = "sack-off",
    /// TCP timestamps are off.
    TimestampsOff = "timestamps-off",
    /// Window scaling is off: no window exceeds 65535 bytes.
    WindowScalingOff = "window-scaling-off",
    /// A hop clears the ECN bits.
    EcnBleached = "ecn-bleached",
    /// A hop marks packets (ECN) when its queue exceeds a threshold.
    EcnMarking = "ecn-marking",
    /// The transfer ends before slow start does.
    ShortTransfer = "short-transfer",
    /// Slow start ends long before the path is full (`HyStart`), though nothing was lost.
    SlowStartExit = "slow-start-exit",
    /// The delay varies from packet to packet.
    DelayVariation = "delay-variation",
    /// The two directions differ, and the slow one holds back the acknowledgements of the fast one.
    Asymmetric = "asymmetric",
    /// The congestion control does not suit the path.
    CongestionControl = "congestion-control",
    /// Other traffic takes a part of the link.
    CrossTraffic = "cross-traffic",
    /// Many senders meet at one port at once.
    Incast = "incast",
    /// The hosts' packets are smaller than the path would carry.
    SmallPackets = "small-packets",
    /// The capacity changes over time: a path for shapers that follow it, not for a diagnosis.
    VariableRate = "variable-rate",
}

impl PathLabel {
    /// The label of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|label| label.name() == name)
    }
}

impl fmt::Display for PathLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_is_found_by_its_name_and_has_a_meaning() {
        for label in PathLabel::ALL {
            assert_eq!(PathLabel::from_name(label.name()), Some(*label));
            assert!(label.name().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{label}");
            assert!(label.meaning().ends_with('.') && !label.meaning().starts_with(' '), "{label}");
        }
        assert_eq!(PathLabel::from_name("Loss"), None);
    }
}
