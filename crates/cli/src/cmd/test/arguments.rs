//! The command line of `linerate test`.

use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use linerate_units::{BitRate, ByteCount};

use crate::cmd::listen::ListenArguments;
use crate::cmd::measurement::MeasurementArguments;
use crate::command_line::host_and_port;
use crate::progress::LiveArguments;
use crate::{completion, values};

/// `linerate test`.
#[derive(Clone, Debug, Args)]
pub(crate) struct TestArguments {
    /// The server: a linerate (`linerate serve`) or any iperf3, a host over ssh (`ssh:USER@HOST`), or an emulated path
    /// (`lab:NAME`); several are measured one after the other, in one table
    #[arg(
        value_name = "HOST",
        required_unless_present = "listen",
        conflicts_with = "listen",
        add = ArgValueCompleter::new(completion::hosts)
    )]
    pub(crate) hosts: Vec<String>,
    /// Server that dials in.
    #[command(flatten)]
    pub(crate) listen: ListenArguments,
    /// Time of each run
    #[arg(short, long, default_value = "5s", value_parser = values::transfer_time, value_name = "TIME")]
    pub(crate) time: Duration,
    /// Time at the start of each run that does not count
    #[arg(short, long, default_value = "0s", value_parser = values::duration, value_name = "TIME")]
    pub(crate) omit: Duration,
    /// Streams of the parallel runs; 1 leaves them out
    #[arg(short = 'P', long, default_value = "4", value_name = "STREAMS", value_parser = clap::value_parser!(u64).range(1..=128))]
    pub(crate) parallel: u64,
    /// Only from here to the server
    #[arg(long, conflicts_with = "down")]
    pub(crate) up: bool,
    /// Only from the server to here
    #[arg(long)]
    pub(crate) down: bool,
    /// Measure the same over QUIC, too, and compare: TCP with one stream, then QUIC's handshakes and transfers
    #[cfg(feature = "quic")]
    #[arg(long, conflicts_with_all = ["window", "listen"])]
    pub(crate) quic: bool,
    /// Encrypt the data of the TCP streams, too, with the keys of the conversation (TLS 1.3); needs options of TLS
    #[arg(long)]
    pub(crate) tls_data: bool,
    /// Time between samples, 10ms to 1min; without it 200ms, and 1s where the server sends. Below 200ms the hosts do
    /// not exchange socket statistics, so there is no diagnosis
    #[arg(long, value_parser = interval, value_name = "TIME")]
    pub(crate) interval: Option<Duration>,
    /// Congestion control on both ends, for example cubic or bbr
    #[arg(short = 'C', long, value_name = "NAME")]
    pub(crate) congestion: Option<String>,
    /// Socket buffers on both ends, for example 4MiB
    #[arg(short, long, value_parser = values::size, value_name = "SIZE")]
    pub(crate) window: Option<ByteCount>,
    /// Exit with 1 when the best run up is slower than this, for example 900M
    #[arg(long, value_parser = values::rate, value_name = "RATE", conflicts_with = "down")]
    pub(crate) min_up: Option<BitRate>,
    /// Exit with 1 when the best run down is slower than this
    #[arg(long, value_parser = values::rate, value_name = "RATE", conflicts_with = "up")]
    pub(crate) min_down: Option<BitRate>,
    /// Live picture.
    #[command(flatten)]
    pub(crate) live: LiveArguments,
    /// Options of all measurements.
    #[command(flatten)]
    pub(crate) common: MeasurementArguments,
}

impl TestArguments {
    /// The host, where there is only one.
    pub(crate) fn only_host(&self) -> Option<&str> {
        if let [host] = self.hosts.as_slice() { Some(host) } else { None }
    }

    /// True when QUIC is compared with TCP.
    #[cfg(feature = "quic")]
    pub(super) const fn compares_quic(&self) -> bool {
        self.quic
    }

    /// True when QUIC is compared with TCP: never without that feature.
    #[cfg(not(feature = "quic"))]
    #[expect(clippy::unused_self, reason = "the feature uses it")]
    pub(super) const fn compares_quic(&self) -> bool {
        false
    }

    /// Congestion control by the name that the kernel has for it.
    pub(super) fn tcp_congestion(&self) -> Option<String> {
        let name = self.congestion.as_deref()?;
        Some(if self.compares_quic() && name == "newreno" { "reno" } else { name }.to_owned())
    }

    /// Reason why these arguments do not fit together.
    pub(super) fn problem(&self) -> Option<String> {
        if self.tls_data && self.compares_quic() {
            return Some("--tls-data is for TCP: QUIC always encrypts (omit one of both)".to_owned());
        }
        if self.tls_data && self.common.far.tls.options().is_none() {
            let options = "--shared-key-file, --tls-pin, --tls-ca or --tls";
            return Some(format!("--tls-data encrypts with the keys of the conversation: use {options}, too"));
        }
        #[cfg(feature = "quic")]
        if self.quic {
            if self.hosts.len() > 1 {
                return Some("--quic compares TCP and QUIC with one host: test each alone".to_owned());
            }
            return super::quic::congestion_control(self).err();
        }
        None
    }

    /// Host of a series: the first one.
    pub(super) fn host(&self) -> &str {
        self.hosts.first().map_or("", String::as_str)
    }

    /// The same for each host alone, with the port of `HOST:PORT`.
    pub(super) fn of_each_host(&self) -> Result<Vec<Self>, String> {
        let alone = |typed: &String| {
            let (host, port) = match host_and_port(typed) {
                Some((host, port)) => (host, Some(values::port(port).map_err(|text| format!("{typed}: {text}"))?)),
                None => (typed.as_str(), self.common.port),
            };
            let common = MeasurementArguments { port, ..self.common.clone() };
            Ok(Self { hosts: vec![host.to_owned()], common, ..self.clone() })
        };
        self.hosts.iter().map(alone).collect()
    }
}

/// Parses a time between samples.
fn interval(text: &str) -> Result<Duration, String> {
    let time = values::duration(text)?;
    let (least, most) = (Duration::from_millis(10), Duration::from_secs(60));
    if time < least || time > most { Err("samples are 10ms to 1min apart".to_owned()) } else { Ok(time) }
}
