//! Command line of `linerate watch`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use linerate_sys::sock_diag::AddressPrefix;
use linerate_units::Port;

use crate::values;

/// Default address of the metrics: reachable from this host only.
const DEFAULT_METRICS_ADDRESS: &str = "127.0.0.1:9820";

/// `linerate watch`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  linerate watch                     every flow, the fastest first\n  \
    linerate watch --process rsync     flows of one program\n  \
    linerate watch --once --port 5201  one table, for scripts and pipes\n  \
    linerate watch --json --count 60   a minute as JSON lines\n  \
    sudo linerate watch --kernel-events   with waits, drops and timers from inside the kernel\n  \
    linerate watch --prometheus        metrics at http://127.0.0.1:9820/metrics\n\n\
    Naming other users' processes needs root; everything else needs no privilege. Flows of the calling network \
    namespace are shown: `ip netns exec NAME linerate watch` shows those of another.")]
pub(crate) struct WatchArguments {
    /// Interval between samples, 100ms to 1min
    #[arg(short, long, default_value = "1s", value_name = "TIME", value_parser = interval)]
    pub(crate) interval: Duration,
    /// One table after one interval, as plain text
    #[arg(long, conflicts_with = "count")]
    pub(crate) once: bool,
    /// Stop after N intervals
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// Print one JSON document (schema 1) per interval, each on a line
    #[arg(long, conflicts_with = "prometheus")]
    pub(crate) json: bool,
    /// Print one JSON event per interval, each on a line, as other commands do; it has the document
    #[arg(long, conflicts_with_all = ["json", "prometheus"])]
    pub(crate) json_stream: bool,
    /// Serve metrics for Prometheus at this address; with --once, print them
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, default_missing_value = DEFAULT_METRICS_ADDRESS)]
    pub(crate) prometheus: Option<SocketAddr>,
    /// Number of flows with metrics of their own, the fastest first; the others are summed up
    #[arg(long, value_name = "N", default_value = "20", requires = "prometheus", value_parser = clap::value_parser!(u64).range(..=1000))]
    pub(crate) top: u64,
    /// Only sockets of processes with this name (or a part of it) or number
    #[arg(long, value_name = "NAME")]
    pub(crate) process: Option<String>,
    /// Only sockets with this port at either end
    #[arg(long, value_name = "PORT", value_parser = values::port)]
    pub(crate) port: Option<Port>,
    /// Only flows with this remote address, or a prefix such as 10.0.0.0/8
    #[arg(long, value_name = "ADDRESS", value_parser = address_prefix)]
    pub(crate) peer: Option<AddressPrefix>,
    /// Trace waits for a processor, drops and retransmissions of each flow in the kernel, as root
    #[arg(long, conflicts_with_all = ["listen", "prometheus"])]
    pub(crate) kernel_events: bool,
    /// Show listening sockets with their queues instead of flows
    #[arg(long, conflicts_with = "peer")]
    pub(crate) listen: bool,
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = values::duration(text)?;
    let allowed = Duration::from_millis(100)..=Duration::from_secs(60);
    if allowed.contains(&interval) { Ok(interval) } else { Err("the interval is 100ms to 1min".to_owned()) }
}

pub(crate) fn address_prefix(text: &str) -> Result<AddressPrefix, String> {
    let wrong = || "expected an address (10.0.0.1, fd00::1) or a prefix (10.0.0.0/8)".to_owned();
    let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
    let address = address.parse().map_err(|_| wrong())?;
    match length {
        None => Ok(AddressPrefix::single(address)),
        Some(length) => length.parse().ok().and_then(|length| AddressPrefix::new(address, length)).ok_or_else(wrong),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_prefixes() {
        let contains = |text: &str, address: &str| {
            address_prefix(text).map(|prefix| prefix.contains(address.parse().expect("one")))
        };
        assert_eq!(contains("10.0.0.0/8", "10.1.2.3"), Ok(true));
        assert_eq!(contains("fd00::1", "fd00::2"), Ok(false));
        for wrong in ["host", "10.0.0.0/33", "10.0.0.0/", "::/129", ""] {
            assert!(address_prefix(wrong).is_err(), "{wrong}");
        }
    }
}
