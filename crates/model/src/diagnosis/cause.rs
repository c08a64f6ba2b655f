//! Causes that can limit a transfer.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Location of a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CauseLocation {
    /// In a program.
    Application,
    /// In the sending host.
    Sender,
    /// In the receiving host.
    Receiver,
    /// In either host, or in the parameters that both agreed on.
    Hosts,
    /// On the path.
    Network,
    /// No fault.
    Nowhere,
    /// Undetermined.
    Unknown,
}

impl CauseLocation {
    /// Name used in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::Sender => "sender",
            Self::Receiver => "receiver",
            Self::Hosts => "hosts",
            Self::Network => "network",
            Self::Nowhere => "nowhere",
            Self::Unknown => "unknown",
        }
    }
}

macro_rules! causes {
    ($($variant:ident $name:literal $place:ident $title:literal: $text:literal;)*) => {
        /// Cause that limits a transfer.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum Cause {
            $(#[doc = $text] #[serde(rename = $name)] $variant,)*
        }

        impl Cause {
            /// All variants.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Identifier used in documents and in the labels of emulated paths.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Location.
            #[must_use]
            pub const fn location(self) -> CauseLocation {
                match self { $(Self::$variant => CauseLocation::$place,)* }
            }

            /// True when the cause lies in a host's settings or load.
            #[must_use]
            pub const fn is_of_a_host(self) -> bool {
                matches!(self.location(), CauseLocation::Sender | CauseLocation::Receiver | CauseLocation::Hosts)
            }

            /// Display name.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }

            /// Explanation in one sentence.
            #[must_use]
            pub const fn explanation(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

causes! {
    NotEnoughData "not-enough-data" Unknown "not enough data":
        "The transfer was too short, or too little of it was observed, to name its limit.";
    BlackHole "black-hole" Network "path MTU black hole":
        "Packets above some size are dropped without an ICMP message, so full segments never arrive.";
    PathDead "path-dead" Network "nothing arrives":
        "Nothing was acknowledged, not even small packets.";
    Outage "outage" Network "an outage":
        "The path carried nothing for seconds, and the transfer waited for its retransmission timer.";
    WindowScalingOff "window-scaling-off" Hosts "no window scaling":
        "Without the window scale option at most 65535 bytes are in flight.";
    SackOff "sack-off" Hosts "no selective acknowledgements":
        "Without SACK one lost packet is repaired per round trip, and everything waits.";
    TimestampsOff "timestamps-off" Hosts "no TCP timestamps":
        "Without timestamps nothing is gained, and protection against old segments is lost.";
    KernelMemory "kernel-memory" Hosts "kernel memory for TCP":
        "All TCP sockets together may use less memory than this transfer needs.";
    ShortTransfer "short-transfer" Application "the transfer is short":
        "It was over before slow start had filled the path.";
    Application "application" Application "the sending application":
        "The application had nothing to send for part of the time.";
    ApplicationPacing "application-pacing" Application "the application paces itself":
        "The application writes at a steady rate below what the path carries.";
    SocketPacing "socket-pacing" Sender "pacing set on the socket":
        "The kernel was asked to send no faster.";
    SenderQueue "sender-queue" Sender "a rate limit in the sender's own queue":
        "A queueing discipline of the sending host lets packets leave no faster than its rate.";
    SendBuffer "send-buffer" Sender "the send buffer":
        "The send buffer is too small to fill the path.";
    ReceiveWindow "receive-window" Receiver "the receive window":
        "The receive window is too small to fill the path.";
    AutotuningOff "autotuning-off" Receiver "receive buffers that do not grow":
        "The receiving kernel leaves each receive buffer at its initial size.";
    SocketBuffer "socket-buffer" Application "a socket buffer that the program set":
        "A program set a socket buffer, which turns the kernel's own tuning off.";
    SlowReader "slow-reader" Receiver "the receiving application":
        "The receiving program does not read as fast as data arrive.";
    SenderProcessor "sender-processor" Sender "the sender's processor":
        "The sending host has no processor time left.";
    ReceiverProcessor "receiver-processor" Receiver "the receiver's processor":
        "The receiving host has no processor time left.";
    HostBusy "host-busy" Hosts "other programs on a busy host":
        "Other programs keep a host's processors busy, and the transfer waits for a processor.";
    InterruptsOnOneCore "interrupts-on-one-core" Hosts "interrupts on one processor":
        "One processor of a host handles all packets and has no time left, while others have.";
    OffloadOff "offload-off" Hosts "offloads switched off":
        "Segmentation or aggregation of packets is off at an interface, so that each packet costs processor time.";
    HostDrops "host-drops" Receiver "drops in the receiving host":
        "Packets that arrived were dropped in the receiving host.";
    Policer "policer" Network "a policer":
        "Packets above a fixed rate are dropped without being queued.";
    LinkNegotiation "link-negotiation" Hosts "a link below its possible speed":
        "A host's network link was negotiated at a lower speed than it supports, or at half duplex.";
    TunnelOverhead "tunnel-overhead" Hosts "a tunnel's overhead":
        "The packets pass a tunnel, whose headers take part of the path, or whose packets have to be fragmented.";
    Incast "incast" Network "too many senders for one buffer":
        "So many connections share one buffer that none keeps a packet in flight.";
    Corruption "corruption" Network "damaged packets":
        "Packets arrive damaged and are dropped by their checksum.";
    EcnBleached "ecn-bleached" Network "ECN is erased on the path":
        "Both hosts negotiated ECN, but the bits do not arrive.";
    EcnMarking "ecn-marking" Network "the queue marks packets":
        "A queue marks packets instead of dropping them, and the path is full.";
    Asymmetric "asymmetric" Network "acknowledgements fill the return path":
        "The return path is so slow that acknowledgements of a full transfer fill much of it.";
    CrossTraffic "cross-traffic" Network "cross traffic":
        "Other traffic uses part of the path.";
    SmallPackets "small-packets" Hosts "segments smaller than the path allows":
        "At a given loss rate throughput grows with the segment, and the segments are small.";
    CongestionControl "congestion-control" Sender "the congestion control":
        "The congestion control takes too long to recover from rare losses.";
    BurstyLoss "bursty-loss" Network "bursts of loss":
        "Several packets at a time are lost without a preceding queue.";
    Loss "loss" Network "random loss":
        "Packets are lost without a preceding queue, and the sender treats each loss as congestion.";
    BufferTooSmall "buffer-too-small" Network "a buffer too small for one flow":
        "The bottleneck holds so few packets that it runs empty after each loss.";
    SlowStartExit "slow-start-exit" Sender "slow start ended early":
        "Slow start mistook delay variation for a queue and ended far below the path's capacity.";
    Reordering "reordering" Network "packets out of order":
        "Packets overtake each other on the path.";
    Duplication "duplication" Network "duplicated packets":
        "Packets arrive more than once.";
    DelayVariation "delay-variation" Network "varying delay":
        "The delay of packets varies without a queue of this transfer.";
    Bufferbloat "bufferbloat" Network "bufferbloat":
        "The path is full, and its buffer adds delay to all other traffic.";
    LinkRate "link-rate" Nowhere "the path is full":
        "The transfer uses the path's full capacity: no change to a host would make it faster.";
    Unclear "unclear" Unknown "unclear":
        "None of the known causes fits the figures.";
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_identifiers() {
        let names: BTreeSet<&str> = Cause::ALL.iter().map(|cause| cause.name()).collect();
        assert_eq!(names.len(), Cause::ALL.len());
        for cause in Cause::ALL {
            assert!(cause.name().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{cause:?}");
            assert!(cause.explanation().ends_with('.') && !cause.title().is_empty());
        }
    }
}
