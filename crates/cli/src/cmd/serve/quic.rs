//! QUIC service: `--quic-port`.

use std::net::IpAddr;
use std::sync::Arc;

use linerate_engine::Error;
use linerate_engine::server::QuicService;
use linerate_model::address_family::AddressFamily;
use linerate_quic::{QuicServer, QuicServerOptions};
use linerate_sys::net::UdpOptions;
use linerate_units::Port;
use linerate_wire::error::ErrorCode;

use super::ServeArguments;
use crate::cmd::measurement::family;

/// Service of a server with these arguments.
pub(super) fn service(arguments: &ServeArguments) -> Result<Arc<dyn QuicService>, Error> {
    let network = &arguments.network;
    of_addresses(network.bind, family(network), network.bind_dev.clone(), arguments.quic_port)
}

/// Service on an address and a port; a free port where there is none.
pub(super) fn of_addresses(
    address: Option<IpAddr>,
    family: Option<AddressFamily>,
    device: Option<String>,
    port: Option<Port>,
) -> Result<Arc<dyn QuicService>, Error> {
    let udp = UdpOptions { address, family, device, port, ..UdpOptions::default() };
    let server = QuicServer::new(QuicServerOptions { udp });
    let advice = "--quic-port selects another UDP port; without it, a free one is used";
    let server =
        server.map_err(|cause| Error::new(ErrorCode::LISTEN).with_detail(format!("QUIC: {cause}; {advice}")))?;
    Ok(Arc::new(server))
}
