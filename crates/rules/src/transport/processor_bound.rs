//! The thread of the connection fills a processor, or waits for one.

use linerate_model::quic::{QuicEnd, TransportCause};
use linerate_units::Ratio;

use super::{TransportObservation, TransportRule, VerdictText};

pub(super) const RULE: TransportRule = TransportRule { cause: TransportCause::ProcessorBound, check };

/// Share of the time in which a thread runs or waits for a processor, from which the processor is the limit: it also waits for
/// the kernel now and then.
const MIN_DEMAND: f64 = 0.9;

fn check(observation: &TransportObservation) -> Option<VerdictText> {
    let run = observation.quic.as_ref().filter(|_| observation.is_slower())?;
    let demand = |end: &QuicEnd| end.processor_demand().filter(|share| share.get() >= MIN_DEMAND);
    let (role, end) = match (demand(run.sender()), demand(run.receiver())) {
        (Some(sender), receiver) if receiver.is_none_or(|receiver| sender >= receiver) => ("sending", run.sender()),
        (_, Some(_)) => ("receiving", run.receiver()),
        _ => return None,
    };
    let (ran, demand) = (end.processor_share()?, end.processor_demand()?);
    let waited = Ratio::new(demand.get() - ran.get()).unwrap_or_default();
    let rates = observation.rates()?;
    Some(if waited > ran { waiting(&rates, role, waited) } else { busy(&rates, role, demand) })
}

fn busy(rates: &str, role: &str, demand: Ratio) -> VerdictText {
    let text = format!(
        "{rates}: the thread of the {role} host is busy {:.0} % of the time, since QUIC encrypts and orders packets in the program",
        demand.percent()
    );
    let remedy =
        "use several connections on several processors, or a faster processor; larger packets (MTU 9000) cost \
        less per byte"
            .to_owned();
    (text, Some(remedy))
}

/// Other programs have the processor.
fn waiting(rates: &str, role: &str, waited: Ratio) -> VerdictText {
    let text =
        format!("{rates}: the thread of the {role} host waits for a processor {:.0} % of the time", waited.percent());
    let remedy = format!("stop other programs on the {role} host, or give it more processors, and repeat the test");
    (text, Some(remedy))
}
