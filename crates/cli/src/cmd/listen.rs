//! Servers behind NAT, which dial in: the option that waits for one in place of a host.

use std::os::fd::AsFd as _;

use clap::Args;
use linerate_sys::net::{self, ListenOptions};
use linerate_sys::signals::InterruptSignals;
use linerate_units::Port;

use crate::cmd::measurement::{MeasurementArguments, family};
use crate::console;
use crate::exit::ExitStatus;
use crate::values;

/// Wait for a server that dials in.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ListenArguments {
    /// Instead of a host: wait for a server behind NAT that dials in (`linerate serve --dial THIS_HOST`), on this port
    #[arg(
        long,
        value_name = "PORT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "5201",
        value_parser = values::port,
        conflicts_with_all = ["port", "far_program", "push"]
    )]
    pub(crate) listen: Option<Port>,
}

/// Server that has dialed in.
pub(crate) struct DialedServer {
    /// Address from which it dialed: often that of its address translator.
    pub(crate) host: String,
    /// Options of the measurement, for connections that the server opens.
    pub(crate) common: MeasurementArguments,
}

impl ListenArguments {
    /// Waits for a server; `None` when a host is measured.
    pub(crate) fn server(
        self,
        common: &MeasurementArguments,
        stop: InterruptSignals,
    ) -> Result<Option<DialedServer>, ExitStatus> {
        let wait = |port| wait(port, common, stop);
        self.listen.map(wait).transpose().map_err(|error| {
            console::error(&error.to_string(), None);
            ExitStatus::from_error(&error)
        })
    }
}

fn wait(port: Port, common: &MeasurementArguments, stop: InterruptSignals) -> linerate_sys::Result<DialedServer> {
    let options = ListenOptions {
        address: common.network.bind,
        port: Some(port),
        family: family(&common.network),
        device: common.network.bind_dev.clone(),
        ..ListenOptions::default()
    };
    let listener = net::listen_tcp(&options)?.listener;
    console::note(&format!("waiting for a server that dials in (`linerate serve --dial`) on port {port}; Ctrl-C ends"));
    let server = net::wait_for_server(listener, Some(stop.as_fd()))?;
    let common = MeasurementArguments { port: Some(port), dialed_in: true, ..common.clone() };
    Ok(DialedServer { host: server.ip().to_string(), common })
}
