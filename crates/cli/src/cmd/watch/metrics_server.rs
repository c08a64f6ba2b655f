//! Metrics over HTTP: one page, replaced after each interval.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::http_server::{HttpResponse, HttpServer};

/// Server of the latest metrics. It runs until the process ends.
#[derive(Debug)]
pub(crate) struct MetricsServer {
    text: Arc<Mutex<String>>,
    /// Listening address.
    pub(crate) address: SocketAddr,
}

impl MetricsServer {
    pub(crate) fn start(address: SocketAddr) -> io::Result<Self> {
        let text = Arc::new(Mutex::new(String::new()));
        let shared = Arc::clone(&text);
        let server = HttpServer::start(address, move |request| match request.path.as_str() {
            "/metrics" => HttpResponse::metrics(shared.lock().unwrap_or_else(PoisonError::into_inner).clone()),
            _ => HttpResponse::refusal("404 Not Found", "the metrics are at /metrics"),
        })?;
        Ok(Self { text, address: server.address })
    }

    /// Replaces the page for the next clients.
    pub(crate) fn publish(&self, text: String) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
}
