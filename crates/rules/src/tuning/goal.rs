//! What a host is for, as what is to become better and what must not become worse: no values.

use core::time::Duration;

use linerate_units::Ratio;

/// What a host is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Goal {
    /// Much data over long paths.
    #[default]
    WanBulk,
    /// Much data over short paths.
    Lan,
    /// Answers without delay.
    LowLatency,
    /// Many connections, each with little data.
    Web,
    /// It forwards what others send.
    Router,
}

/// What is to become better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Aim {
    /// More payload per second.
    Goodput,
    /// Shorter round trips under load.
    RoundTrip,
}

/// What a change has to reach, and what it may cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Objective {
    /// What is to become better.
    pub aim: Aim,
    /// By so much at least, as a share of what it was.
    pub least_gain: Ratio,
    /// By so much the other of the two may become worse at most, as a share of what it was.
    pub cost: Ratio,
    /// Round trips may always become longer by this: less is not noticed.
    pub unnoticed: Duration,
    /// The window as a multiple of the bandwidth-delay product, where the path is only known by what somebody says. More
    /// than one leaves room for a repair, for acknowledgements that come in bunches and for windows smaller than expected,
    /// and lets as much of a queue stand.
    pub room: f64,
    /// The same where path and window were measured: the queue that it lets stand stays well below what the goal allows.
    pub measured_room: f64,
}

impl Goal {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::WanBulk, Self::Lan, Self::LowLatency, Self::Web, Self::Router];

    /// Its name on the command line and in documents.
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

    /// The one of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|goal| goal.name() == name)
    }

    /// What a change has to reach for it.
    #[must_use]
    pub fn objective(self) -> Objective {
        let share = |percent| Ratio::from_percent(percent).unwrap_or_default();
        let cost = share(20.0);
        // The product is of whole packets, whose headers take no window: 1.12 of it is 1.16 of what the path holds.
        let (aim, room, measured_room) = match self {
            Self::WanBulk | Self::Lan | Self::Web => (Aim::Goodput, 1.25, 1.0 + 0.6 * cost.get()),
            Self::LowLatency | Self::Router => (Aim::RoundTrip, 1.0, 1.0),
        };
        Objective { aim, least_gain: share(5.0), cost, unnoticed: Duration::from_millis(5), room, measured_room }
    }

    /// Whether connections end on the host: what is only forwarded never sees a socket's settings.
    #[must_use]
    pub const fn ends_connections(self) -> bool {
        !matches!(self, Self::Router)
    }

    /// Whether answers that wait behind data not yet sent matter.
    #[must_use]
    pub const fn minds_waiting(self) -> bool {
        matches!(self, Self::LowLatency | Self::Web)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for goal in Goal::ALL {
            assert_eq!(Goal::from_name(goal.name()), Some(goal));
        }
        assert_eq!(Goal::from_name("fast"), None);
    }
}
