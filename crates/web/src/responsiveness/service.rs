//! Answers of a responsiveness server: its configuration, a small and an endless object, and a sink.

use core::convert::Infallible;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::HOST;
use hyper::http::uri::Authority;
use hyper::{Method, Request, StatusCode};
use linerate_engine::server::{HandshakeQuota, ServiceAccess};
use serde_json::json;

use crate::connection::Connection;
use crate::origin;
use crate::response::{self, WebResponse};
use crate::service::{download, refuse_session, upload, within_limits};
use crate::session::WebSession;
use crate::session_table::SessionTable;

/// Bytes of the large object: 8 GB at least, and more than a test moves at 25 Gbit/s in 20 s.
const LARGE_OBJECT: u64 = 64 << 30;

/// Most transfers of an address at once: the 16 connections of the draft in both directions, of two clients behind one address.
const MAX_TRANSFERS: u32 = 64;

/// Paths of the objects.
const SMALL: &str = "/small";
const LARGE: &str = "/large";
const UPLOAD: &str = "/upload";

/// Paths of the configuration: the well-known one of the draft, and those that clients ask for by default.
pub(super) const CONFIGURATIONS: [&str; 3] = ["/.well-known/nq", "/config", "/api/v1/config"];

/// State of the service.
pub(super) struct ResponsivenessService {
    pub(super) access: ServiceAccess,
    pub(super) sessions: SessionTable,
    pub(super) handshakes: HandshakeQuota,
    /// Host and port in URLs for clients that name none.
    pub(super) authority: String,
}

impl ResponsivenessService {
    /// Answers a request.
    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
        connection: Arc<Connection>,
    ) -> Result<WebResponse, Infallible> {
        Ok(within_limits(&self.access, &connection, self.route(request, &connection)).await)
    }

    async fn route(&self, request: Request<Incoming>, connection: &Arc<Connection>) -> WebResponse {
        if origin::is_cross_site(request.headers()) {
            return response::refuse(StatusCode::FORBIDDEN, "requests of web sites are not answered here");
        }
        let path = request.uri().path().to_owned();
        let allowed = match path.as_str() {
            UPLOAD => "POST",
            SMALL | LARGE => "GET, HEAD",
            path if CONFIGURATIONS.contains(&path) => "GET, HEAD",
            _ => {
                return response::refuse(StatusCode::NOT_FOUND, "no such object: the configuration is /.well-known/nq");
            }
        };
        if !allowed.split(", ").any(|method| method == request.method().as_str()) {
            return response::refuse_method(allowed);
        }
        match path.as_str() {
            SMALL => response::text(StatusCode::OK, "application/octet-stream", "0"),
            LARGE | UPLOAD => match self.session_of(connection) {
                Err(refusal) => refuse_session(&refusal),
                Ok(session) if path == UPLOAD => upload(&session, connection, request.into_body()).await,
                Ok(session) => download(&session, connection, LARGE_OBJECT, request.method() == Method::HEAD),
            },
            _ => response::json(StatusCode::OK, &configuration(&self.authority_of(&request))),
        }
    }

    /// Host and port by which the client knows this server.
    fn authority_of(&self, request: &Request<Incoming>) -> String {
        let header = || request.headers().get(HOST)?.to_str().ok()?.parse::<Authority>().ok();
        let named = request.uri().authority().cloned().or_else(header);
        // A name with a user would send that user to us only, and is no host all the same.
        let named = named.filter(|name| !name.as_str().contains('@'));
        named.map_or_else(|| self.authority.clone(), |name| name.to_string())
    }

    fn session_of(&self, connection: &Connection) -> Result<Arc<WebSession>, linerate_engine::server::ServiceRefusal> {
        let client = connection.peer.ip();
        let session =
            self.sessions.of_address(client, || WebSession::open(&self.access, client, None, MAX_TRANSFERS, false))?;
        session.touch();
        Ok(session)
    }
}

/// Configuration with the keys of the draft, and those of implementations before it.
fn configuration(authority: &str) -> serde_json::Value {
    let url = |path: &str| format!("https://{authority}{path}");
    let (small, large, upload) = (url(SMALL), url(LARGE), url(UPLOAD));
    json!({
        "version": 1,
        "urls": {
            "small_download_url": small,
            "large_download_url": large,
            "upload_url": upload,
            "small_https_download_url": small,
            "large_https_download_url": large,
            "https_upload_url": upload,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_has_the_keys_of_old_and_new_clients() {
        let found = configuration("[2001:db8::1]:4043");
        assert_eq!(found["version"], 1);
        for key in ["small_download_url", "small_https_download_url"] {
            assert_eq!(found["urls"][key], "https://[2001:db8::1]:4043/small");
        }
        for key in ["large_download_url", "large_https_download_url"] {
            assert_eq!(found["urls"][key], "https://[2001:db8::1]:4043/large");
        }
        for key in ["upload_url", "https_upload_url"] {
            assert_eq!(found["urls"][key], "https://[2001:db8::1]:4043/upload");
        }
    }
}
