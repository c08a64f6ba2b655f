//! The command line of `linerate path`.

use std::time::Duration;

use clap::{Args, ValueHint};
use linerate_units::{BitRate, ByteCount, Port};

use crate::app;
use crate::cmd::measurement::MeasurementArguments;

/// `linerate path`.
#[derive(Debug, Args)]
pub(crate) struct PathArguments {
    /// The far end: a linerate (`linerate serve`) tells all; a STAMP reflector, an iperf3 server or any host what it can;
    /// or an emulated path, as `lab:NAME`
    #[arg(value_hint = ValueHint::Hostname)]
    pub(crate) host: String,
    /// UDP port of a STAMP reflector, asked when no linerate answers
    #[arg(long, default_value = "862", value_name = "PORT", value_parser = app::port)]
    pub(crate) stamp_port: Port,
    /// Packets each way by which losses, duplicates and delays are counted; fewer on slow lines
    #[arg(short, long, default_value = "1000", value_name = "N", value_parser = clap::value_parser!(u64).range(10..=1_000_000))]
    pub(crate) count: u64,
    /// Mean time between them; more on slow lines
    #[arg(short, long, default_value = "5ms", value_name = "TIME", value_parser = interval)]
    pub(crate) interval: Duration,
    /// Send them at equal distances instead of random ones (a Poisson process)
    #[arg(long)]
    pub(crate) periodic: bool,
    /// Do not search for the capacity, which fills the path for some seconds each way, nor for policers
    #[arg(long)]
    pub(crate) no_capacity: bool,
    /// Highest rate that the search for the capacity tries, for example 900M
    #[arg(long, conflicts_with = "no_capacity", value_name = "RATE", value_parser = app::rate)]
    pub(crate) max_rate: Option<BitRate>,
    /// Most that the search may send each way, for example 100MB
    #[arg(long, conflicts_with = "no_capacity", value_name = "SIZE", value_parser = app::size)]
    pub(crate) max_traffic: Option<ByteCount>,
    /// What all measurements have.
    #[command(flatten)]
    pub(crate) common: MeasurementArguments,
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = app::duration(text)?;
    let allowed = Duration::from_micros(100)..=Duration::from_secs(10);
    if allowed.contains(&interval) { Ok(interval) } else { Err("an interval is 100us to 10s".to_owned()) }
}
