//! Predicted delays of a shaper, for comparison with measurements.
//!
//! The model has three places where a packet waits. *The shaper* sends whole packets at the set rate: a sparse flow's
//! packet waits for the current one. *The link* is a queue without management: a packet that leaves the shaper at once
//! waits there for the packet in transmission; received packets pass it before the shaper, in bursts. *The own queue* of a
//! flow that fills the link delays only that flow.

use core::time::Duration;

use linerate_model::direction::Direction;
use linerate_model::load::PhaseKind;
use linerate_units::{StreamCount, display};

use crate::link::AccessLink;
use crate::policy::TrafficImportance;

/// Predicted delays of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PredictedDelays {
    /// One entry per load and class: each direction alone, then both.
    pub classes: Vec<ClassPrediction>,
}

/// Predicted delay of a small packet of one class under load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassPrediction {
    /// Loaded directions.
    pub load: PhaseKind,
    /// Class of the packet.
    pub importance: TrafficImportance,
    /// True for packets with ECT(1) in a dual queue; all others have entries of their own.
    pub l4s: bool,
    /// Round-trip time of the idle link; `None` when not measured, and then the times below exclude it.
    pub idle: Option<Duration>,
    /// Serialisation time of a full packet at the set rate, in the slower of the loaded directions.
    pub serialisation: Duration,
    /// Delay of a flow that fills the class, mostly in its own queue; with both directions full, the mean of both.
    pub own_queue: Duration,
    /// Mean delay.
    pub mean: Duration,
    /// Longest delay.
    pub max: Duration,
    /// The sum of the mean as text.
    pub arithmetic: String,
}

/// Agreement of a measured mean with its prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredictionAgreement {
    /// Not above the longest predicted delay.
    AsPredicted,
    /// Above it, by this time.
    Longer(Duration),
}

/// Behaviour of one class of a shaper in one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClassBehaviour {
    /// Direction.
    pub(crate) direction: Direction,
    /// Class.
    pub(crate) importance: TrafficImportance,
    /// True for the low-latency queue of a dual one.
    pub(crate) l4s: bool,
    /// Serialisation time of a full packet at the set rate.
    pub(crate) packet: Duration,
    /// Turn of a sparse flow's packet.
    pub(crate) turn: ShaperTurn,
    /// Time of the acknowledgements that accumulate between two turns of their class while the other direction is full.
    pub(crate) acknowledgements: Duration,
    /// Further wait in a queue that all flows of the class share.
    pub(crate) shared_queue: Duration,
    /// Delay of a flow that fills the class, in its own queue.
    pub(crate) own_queue: Duration,
}

/// Turn of a sparse flow's packet in a shaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShaperTurn {
    /// It leaves at once, and waits behind the shaper for the packet in transmission.
    AtOnce,
    /// As [`AtOnce`](Self::AtOnce), where the acknowledgements of all flows share one queue and leave together.
    AtOnceAmongAcknowledgements,
    /// It follows the current packet.
    Next,
    /// It follows the current packet, and takes turns with acknowledgements, which have a class of their own.
    NextAfterAcknowledgement,
}

/// Packets that TCP sends in one burst: receivers acknowledge every second segment (RFC 5681 §4.2).
const BURST_PACKETS: f64 = 2.0;

/// Time by which a bucket of HTB may send a packet early, so that two meet behind the shaper.
const EARLY: Duration = Duration::from_millis(1);

/// Share of a low-latency queue's threshold that waits on average, and multiple of it that waits at most, where senders react
/// to each mark (in the lab with DCTCP and a threshold of 1 ms, for pings with ECT(1): 0.5 ms on average and 2.2 at 99 % with 20
/// Mbit/s, 0.3 and 0.7 with 50).
pub(crate) const L4S_MEAN_QUEUE: f64 = 0.25;
const L4S_LONGEST_QUEUE: f64 = 2.0;

impl ClassBehaviour {
    /// Longest wait in the queue that all flows of the class share.
    fn longest_shared_queue(&self) -> Duration {
        if self.l4s { self.shared_queue.mul_f64(L4S_LONGEST_QUEUE / L4S_MEAN_QUEUE) } else { self.shared_queue * 2 }
    }

    /// Mean and longest wait of a packet that is sent while this direction is full.
    fn sending(&self, line: &AccessLink, is_both: bool) -> (Duration, Duration) {
        let acknowledgements = if is_both { self.acknowledgements } else { Duration::ZERO };
        let (mean, longest) = match self.turn {
            // The link behind sends it at once, too.
            ShaperTurn::AtOnce | ShaperTurn::AtOnceAmongAcknowledgements if line.limits_faster_link => {
                (Duration::ZERO, self.packet)
            }
            ShaperTurn::AtOnce | ShaperTurn::AtOnceAmongAcknowledgements => (self.packet / 2, self.packet + EARLY),
            ShaperTurn::Next => (self.packet / 2, self.packet),
            // A bulk flow whose queue was empty for a moment counts as sparse, too.
            ShaperTurn::NextAfterAcknowledgement => {
                (self.packet / 2 + acknowledgements, self.packet * 2 + acknowledgements + EARLY)
            }
        };
        (mean + self.shared_queue, longest + self.longest_shared_queue())
    }

    /// Mean and longest wait of a received packet while this direction is full, with bursts of so many packets.
    ///
    /// Bursts of other flows meet it at random, so that their squares add up; the longest wait is for all of them, and for
    /// the packet by which a window has grown.
    fn receiving(&self, line: &AccessLink, (burst, is_both): (f64, bool)) -> (Duration, Duration) {
        let ahead = if line.limits_faster_link { 0.0 } else { self.packets_ahead(line.flows, (burst, is_both)) };
        let longest = self.packet.mul_f64(ahead + 1.0);
        let shaper = match self.turn {
            ShaperTurn::AtOnce | ShaperTurn::AtOnceAmongAcknowledgements => Duration::ZERO,
            ShaperTurn::Next | ShaperTurn::NextAfterAcknowledgement => self.packet,
        };
        let mean = self.packet.mul_f64(ahead * self.turn.share_of_burst(is_both));
        (mean + shaper / 2 + self.shared_queue, longest + shaper + self.longest_shared_queue())
    }

    /// Packets of a burst on the link, and of those that meet it.
    fn packets_ahead(&self, flows: StreamCount, (burst, is_both): (f64, bool)) -> f64 {
        let others = (flows.as_f64() - 1.0).max(0.0) * BURST_PACKETS * BURST_PACKETS;
        match self.turn {
            ShaperTurn::AtOnceAmongAcknowledgements if is_both => burst * flows.as_f64(),
            _ => (burst * burst + others).sqrt(),
        }
    }

    /// Delay of a flow that fills this direction, in its own queue, which drains slower by the acknowledgements between its
    /// packets.
    fn own_queue_among_acknowledgements(&self) -> Duration {
        let share = self.acknowledgements.as_secs_f64() / self.packet.as_secs_f64().max(1e-9);
        self.own_queue.mul_f64(1.0 + share)
    }

    /// Delay of a flow that fills this direction: in its own queue, and received packets among the bursts before it.
    fn filling(&self, line: &AccessLink, bursts: (f64, bool)) -> Duration {
        let ahead = if line.limits_faster_link { 0.0 } else { self.packets_ahead(line.flows, bursts) };
        let burst = self.packet.mul_f64(ahead / 2.0);
        self.own_queue + if self.direction == Direction::Down { burst } else { Duration::ZERO }
    }
}

impl ShaperTurn {
    /// Mean share of a burst that is ahead of an answer: half of it at random. A request that leaves in turn follows the
    /// acknowledgements that cause the burst, so that its answer meets all of it, and with a queue for all kinds of packets
    /// often. One that leaves at once is ahead of them, and its answer meets the end of the burst before.
    const fn share_of_burst(self, is_both: bool) -> f64 {
        match self {
            Self::NextAfterAcknowledgement if is_both => 1.0,
            Self::Next if is_both => 0.75,
            Self::AtOnce | Self::AtOnceAmongAcknowledgements if is_both => 1.0 / 3.0,
            _ => 0.5,
        }
    }
}

/// Packets in a burst of the downlink while the uplink is full: acknowledgements that wait for one packet of the uplink
/// leave together, and have as many packets sent.
fn burst_packets(up: Option<&ClassBehaviour>, down: &ClassBehaviour) -> f64 {
    let during = up.map_or(0.0, |up| up.packet.as_secs_f64() / down.packet.as_secs_f64().max(1e-9));
    during.max(BURST_PACKETS)
}

impl PredictedDelays {
    /// Predicts from the behaviour of the classes.
    pub(crate) fn new(line: &AccessLink, behaviours: &[ClassBehaviour]) -> Self {
        let of = |direction, importance, l4s| {
            let is_one = move |one: &&ClassBehaviour| one.direction == direction && one.importance == importance;
            behaviours.iter().filter(is_one).find(move |one| one.l4s == l4s)
        };
        let mut classes = Vec::new();
        for behaviour in behaviours {
            classes.push(match behaviour.direction {
                Direction::Up => ClassPrediction::new(line, (Some(behaviour), None)),
                Direction::Down => ClassPrediction::new(line, (None, Some(behaviour))),
            });
        }
        let kinds = TrafficImportance::ALL.into_iter().map(|importance| (importance, false));
        for (importance, l4s) in kinds.chain([(TrafficImportance::Default, true)]) {
            if let (Some(up), Some(down)) = (of(Direction::Up, importance, l4s), of(Direction::Down, importance, l4s)) {
                classes.push(ClassPrediction::new(line, (Some(up), Some(down))));
            }
        }
        Self { classes }
    }

    /// Entry of a direction alone and a class.
    #[must_use]
    pub fn class(&self, direction: Direction, importance: TrafficImportance) -> Option<&ClassPrediction> {
        let load = match direction {
            Direction::Up => PhaseKind::Up,
            Direction::Down => PhaseKind::Down,
        };
        self.under(load, importance)
    }

    /// Entry of a load and a class; of a dual queue, that of packets without ECT(1).
    #[must_use]
    pub fn under(&self, load: PhaseKind, importance: TrafficImportance) -> Option<&ClassPrediction> {
        self.classes.iter().find(|entry| entry.load == load && entry.importance == importance && !entry.l4s)
    }
}

impl ClassPrediction {
    /// Predicts for one class, with one direction full, or both.
    fn new(line: &AccessLink, (up, down): (Option<&ClassBehaviour>, Option<&ClassBehaviour>)) -> Self {
        let load = match (up, down) {
            (Some(_), Some(_)) => PhaseKind::Both,
            (None, Some(_)) => PhaseKind::Down,
            (_, None) => PhaseKind::Up,
        };
        let sent = up.map(|up| up.sending(line, down.is_some()));
        let bursts = |down: &ClassBehaviour| (burst_packets(up, down), up.is_some());
        let received = down.map(|down| down.receiving(line, bursts(down)));
        let filling = |down: &ClassBehaviour| down.filling(line, bursts(down));
        let sum = |idle: Duration, part: fn(&(Duration, Duration)) -> Duration| {
            [sent, received].iter().flatten().map(part).fold(idle, Duration::saturating_add)
        };
        let idle = line.idle.unwrap_or_default();
        let (mean, max) = (sum(idle, |wait| wait.0), sum(idle, |wait| wait.1));
        let own_queue = match (up.zip(received), down.zip(sent)) {
            // Acknowledgements of either direction wait in the other one, and take their share of a slow uplink.
            (Some((up, received)), Some((down, sent))) => {
                (up.own_queue_among_acknowledgements() + received.0 + filling(down) + sent.0) / 2
            }
            _ => up.map(|up| up.own_queue).or(down.map(filling)).unwrap_or_default(),
        };
        let behaviours = || [up, down].into_iter().flatten();
        let shown = |wait: Option<(Duration, Duration)>, place: &str| {
            wait.map(|wait| format!(" + {} {place}", display::duration(wait.0))).unwrap_or_default()
        };
        let arithmetic = format!(
            "{}{}{} = {}{}",
            line.idle.map_or("idle".to_owned(), |idle| format!("{} idle", display::duration(idle))),
            shown(sent, "for the current packet up"),
            shown(received, "behind bursts down"),
            display::duration(mean),
            if line.idle.is_some() { "" } else { " above idle" },
        );
        Self {
            load,
            importance: behaviours().next().map_or(TrafficImportance::Default, |one| one.importance),
            l4s: behaviours().any(|one| one.l4s),
            idle: line.idle,
            serialisation: behaviours().map(|one| one.packet).max().unwrap_or_default(),
            own_queue,
            mean,
            max,
            arithmetic,
        }
    }

    /// Compares with the measured mean of a probe of this class. Where [`idle`](Self::idle) is unknown, `measured` is
    /// the delay added to the idle link.
    #[must_use]
    pub fn compare(&self, measured: Duration) -> PredictionAgreement {
        match measured.checked_sub(self.max) {
            None | Some(Duration::ZERO) => PredictionAgreement::AsPredicted,
            Some(by) => PredictionAgreement::Longer(by),
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_units::BitRate;

    use super::*;

    fn behaviour(direction: Direction, milliseconds: u64, turn: ShaperTurn) -> ClassBehaviour {
        ClassBehaviour {
            direction,
            importance: TrafficImportance::Default,
            l4s: false,
            packet: Duration::from_millis(milliseconds),
            turn,
            acknowledgements: Duration::from_millis(milliseconds / 5),
            shared_queue: Duration::ZERO,
            own_queue: Duration::from_millis(3 * milliseconds),
        }
    }

    /// Half a packet of 50 ms up; four flows of two packets of 10 ms down: √(4 × 4) of them, half of which are ahead.
    #[test]
    fn the_sums_by_hand() {
        let mut line = AccessLink::new(Some(BitRate::from_bits_per_second(240e3)), None);
        line.flows = StreamCount::new(4);
        let all = |turn| [behaviour(Direction::Up, 50, turn), behaviour(Direction::Down, 10, turn)];
        let milliseconds = |line: &AccessLink, turn, load| {
            let delays = PredictedDelays::new(line, &all(turn));
            let entry = delays.under(load, TrafficImportance::Default).expect("predicted").clone();
            (entry.mean.as_millis(), entry.max.as_millis(), entry.own_queue.as_millis())
        };
        assert_eq!(milliseconds(&line, ShaperTurn::AtOnce, PhaseKind::Up), (25, 51, 150));
        assert_eq!(milliseconds(&line, ShaperTurn::AtOnce, PhaseKind::Down), (20, 50, 50));
        assert_eq!(milliseconds(&line, ShaperTurn::Next, PhaseKind::Down), (25, 60, 50));
        // Five packets down during one up, and three other flows: √(25 + 3 × 4) packets of 10 ms, a third of them ahead; a
        // fifth of the uplink is acknowledgements.
        assert_eq!(milliseconds(&line, ShaperTurn::AtOnce, PhaseKind::Both), (45, 121, (180 + 20 + 30 + 30 + 25) / 2));
        // 25 for the current packet, 10 for acknowledgements, 61 for the burst that they cause, 5 in the shaper.
        assert_eq!(milliseconds(&line, ShaperTurn::NextAfterAcknowledgement, PhaseKind::Both).0, 100);
        line.limits_faster_link = true;
        assert_eq!(milliseconds(&line, ShaperTurn::NextAfterAcknowledgement, PhaseKind::Both).0, 40);
    }

    #[test]
    fn idle_is_added_where_it_is_known() {
        let mut line = AccessLink::new(Some(BitRate::from_bits_per_second(240e3)), None);
        let of = |line: &AccessLink| {
            PredictedDelays::new(line, &[behaviour(Direction::Up, 50, ShaperTurn::Next)]).classes[0].clone()
        };
        assert!(of(&line).arithmetic.ends_with("above idle"), "{}", of(&line).arithmetic);
        line.idle = Some(Duration::from_millis(17));
        let entry = of(&line);
        assert_eq!((entry.mean.as_millis(), entry.max.as_millis()), (42, 67));
        assert_eq!(entry.arithmetic, "17.0 ms idle + 25.0 ms for the current packet up = 42.0 ms");
        assert_eq!(entry.compare(entry.max), PredictionAgreement::AsPredicted);
        let more = entry.max + Duration::from_millis(3);
        assert_eq!(entry.compare(more), PredictionAgreement::Longer(Duration::from_millis(3)));
    }
}
