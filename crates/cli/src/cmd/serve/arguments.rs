//! The command line of `linerate serve`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use linerate_engine::server::DialTarget;
use linerate_units::{BitRate, PacketCount, Port};

use crate::cmd::measurement::NetworkArguments;
use crate::cmd::tls::ServeTlsArguments;
use crate::command_line::host_and_port;
use crate::values;

/// `linerate serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Port, for TCP and UDP; 0 lets the system choose
    #[arg(short, long, default_value = "5201")]
    pub(crate) port: u16,
    /// Serve anybody, with limits for that: 32 sessions, 1 minute per session, 1 Gbit/s for all together, an end after 20 s
    /// without data, no choice of processors, STAMP only if asked; options given with it replace single limits
    #[arg(long)]
    pub(crate) public: bool,
    /// Sessions at once; further clients are refused as the server is busy, or wait with --queue. Above 1000 the memory for
    /// all of them grows by 147 kB each
    #[arg(long, value_name = "N", value_parser = sessions)]
    pub(crate) max_sessions: Option<NonZeroUsize>,
    /// Let clients wait for their turn instead of telling them that the server is busy
    #[arg(long)]
    pub(crate) queue: bool,
    /// Move no more than this in sum over all sessions, with equal shares for their networks: pace what is sent, refuse or
    /// end tests in which the client sends more
    #[arg(long, value_parser = values::rate, value_name = "RATE")]
    pub(crate) server_bitrate_limit: Option<BitRate>,
    /// Refuse tests that last longer, and tests without a time limit; end the traffic of a probe session after this time
    #[arg(long, value_parser = values::duration, value_name = "TIME")]
    pub(crate) server_max_duration: Option<Duration>,
    /// End tests in which nothing has moved for this long [default: 120s]
    #[arg(long, value_parser = values::duration, value_name = "TIME")]
    pub(crate) stall_timeout: Option<Duration>,
    /// Read from each TCP connection no faster than this, as a slow application would, for example 5MB/s
    #[arg(long, value_parser = values::rate, value_name = "RATE")]
    pub(crate) read_rate: Option<BitRate>,
    /// RSA private key (PEM): only known users may test
    #[arg(long, requires = "authorized_users_path", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) rsa_private_key_path: Option<PathBuf>,
    /// The known users: lines of `name,hash` as iperf3 has them
    #[arg(long, requires = "rsa_private_key_path", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) authorized_users_path: Option<PathBuf>,
    /// TLS.
    #[command(flatten)]
    pub(crate) tls: ServeTlsArguments,
    /// UDP port on which STAMP senders are answered (RFC 8762), 0 for none; else 862, or the port after the server's where
    /// 862 is not available
    #[arg(long, value_name = "PORT")]
    pub(crate) stamp_port: Option<u16>,
    /// Answer only STAMP senders that have this key (authenticated mode): a file with hexadecimal digits or the key itself
    #[arg(long, conflicts_with = "no_stamp", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) stamp_key_file: Option<PathBuf>,
    /// STAMP packets of up to 1500 bytes answered per second for one source, an IPv4 address or an IPv6 /64
    #[arg(long, conflicts_with = "no_stamp", default_value = "5000", value_name = "N", value_parser = stamp_rate)]
    pub(crate) stamp_rate: PacketCount,
    /// Answer no STAMP senders, as --stamp-port 0
    #[arg(long, conflicts_with = "stamp_port")]
    pub(crate) no_stamp: bool,
    /// UDP port for measurements over QUIC (`linerate test --quic`), for example 443; without it the system chooses one
    #[cfg(feature = "quic")]
    #[arg(long, value_parser = values::port, value_name = "PORT")]
    pub(crate) quic_port: Option<Port>,
    /// Also serve a page on which browsers measure against this server, on port 8080, and librespeed's endpoints;
    /// results go to the history, except with --public
    #[cfg(feature = "web")]
    #[arg(
        long,
        value_parser = super::web::address,
        value_name = "[ADDRESS:]PORT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "8080",
        conflicts_with = "rsa_private_key_path"
    )]
    pub(crate) web: Option<super::web::WebAddress>,
    /// Show the history of this host on that page, to everybody who can reach it
    #[cfg(feature = "web")]
    #[arg(long, requires = "web")]
    pub(crate) web_history: bool,
    /// Also serve responsiveness tests over HTTP/2 (networkQuality, goresponsiveness, `linerate load https://…`), on port
    /// 4043, with the certificate of --tls-cert, or else the key of --tls-key or a new one, whose pin is printed
    #[cfg(feature = "responsiveness")]
    #[arg(
        long,
        value_parser = super::web::address,
        value_name = "[ADDRESS:]PORT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "4043",
        conflicts_with_all = ["rsa_private_key_path", "shared_key_file", "tls_client_ca"]
    )]
    pub(crate) responsiveness: Option<super::web::WebAddress>,
    /// Dial a waiting client (`linerate test --listen`) and serve it over the connections opened from here: for a server
    /// behind NAT or a firewall; the port is 5201 unless given
    #[arg(long, value_name = "HOST[:PORT]", value_parser = dial_target)]
    pub(crate) dial: Option<DialTarget>,
    /// Open the port in this host's firewall while serving
    #[arg(long, conflicts_with = "user")]
    pub(crate) open_firewall: bool,
    /// Keep this port open until the end of standard input, for a server that started this process
    #[arg(long, hide = true, value_name = "PORT")]
    pub(crate) firewall_guard: Option<u16>,
    /// Become this user once the port is bound
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// Print one JSON document per finished test, each on a line
    #[arg(long)]
    pub(crate) json: bool,
    /// The network side.
    #[command(flatten)]
    pub(crate) network: NetworkArguments,
}

/// Parses a number of sessions.
fn sessions(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "expected 1 session or more".to_owned())
}

/// Parses a number of packets per second: each of at most 1,000,000 is answered with as many bytes.
fn stamp_rate(text: &str) -> Result<PacketCount, String> {
    let rate = text.parse().ok().filter(|rate| (1..=1_000_000).contains(rate));
    rate.map(PacketCount::new).ok_or_else(|| "expected 1 to 1000000 packets per second".to_owned())
}

/// Parses `HOST` or `HOST:PORT`.
fn dial_target(text: &str) -> Result<DialTarget, String> {
    let (host, port) = match host_and_port(text) {
        Some((host, port)) => (host, values::port(port)?),
        None => (text, Port::IPERF3),
    };
    if host.is_empty() || host.starts_with('-') {
        return Err("expected HOST or HOST:PORT".to_owned());
    }
    Ok(DialTarget { host: host.to_owned(), port })
}
