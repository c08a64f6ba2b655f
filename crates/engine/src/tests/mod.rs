//! Clients and servers of this crate against each other, and each against a hand-written peer, over loopback.

mod hostile_clients;
mod hostile_probe_servers;
mod hostile_servers;
mod limits;
mod probe_limits;
mod server_sums;
mod shared_memory;
mod silent_servers;
mod streams;
pub(crate) mod support;
mod tracked;
mod transfers;
mod windows;
