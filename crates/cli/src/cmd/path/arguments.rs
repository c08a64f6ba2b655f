//! Command line of `linerate path`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use linerate_engine::path::{BlindStream, HopOptions, LabelOptions};
use linerate_engine::probe::messages::SendOrder;
use linerate_model::autonomous_systems::AutonomousSystemTable;
use linerate_sys::describe_os_error;
use linerate_units::{BitRate, ByteCount, PacketCount, Port};

use crate::cmd::listen::ListenArguments;
use crate::cmd::measurement::MeasurementArguments;
use crate::progress::LiveArguments;
use crate::{completion, values};

/// `linerate path`.
#[derive(Clone, Debug, Args)]
pub(crate) struct PathArguments {
    /// Server: a linerate (`linerate serve`, or `ssh:USER@HOST` for a host over ssh) reports everything; a STAMP reflector,
    /// iperf3 server or other host less; or an emulated path, as `lab:NAME`
    #[arg(
        required_unless_present = "listen",
        conflicts_with = "listen",
        add = ArgValueCompleter::new(completion::hosts)
    )]
    pub(crate) host: Option<String>,
    /// Server that dials in.
    #[command(flatten)]
    pub(crate) listen: ListenArguments,
    /// UDP port of a STAMP reflector, used when no linerate answers
    #[arg(long, default_value = "862", value_name = "PORT", value_parser = values::port)]
    pub(crate) stamp_port: Port,
    /// Packets per direction; with --hops rounds [default: 1000; 10 rounds, with --live until stopped; 10 s of --bitrate]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) count: Option<u64>,
    /// Mean time between two packets, longer on slow links; with --hops between rounds [default: 5ms; 1s]
    #[arg(short, long, value_name = "TIME", value_parser = interval)]
    pub(crate) interval: Option<Duration>,
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
    #[arg(long, conflicts_with = "listen")]
    pub(crate) no_server: bool,
    /// Live picture.
    #[command(flatten)]
    pub(crate) live: LiveArguments,
    /// Options common to all measurements.
    #[command(flatten)]
    pub(crate) common: MeasurementArguments,
    /// Hops; their heading is that of all options that follow, but for those with another one.
    #[command(flatten)]
    pub(crate) hops: HopArguments,
    /// Stream without a control connection.
    #[command(flatten)]
    pub(crate) stream: StreamArguments,
}

/// A stream without a control connection.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Without a control connection")]
pub(crate) struct StreamArguments {
    /// Only send UDP at this IP-layer rate; a STAMP reflector returns as much as it receives
    #[arg(long, conflicts_with_all = OTHER_PARTS, value_name = "RATE", value_parser = values::rate)]
    pub(crate) bitrate: Option<BitRate>,
    /// Size of the IP packets of --bitrate
    #[arg(long, requires = "bitrate", default_value = "1250", value_name = "BYTES", value_parser = packet_size)]
    pub(crate) size: ByteCount,
    /// Receive the stream of `path --bitrate` from HOST, and send nothing: for paths in one direction
    #[arg(long, conflicts_with_all = OTHER_PARTS, conflicts_with = "bitrate")]
    pub(crate) receive: bool,
}

/// Options of what a stream without a control connection leaves out.
const OTHER_PARTS: [&str; 8] =
    ["no_capacity", "no_mtu", "max_rate", "max_traffic", "periodic", "interval", "hops", "listen"];

/// Time of a stream, unless a number of packets is given.
const STREAM_TIME: Duration = Duration::from_secs(10);

impl StreamArguments {
    /// True when only a stream is measured.
    pub(super) const fn is_requested(&self) -> bool {
        self.receive || self.bitrate.is_some()
    }

    /// The stream, if one was asked for.
    pub(super) fn stream(&self, count: Option<u64>) -> Result<Option<BlindStream>, String> {
        let count = count.map(PacketCount::new);
        let Some(rate) = self.bitrate else {
            return Ok(self.receive.then_some(BlindStream::Receive { count }));
        };
        let interval = rate.time_to_send(self.size).filter(|interval| !interval.is_zero());
        let interval = interval.ok_or("--bitrate: the rate must be above 0, and below a packet per nanosecond")?;
        let within = u64::try_from(STREAM_TIME.as_nanos() / interval.as_nanos()).unwrap_or(u64::MAX);
        let count = count.unwrap_or(PacketCount::new(within.clamp(10, BlindStream::MOST.get())));
        let time = interval.mul_f64(count.as_f64());
        if time > SendOrder::LONGEST {
            let seconds = time.as_secs();
            return Err(format!("{} packets at this rate take {seconds} s: at most an hour (--count)", count.get()));
        }
        Ok(Some(BlindStream::Send { rate, packet: self.size, count }))
    }
}

fn packet_size(text: &str) -> Result<ByteCount, String> {
    let (least, most) = (BlindStream::SMALLEST, BlindStream::LARGEST);
    let size = text.parse().ok().map(ByteCount::new).filter(|size| (least..=most).contains(size));
    size.ok_or_else(|| format!("expected {} to {} bytes of an IP packet", least.get(), most.get()))
}

/// Hops of the path.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Hops")]
pub(crate) struct HopArguments {
    /// Measure only the hops, in rounds: delay, loss, routes of equal cost, path MTU
    #[arg(long, conflicts_with_all = ["no_capacity", "max_rate", "max_traffic", "periodic", "stamp_port", "listen"])]
    pub(crate) hops: bool,
    /// Flows that enumerate routes of equal cost, each with a source port of its own
    #[arg(long, value_name = "N", default_value = "6", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) flows: u16,
    /// Look up the names of hops by this host's resolver
    #[arg(long)]
    pub(crate) names: bool,
    /// Look up autonomous systems in a file: that of iptoasn.com, or a prefix2as of CAIDA
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) as_data: Option<PathBuf>,
    /// Look up autonomous systems by DNS (origin.asn.cymru.com), which learns the hops' addresses
    #[arg(long)]
    pub(crate) as_dns: bool,
}

impl HopArguments {
    /// Sources of labels; an unusable file is an error.
    fn labels(&self) -> Result<LabelOptions, String> {
        let table = self.as_data.as_deref().map(read_table).transpose()?.map(Arc::new);
        Ok(LabelOptions { names: self.names, table, by_dns: self.as_dns })
    }
}

/// Largest file of autonomous systems; that of all announced addresses has 40 MB.
const MAX_TABLE_SIZE: u64 = 256 << 20;

fn read_table(file: &Path) -> Result<AutonomousSystemTable, String> {
    let failed = |error: std::io::Error| format!("reading {}: {}", file.display(), describe_os_error(&error));
    let size = std::fs::metadata(file).map_err(failed)?.len();
    if size > MAX_TABLE_SIZE {
        return Err(format!("{} is larger than 256 MiB: is it a table of autonomous systems?", file.display()));
    }
    let text = std::fs::read(file).map_err(failed)?;
    AutonomousSystemTable::parse(&String::from_utf8_lossy(&text)).map_err(|error| {
        let (file, line, problem) = (file.display(), error.line, error.problem);
        format!(
            "{file}:{line}: {problem}: expected the columns of iptoasn.com (gunzip it first) or of a prefix2as file"
        )
    })
}

impl PathArguments {
    /// Host that is measured.
    pub(crate) fn host(&self) -> &str {
        self.host.as_deref().unwrap_or_default()
    }

    /// Options of the hops.
    pub(super) fn route(&self) -> Result<HopOptions, String> {
        let hops = HopOptions { flows: self.hops.flows, labels: self.hops.labels()?, ..HopOptions::default() };
        if !self.hops.hops {
            return Ok(hops);
        }
        let rounds = if self.live.is_requested() { self.count } else { Some(self.count.unwrap_or(10)) };
        Ok(HopOptions { rounds, interval: self.interval.unwrap_or(Duration::from_secs(1)), ..hops })
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = values::duration(text)?;
    let allowed = Duration::from_micros(100)..=Duration::from_secs(10);
    if allowed.contains(&interval) { Ok(interval) } else { Err("the interval is 100us to 10s".to_owned()) }
}
