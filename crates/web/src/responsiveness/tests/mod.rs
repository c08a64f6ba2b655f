//! Both ends over loopback: the client with a server whose answers a test chooses, and with our own.

mod client;
mod load;
mod service;

use core::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use linerate_engine::server::{ServerOptions, ServiceAccess};
use linerate_engine::tls::{KeyPin, ServerIdentity, ServerTrust, TlsClientOptions, https};
use linerate_sys::net::ConnectOptions;
use tokio::net::TcpListener;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::connection::{Connection, SocketIo};
use crate::response::{self, WebResponse};
use crate::server::RunningWebService;
use crate::test_support::{Loopback, access};

use super::client::{HttpTarget, RequestBody};
use super::config::ServerObjects;
use super::server::HTTP2;
use super::stream_io::{StreamIo, TaskExecutor};
use super::{BoundResponsivenessService, HttpsUrl, ResponsivenessOptions};

const BYTES: &str = "application/octet-stream";

/// Paths of the objects.
fn objects(address: SocketAddr) -> Arc<ServerObjects> {
    let host = HttpsUrl::parse_configuration(&format!("https://{address}/large")).expect("a URL");
    let path = |path: &str| path.to_owned();
    Arc::new(ServerObjects {
        host,
        small: path("/small"),
        large: path("/large"),
        upload: path("/upload"),
        ignored_endpoint: None,
    })
}

/// Target of a client that trusts this key.
fn target(address: SocketAddr, pin: KeyPin, protocols: &[&[u8]]) -> HttpTarget {
    let trust = ServerTrust::Pin(pin);
    let config = https::client(&TlsClientOptions { trust: trust.clone(), certificate: None }, protocols);
    HttpTarget {
        connect: ConnectOptions::to(address),
        tls: TlsConnector::from(config.expect("a client needs no file")),
        trust,
        name: ServerName::try_from(address.ip().to_string()).expect("an address"),
        authority: address.to_string(),
    }
}

/// Address on which nothing listens, while the connection exists that has its port.
fn closed_port(loopback: &Loopback) -> (SocketAddr, (Arc<Connection>, std::net::TcpStream)) {
    let held = loopback.connect(1);
    (held.1.local_addr().expect("bound"), held)
}

/// Serves HTTP/2 with these answers, as tasks of the present runtime, until that ends.
async fn serve(protocols: &[&[u8]], answer: fn(&Request<Incoming>) -> WebResponse) -> HttpTarget {
    let (config, pin) = https::server(&ServerIdentity::NewKey, protocols).expect("a new key");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let tls = TlsAcceptor::from(config);
    tokio::spawn(async move {
        while let Ok((stream, peer)) = listener.accept().await {
            let tls = tls.clone();
            tokio::spawn(async move {
                let socket = Connection::new(stream, peer, 1);
                let Ok(stream) = tls.accept(SocketIo(Arc::clone(&socket))).await else { return };
                let service = service_fn(move |request| {
                    let answered: Result<WebResponse, Infallible> = Ok(answer(&request));
                    core::future::ready(answered)
                });
                // A client that has what it wants goes away.
                let _ =
                    http2::Builder::new(TaskExecutor).serve_connection(StreamIo::new(stream, socket), service).await;
            });
        }
    });
    target(address, pin, &[HTTP2])
}

/// Our own server, on a thread of its own.
struct OwnServer {
    target: HttpTarget,
    pin: KeyPin,
    access: ServiceAccess,
    _running: RunningWebService,
}

impl OwnServer {
    fn start(change: impl FnOnce(&mut ServerOptions)) -> Self {
        let address = Some(Ipv4Addr::LOCALHOST.into());
        let (port, family, device) = (None, None, None);
        let options = ResponsivenessOptions { address, port, family, device, identity: ServerIdentity::NewKey };
        let bound = BoundResponsivenessService::bind(options).expect("a free port");
        let (target, pin) = (target(bound.address(), bound.pin(), &[HTTP2]), bound.pin());
        let access = access(change);
        let running = bound.start(access.clone(), |reason| panic!("{reason}")).expect("a thread");
        Self { target, pin, access, _running: running }
    }

    fn address(&self) -> SocketAddr {
        self.target.connect.remote
    }
}
