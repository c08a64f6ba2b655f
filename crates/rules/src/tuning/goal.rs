//! Tuning goals: the figure to improve, and the limits for the others.

use core::time::Duration;
use serde::{Deserialize, Serialize};

use linerate_units::Ratio;

/// Purpose of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TuningGoal {
    /// Bulk data over long paths.
    #[default]
    WanBulk,
    /// Bulk data over short paths.
    Lan,
    /// Responses with low latency.
    LowLatency,
    /// Many connections, each with little data.
    Web,
    /// Forwarding of other hosts' traffic.
    Router,
}

/// Figure to improve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TuningAim {
    /// More payload per second.
    Goodput,
    /// Shorter round trips under load.
    RoundTrip,
}

/// Required gain of a change, and its allowed cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TuningObjective {
    /// Figure to improve.
    pub aim: TuningAim,
    /// Least gain, relative to the previous value.
    pub least_gain: Ratio,
    /// Largest loss of the other figure, relative to its previous value.
    pub cost: Ratio,
    /// Increase of the round trip that is always allowed, as it is unnoticeable.
    pub unnoticed: Duration,
    /// Largest growth of the round trip that a larger gain of goodput justifies, where no cap on the window reaches
    /// nearly as much: the queue of a path that a transfer fills. Zero for none.
    pub justified_queue: Ratio,
    /// True when that growth is allowed in addition to the cost.
    pub allows_queue: bool,
    /// Window as a multiple of the bandwidth-delay product, where the path was not measured. More than one covers loss
    /// recovery, bursts of acknowledgements and windows smaller than expected, but allows a queue of that size.
    pub room: f64,
    /// The same where path and window were measured: the resulting queue stays well below the goal's limit.
    pub measured_room: f64,
}

impl TuningObjective {
    /// Returns the same objective that also allows the queue of a filled path; `None` where the goal does not.
    #[must_use]
    pub fn with_queue(self) -> Option<Self> {
        (self.justified_queue > Ratio::ZERO).then_some(Self { allows_queue: true, ..self })
    }
}

impl TuningGoal {
    /// All goals.
    pub const ALL: [Self; 5] = [Self::WanBulk, Self::Lan, Self::LowLatency, Self::Web, Self::Router];

    /// Returns the name on the command line and in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::WanBulk => "wan-bulk",
            Self::Lan => "lan",
            Self::LowLatency => "low-latency",
            Self::Web => "web",
            Self::Router => "router",
        }
    }

    /// Returns the goal of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|goal| goal.name() == name)
    }

    /// Returns the objective of a change for this goal.
    #[must_use]
    pub fn objective(self) -> TuningObjective {
        let share = |percent| Ratio::from_percent(percent).unwrap_or_default();
        let cost = share(20.0);
        let justified_queue = match self {
            Self::WanBulk => share(100.0),
            Self::Lan => share(50.0),
            Self::LowLatency | Self::Web | Self::Router => Ratio::ZERO,
        };
        // The product counts whole packets, whose headers use no window: 1.12 of it is 1.16 of the payload in flight.
        let (aim, room, measured_room) = match self {
            Self::WanBulk | Self::Lan | Self::Web => (TuningAim::Goodput, 1.25, 1.0 + 0.6 * cost.get()),
            Self::LowLatency | Self::Router => (TuningAim::RoundTrip, 1.0, 1.0),
        };
        TuningObjective {
            aim,
            least_gain: share(5.0),
            cost,
            unnoticed: Duration::from_millis(5),
            justified_queue,
            allows_queue: false,
            room,
            measured_room,
        }
    }

    /// True when connections end on the host: forwarded traffic does not use socket settings.
    #[must_use]
    pub const fn ends_connections(self) -> bool {
        !matches!(self, Self::Router)
    }

    /// True when responses must not wait behind unsent data.
    #[must_use]
    pub const fn minds_waiting(self) -> bool {
        matches!(self, Self::LowLatency | Self::Web)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bulk_goals_allow_a_queue_for_goodput() {
        for goal in TuningGoal::ALL {
            let is_bulk = matches!(goal, TuningGoal::WanBulk | TuningGoal::Lan);
            assert_eq!(goal.objective().with_queue().is_some(), is_bulk, "{goal:?}");
        }
    }

    #[test]
    fn names_round_trip() {
        for goal in TuningGoal::ALL {
            assert_eq!(TuningGoal::from_name(goal.name()), Some(goal));
        }
        assert_eq!(TuningGoal::from_name("fast"), None);
    }
}
