//! Parts of the server without its sessions.

mod gate;
mod opening;
mod registry;
mod udp_hub;
mod watchdog;
