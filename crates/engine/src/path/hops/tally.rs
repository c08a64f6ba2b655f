//! Answers of one hop.

use core::time::Duration;
use std::collections::VecDeque;
use std::net::IpAddr;

use linerate_analysis::route_loss::ProbeCount;
use linerate_model::route::MplsLabel;
use linerate_units::serde::nanoseconds;
use linerate_units::{MonotonicTime, PacketCount};

use super::flow::HopAnswer;
use super::rounds::RecentRounds;

/// Latest round trips that are kept of each hop: those of five hours at one a second.
const MAX_SAMPLES: usize = 20_000;

/// Addresses that are kept of each hop: more are no routes of equal cost, but forged.
const MAX_ADDRESSES: usize = 64;

/// One address of a hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AddressTally {
    pub(super) address: IpAddr,
    /// Indices of its flows, ascending.
    pub(super) flows: Vec<u16>,
    pub(super) answers: u64,
    pub(super) labels: Vec<MplsLabel>,
}

/// Probes to one distance and their answers.
#[derive(Clone, Debug, Default)]
pub(super) struct HopTally {
    pub(super) count: ProbeCount,
    /// Time of departure and round trip of the latest answers.
    pub(super) samples: VecDeque<(MonotonicTime, Duration)>,
    pub(super) addresses: Vec<AddressTally>,
    pub(super) rounds: RecentRounds,
    /// Sum of the absolute differences of consecutive round trips, and their number.
    differences: (Duration, u32),
}

impl HopTally {
    pub(super) fn sent(&mut self, round: u32, now: MonotonicTime) {
        self.count.sent += PacketCount::new(1);
        self.rounds.sent(round.into(), round.into(), now);
    }

    pub(super) fn answered(&mut self, answer: &HopAnswer, flow: u16) {
        self.count.answered += PacketCount::new(1);
        self.rounds.answered(answer.round.into(), answer.round_trip);
        if let Some((_, before)) = self.samples.back() {
            let (sum, count) = self.differences;
            self.differences = (sum + before.abs_diff(answer.round_trip), count.saturating_add(1));
        }
        if self.samples.len() == MAX_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back((answer.sent, answer.round_trip));
        let place = self.addresses.iter().position(|one| one.address == answer.from);
        let place = place.or_else(|| {
            (self.addresses.len() < MAX_ADDRESSES).then(|| {
                let tally = AddressTally { address: answer.from, flows: Vec::new(), answers: 0, labels: Vec::new() };
                self.addresses.push(tally);
                self.addresses.len() - 1
            })
        });
        let Some(one) = place.and_then(|place| self.addresses.get_mut(place)) else { return };
        one.answers += 1;
        one.labels.clone_from(&answer.labels);
        if let Err(place) = one.flows.binary_search(&flow) {
            one.flows.insert(place, flow);
        }
    }

    pub(super) fn round_trips(&self) -> Vec<Duration> {
        self.samples.iter().map(|(_, time)| *time).collect()
    }

    pub(super) fn last_ns(&self) -> Option<u64> {
        self.samples.back().map(|(_, time)| nanoseconds(*time))
    }

    /// Mean of the absolute differences of consecutive round trips.
    pub(super) fn jitter_ns(&self) -> Option<u64> {
        let (sum, count) = self.differences;
        (count > 0).then(|| nanoseconds(sum / count))
    }
}
