use std::collections::VecDeque;

use super::Law;
use super::constants::{
    ALL_DEAD, BASE_DOWN, BASE_UP, CLOCK_SLACK, COMPARISON, DELTA_AVERAGE, HEALTH, OFFENCES, ROTATION, WORSE,
};
use super::settings::{Delay, ReflectorId, Sample};

/// What a sample says of the two directions, up first: delays above rest, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Above {
    pub(super) delays: [f64; 2],
    /// The round trip itself.
    pub(super) round_trip: f64,
    /// Whether directions were measured apart.
    pub(super) one_way: bool,
}

#[derive(Clone, Copy, Debug)]
struct Reflector {
    id: ReflectorId,
    /// Delays at rest, up and down; halves of the round trip where no more is known.
    base: Option<[f64; 2]>,
    base_round_trip: f64,
    /// Mean of the round trip above rest, while the load is not high.
    mean_above: f64,
    sequence: Option<u64>,
    answered: f64,
    /// Whether an answer is missing since the last look.
    lost: bool,
    /// One bit for each look, the last one lowest.
    offences: u64,
}

impl Reflector {
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

/// The reflectors that are probed, and those that could be.
#[derive(Clone, Debug)]
pub(super) struct Reflectors {
    used: Vec<Reflector>,
    spare: VecDeque<ReflectorId>,
    looked: f64,
    compared: f64,
    rotated: f64,
    turn: usize,
}

impl Reflectors {
    pub(super) fn new(used: &[ReflectorId], spare: &[ReflectorId], now: f64) -> Self {
        Self {
            used: used.iter().map(|id| Reflector::new(*id, now)).collect(),
            spare: spare.iter().copied().collect(),
            looked: now,
            compared: now,
            rotated: now,
            turn: 0,
        }
    }

    /// Takes a sample; `None` when it is of nobody who is probed, or late. `queues` is what stands in both directions now,
    /// up first: so much of a new reflector's first delay is no delay at rest.
    pub(super) fn absorb(&mut self, sample: &Sample, now: f64, law: Law, queues: [f64; 2]) -> Option<Above> {
        let reflector = self.used.iter_mut().find(|reflector| reflector.id == sample.reflector)?;
        if reflector.sequence.is_some_and(|last| sample.sequence <= last) {
            return None;
        }
        reflector.sequence = Some(sample.sequence);
        reflector.answered = now;
        let (values, one_way) = match sample.delay {
            Delay::OneWay { up, down } => ([up.number() / 1e9, down.number() / 1e9], true),
            Delay::RoundTrip(time) => ([time.as_secs_f64() / 2.0; 2], false),
        };
        let first = match law {
            Law::Linerate => [values[0] - queues[0], values[1] - queues[1]],
            Law::CakeAutorate => values,
        };
        let base = match reflector.base {
            Some(base) => [follow(base[0], values[0]), follow(base[1], values[1])],
            None => first,
        };
        let round_trip = values[0] + values[1];
        reflector.base_round_trip = match reflector.base {
            Some(_) => follow(reflector.base_round_trip, round_trip),
            None => first[0] + first[1],
        };
        let above_round_trip = round_trip - reflector.base_round_trip;
        let mut above = [values[0] - base[0], values[1] - base[1]];
        let mut base = base;
        if law == Law::Linerate && one_way {
            // No queue is longer than what the round trip shows: the rest is a clock that moved.
            let most = above_round_trip.max(0.0) + CLOCK_SLACK;
            for (above, base) in above.iter_mut().zip(&mut base) {
                let beyond = (*above - most).max(0.0);
                *base += beyond;
                *above -= beyond;
            }
        }
        reflector.base = Some(base);
        Some(Above { delays: above.map(|delay| delay.max(0.0)), round_trip, one_way })
    }

    /// Counts a sample for the comparison of reflectors; to be called while the load is not high.
    pub(super) fn average(&mut self, id: ReflectorId, above: &Above) {
        if let Some(reflector) = self.used.iter_mut().find(|reflector| reflector.id == id) {
            reflector.mean_above += DELTA_AVERAGE * (above.delays[0] + above.delays[1] - reflector.mean_above);
        }
    }

    /// Delays at rest are longer by so much, up first.
    pub(super) fn rebase(&mut self, by: [f64; 2]) {
        for reflector in &mut self.used {
            if let Some(base) = &mut reflector.base {
                *base = [base[0] + by[0], base[1] + by[1]];
                reflector.base_round_trip += by[0] + by[1];
            }
        }
    }

    /// One-way delays mean nothing any more; the next samples begin anew.
    pub(super) fn forget(&mut self) {
        self.used.iter_mut().for_each(|reflector| reflector.base = None);
    }

    /// The smallest round trip at rest; zero before one is known.
    pub(super) fn round_trip_at_rest(&self) -> f64 {
        let known = self.used.iter().filter(|reflector| reflector.base.is_some());
        let least = known.map(|reflector| reflector.base_round_trip).fold(f64::INFINITY, f64::min);
        if least.is_finite() { least } else { 0.0 }
    }

    /// When the last answer of anybody came.
    pub(super) fn answered(&self) -> f64 {
        self.used.iter().map(|reflector| reflector.answered).fold(f64::NEG_INFINITY, f64::max)
    }

    /// An answer did not come: an offence at the next look.
    pub(super) fn lost(&mut self, id: ReflectorId) {
        if let Some(reflector) = self.used.iter_mut().find(|reflector| reflector.id == id) {
            reflector.lost = true;
        }
    }

    /// Who is probed.
    pub(super) fn probed(&self) -> impl Iterator<Item = ReflectorId> {
        self.used.iter().map(|reflector| reflector.id)
    }

    /// Looks at all of them; who is replaced by whom. `all_dead`: nobody answers although the path carries data.
    pub(super) fn check(&mut self, now: f64, all_dead: bool) -> Option<(ReflectorId, ReflectorId)> {
        if now - self.looked < HEALTH {
            return None;
        }
        self.looked = now;
        // Where most do not answer it is the path.
        let offends = |reflector: &Reflector| reflector.lost || now - reflector.answered > HEALTH;
        let silent = self.used.iter().filter(|reflector| offends(reflector)).count() * 2 > self.used.len();
        let mask = (1_u64 << OFFENCES.0) - 1;
        for reflector in &mut self.used {
            let offence = !silent && offends(reflector);
            reflector.lost = false;
            reflector.offences = ((reflector.offences << 1) | u64::from(offence)) & mask;
        }
        let answers = all_dead || now - self.answered() < HEALTH;
        let dead = |reflector: &Reflector| answers && now - reflector.answered > ALL_DEAD;
        let dead_one = self.used.iter().position(dead);
        if silent && dead_one.is_none() {
            return None;
        }
        let index = dead_one.or_else(|| self.offender()).or_else(|| self.worse(now)).or_else(|| self.rotation(now))?;
        let new = self.spare.pop_front()?;
        let old = core::mem::replace(&mut self.used[index], Reflector::new(new, now)).id;
        self.spare.push_back(old);
        Some((old, new))
    }

    fn offender(&self) -> Option<usize> {
        self.used.iter().position(|reflector| reflector.offences.count_ones() >= OFFENCES.1)
    }

    fn worse(&mut self, now: f64) -> Option<usize> {
        if now - self.compared < COMPARISON {
            return None;
        }
        self.compared = now;
        let known = || self.used.iter().filter(|reflector| reflector.base.is_some());
        let base = known().map(|reflector| reflector.base_round_trip).fold(f64::INFINITY, f64::min);
        let above = known().map(|reflector| reflector.mean_above).fold(f64::INFINITY, f64::min);
        self.used.iter().position(|reflector| {
            reflector.base.is_some()
                && (reflector.base_round_trip - base > WORSE.0 || reflector.mean_above - above > WORSE.1)
        })
    }

    fn rotation(&mut self, now: f64) -> Option<usize> {
        if now - self.rotated < ROTATION || self.used.is_empty() {
            return None;
        }
        self.rotated = now;
        self.turn = (self.turn + 1) % self.used.len();
        Some(self.turn)
    }
}

/// A delay at rest after another reading.
fn follow(base: f64, value: f64) -> f64 {
    base + if value > base { BASE_UP } else { BASE_DOWN } * (value - base)
}
