//! The thread of the connection fills a processor.

use linerate_model::quic::{QuicEnd, TransportCause};
use linerate_units::Ratio;

use super::{TransportObservation, TransportRule, VerdictText};

pub(super) const RULE: TransportRule = TransportRule { cause: TransportCause::ProcessorBound, check };

/// Processor share from which a thread is the limit: it also waits for the kernel now and then.
const MIN_BUSY: f64 = 0.9;

fn check(observation: &TransportObservation) -> Option<VerdictText> {
    let run = observation.quic.as_ref().filter(|_| observation.is_slower())?;
    let busy = |end: &QuicEnd| end.processor_share().filter(|share| share.get() >= MIN_BUSY);
    let (role, share) = match (busy(run.sender()), busy(run.receiver())) {
        (Some(sender), receiver) if receiver.is_none_or(|receiver| sender >= receiver) => ("sending", sender),
        (_, Some(receiver)) => ("receiving", receiver),
        _ => return None,
    };
    let text = format!(
        "{}: the thread of the {role} host is busy {:.0} % of the time, since QUIC encrypts and orders packets in the program",
        observation.rates()?,
        Ratio::percent(share)
    );
    let remedy =
        "use several connections on several processors, or a faster processor; larger packets (MTU 9000) cost \
        less per byte"
            .to_owned();
    Some((text, Some(remedy)))
}
