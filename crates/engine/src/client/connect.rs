//! Prerequisites of a client's control connection: the addresses of the server, a cookie, TLS and the file.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_model::parameters::TestDirection;
use linerate_model::stream::StreamRole;
use linerate_sys::host;
use linerate_sys::net::{self, ConnectOptions, SocketSettings};
use linerate_sys::signals::InterruptSignals;
use linerate_wire::cookie::{self, AdmissionKey, Cookie};
use linerate_wire::error::ErrorCode;

use super::ClientOptions;
use super::setup::setup_error;
use crate::error::{Error, Result};
use crate::stream::TransferFile;
use crate::tls::{TlsClient, TlsError};

pub(super) fn new_cookie(key: Option<&AdmissionKey>) -> Result<Cookie> {
    let mut entropy = [0; cookie::LENGTH - 1];
    host::random_bytes(&mut entropy).map_err(|cause| Error::system(ErrorCode::INIT_TEST, &cause))?;
    let cookie = Cookie::linerate(entropy);
    Ok(key.map_or(cookie, |key| cookie.with_key(key)))
}

pub(super) fn open_file(options: &ClientOptions) -> Result<Option<Arc<TransferFile>>> {
    let Some(name) = options.file.clone() else { return Ok(None) };
    let role =
        if options.parameters.direction == TestDirection::Forward { StreamRole::Sender } else { StreamRole::Receiver };
    let file = match role {
        StreamRole::Sender => TransferFile::source(name),
        StreamRole::Receiver => TransferFile::sink(name),
    };
    file.map(|file| Some(Arc::new(file))).map_err(|cause| Error::io(ErrorCode::FILE, &cause))
}

/// Remedies for a client that a server refuses for lack of authorization.
pub(super) const AUTHORIZATION_ADVICE: &str = "the server serves only clients with TLS (--tls, --tls-pin, --tls-ca or \
                                    --shared-key-file), or known users with their password";

pub(super) fn tls_client(options: &ClientOptions) -> Result<Option<TlsClient>> {
    let client = options.tls.as_ref().map(|tls| TlsClient::new(tls, &options.host)).transpose();
    client.map_err(|cause| tls_error(&cause))
}

pub(crate) fn tls_error(cause: &TlsError) -> Error {
    Error::new(ErrorCode::CONNECT).with_detail(cause.to_string())
}

/// Tries the host's addresses in order; the last failure is reported.
pub(super) fn connect_control(options: &ClientOptions, stop: Option<&InterruptSignals>) -> Result<TcpStream> {
    let failed = |cause: linerate_sys::Error| setup_error(&cause, ErrorCode::CONNECT);
    let addresses = net::resolve(&options.host, options.port, options.family).map_err(failed)?;
    let mut last = Error::new(ErrorCode::CONNECT);
    for remote in addresses {
        let connect = ConnectOptions {
            bind: options.bind.map(|address| SocketAddr::new(address, 0)),
            device: options.device.clone(),
            timeout: options.connect_timeout,
            settings: SocketSettings {
                mss: options.parameters.mss,
                user_timeout: options.send_timeout,
                keepalive: options.keepalive,
                ..SocketSettings::default()
            },
            ..ConnectOptions::to(remote)
        };
        match net::connect_tcp(&connect, stop.map(AsFd::as_fd)) {
            Ok(stream) => return Ok(stream),
            Err(cause) => last = failed(cause),
        }
    }
    Err(last)
}
