//! What each resource allows at most: the lowest one is the limit, the one above it comes next.

use linerate_model::diagnosis::{Bound, Cause};
use linerate_model::formulas::{
    SEND_MEMORY_FACTOR, SEND_MEMORY_FACTOR_BBR, loss_limited_rate, usable_window, window_rate,
};
use linerate_units::{BitRate, ByteCount, Ratio, SegmentCount};

use super::Evidence;
use super::words::{of_whole, rate, size, time};

/// What a bound is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Path,
    ReceiveWindow,
    SendBuffer,
    Loss,
    Pacing,
    Application,
}

/// A receiver that was never seen full: what Linux makes of its buffer at an MTU of 1500 (`scaling_ratio`).
const USUAL_WINDOW_SHARE: f64 = 0.62;

/// The bounds that can be computed, lowest first.
pub(super) fn bounds(evidence: &Evidence<'_>) -> Vec<(Kind, Bound)> {
    let all = [path(evidence), receive_window(evidence), send_buffer(evidence), loss(evidence), pacing(evidence)];
    let mut bounds: Vec<(Kind, Bound)> = all.into_iter().chain([application(evidence)]).flatten().collect();
    bounds.sort_by(|(_, one), (_, other)| one.rate.bits_per_second().total_cmp(&other.rate.bits_per_second()));
    bounds
}

/// The lowest bound that is not the cause's own.
pub(super) fn next(bounds: &[(Kind, Bound)], cause: Cause) -> Option<Bound> {
    let own = match cause {
        Cause::ReceiveWindow | Cause::SlowReader | Cause::WindowScalingOff => Kind::ReceiveWindow,
        Cause::SendBuffer => Kind::SendBuffer,
        Cause::SocketPacing => Kind::Pacing,
        Cause::Application | Cause::ApplicationPacing => Kind::Application,
        Cause::Loss | Cause::BurstyLoss | Cause::SackOff | Cause::CongestionControl | Cause::SmallPackets => Kind::Loss,
        // Removing these leaves all bounds as they are.
        _ if cause.place() != linerate_model::diagnosis::Place::Nowhere => {
            return bounds.first().map(|(_, bound)| bound.clone());
        }
        _ => Kind::Path,
    };
    bounds.iter().find(|(kind, _)| *kind != own).map(|(_, bound)| bound.clone())
}

fn bound(kind: Kind, name: &str, rate: BitRate, arithmetic: String) -> (Kind, Bound) {
    (kind, Bound { name: name.to_owned(), rate, arithmetic })
}

fn path(evidence: &Evidence<'_>) -> Option<(Kind, Bound)> {
    let whole = evidence.path()?.capacity.as_ref()?;
    let capacity = evidence.capacity?;
    let measured = BitRate::from_bits_per_second(whole.bits_per_second);
    let text = format!("{} of IP packets, less headers", rate(measured));
    // What is only known to be at least so much is no bound.
    (!whole.at_least).then(|| bound(Kind::Path, "the path", capacity, text))
}

fn receive_window(evidence: &Evidence<'_>) -> Option<(Kind, Bound)> {
    let most = ByteCount::new(*evidence.receiver_setting("net.ipv4.tcp_rmem")?.get(2)?);
    let (buffer, changed) = evidence.receive_buffer?;
    // A buffer that a program has set does not grow.
    let most = if changed || evidence.observation.asked.buffer.is_none() { most.max(buffer) } else { buffer };
    let seen = evidence.largest_window.and_then(|window| window / buffer).map(Ratio::get);
    let share = Ratio::new(seen.filter(|share| (0.2..=0.97).contains(share)).unwrap_or(USUAL_WINDOW_SHARE))?;
    let base = evidence.base?;
    let window = usable_window(most, share);
    let text =
        format!("window {} ({} of a buffer of {}) per {}", size(window), of_whole(share.get()), size(most), time(base));
    Some(bound(Kind::ReceiveWindow, "the receive window", window_rate(window, base)?, text))
}

fn send_buffer(evidence: &Evidence<'_>) -> Option<(Kind, Bound)> {
    let most = ByteCount::new(*evidence.sender_setting("net.ipv4.tcp_wmem")?.get(2)?);
    let factor = if evidence.uses("bbr") { SEND_MEMORY_FACTOR_BBR } else { SEND_MEMORY_FACTOR };
    let base = evidence.base?;
    // Of a full buffer, what is not under way waits; the kernel keeps room for a second window (a third with BBR).
    let window = ByteCount::from_f64(most.as_f64() / SegmentCount::new(factor).as_f64() * 1.25);
    let text = format!("buffer {}, of which some {} can be under way, per {}", size(most), size(window), time(base));
    Some(bound(Kind::SendBuffer, "the send buffer", window_rate(window, base)?, text))
}

fn loss(evidence: &Evidence<'_>) -> Option<(Kind, Bound)> {
    let control = evidence.observation.congestion_control.as_deref()?;
    let loss = evidence.retransmitted.filter(|loss| loss.get() > 0.0)?;
    // Losses of a full queue are the window's own making; where the capacity is unknown, the queue tells.
    if evidence.is_full() || evidence.capacity.is_none() && !evidence.loses_without_queue() {
        return None;
    }
    let (segment, base) = (evidence.segment?, evidence.base?);
    let allowed = loss_limited_rate(control, segment, base, loss)?;
    let text =
        format!("{control} with a loss of {:.4} %, segments of {} B, {}", loss.percent(), segment.get(), time(base));
    Some(bound(Kind::Loss, "the loss rate", allowed, text))
}

fn pacing(evidence: &Evidence<'_>) -> Option<(Kind, Bound)> {
    let each = evidence.sender()?.max_pacing_rate?;
    let connections = SegmentCount::new(evidence.observation.connections.len() as u64).as_f64();
    let text = format!("{} for each connection", rate(each));
    Some(bound(Kind::Pacing, "pacing of the socket", each * connections, text))
}

fn application(evidence: &Evidence<'_>) -> Option<(Kind, Bound)> {
    let each = evidence.observation.asked.rate?;
    let connections = SegmentCount::new(evidence.observation.connections.len() as u64).as_f64();
    let text = format!("{} for each connection", rate(each));
    Some(bound(Kind::Application, "the application", each * connections, text))
}
