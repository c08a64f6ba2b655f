//! The receive buffer of the UDP socket is too small.

use linerate_model::quic::TransportCause;
use linerate_units::{ByteCount, Ratio, display};

use super::{TransportObservation, TransportRule, VerdictText};

pub(super) const RULE: TransportRule = TransportRule { cause: TransportCause::UdpBufferSmall, check };

/// Least share of the sender's losses that the receiving host drops itself, for the buffer to be their cause.
const MIN_SHARE: f64 = 0.5;

fn check(observation: &TransportObservation) -> Option<VerdictText> {
    let run = observation.quic.as_ref().filter(|_| observation.is_slower())?;
    let (drops, lost) = (run.receiver().buffer_drops.filter(|drops| *drops > 0)?, run.sender().lost_packets?);
    let share = Ratio::of(ByteCount::new(drops).as_f64(), ByteCount::new(lost.max(drops)).as_f64())?;
    if share.get() < MIN_SHARE {
        return None;
    }
    let size = run
        .receiver()
        .receive_buffer_bytes
        .map_or_else(String::new, |size| format!(" of {}", display::size_binary(ByteCount::new(size))));
    let text = format!(
        "{}: the receiving host dropped {drops} datagrams at the UDP receive buffer{size}",
        observation.rates()?
    );
    let remedy =
        "raise net.core.rmem_max on the receiving host: programs with QUIC ask for large buffers, and get that \
        at most"
            .to_owned();
    Some((text, Some(remedy)))
}
