//! The listener for connections with a window.

use std::net::TcpListener;

use linerate_model::address_family::AddressFamily;
use linerate_sys::net::{self, ListenOptions, PortSharing};
use linerate_sys::options;
use linerate_units::Port;

use super::tcp_turns::WindowSteering;

/// Second listener on the server's port. Connections inherit its buffers; the first one keeps the system's, so no other
/// client is affected, and the port is never closed.
#[derive(Debug)]
pub(super) struct WindowListener {
    listener: TcpListener,
}

impl WindowListener {
    /// Listens where `first` does. `None` where the system has no such listeners: then windows are set after the
    /// handshake.
    pub(super) fn bind(first: &TcpListener, listen: &ListenOptions) -> Option<Self> {
        let address = first.local_addr().ok()?;
        let family = listen.family.or(address.is_ipv4().then_some(AddressFamily::Ipv4));
        let options = ListenOptions {
            address: Some(address.ip()),
            port: Port::new(address.port()),
            family,
            sharing: PortSharing::Second,
            ..listen.clone()
        };
        let listener = net::listen_tcp(&options).ok()?.listener;
        listener.set_nonblocking(true).ok()?;
        // As for the first one: a probe session of a client in turn may arrive here, too.
        let _ = options::set_save_syn(&listener, true);
        Some(Self { listener })
    }

    pub(super) fn socket(&self) -> &TcpListener {
        &self.listener
    }

    /// Directs the connections of these clients here, with their window, and all others to `first`. A kernel that
    /// refuses leaves them there.
    pub(super) fn steer(&self, first: &TcpListener, steering: Option<&WindowSteering>) {
        let Some(steering) = steering else {
            let _ = net::steer(first, &[]);
            return;
        };
        let is_set = options::set_send_buffer(&self.listener, steering.window)
            .and_then(|()| options::set_receive_buffer(&self.listener, steering.window));
        let _ = net::steer(first, if is_set.is_ok() { &steering.clients } else { &[] });
    }
}
