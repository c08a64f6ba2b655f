//! The routes of a host with the attributes that TCP takes from them (ip-route(8)).

use core::time::Duration;
use std::net::IpAddr;

use linerate_units::Mtu;

/// A route of the main table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// Where to, as `ip route` prints it: `default` or `192.0.2.0/24`.
    pub destination: String,
    /// Whether it is one of IPv6.
    pub is_version_6: bool,
    /// The interface; `None` for routes with several ways or none.
    pub interface: Option<String>,
    /// The first router.
    pub gateway: Option<IpAddr>,
    /// Its rank: the lowest is taken.
    pub metric: Option<u32>,
    /// Path MTU (`mtu`); whether it is locked does not show here.
    pub mtu: Option<Mtu>,
    /// Congestion control of connections that take it (`congctl`).
    pub congestion_control: Option<String>,
    /// Initial congestion window in segments (`initcwnd`).
    pub initial_window: Option<u32>,
    /// Initial receive window in segments (`initrwnd`).
    pub initial_receive_window: Option<u32>,
    /// Shortest retransmission time-out (`rto_min`).
    pub shortest_timeout: Option<Duration>,
    /// Largest congestion window in segments (`cwnd`, which needs a lock to hold).
    pub largest_window: Option<u32>,
    /// Whether each segment is acknowledged at once (`quickack`).
    pub acknowledges_at_once: Option<bool>,
    /// Features that are switched on for it, for example `ecn` (`features`).
    pub features: Vec<String>,
}

impl Route {
    /// Whether everything goes this way for which there is no other.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.destination == "default"
    }
}
