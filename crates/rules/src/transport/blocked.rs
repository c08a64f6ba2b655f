//! UDP to the port of QUIC is blocked.

use linerate_model::quic::TransportCause;

use super::{TransportObservation, TransportRule, VerdictText};

pub(super) const RULE: TransportRule = TransportRule { cause: TransportCause::UdpBlocked, check };

fn check(observation: &TransportObservation) -> Option<VerdictText> {
    // Without TCP the host may be away.
    observation.tcp.as_ref().filter(|tcp| observation.unanswered && !tcp.rate.is_zero())?;
    let port = observation.port;
    let text = format!("UDP port {port} is blocked: no QUIC packet was answered, while TCP to the same host works");
    let remedy = if port.get() == 443 {
        "permit UDP port 443 in the firewalls of the path; browsers fall back to TCP until then".to_owned()
    } else {
        format!("permit UDP port {port} in the firewalls of the path, or try `linerate serve --quic-port 443`")
    };
    Some((text, Some(remedy)))
}
