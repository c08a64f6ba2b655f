//! `--responsiveness`: the server for tests over HTTP/2.

use linerate_engine::server::Server;
use linerate_units::Port;
use linerate_web::RunningWebService;
use linerate_web::responsiveness::{BoundResponsivenessService, ResponsivenessOptions};

use super::ServeArguments;
use super::web::{WebAddress, host_text};
use crate::cmd::measurement::family;
use crate::console;
use crate::firewall::FirewallGuard;

/// The service, once its port is bound.
pub(super) struct BoundResponsiveness {
    service: BoundResponsivenessService,
    firewall: FirewallGuard,
}

/// The service while it runs.
pub(super) struct RunningResponsiveness {
    _service: RunningWebService,
    firewall: Option<FirewallGuard>,
}

impl BoundResponsiveness {
    /// Binds the port.
    pub(super) fn bind(address: WebAddress, arguments: &ServeArguments) -> Result<Self, String> {
        let service = BoundResponsivenessService::bind(ResponsivenessOptions {
            address: address.address.or(arguments.network.bind),
            port: address.port,
            family: family(&arguments.network),
            device: arguments.network.bind_dev.clone(),
            identity: arguments.tls.web_identity(),
        });
        let service = service.map_err(|error| {
            format!("{error}\n--responsiveness=PORT selects another port, --responsiveness=0 any free one")
        })?;
        let port = Port::new(service.address().port()).unwrap_or(Port::IPERF3);
        let firewall = FirewallGuard::open_if(arguments.open_firewall, port, console::note);
        let firewall = firewall.map_err(|cause| cause.to_string())?;
        Ok(Self { service, firewall })
    }

    /// Serves until the returned value is dropped.
    pub(super) fn start(self, server: &Server) -> Result<RunningResponsiveness, String> {
        let address = self.service.address();
        let (url, pin) = (
            format!("https://{}:{}{}", host_text(address.ip()), address.port(), self.service.path()),
            self.service.pin(),
        );
        let report = |text: &str| console::error(text, None);
        let running = self.service.start(server.service_access(), report).map_err(|error| error.to_string())?;
        console::note(&format!("responsiveness is measured at {url} (--tls-pin {pin})"));
        Ok(RunningResponsiveness { _service: running, firewall: Some(self.firewall) })
    }
}

impl Drop for RunningResponsiveness {
    fn drop(&mut self) {
        if let Some(firewall) = self.firewall.take() {
            firewall.close(console::note);
        }
    }
}
