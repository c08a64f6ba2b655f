//! The command line of `linerate rfc6349`.

use std::time::Duration;

use clap::{Args, ValueHint};

use crate::app;
use crate::cmd::measurement::MeasurementArguments;

/// `linerate rfc6349`.
#[derive(Debug, Args)]
pub(crate) struct Rfc6349Arguments {
    /// The far end: a linerate (`linerate serve`), or an iperf3 server, which tells less; or an emulated path, as
    /// `lab:NAME`
    #[arg(value_hint = ValueHint::Hostname)]
    pub(crate) host: String,
    /// Time of each TCP transfer, beside the slow start that does not count
    #[arg(short, long, default_value = "10s", value_parser = app::duration, value_name = "TIME")]
    pub(crate) time: Duration,
    /// Connections of the transfers over several; 1 leaves them out
    #[arg(short = 'P', long, default_value = "4", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=128))]
    pub(crate) connections: u64,
    /// Congestion control on both ends, for example cubic
    #[arg(short = 'C', long, value_name = "NAME")]
    pub(crate) congestion: Option<String>,
    /// Leave out the sweep over window sizes
    #[arg(long)]
    pub(crate) no_windows: bool,
    /// Leave out the traffic-management test (policed, shaped, or neither)
    #[arg(long)]
    pub(crate) no_traffic_management: bool,
    /// What all measurements have.
    #[command(flatten)]
    pub(crate) common: MeasurementArguments,
}
