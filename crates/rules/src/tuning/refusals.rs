//! Why nothing is to be changed on a host when the cause is not there.

use linerate_model::diagnosis::Cause;

/// What to say of a cause for which no rule has a change.
pub(super) fn reason(cause: Cause) -> &'static str {
    match cause {
        Cause::LinkRate => "The path is full: nothing on a host would make the transfer faster.",
        Cause::Application | Cause::ApplicationPacing | Cause::ShortTransfer => {
            "The application is the limit, not the host: what it does not send, no setting can carry."
        }
        Cause::SlowReader => {
            "The receiving program does not read fast enough: a larger buffer would only fill more slowly. Look at what it \
             does with the data (disk, processor)."
        }
        Cause::SocketPacing => {
            "A program asked the kernel to send no faster (SO_MAX_PACING_RATE): that is its choice, and changed there."
        }
        Cause::SocketBuffer => {
            "A program set its socket buffer and does not run into a limit of the host: have it leave the buffer to the \
             kernel."
        }
        Cause::SenderProcessor | Cause::ReceiverProcessor => {
            "A processor is the limit: `linerate audit` there names offloads, interrupts and governors that waste its time."
        }
        Cause::HostDrops => "Packets are dropped in the receiving host: `linerate audit` there tells at which limit.",
        Cause::NotEnoughData | Cause::Unclear => {
            "It is not known what limits: nothing is changed on a guess. Measure for longer, and with linerate at both ends."
        }
        Cause::PathDead => "Nothing arrives: look at routes and firewalls first.",
        Cause::Bufferbloat => {
            "The path's own queue is the cause: shape below its rate where it is narrow (`linerate shape DEV --up RATE \
             --down RATE`). Hosts at its ends cannot shorten it without losing goodput."
        }
        Cause::SmallPackets => {
            "Segments are smaller than the path allows: find the MTU or clamp that keeps them small. The MTU of an interface \
             is not raised without proof that every hop and every neighbour takes it."
        }
        Cause::BufferTooSmall => {
            "The buffer in front of the narrow link is too short for one connection: enlarge it there, use several \
             connections, or pace in the program."
        }
        Cause::Loss | Cause::BurstyLoss | Cause::Corruption => {
            "Packets are lost on the path: find where (error counters, optics, radio). No setting of a host repairs that."
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
        | Cause::BlackHole => "The cause is on the path: whoever looks after it can remove it, a host cannot.",
        Cause::WindowScalingOff
        | Cause::SackOff
        | Cause::TimestampsOff
        | Cause::KernelMemory
        | Cause::SendBuffer
        | Cause::ReceiveWindow
        | Cause::CongestionControl
        | Cause::SlowStartExit => {
            "The settings that are known are as the path needs them: look for what else sets them, at the other end or in \
             the program."
        }
    }
}
