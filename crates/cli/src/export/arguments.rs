//! Options of commands whose results are exported.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueHint};

#[cfg(feature = "otlp")]
use super::otlp_client::{OtlpHeader, OtlpUrl};

/// Destinations of results, in addition to the log.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ExportArguments {
    /// OpenTelemetry receivers of results.
    #[cfg(feature = "otlp")]
    #[command(flatten)]
    pub(crate) otlp: OtlpArguments,
    /// Serve the last results to Prometheus at this address: /metrics, and /probe?target=NAME&module=rtt|loss|mtu
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Let /probe measure any host, not only those that this command tests
    #[arg(long, requires = "metrics")]
    pub(crate) probe_any: bool,
    /// Write the last results to this file, for the textfile collector of Prometheus' node exporter (FILE.prom)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) textfile: Option<PathBuf>,
}

/// OpenTelemetry receivers of results.
#[cfg(feature = "otlp")]
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct OtlpArguments {
    /// Send each result by OTLP/HTTP (JSON) to URL/v1/metrics and URL/v1/logs, for example `http://127.0.0.1:4318`
    #[arg(long = "otlp", value_name = "URL")]
    pub(crate) url: Option<OtlpUrl>,
    /// Header of each request, with its value from a file, which is read each time: `Authorization=/etc/linerate/otlp-token`
    #[arg(long = "otlp-header", value_name = "NAME=FILE", requires = "url")]
    pub(crate) headers: Vec<OtlpHeader>,
}

impl ExportArguments {
    /// True with a destination.
    pub(crate) const fn is_any(&self) -> bool {
        #[cfg(feature = "otlp")]
        if self.otlp.url.is_some() {
            return true;
        }
        self.metrics.is_some() || self.textfile.is_some()
    }
}
