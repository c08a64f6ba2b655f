use std::collections::VecDeque;

use super::ControlLaw;
use super::constants::{
    BASELINE_DECREASE_FACTOR, BASELINE_INCREASE_FACTOR, COMPARISON_INTERVAL, DELAY_SMOOTHING, HEALTH_CHECK_TIME,
    MAX_CLOCK_EXCESS, MAX_EXCESS_DELAYS, OFFENCE_WINDOW_AND_LIMIT, REFLECTORS_DEAD_TIME, ROTATION_INTERVAL,
};
use super::settings::{ProbeDelay, ReflectorId, ReflectorSample};

/// Delays of a sample above idle, up first, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SampleDelays {
    pub(super) delays: [f64; 2],
    /// Round trip.
    pub(super) round_trip: f64,
    /// True when the directions were measured separately.
    pub(super) one_way: bool,
}

#[derive(Clone, Copy, Debug)]
struct ReflectorState {
    id: ReflectorId,
    /// Idle delays, up and down; halves of the round trip when only that is known.
    base: Option<[f64; 2]>,
    base_round_trip: f64,
    /// Mean of the round trip above idle, while the load is not high.
    mean_above: f64,
    sequence: Option<u64>,
    answered: f64,
    /// True when an answer was lost since the last check.
    lost: bool,
    /// One bit per check, the latest lowest.
    offences: u64,
}

impl ReflectorState {
    const fn new(id: ReflectorId, now: f64) -> Self {
        Self {
            id,
            base: None,
            base_round_trip: 0.0,
            mean_above: 0.0,
            sequence: None,
            answered: now,
            lost: false,
            offences: 0,
        }
    }
}

/// Probed and spare reflectors.
#[derive(Clone, Debug)]
pub(super) struct ReflectorSet {
    used: Vec<ReflectorState>,
    spare: VecDeque<ReflectorId>,
    looked: f64,
    compared: f64,
    rotated: f64,
    turn: usize,
}

impl ReflectorSet {
    pub(super) fn new(used: &[ReflectorId], spare: &[ReflectorId], now: f64) -> Self {
        Self {
            used: used.iter().map(|id| ReflectorState::new(*id, now)).collect(),
            spare: spare.iter().copied().collect(),
            looked: now,
            compared: now,
            rotated: now,
            turn: 0,
        }
    }

    /// Handles a sample; `None` when its reflector is not probed, or it is out of order. `queues`: current queues of
    /// both directions, up first, which are subtracted from a new reflector's first delay.
    pub(super) fn absorb(
        &mut self,
        sample: &ReflectorSample,
        now: f64,
        law: ControlLaw,
        queues: [f64; 2],
    ) -> Option<SampleDelays> {
        let reflector = self.used.iter_mut().find(|reflector| reflector.id == sample.reflector)?;
        if reflector.sequence.is_some_and(|last| sample.sequence <= last) {
            return None;
        }
        reflector.sequence = Some(sample.sequence);
        reflector.answered = now;
        let (values, one_way) = match sample.delay {
            ProbeDelay::OneWay { up, down } => ([up.number() / 1e9, down.number() / 1e9], true),
            ProbeDelay::RoundTrip(time) => ([time.as_secs_f64() / 2.0; 2], false),
        };
        let first = match law {
            ControlLaw::Linerate => [values[0] - queues[0], values[1] - queues[1]],
            ControlLaw::CakeAutorate => values,
        };
        let base = match reflector.base {
            Some(base) => [smoothed_baseline(base[0], values[0]), smoothed_baseline(base[1], values[1])],
            None => first,
        };
        let round_trip = values[0] + values[1];
        reflector.base_round_trip = match reflector.base {
            Some(_) => smoothed_baseline(reflector.base_round_trip, round_trip),
            None => first[0] + first[1],
        };
        let above_round_trip = round_trip - reflector.base_round_trip;
        let mut above = [values[0] - base[0], values[1] - base[1]];
        let mut base = base;
        if law == ControlLaw::Linerate && one_way {
            // No queue is longer than the round trip shows: any excess is a clock step.
            let most = above_round_trip.max(0.0) + MAX_CLOCK_EXCESS;
            for (above, base) in above.iter_mut().zip(&mut base) {
                let beyond = (*above - most).max(0.0);
                *base += beyond;
                *above -= beyond;
            }
        }
        reflector.base = Some(base);
        Some(SampleDelays { delays: above.map(|delay| delay.max(0.0)), round_trip, one_way })
    }

    /// Averages a sample for the comparison of reflectors; called while the load is not high.
    pub(super) fn average(&mut self, id: ReflectorId, above: &SampleDelays) {
        if let Some(reflector) = self.used.iter_mut().find(|reflector| reflector.id == id) {
            reflector.mean_above += DELAY_SMOOTHING * (above.delays[0] + above.delays[1] - reflector.mean_above);
        }
    }

    /// Increases the idle delays, up first.
    pub(super) fn rebase(&mut self, by: [f64; 2]) {
        for reflector in &mut self.used {
            if let Some(base) = &mut reflector.base {
                *base = [base[0] + by[0], base[1] + by[1]];
                reflector.base_round_trip += by[0] + by[1];
            }
        }
    }

    /// Discards the one-way baselines; the next samples start anew.
    pub(super) fn forget(&mut self) {
        self.used.iter_mut().for_each(|reflector| reflector.base = None);
    }

    /// Smallest idle round trip; zero before the first.
    pub(super) fn idle_round_trip(&self) -> f64 {
        let known = self.used.iter().filter(|reflector| reflector.base.is_some());
        let least = known.map(|reflector| reflector.base_round_trip).fold(f64::INFINITY, f64::min);
        if least.is_finite() { least } else { 0.0 }
    }

    /// Time of the last answer of any reflector.
    pub(super) fn answered(&self) -> f64 {
        self.used.iter().map(|reflector| reflector.answered).fold(f64::NEG_INFINITY, f64::max)
    }

    /// Records a lost answer: an offence at the next check.
    pub(super) fn lost(&mut self, id: ReflectorId) {
        if let Some(reflector) = self.used.iter_mut().find(|reflector| reflector.id == id) {
            reflector.lost = true;
        }
    }

    /// Probed reflectors.
    pub(super) fn probed(&self) -> impl Iterator<Item = ReflectorId> {
        self.used.iter().map(|reflector| reflector.id)
    }

    /// Checks all reflectors; returns the replaced and the new one. `all_dead`: no answers although the path carries
    /// data.
    pub(super) fn check(&mut self, now: f64, all_dead: bool) -> Option<(ReflectorId, ReflectorId)> {
        if now - self.looked < HEALTH_CHECK_TIME {
            return None;
        }
        self.looked = now;
        // When most do not answer, the path is at fault.
        let offends = |reflector: &ReflectorState| reflector.lost || now - reflector.answered > HEALTH_CHECK_TIME;
        let silent = self.used.iter().filter(|reflector| offends(reflector)).count() * 2 > self.used.len();
        let mask = (1_u64 << OFFENCE_WINDOW_AND_LIMIT.0) - 1;
        for reflector in &mut self.used {
            let offence = !silent && offends(reflector);
            reflector.lost = false;
            reflector.offences = ((reflector.offences << 1) | u64::from(offence)) & mask;
        }
        let answers = all_dead || now - self.answered() < HEALTH_CHECK_TIME;
        let dead = |reflector: &ReflectorState| answers && now - reflector.answered > REFLECTORS_DEAD_TIME;
        let dead_one = self.used.iter().position(dead);
        if silent && dead_one.is_none() {
            return None;
        }
        let index = dead_one
            .or_else(|| self.offender())
            .or_else(|| self.worst_reflector(now))
            .or_else(|| self.rotation(now))?;
        let new = self.spare.pop_front()?;
        let old = core::mem::replace(&mut self.used[index], ReflectorState::new(new, now)).id;
        self.spare.push_back(old);
        Some((old, new))
    }

    fn offender(&self) -> Option<usize> {
        self.used.iter().position(|reflector| reflector.offences.count_ones() >= OFFENCE_WINDOW_AND_LIMIT.1)
    }

    fn worst_reflector(&mut self, now: f64) -> Option<usize> {
        if now - self.compared < COMPARISON_INTERVAL {
            return None;
        }
        self.compared = now;
        let known = || self.used.iter().filter(|reflector| reflector.base.is_some());
        let base = known().map(|reflector| reflector.base_round_trip).fold(f64::INFINITY, f64::min);
        let above = known().map(|reflector| reflector.mean_above).fold(f64::INFINITY, f64::min);
        self.used.iter().position(|reflector| {
            reflector.base.is_some()
                && (reflector.base_round_trip - base > MAX_EXCESS_DELAYS.0
                    || reflector.mean_above - above > MAX_EXCESS_DELAYS.1)
        })
    }

    fn rotation(&mut self, now: f64) -> Option<usize> {
        if now - self.rotated < ROTATION_INTERVAL || self.used.is_empty() {
            return None;
        }
        self.rotated = now;
        self.turn = (self.turn + 1) % self.used.len();
        Some(self.turn)
    }
}

/// Idle delay updated by a new sample.
fn smoothed_baseline(base: f64, value: f64) -> f64 {
    base + if value > base { BASELINE_INCREASE_FACTOR } else { BASELINE_DECREASE_FACTOR } * (value - base)
}
