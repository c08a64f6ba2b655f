//! Command line of `linerate rfc6349`.

use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use crate::cmd::measurement::MeasurementArguments;
use crate::{completion, values};

/// `linerate rfc6349`.
#[derive(Debug, Args)]
pub(crate) struct Rfc6349Arguments {
    /// Server: a linerate (`linerate serve`), a host over ssh (`ssh:USER@HOST`), or an iperf3 server, which reports less;
    /// or an emulated path, as `lab:NAME`
    #[arg(add = ArgValueCompleter::new(completion::hosts))]
    pub(crate) host: String,
    /// Time of each TCP transfer, excluding slow start
    #[arg(short, long, default_value = "10s", value_parser = values::transfer_time, value_name = "TIME")]
    pub(crate) time: Duration,
    /// Connections of the parallel transfers; 1 skips them
    #[arg(short = 'P', long, default_value = "4", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=128))]
    pub(crate) connections: u64,
    /// Congestion control on both hosts, for example cubic
    #[arg(short = 'C', long, value_name = "NAME")]
    pub(crate) congestion: Option<String>,
    /// Skip the sweep over window sizes
    #[arg(long)]
    pub(crate) no_windows: bool,
    /// Skip the traffic-management test (policed, shaped, or neither)
    #[arg(long)]
    pub(crate) no_traffic_management: bool,
    /// Options common to all measurements.
    #[command(flatten)]
    pub(crate) common: MeasurementArguments,
}
