//! Command line of `linerate rr`.

use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use linerate_model::rr::RrMode;
use linerate_units::{ByteCount, parse};

use crate::cmd::listen::ListenArguments;
use crate::cmd::measurement::MeasurementArguments;
use crate::{completion, values};

/// `linerate rr`.
#[derive(Clone, Debug, Args)]
pub(crate) struct RrArguments {
    /// Server: a linerate (`linerate serve`, or `ssh:USER@HOST` for a host over ssh); or an emulated path, as `lab:NAME`
    #[arg(
        required_unless_present = "listen",
        conflicts_with = "listen",
        add = ArgValueCompleter::new(completion::hosts)
    )]
    pub(crate) host: Option<String>,
    /// Server that dials in.
    #[command(flatten)]
    pub(crate) listen: ListenArguments,
    /// Kind of transaction.
    #[command(flatten)]
    pub(crate) kind: KindArguments,
    /// Size of a request
    #[arg(long, default_value = "1", value_parser = size, value_name = "SIZE")]
    pub(crate) request: ByteCount,
    /// Size of a response
    #[arg(long, default_value = "1", value_parser = size, value_name = "SIZE")]
    pub(crate) response: ByteCount,
    /// Concurrent flows, each with one transaction at a time
    #[arg(short = 'P', long, default_value = "1", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) flows: u32,
    /// Time in which requests are sent
    #[arg(short, long, default_value = "10s", value_parser = time, value_name = "TIME")]
    pub(crate) time: Duration,
    /// Send this many requests per second whether or not responses arrive, for example 2000/s (open loop)
    #[arg(long, value_parser = rate, value_name = "N/s")]
    pub(crate) rate: Option<f64>,
    /// Send at random intervals (a Poisson process) instead of equal ones
    #[arg(long, requires = "rate")]
    pub(crate) poisson: bool,
    /// Time limit of a response [default: 1s for UDP, else 10s]
    #[arg(long, value_parser = timeout, value_name = "TIME")]
    pub(crate) timeout: Option<Duration>,
    /// Options common to all measurements.
    #[command(flatten)]
    pub(crate) common: MeasurementArguments,
}

impl RrArguments {
    /// Host that is measured.
    pub(crate) fn host(&self) -> &str {
        self.host.as_deref().unwrap_or_default()
    }
}

/// Kind of transaction.
#[derive(Clone, Copy, Debug, Args)]
#[group(multiple = false)]
pub(crate) struct KindArguments {
    /// Requests on open TCP connections, as netperf's `TCP_RR` (the default)
    #[arg(long)]
    pub(crate) tcp: bool,
    /// A new TCP connection for each request, as netperf's `TCP_CRR`
    #[arg(long, conflicts_with = "listen")]
    pub(crate) connect: bool,
    /// Requests in UDP datagrams, as netperf's `UDP_RR`
    #[arg(long, conflicts_with = "listen")]
    pub(crate) udp: bool,
    /// A new connection with a full handshake for each request: TLS 1.3 over TCP, or QUIC
    #[arg(long, value_name = "KIND", conflicts_with = "listen")]
    pub(crate) handshake: Option<HandshakeKind>,
}

/// Handshake of a transaction.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum HandshakeKind {
    /// TCP and TLS 1.3
    Tls,
    /// QUIC
    Quic,
}

impl KindArguments {
    /// The kind.
    pub(crate) const fn mode(self) -> RrMode {
        match self {
            Self { udp: true, .. } => RrMode::Udp,
            Self { connect: true, .. } => RrMode::Connect,
            Self { handshake: Some(HandshakeKind::Tls), .. } => RrMode::Tls,
            Self { handshake: Some(HandshakeKind::Quic), .. } => RrMode::Quic,
            Self { .. } => RrMode::Tcp,
        }
    }
}

fn size(text: &str) -> Result<ByteCount, String> {
    // A request of a few bytes is usual here: a bare number is bytes.
    let size = parse::size(text).map_err(|error| error.to_string())?;
    let most = RrMode::Tcp.max_message_bytes();
    if (1..=most).contains(&size.get()) { Ok(size) } else { Err("the size is 1 byte to 16 MiB".to_owned()) }
}

fn time(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_secs(1), Duration::from_secs(3600), "the time is 1s to 1h")
}

fn timeout(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_millis(1), Duration::from_secs(60), "the time limit is 1ms to 1min")
}

fn within(text: &str, least: Duration, most: Duration, rule: &str) -> Result<Duration, String> {
    let time = values::duration(text)?;
    if (least..=most).contains(&time) { Ok(time) } else { Err(rule.to_owned()) }
}

/// Requests per second, with or without the unit; `k` is 1000.
fn rate(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("/s").unwrap_or(text);
    let (number, factor) = match number.strip_suffix(['k', 'K']) {
        Some(thousands) => (thousands, 1000.0),
        None => (number, 1.0),
    };
    let rate = number.parse::<f64>().map_err(|_| format!("'{text}' is no number per second, for example 2000/s"))?;
    let rate = rate * factor;
    if (0.1..=1e6).contains(&rate) { Ok(rate) } else { Err("the rate is 0.1/s to 1000k/s".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::rate;

    #[test]
    fn rates_are_numbers_per_second() {
        let read = ["2000/s", "2000", "2k/s", "0.5", "1000k"].map(rate);
        assert_eq!(read, [Ok(2000.0), Ok(2000.0), Ok(2000.0), Ok(0.5), Ok(1e6)]);
        for wrong in ["", "/s", "0", "-1", "nan", "inf", "1e9", "2M/s", "10/m"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }
}
