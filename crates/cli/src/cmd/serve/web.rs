//! `--web`: the page for browsers.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr as _;
use std::sync::Arc;

use linerate_documents::label::LabelledDocument;
use linerate_documents::run::RunDocument;
use linerate_engine::server::Server;
use linerate_report::escape;
use linerate_units::Port;
use linerate_web::{BoundWebService, RunningWebService, WebObserver, WebOptions};

use super::{ServeArguments, local_time};
use crate::cmd::measurement::family;
use crate::firewall::FirewallGuard;
use crate::{console, recorder};

/// Address and port of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WebAddress {
    /// Address; `None` for that of the server.
    pub(super) address: Option<IpAddr>,
    /// Port; `None` lets the system choose.
    pub(super) port: Option<Port>,
}

/// Parses `[ADDRESS:]PORT`.
pub(crate) fn address(text: &str) -> Result<WebAddress, String> {
    if let Ok(port) = text.parse() {
        return Ok(WebAddress { address: None, port: Port::new(port) });
    }
    let both = SocketAddr::from_str(text);
    let both = both.map_err(|_| "expected PORT or ADDRESS:PORT, for example 8080 or 127.0.0.1:8080".to_owned())?;
    Ok(WebAddress { address: Some(both.ip()), port: Port::new(both.port()) })
}

/// The page, once its port is bound.
pub(super) struct BoundWebPage {
    service: BoundWebService,
    firewall: FirewallGuard,
}

/// The page while it is served.
pub(super) struct RunningWebPage {
    _service: RunningWebService,
    firewall: Option<FirewallGuard>,
}

impl BoundWebPage {
    /// Binds the port.
    pub(super) fn bind(address: WebAddress, arguments: &ServeArguments) -> Result<Self, String> {
        let service = BoundWebService::bind(WebOptions {
            address: address.address.or(arguments.network.bind),
            port: address.port,
            family: family(&arguments.network),
            device: arguments.network.bind_dev.clone(),
            keeps_results: !arguments.public && recorder::is_possible(),
            shows_history: arguments.web_history,
        });
        let service =
            service.map_err(|error| format!("{error}\n--web=PORT selects another port, --web=0 any free one"))?;
        let port = Port::new(service.address().port()).unwrap_or(Port::IPERF3);
        let firewall = FirewallGuard::open_if(arguments.open_firewall, port, console::note);
        let firewall = firewall.map_err(|cause| cause.to_string())?;
        Ok(Self { service, firewall })
    }

    /// Serves the page until the returned value is dropped.
    pub(super) fn start(self, server: &Server, arguments: &ServeArguments) -> Result<RunningWebPage, String> {
        let address = self.service.address();
        let host = host_text(address.ip());
        let history = match (arguments.web_history, arguments.public) {
            (true, _) => "; it shows this host's history to everybody who can reach it",
            (false, true) => "; its results are not kept",
            (false, false) => "",
        };
        let observer = Arc::new(WebPageObserver { json: arguments.json });
        let running = self.service.start(server.service_access(), observer).map_err(|error| error.to_string())?;
        console::note(&format!("browsers measure at http://{host}:{}/{history}", address.port()));
        Ok(RunningWebPage { _service: running, firewall: Some(self.firewall) })
    }
}

impl Drop for RunningWebPage {
    fn drop(&mut self) {
        if let Some(firewall) = self.firewall.take() {
            firewall.close(console::note);
        }
    }
}

/// Address as in a URL, or this host's name for all addresses.
pub(super) fn host_text(address: IpAddr) -> String {
    match address {
        any if any.is_unspecified() => linerate_sys::host::host_name(),
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// Prints and keeps results.
struct WebPageObserver {
    json: bool,
}

impl WebObserver for WebPageObserver {
    fn finished(&self, number: u64, run: &RunDocument, keeps: bool) -> Option<i64> {
        if self.json {
            // A run is valid JSON.
            let line = serde_json::to_string(&LabelledDocument::run(run)).unwrap_or_default();
            console::data(&format!("{line}\n"));
        } else {
            let text = format!("{} #{number} {}: browser, {}", local_time(), run.host, run.verdict);
            console::data(&format!("{}\n", escape::line(&text)));
        }
        keeps.then(|| recorder::keep_silently(run)).flatten().map(linerate_history::RunId::get)
    }

    fn problem(&self, text: &str) {
        console::error(text, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_port_or_both() {
        let parsed = |text: &str| address(text).map(|address| (address.address, address.port.map(Port::get)));
        assert_eq!(parsed("8080"), Ok((None, Some(8080))));
        assert_eq!(parsed("0"), Ok((None, None)));
        assert_eq!(parsed("127.0.0.1:81"), Ok((Some(IpAddr::from([127, 0, 0, 1])), Some(81))));
        assert!(parsed("[::1]:8080").is_ok_and(|(address, _)| address.is_some_and(|address| address.is_ipv6())));
        for wrong in ["", "a", "65536", "127.0.0.1", ":80", "host:80"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
