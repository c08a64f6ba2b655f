//! Reasons why nothing is changed on a host when the cause is elsewhere.

use linerate_model::diagnosis::Cause;

/// Returns the reason for a cause for which no rule has a change.
pub(super) fn reason(cause: Cause) -> &'static str {
    match cause {
        Cause::LinkRate => "The path is full: no host setting would make the transfer faster.",
        Cause::Application | Cause::ApplicationPacing | Cause::ShortTransfer => {
            "The application is the limit, not the host: no setting makes it send faster."
        }
        Cause::SlowReader => {
            "The receiving program does not read fast enough: a larger buffer would only fill more slowly. Check what \
            it does with the data (disk, processor)."
        }
        Cause::SocketPacing => "A program limits its sending rate (SO_MAX_PACING_RATE): change it there.",
        Cause::SocketBuffer => {
            "A program set its socket buffer and does not reach a limit of the host: let the kernel tune the buffer \
            instead."
        }
        Cause::SenderProcessor | Cause::ReceiverProcessor => {
            "A processor is the limit: `linerate audit` there reports offloads, interrupts and governors that waste \
                its time."
        }
        Cause::HostBusy => {
            "Other programs take the processor time: stop or move them. No setting of the network gives it back."
        }
        Cause::InterruptsOnOneCore => {
            "One processor handles all packets: `linerate audit` there reports the queues, interrupts and packet steering \
                that would spread them."
        }
        Cause::OffloadOff => {
            "Offloads of an interface are off, perhaps for a reason (a defect of its driver): switch them on with ethtool \
                and measure again."
        }
        Cause::SenderQueue => {
            "A queueing discipline of the sending host limits the rate: that is configuration, not tuning. Remove it or \
                raise its rate."
        }
        Cause::LinkNegotiation => {
            "The link's speed or duplex mode is wrong: check the cable and both ports. No setting of TCP makes up for it."
        }
        Cause::TunnelOverhead => "The packets pass a tunnel: its MTU and its headers decide, not a setting of TCP.",
        Cause::HostDrops => "Packets are dropped in the receiving host: `linerate audit` there reports the limit.",
        Cause::NotEnoughData | Cause::Unclear => {
            "The limit is unknown: nothing is changed on a guess. Measure for longer, and with linerate at both ends."
        }
        Cause::Outage => "The path itself stopped: no setting of a host carries data over a link that is down.",
        Cause::PathDead => "Nothing arrives: check routes and firewalls first.",
        Cause::Bufferbloat => {
            "The path's own queue is the cause: shape below the bottleneck's rate (`linerate shape DEV --up RATE \
            --down RATE`). Hosts at its ends cannot shorten it without losing goodput."
        }
        Cause::SmallPackets => {
            "Segments are smaller than the path allows: find the MTU or clamp that keeps them small. The MTU of an \
            interface is not raised unless every hop and every neighbour is known to support it."
        }
        Cause::BufferTooSmall => {
            "The buffer at the bottleneck is too small for one connection: enlarge it there, use several \
            connections, or pace in the program."
        }
        Cause::Loss | Cause::BurstyLoss | Cause::Corruption => {
            "Packets are lost on the path: find where (error counters, optics, radio). No host setting removes that."
        }
        Cause::Incast
        | Cause::EcnBleached
        | Cause::EcnMarking
        | Cause::Asymmetric
        | Cause::CrossTraffic
        | Cause::Reordering
        | Cause::Duplication
        | Cause::DelayVariation
        | Cause::Policer
        | Cause::BlackHole => "The cause is on the path: only the path's operator can remove it, not a host.",
        Cause::WindowScalingOff
        | Cause::SackOff
        | Cause::TimestampsOff
        | Cause::KernelMemory
        | Cause::AutotuningOff
        | Cause::SendBuffer
        | Cause::ReceiveWindow
        | Cause::CongestionControl
        | Cause::SlowStartExit => {
            "The known settings match the path's needs: check for other values at the other end or in \
            the program."
        }
    }
}
