//! Results of the agent on their way to the servers.

use std::time::Duration;

use linerate_history::result_log::{ResultLog, ResultReceiver};
use linerate_nats::Publisher;
use linerate_sys::poll::{PollInterest, wait_for};
use linerate_sys::signals::InterruptSignals;

use crate::console;

/// Time between two looks at the log.
const INTERVAL: Duration = Duration::from_millis(500);

/// Results that are read at once.
const BATCH: usize = 100;

/// Shipping of the results in a log to one fleet.
pub(super) struct ResultShipping {
    receiver: ResultReceiver,
    publisher: Publisher,
    is_cut_off: bool,
}

impl ResultShipping {
    pub(super) fn new(log: &ResultLog, fleet: &str, publisher: Publisher) -> Result<Self, String> {
        let receiver = ResultReceiver::open(log, &format!("nats-{fleet}")).map_err(|error| error.to_string())?;
        Ok(Self { receiver, publisher, is_cut_off: false })
    }

    /// Ships until the end, and once more what came last.
    pub(super) fn run(&mut self, interrupts: InterruptSignals, is_over: impl Fn() -> bool) {
        while !is_over() {
            self.ship();
            drop(wait_for(&interrupts, PollInterest::READ, Some(INTERVAL)));
        }
        self.ship();
    }

    /// Ships what the servers have not, until one is not accepted.
    fn ship(&mut self) {
        if let Err(reason) = self.try_to_ship() {
            if !self.is_cut_off {
                console::note(&format!("warning: {reason}; the results wait in their log"));
            }
            self.is_cut_off = true;
        } else if self.is_cut_off {
            console::note("the servers have all results again");
            self.is_cut_off = false;
        }
    }

    fn try_to_ship(&mut self) -> Result<(), String> {
        loop {
            let pending = self.receiver.pending(BATCH).map_err(|error| error.to_string())?;
            for logged in &pending {
                match self.publisher.publish(&logged.result.id, &logged.line) {
                    Err(error) if error.is_transient() => return Err(error.to_string()),
                    Err(error) => {
                        console::note(&format!("warning: {error}; the result stays in the log of this host only"));
                    }
                    Ok(_) => {}
                }
                self.receiver.advance(logged).map_err(|error| error.to_string())?;
            }
            if pending.len() < BATCH {
                return Ok(());
            }
        }
    }
}
