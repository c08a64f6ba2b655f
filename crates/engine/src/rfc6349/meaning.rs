//! What the three metrics say together (RFC 6349 §4.4).

use linerate_model::limit::{Limit, LimitShares};
use linerate_units::Ratio;

/// Up to this ratio a transfer took no longer than it must.
const IDEAL: f64 = 1.05;

/// Below this efficiency, losses are what costs time.
const LOSSY: f64 = 0.99;

/// From this buffer delay on, a queue stands.
const QUEUED: f64 = 0.2;

/// In one or two sentences.
pub(super) fn of(
    ratio: Option<Ratio>,
    efficiency: Option<Ratio>,
    delay: Option<Ratio>,
    limits: Option<&LimitShares>,
) -> String {
    let wasteful = efficiency.filter(|efficiency| efficiency.get() < LOSSY);
    let queued = delay.filter(|delay| delay.get() >= QUEUED);
    let Some(ratio) = ratio else {
        return "Without the path's bandwidth there is nothing to compare the transfer with.".to_owned();
    };
    let queue = queued.map(|delay| format!("a queue adds {:.0} % to the round trip", delay.percent()));
    if ratio.get() <= IDEAL {
        return match queue {
            Some(queue) => format!("It fills the path; {queue}."),
            None => "It fills the path.".to_owned(),
        };
    }
    let repeats =
        wasteful.map(|efficiency| format!("{:.2} % of the bytes were sent again", 100.0 - efficiency.percent()));
    match (repeats, queue) {
        (Some(repeats), Some(queue)) => format!("It is held back by loss: {repeats}, and {queue}."),
        (Some(repeats), None) => format!("It is held back by loss: {repeats}, without a queue."),
        (None, Some(queue)) => format!("It is held back by a queue: {queue}."),
        (None, None) => match (limits.map(LimitShares::verdict), efficiency.or(delay)) {
            (Some(Limit::Receiver), _) => "It is held back by the receiver: its window or its reading.".to_owned(),
            (Some(Limit::Sender), _) => "It is held back by the sender: its buffer or its processor.".to_owned(),
            (Some(Limit::Application), _) => "It is held back by the application, which sends too little.".to_owned(),
            (Some(Limit::Network), _) => {
                "The congestion window holds it back, though little is lost and no queue stands: rare losses, or a \
                 window that still grows."
                    .to_owned()
            }
            (None, Some(_)) => "Neither loss nor a queue: windows, hosts or the application hold it back.".to_owned(),
            (None, None) => "The sender is not known well enough to say what holds it back.".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(ratio: f64, efficiency: f64, delay: f64) -> String {
        of(Ratio::new(ratio), Ratio::new(efficiency), Ratio::new(delay), None)
    }

    #[test]
    fn the_metrics_are_read_together() {
        assert_eq!(said(1.01, 1.0, 0.0), "It fills the path.");
        assert!(said(1.0, 1.0, 0.28).contains("adds 28 %"));
        assert!(said(1.5, 0.9803, 0.0).contains("1.97 % of the bytes"));
        assert!(said(1.5, 1.0, 0.5).contains("held back by a queue"));
        assert!(said(3.0, 1.0, 0.0).contains("windows, hosts or the application"));
    }

    #[test]
    fn where_nothing_holds_the_path_the_sender_is_asked() {
        let share = |value| Ratio::new(value).unwrap_or_default();
        let limits = LimitShares { receive_window: share(0.9), ..LimitShares::default() };
        assert!(of(Ratio::new(10.0), Ratio::new(1.0), Ratio::new(0.0), Some(&limits)).contains("receiver"));
        assert!(of(None, None, None, Some(&limits)).contains("bandwidth"));
    }
}
