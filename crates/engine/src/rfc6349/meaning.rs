//! Joint interpretation of the three metrics (RFC 6349 §4.4).

use linerate_model::limit::{LimitShares, TransferLimit};
use linerate_units::Ratio;

/// Largest transfer time ratio of an ideal transfer.
const MAX_IDEAL_RATIO: f64 = 1.05;

/// Efficiency below which losses are the cause.
const MIN_LOSSLESS_EFFICIENCY: f64 = 0.99;

/// Smallest buffer delay that counts as a queue.
const MIN_QUEUE_BUFFER_DELAY: f64 = 0.2;

/// Interpretation in one or two sentences.
pub(super) fn of(
    ratio: Option<Ratio>,
    efficiency: Option<Ratio>,
    delay: Option<Ratio>,
    limits: Option<&LimitShares>,
) -> String {
    let wasteful = efficiency.filter(|efficiency| efficiency.get() < MIN_LOSSLESS_EFFICIENCY);
    let queued = delay.filter(|delay| delay.get() >= MIN_QUEUE_BUFFER_DELAY);
    let Some(ratio) = ratio else {
        return "Without the path's bandwidth there is nothing to compare the transfer with.".to_owned();
    };
    let queue = queued.map(|delay| format!("a queue adds {:.0} % to the round trip", delay.percent()));
    if ratio.get() <= MAX_IDEAL_RATIO {
        return match queue {
            Some(queue) => format!("The transfer fills the path; {queue}."),
            None => "The transfer fills the path.".to_owned(),
        };
    }
    let repeats =
        wasteful.map(|efficiency| format!("{:.2} % of the bytes were retransmitted", 100.0 - efficiency.percent()));
    match (repeats, queue) {
        (Some(repeats), Some(queue)) => format!("Loss limits the transfer: {repeats}, and {queue}."),
        (Some(repeats), None) => format!("Loss limits the transfer: {repeats}, without a queue."),
        (None, Some(queue)) => format!("A queue limits the transfer: {queue}."),
        (None, None) => match (limits.map(LimitShares::verdict), efficiency.or(delay)) {
            (Some(TransferLimit::Receiver), _) => {
                "The receiver limits the transfer: its window or its application.".to_owned()
            }
            (Some(TransferLimit::Sender), _) => {
                "The sender limits the transfer: its buffer or its processor.".to_owned()
            }
            (Some(TransferLimit::Application), _) => {
                "The application limits the transfer: it sends too little.".to_owned()
            }
            (Some(TransferLimit::Network), _) => {
                "The congestion window limits the transfer, though little is lost and no queue builds up: rare losses, \
                 or a window that still grows."
                    .to_owned()
            }
            (None, Some(_)) => "Neither loss nor a queue: windows, hosts or the application limit it.".to_owned(),
            (None, None) => "Too little is known about the sender to name the limit.".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interpretation(ratio: f64, efficiency: f64, delay: f64) -> String {
        of(Ratio::new(ratio), Ratio::new(efficiency), Ratio::new(delay), None)
    }

    #[test]
    fn the_metrics_are_interpreted_together() {
        assert_eq!(interpretation(1.01, 1.0, 0.0), "The transfer fills the path.");
        assert!(interpretation(1.0, 1.0, 0.28).contains("adds 28 %"));
        assert!(interpretation(1.5, 0.9803, 0.0).contains("1.97 % of the bytes"));
        assert!(interpretation(1.5, 1.0, 0.5).contains("A queue limits"));
        assert!(interpretation(3.0, 1.0, 0.0).contains("windows, hosts or the application"));
    }

    #[test]
    fn without_a_path_limit_the_sender_limits_decide() {
        let share = |value| Ratio::new(value).unwrap_or_default();
        let limits = LimitShares { receive_window: share(0.9), ..LimitShares::default() };
        assert!(of(Ratio::new(10.0), Ratio::new(1.0), Ratio::new(0.0), Some(&limits)).contains("receiver"));
        assert!(of(None, None, None, Some(&limits)).contains("bandwidth"));
    }
}
