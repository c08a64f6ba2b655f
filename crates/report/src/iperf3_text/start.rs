//! The lines between the control connection and the first interval.

use std::io::{self, Write};

use linerate_documents::civil_time;
use linerate_model::event::{ConnectionEstablished, TestStart};
use linerate_model::parameters::{EndCondition, TestDirection, TestProtocol};
use linerate_model::stream::EndpointRole;

use super::{TextOptions, lines};
use crate::escape;

/// `Connecting to host …`, or on a server `Accepted connection from …`.
pub(super) fn write_greeting(connected: &ConnectionEstablished, out: &mut dyn Write) -> io::Result<()> {
    let host = escape::line(&connected.host);
    match connected.side {
        EndpointRole::Client => writeln!(out, "Connecting to host {host}, port {}", connected.port),
        EndpointRole::Server => writeln!(out, "Accepted connection from {host}, port {}", connected.port),
    }
}

pub(super) fn write(
    options: &TextOptions,
    connected: Option<&ConnectionEstablished>,
    start: &TestStart,
    out: &mut dyn Write,
) -> io::Result<()> {
    if options.verbose {
        if let (EndpointRole::Client, Some(size)) = (start.side, start.derived_block_size) {
            writeln!(out, "Setting UDP block size to {}", size.get())?;
        }
        writeln!(out, "Time: {}", civil_time::rfc1123(start.at))?;
        if let Some(connected) = connected {
            write_greeting(connected, out)?;
        }
    }
    if let (EndpointRole::Client, TestDirection::Reverse, Some(connected)) =
        (start.side, start.parameters.direction, connected)
    {
        writeln!(out, "Reverse mode, remote host {} is sending", escape::line(&connected.host))?;
    }
    if options.verbose {
        write_agreement(connected, start, out)?;
    }
    for stream in &start.streams {
        let (local, remote) = (stream.local, stream.remote);
        writeln!(
            out,
            "{} local {} port {} connected to {} port {}",
            lines::RowLabel::Stream(stream.socket).bracketed(),
            local.ip(),
            local.port(),
            remote.ip(),
            remote.port()
        )?;
    }
    if options.verbose { write_plan(start, out) } else { Ok(()) }
}

/// Cookie, segment size and target rate.
fn write_agreement(
    connected: Option<&ConnectionEstablished>,
    start: &TestStart,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "      Cookie: {}", escape::line(&start.cookie))?;
    if start.parameters.protocol == TestProtocol::Tcp {
        let default = connected.and_then(|connected| connected.control_mss);
        match (start.parameters.mss, default) {
            (Some(mss), _) => writeln!(out, "      TCP MSS: {mss}")?,
            (None, Some(mss)) => writeln!(out, "      TCP MSS: {mss} (default)")?,
            (None, None) => {}
        }
    }
    if !start.target_rate.is_zero() {
        writeln!(out, "      Target Bitrate: {}", start.target_rate.whole_bits_per_second())?;
    }
    Ok(())
}

fn write_plan(start: &TestStart, out: &mut dyn Write) -> io::Result<()> {
    let parameters = &start.parameters;
    let end = match parameters.end {
        EndCondition::Time(time) => format!("{} second test", time.as_secs()),
        EndCondition::Bytes(bytes) => format!("{} bytes to send", bytes.get()),
        EndCondition::Blocks(blocks) => format!("{} blocks to send", blocks.get()),
    };
    writeln!(
        out,
        "Starting Test: protocol: {protocol}, {streams} streams, {block} byte blocks, omitting {omit} seconds, {end}, tos {tos}",
        protocol = lines::protocol(parameters.protocol),
        streams = parameters.parallel,
        block = parameters.block_size.get(),
        omit = parameters.omit.as_secs(),
        tos = parameters.type_of_service.get(),
    )
}
