//! Load of the two hosts during a transfer: that of its own threads, and that of everything else, apart.

use core::time::Duration;

use linerate_model::diagnosis::{Cause, DiagnosisVerdict, SenderState};
use linerate_model::far::{HostEvidence, LinkEvidence, ProcessorLoad};
use linerate_units::Ratio;

use super::TransferEvidence;
use super::counterfactual::time_in;
use super::states;
use super::text::percent_of;

/// Share of a processor from which a thread is limited by it; the remainder is scheduling.
pub(super) const MIN_SATURATED_SHARE: f64 = 0.95;
/// Share of the time from which waiting for a processor can limit a transfer.
const MIN_WAIT_SHARE: f64 = 0.2;
/// The same where the kernel traced who had the processor.
const MIN_TRACED_WAIT_SHARE: f64 = 0.1;
/// Share of all processors below which other programs, or the hypervisor, do not keep a host busy.
const MAX_UNNOTICED_SHARE: f64 = 0.1;
/// Share of the transfer's time from which a queue is present most of the time.
const MIN_QUEUE_SHARE: f64 = 0.5;
/// Median queueing delay below which processors, not packets, explain it.
const MIN_QUEUE_DELAY: Duration = Duration::from_millis(1);
/// Share of all processors from which other programs are said to keep a host busy.
const MIN_OTHERS_SHARE: f64 = 0.5;
/// Share of the time for which the sender had nothing to send, or was marked so, from which its kernel starved.
const MIN_IDLE_SHARE: f64 = 0.1;
const MIN_APPLICATION_LIMITED_SHARE: f64 = 0.3;
/// Share of the receive buffer from which the reading program is behind.
const MIN_UNREAD_SHARE: f64 = 0.3;
/// Share of the time limited by the receive window from which the reading program may be the reason.
const MIN_WINDOW_SHARE: f64 = 0.2;

/// One of the two ends of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransferEnd {
    Sender,
    Receiver,
}

impl TransferEnd {
    /// Both, the receiver first: packets cost more to receive.
    pub(super) const ALL: [Self; 2] = [Self::Receiver, Self::Sender];

    /// `sender` or `receiver`.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        }
    }

    /// `sending` or `receiving`.
    pub(super) const fn participle(self) -> &'static str {
        match self {
            Self::Sender => "sending",
            Self::Receiver => "receiving",
        }
    }
}

impl<'o> TransferEvidence<'o> {
    /// Returns the evidence about a host.
    pub(super) fn host(&self, end: TransferEnd) -> Option<&'o HostEvidence> {
        match end {
            TransferEnd::Sender => self.observation.sender.as_ref(),
            TransferEnd::Receiver => self.observation.receiver.as_ref(),
        }
    }

    /// Returns the load of a host's processors.
    pub(super) fn processor_load(&self, end: TransferEnd) -> Option<&'o ProcessorLoad> {
        self.host(end)?.processors.as_ref()
    }

    /// Returns a host's interface towards the other one.
    pub(super) fn link(&self, end: TransferEnd) -> Option<&'o LinkEvidence> {
        self.host(end)?.link.as_ref()
    }

    /// Returns the share of one processor that the busiest thread of the transfer used at this end.
    pub(super) fn thread_share(&self, end: TransferEnd) -> Option<Ratio> {
        self.shares.and_then(|shares| match end {
            TransferEnd::Sender => shares.sender_cpu,
            TransferEnd::Receiver => shares.receiver_cpu,
        })
    }

    /// Returns the share of the time for which a thread of the transfer could run and waited for a processor.
    pub(super) fn wait_share(&self, end: TransferEnd) -> Option<Ratio> {
        let counted = self.shares.and_then(|shares| match end {
            TransferEnd::Sender => shares.sender_wait,
            TransferEnd::Receiver => shares.receiver_wait,
        });
        counted.or_else(|| self.traced_wait(end))
    }

    /// True when packets of the transfer queue on the path for most of the time: then no processor limits it.
    pub(super) fn has_queue_mostly(&self) -> bool {
        let delayed = self.queueing().is_some_and(|(median, _)| median >= MIN_QUEUE_DELAY);
        // Losses at a full queue are repaired while it is there.
        let share = || time_in(&states::shares(self), &[SenderState::Queueing, SenderState::Recovery]);
        delayed && share() >= MIN_QUEUE_SHARE
    }

    /// True when a thread of the transfer at this end never slept: it ran, or waited for a processor.
    pub(super) fn never_slept(&self, end: TransferEnd) -> bool {
        let share = |ratio: Option<Ratio>| ratio.map_or(0.0, Ratio::get);
        self.observation.connections.iter().any(|connection| {
            let (ran, waited) = match end {
                TransferEnd::Sender => (connection.sender_processor, connection.sender_wait),
                TransferEnd::Receiver => (connection.receiver_processor, connection.receiver_wait),
            };
            share(ran) + share(waited.or_else(|| self.traced_wait(end))) >= MIN_SATURATED_SHARE
        })
    }

    /// True when the thread at this end ran for almost all of the time, but for short waits for its processor, and the path does
    /// not explain the rate.
    pub(super) fn is_thread_saturated(&self, end: TransferEnd) -> bool {
        let ran = self.thread_share(end).is_some_and(|share| share.get() >= MIN_SATURATED_SHARE);
        let waited_little = self.wait_share(end).is_none_or(|wait| wait.get() < MIN_WAIT_SHARE);
        let saturated = ran || (waited_little && self.never_slept(end));
        saturated && !self.is_full() && (self.is_starved(end) || !self.has_queue_mostly())
    }

    /// True when the transfer ran out of data, or of space for it, because the thread at this end did not run.
    pub(super) fn is_starved(&self, end: TransferEnd) -> bool {
        let share = |ratio: Option<Ratio>| ratio.map_or(0.0, Ratio::get);
        let idle = |shares: linerate_model::limit::LimitShares| match end {
            TransferEnd::Sender => shares.application.get() >= MIN_IDLE_SHARE,
            TransferEnd::Receiver => shares.receive_window.get() >= MIN_WINDOW_SHARE,
        };
        let behind = match end {
            TransferEnd::Sender => share(self.application_limited) >= MIN_APPLICATION_LIMITED_SHARE,
            TransferEnd::Receiver => {
                // Late acknowledgements alone have other reasons, too: then who had the processor has to be known.
                let is_known = self.occupant(end).is_some() || self.waits_for_others(end);
                let is_late = is_known && self.late_acknowledgements().is_some();
                share(self.unread) >= MIN_UNREAD_SHARE || is_late
            }
        };
        (self.never_slept(end) && !self.has_queue_mostly()) || behind || self.shares.is_some_and(idle)
    }

    /// True when other programs keep the host busy, and a thread at this end waited for a processor longer than it ran.
    fn waits_for_others(&self, end: TransferEnd) -> bool {
        let is_busy = self.processor_load(end).is_some_and(|load| taken(load) >= MIN_OTHERS_SHARE);
        is_busy && self.wait_share(end).is_some_and(|waited| self.thread_share(end).is_none_or(|ran| waited >= ran))
    }

    /// True when the reader waits for a processor that others have, and packets queue on the path for most of the time: then
    /// late reads cost nothing, and are not the program's.
    pub(super) fn reads_late_beside_a_queue(&self) -> bool {
        self.waits_for_others(TransferEnd::Receiver) && self.has_queue_mostly()
    }

    /// Returns the share of the time for which a thread at this end waited for a processor, where that limits the
    /// transfer.
    pub(super) fn limiting_wait(&self, end: TransferEnd) -> Option<Ratio> {
        let is_traced = self.occupant(end).is_some_and(|occupant| occupant.is_reason());
        // A program that keeps the rate it was asked for waits where it would have slept.
        if is_traced && end == TransferEnd::Sender && super::rules::keeps_asked_rate(self) {
            return None;
        }
        let least = if is_traced { MIN_TRACED_WAIT_SHARE } else { MIN_WAIT_SHARE };
        let wait = self.wait_share(end).filter(|wait| wait.get() >= least)?;
        (!self.is_full() && !self.has_queue_mostly() && self.is_starved(end)).then_some(wait)
    }

    /// True when the transfer's own threads, not other programs, take each other's processors.
    pub(super) fn is_own_load(&self, end: TransferEnd) -> bool {
        // One task of others takes little of many processors, and may have the one that is needed.
        if let Some(occupant) = self.occupant(end).filter(super::lateness::Occupant::is_reason) {
            return occupant.is_own();
        }
        let load = self.processor_load(end);
        let others = load.and_then(|load| load.others);
        others.is_some_and(|others| others < MAX_UNNOTICED_SHARE)
            && load.is_some_and(|load| load.stolen < MAX_UNNOTICED_SHARE)
    }

    /// Returns the end whose threads waited most for processors that others have, where that limits the transfer.
    pub(super) fn late_end(&self) -> Option<TransferEnd> {
        TransferEnd::ALL.into_iter().filter(|end| self.is_late(*end)).max_by_key(|end| self.wait_share(*end))
    }

    /// True when threads at this end waited for processors that others have, and that limits the transfer.
    pub(super) fn is_late(&self, end: TransferEnd) -> bool {
        !self.is_own_load(end) && self.limiting_wait(end).is_some()
    }
}

/// `the only processor`, `both processors`, `all 8 processors`.
pub(super) fn all_processors(count: u32) -> String {
    match count {
        0 => "the processors".to_owned(),
        1 => "the only processor".to_owned(),
        2 => "both processors".to_owned(),
        count => format!("all {count} processors"),
    }
}

/// Share of all processors that other programs, or the hypervisor, take.
fn taken(load: &ProcessorLoad) -> f64 {
    load.others.unwrap_or(0.0).max(load.stolen)
}

/// Name of the program that takes the processors: another one, or the hypervisor.
pub(super) fn occupant(load: &ProcessorLoad) -> &'static str {
    if load.stolen > load.others.unwrap_or(0.0) { "the hypervisor" } else { "other processes" }
}

/// Notes on a host that is busy without limiting the transfer.
pub(super) fn notes(evidence: &TransferEvidence<'_>, verdicts: &[DiagnosisVerdict]) -> Vec<String> {
    let explained = verdicts.iter().any(|verdict| {
        matches!(
            verdict.cause,
            Cause::HostBusy | Cause::SenderProcessor | Cause::ReceiverProcessor | Cause::InterruptsOnOneCore
        )
    });
    if explained {
        return Vec::new();
    }
    let busy: Vec<(TransferEnd, &ProcessorLoad)> = [TransferEnd::Sender, TransferEnd::Receiver]
        .into_iter()
        .filter_map(|end| Some((end, evidence.processor_load(end)?)))
        .filter(|(_, load)| taken(load) >= MIN_OTHERS_SHARE)
        .collect();
    busy.iter().map(|(end, load)| note(evidence, *end, load)).collect()
}

fn note(evidence: &TransferEvidence<'_>, end: TransferEnd, load: &ProcessorLoad) -> String {
    let total = evidence.host(end).and_then(|host| host.busy).unwrap_or(0.0);
    let taken = taken(load);
    let keeps = if total >= MIN_SATURATED_SHARE {
        format!("keep {} of the {} host busy", all_processors(load.processors), end.participle())
    } else {
        format!("use {} of the processors of the {} host", percent_of(taken), end.participle())
    };
    let occupant = occupant(load);
    // One hypervisor, several processes.
    let keeps = if occupant == "the hypervisor" {
        keeps.replacen("keep", "keeps", 1).replacen("use ", "uses ", 1)
    } else {
        keeps
    };
    let waited = match evidence.wait_share(end) {
        None => "its kernel does not count how long this transfer waited for a processor".to_owned(),
        Some(wait) if wait.get() < 0.05 => "this transfer did not wait for them".to_owned(),
        Some(wait) => {
            format!(
                "this transfer waited {} of the time for a processor, which is not its limit",
                percent_of(wait.get())
            )
        }
    };
    let mut letters = occupant.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{} {keeps}; {waited}.", letters.as_str())
}
