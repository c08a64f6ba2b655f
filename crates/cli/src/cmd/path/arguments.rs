//! Command line of `linerate path`.

use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use linerate_units::{BitRate, ByteCount, Port};

use crate::cmd::measurement::MeasurementArguments;
use crate::progress::LiveArguments;
use crate::{completion, values};

/// `linerate path`.
#[derive(Debug, Args)]
pub(crate) struct PathArguments {
    /// Server: a linerate (`linerate serve`, or `ssh:USER@HOST` for a host over ssh) reports everything; a STAMP reflector,
    /// iperf3 server or other host less; or an emulated path, as `lab:NAME`
    #[arg(add = ArgValueCompleter::new(completion::hosts))]
    pub(crate) host: String,
    /// UDP port of a STAMP reflector, used when no linerate answers
    #[arg(long, default_value = "862", value_name = "PORT", value_parser = values::port)]
    pub(crate) stamp_port: Port,
    /// Packets per direction that measure loss, duplication and delay; fewer on slow links
    #[arg(short, long, default_value = "1000", value_name = "N", value_parser = clap::value_parser!(u64).range(10..=1_000_000))]
    pub(crate) count: u64,
    /// Mean time between two packets; longer on slow links
    #[arg(short, long, default_value = "5ms", value_name = "TIME", value_parser = interval)]
    pub(crate) interval: Duration,
    /// Send packets at equal intervals instead of random ones (a Poisson process)
    #[arg(long)]
    pub(crate) periodic: bool,
    /// Skip the searches for the capacity, which fills the path for some seconds per direction, and for policers
    #[arg(long)]
    pub(crate) no_capacity: bool,
    /// Skip the search for the path MTU, which takes some seconds to a host without a linerate server
    #[arg(long)]
    pub(crate) no_mtu: bool,
    /// Highest rate that the search for the capacity tries, for example 900M
    #[arg(long, conflicts_with = "no_capacity", value_name = "RATE", value_parser = values::rate)]
    pub(crate) max_rate: Option<BitRate>,
    /// Largest volume that the capacity search sends per direction, for example 100MB
    #[arg(long, conflicts_with = "no_capacity", value_name = "SIZE", value_parser = values::size)]
    pub(crate) max_traffic: Option<ByteCount>,
    /// Measure a host on which no server listens, by ICMP, or by STAMP where it has a reflector
    #[arg(long)]
    pub(crate) no_server: bool,
    /// Live picture.
    #[command(flatten)]
    pub(crate) live: LiveArguments,
    /// Options common to all measurements.
    #[command(flatten)]
    pub(crate) common: MeasurementArguments,
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = values::duration(text)?;
    let allowed = Duration::from_micros(100)..=Duration::from_secs(10);
    if allowed.contains(&interval) { Ok(interval) } else { Err("the interval is 100us to 10s".to_owned()) }
}
