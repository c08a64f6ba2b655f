//! Outgoing and incoming connections.
//!
//! Options that must hold from the first packet on (segment size, buffers, congestion control, type of service, flow
//! label, interface) are set before it is sent.

mod address;
mod connect;
mod listen;
mod name;
mod rendezvous;
mod settings;
mod steering;
mod udp;

use std::io::{self, Read};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;

use core::time::Duration;

use socket2::SockRef;

pub(crate) use address::for_family;
pub use address::{addresses, canonical, peer_is_this_host, resolve, scope_of, with_port};
pub use connect::{ConnectOptions, connect_tcp, connect_tcp_blocking, connect_tcp_timed, start_tcp};
pub use listen::{ListenOptions, PortSharing, TcpListening, accept_nonblocking, listen_tcp};
pub use name::{host_name_of, name_servers};
pub use rendezvous::wait_for_server;
pub use settings::SocketSettings;
pub use steering::{MAX_STEERED_CLIENTS, steer};
pub use udp::{UdpOptions, bind_udp, connect_bound_udp, connect_udp};

use crate::clock;
use crate::error::{Error, Result};
use crate::options;

/// Shuts writing down; reads continue. A connection that is gone already is no error.
pub fn shutdown_write(socket: &impl AsFd) -> Result<()> {
    shutdown(socket, Shutdown::Write)
}

/// Shuts reading down: reads of other threads return at once, without data where none has arrived. What the peer sends goes
/// on being acknowledged. A connection that is gone already is no error.
pub fn shutdown_read(socket: &impl AsFd) -> Result<()> {
    shutdown(socket, Shutdown::Read)
}

/// Ends both directions: reads and writes of other threads on this connection return at once. A connection that is
/// gone already is no error.
pub fn shutdown_both(socket: &impl AsFd) -> Result<()> {
    shutdown(socket, Shutdown::Both)
}

fn shutdown(socket: &impl AsFd, how: Shutdown) -> Result<()> {
    match SockRef::from(&socket.as_fd()).shutdown(how) {
        Err(error) if error.kind() != io::ErrorKind::NotConnected => {
            Err(Error::system("shutting a connection down", error))
        }
        _ => Ok(()),
    }
}

/// Closes a connection in order: shuts writing down, then reads the peer's remaining data until it does the same, for
/// at most `limit`, so that no data in flight is answered by a reset. Returns true if the peer closed it, too.
pub fn close_gracefully(mut stream: TcpStream, limit: Duration) -> Result<bool> {
    shutdown_write(&stream)?;
    let failed = |cause| Error::system("closing a connection", cause);
    stream.set_nonblocking(false).map_err(failed)?;
    let deadline = clock::monotonic_now() + limit;
    let mut discarded = [0_u8; 16 << 10];
    loop {
        let left = deadline - clock::monotonic_now();
        if left.is_zero() {
            return Ok(false);
        }
        options::set_receive_timeout(&stream, Some(left))?;
        match stream.read(&mut discarded) {
            Ok(0) => return Ok(true),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(true),
            Err(error) => return Err(failed(error)),
        }
    }
}

#[cfg(test)]
mod tests;
