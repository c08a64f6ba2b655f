//! Command line of `linerate diagnose`.

use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use linerate_model::socket::ProcessId;
use linerate_sys::sock_diag::AddressPrefix;

use crate::cmd::listen::ListenArguments;
use crate::cmd::measurement::MeasurementArguments;
use crate::{completion, values};

/// Position and use of the transfer's own options.
pub(crate) const AFTER_HELP: &str = "The transfer is that of iperf3, with its options after `--`:\n  \
    linerate diagnose host                       10 s, one connection, to the host\n  \
    linerate diagnose host -- -R                 from the host\n  \
    linerate diagnose host -- -w 64K -C cubic    as a program that sets its buffers\n  \
    linerate diagnose host -- -P 8 -t 30\n  \
    linerate diagnose --pid 4711                 a running rsync, seen from this host\n  \
    linerate diagnose --dst 192.0.2.7 --port 443\n\
    For an emulated path (lab:NAME) the transfer is the path's own, unless options are given.\n\n\
    Exit codes: 0 the path is full or nothing is wrong, 1 a limit was found, 2 no transfer took place, 3 interrupted.";

/// `linerate diagnose`.
#[derive(Clone, Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct DiagnoseArguments {
    /// Server: a linerate (`linerate serve`), a host over ssh (`ssh:USER@HOST`), or any iperf3 server, which reports less;
    /// or an emulated path, as `lab:NAME`
    #[arg(add = ArgValueCompleter::new(completion::hosts), required_unless_present_any = ["pid", "dst", "port", "listen"])]
    pub(crate) host: Option<String>,
    /// Server that dials in.
    #[command(flatten)]
    pub(crate) listen: ListenArguments,
    /// Diagnose a running transfer instead: the connections of this process
    #[arg(long, value_name = "PID", value_parser = process, conflicts_with_all = ["host", "listen", "transfer"])]
    pub(crate) pid: Option<ProcessId>,
    /// Diagnose a running transfer: the connections with this remote address or network (192.0.2.0/24)
    #[arg(
        long,
        value_name = "ADDRESS",
        value_parser = crate::cmd::watch::address_prefix,
        conflicts_with_all = ["host", "listen", "transfer"]
    )]
    pub(crate) dst: Option<AddressPrefix>,
    /// Time for which a running transfer is watched
    #[arg(long, default_value = "10s", value_parser = values::duration, value_name = "TIME", conflicts_with_all = ["host", "listen"])]
    pub(crate) time: Duration,
    /// Do not fill the path to find its capacity: the capacity and whether the path is full stay unknown
    #[arg(long)]
    pub(crate) no_capacity: bool,
    /// Measure only the transfer, not the path
    #[arg(long)]
    pub(crate) no_path: bool,
    /// Add all samples of both hosts to the document, so that its verdicts can be derived again
    #[arg(long, requires = "json")]
    pub(crate) observation: bool,
    /// Also trace the kernels of both hosts, where linerate may (root): waits for a processor, software interrupts, drops
    /// with their reason, full socket queues; for a running transfer, this host's
    #[arg(long)]
    pub(crate) kernel_events: bool,
    /// Options common to all measurements.
    #[command(flatten)]
    pub(crate) common: MeasurementArguments,
    /// Transfer options, as in iperf3: time, streams, direction, buffers, rates, congestion control
    #[arg(last = true, value_name = "IPERF3 OPTIONS")]
    pub(crate) transfer: Vec<String>,
}

fn process(text: &str) -> Result<ProcessId, String> {
    text.parse().map(ProcessId).map_err(|_| "the process ID is not a number".to_owned())
}
