//! Routes of a host with their TCP attributes (ip-route(8)).

use core::time::Duration;
use std::net::IpAddr;

use linerate_units::Mtu;

/// Route of the main table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteEntry {
    /// Destination as printed by `ip route`: `default` or `192.0.2.0/24`.
    pub destination: String,
    /// True for an IPv6 route.
    pub is_version_6: bool,
    /// Interface; `None` for routes with several next hops or none.
    pub interface: Option<String>,
    /// Gateway.
    pub gateway: Option<IpAddr>,
    /// Metric: the lowest has priority.
    pub metric: Option<u32>,
    /// Path MTU (`mtu`), locked or not.
    pub mtu: Option<Mtu>,
    /// Congestion control of connections that use it (`congctl`).
    pub congestion_control: Option<String>,
    /// Initial congestion window in segments (`initcwnd`).
    pub initial_window: Option<u32>,
    /// Initial receive window in segments (`initrwnd`).
    pub initial_receive_window: Option<u32>,
    /// Shortest retransmission time-out (`rto_min`).
    pub shortest_timeout: Option<Duration>,
    /// Largest congestion window in segments (`cwnd`, which needs a lock to hold).
    pub max_congestion_window: Option<u32>,
    /// True when each segment is acknowledged immediately (`quickack`).
    pub acknowledges_at_once: Option<bool>,
    /// Enabled features, for example `ecn` (`features`).
    pub features: Vec<String>,
}

impl RouteEntry {
    /// True for a default route.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.destination == "default"
    }
}
