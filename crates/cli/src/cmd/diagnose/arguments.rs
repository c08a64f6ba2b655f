//! The command line of `linerate diagnose`.

use std::time::Duration;

use clap::{Args, ValueHint};
use linerate_model::socket::ProcessId;
use linerate_sys::sock_diag::AddressPrefix;

use crate::app;
use crate::cmd::measurement::MeasurementArguments;

/// Where a transfer's own options stand, and what they are good for.
pub(crate) const AFTER_HELP: &str = "The transfer is that of iperf3, with its options after `--`:\n  \
    linerate diagnose host                       10 s, one connection, to the host\n  \
    linerate diagnose host -- -R                 from the host\n  \
    linerate diagnose host -- -w 64K -C cubic    as a program that sets its buffers\n  \
    linerate diagnose host -- -P 8 -t 30\n  \
    linerate diagnose --pid 4711                 what a running rsync waits for, from this host\n  \
    linerate diagnose --dst 192.0.2.7 --port 443\n\
    For an emulated path (lab:NAME) the transfer is the path's own, unless options are given.\n\n\
    Exit codes: 0 the path is full or nothing is wrong, 1 a limit was found, 2 no transfer came about, 3 broken off.";

/// `linerate diagnose`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct DiagnoseArguments {
    /// The far end: a linerate (`linerate serve`), or any iperf3 server, which tells less; or an emulated path, as
    /// `lab:NAME`
    #[arg(value_hint = ValueHint::Hostname, required_unless_present_any = ["pid", "dst", "port"])]
    pub(crate) host: Option<String>,
    /// A transfer that runs already, instead of one of its own: the connections of this process
    #[arg(long, value_name = "PID", value_parser = process, conflicts_with_all = ["host", "transfer"])]
    pub(crate) pid: Option<ProcessId>,
    /// … the connections with this address, or network (192.0.2.0/24), at the far end; `--port` alone does, too
    #[arg(long, value_name = "ADDRESS", value_parser = crate::cmd::watch::address_prefix, conflicts_with_all = ["host", "transfer"])]
    pub(crate) dst: Option<AddressPrefix>,
    /// How long a transfer that runs already is watched
    #[arg(long, default_value = "10s", value_parser = app::duration, value_name = "TIME", conflicts_with = "host")]
    pub(crate) time: Duration,
    /// Do not fill the path to find its capacity: what it carries stays unknown, and with it whether it is full
    #[arg(long)]
    pub(crate) no_capacity: bool,
    /// Only the transfer: the path is not measured before
    #[arg(long)]
    pub(crate) no_path: bool,
    /// What all measurements have.
    #[command(flatten)]
    pub(crate) common: MeasurementArguments,
    /// The transfer's options, as iperf3 has them: time, streams, direction, buffers, rates, congestion control
    #[arg(last = true, value_name = "IPERF3 OPTIONS")]
    pub(crate) transfer: Vec<String>,
}

fn process(text: &str) -> Result<ProcessId, String> {
    text.parse().map(ProcessId).map_err(|_| "a process has a number".to_owned())
}
