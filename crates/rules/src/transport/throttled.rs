//! The path drops or delays UDP, and not TCP.

use core::time::Duration;

use linerate_model::quic::{QuicEnd, QuicRun, TransportCause};
use linerate_units::{Ratio, display};

use super::{TransportObservation, TransportRule, VerdictText};

pub(super) const RULE: TransportRule = TransportRule { cause: TransportCause::UdpThrottled, check };

/// Ratio of the rates below which a limit for UDP is likely.
const MAX_RATIO: f64 = 0.7;

/// Least loss of QUIC, and its least multiple of TCP's.
const MIN_LOSS: f64 = 0.001;
const MIN_LOSS_FACTOR: f64 = 2.0;

/// Least factor and increase of QUIC's round trip over that of TCP, for a queue of its own.
const MIN_DELAY_FACTOR: u32 = 2;
const MIN_DELAY: Duration = Duration::from_millis(5);

fn check(observation: &TransportObservation) -> Option<VerdictText> {
    observation.ratio().filter(|ratio| *ratio < MAX_RATIO)?;
    let evidence = loss(observation).or_else(|| delay(observation))?;
    let remedy =
        "ask the operator of the path for its limits on UDP; a rate below the limit loses nothing, and TCP is the \
        faster transport here"
            .to_owned();
    Some((format!("{}: {evidence}", observation.rates()?), Some(remedy)))
}

/// Losses of QUIC that TCP does not have.
fn loss(observation: &TransportObservation) -> Option<String> {
    let (tcp, quic) = (observation.tcp.as_ref()?, observation.quic.as_ref()?);
    let lost = lost_on_path(quic).filter(|loss| loss.get() >= MIN_LOSS)?;
    let of_tcp = tcp.retransmitted?;
    (lost.get() >= MIN_LOSS_FACTOR * of_tcp.get())
        .then(|| format!("the path drops {} of the UDP packets, and {} of TCP's", percent(lost), percent(of_tcp)))
}

/// Lost share of the sender's packets, without those that the receiving host dropped.
fn lost_on_path(run: &QuicRun) -> Option<Ratio> {
    let dropped = run.receiver().buffer_drops.unwrap_or_default();
    let lost_packets = Some(run.sender().lost_packets?.saturating_sub(dropped));
    QuicEnd { lost_packets, sent_packets: run.sender().sent_packets, ..QuicEnd::default() }.loss()
}

/// Queue of QUIC that TCP does not wait in.
fn delay(observation: &TransportObservation) -> Option<String> {
    let run = observation.quic.as_ref()?;
    let (tcp, quic) = (observation.tcp.as_ref()?.loaded_rtt?, run.sender().rtt?.median);
    let on_path = quic.mul_f64(1.0 - share_of_hosts(run));
    (on_path >= tcp * MIN_DELAY_FACTOR && on_path >= tcp + MIN_DELAY).then(|| {
        format!(
            "UDP waits in a queue of its own, with a round trip of {} instead of {}",
            display::duration(quic),
            display::duration(tcp)
        )
    })
}

/// Largest share of a round trip for which packets waited for the threads of the hosts: QUIC measures it in the program.
fn share_of_hosts(run: &QuicRun) -> f64 {
    let demand = |end: &QuicEnd| end.processor_demand().map_or(0.0, Ratio::get);
    (demand(run.sender()) + demand(run.receiver())).min(1.0)
}

fn percent(ratio: Ratio) -> String {
    format!("{:.2} %", ratio.percent())
}
