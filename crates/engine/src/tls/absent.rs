//! TLS of a build without it (feature `tls`): there is none, and no value of these types.

use std::io;
use std::net::TcpStream;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use linerate_model::tls::TlsProperties;

use super::{ConnectionUse, KeyPin, ReceiveOutcome, TlsClientOptions, TlsError, TlsServerOptions, WaitDecision};
use crate::control::ControlConnection;

type Result<T> = core::result::Result<T, TlsError>;

fn refusal() -> TlsError {
    TlsError("this linerate is built without TLS (feature tls)".to_owned())
}

/// Prepared TLS of a client.
#[derive(Clone, Debug)]
pub enum TlsClient {}

impl TlsClient {
    /// Refuses.
    pub fn new(_: &TlsClientOptions, _: &str) -> Result<Self> {
        Err(refusal())
    }

    pub(crate) fn of_session_key(_: KeyPin, _: &str) -> Result<Self> {
        Err(refusal())
    }

    pub(crate) fn stream(&self, _: TcpStream) -> Result<TlsStream> {
        match *self {}
    }

    pub(crate) fn properties(&self, _: &TlsStream) -> Option<TlsProperties> {
        match *self {}
    }

    pub(crate) fn join(&self, _: TcpStream, _: &[u8], _: Option<BorrowedFd<'_>>) -> Result<TcpStream> {
        match *self {}
    }

    pub(crate) fn join_secured(
        &self,
        _: TcpStream,
        _: &[u8],
        _: Option<BorrowedFd<'_>>,
    ) -> Result<(TcpStream, DataCipher)> {
        match *self {}
    }

    pub(crate) fn secure(
        &self,
        _: TcpStream,
        _: ConnectionUse,
        _: Option<BorrowedFd<'_>>,
    ) -> Result<ControlConnection> {
        match *self {}
    }
}

/// Prepared TLS of a server.
#[derive(Debug)]
pub enum TlsServer {}

impl TlsServer {
    /// Refuses.
    pub fn new(_: &TlsServerOptions) -> Result<Self> {
        Err(refusal())
    }

    pub(crate) fn with_new_key() -> Result<Self> {
        Err(refusal())
    }

    /// Pin of the server's key.
    #[must_use]
    pub fn pin(&self) -> Option<KeyPin> {
        match *self {}
    }
}

#[derive(Debug)]
pub(crate) enum DataCipher {}

impl DataCipher {
    pub(crate) fn properties(&self) -> Option<TlsProperties> {
        match *self {}
    }

    pub(crate) fn seal(&mut self, _: &[u8]) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn is_written(&self) -> bool {
        match *self {}
    }

    pub(crate) fn write(&mut self, _: &TcpStream) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn open(&mut self, _: &[u8], _: &mut dyn FnMut(&[u8])) -> Result<usize> {
        match *self {}
    }

    pub(crate) fn is_within_record(&self) -> bool {
        match *self {}
    }
}

#[derive(Debug)]
pub(crate) enum TlsStream {}

impl TlsStream {
    pub(crate) fn accept(_: TcpStream, server: &Arc<TlsServer>, _: WaitDecision<'_>) -> Result<Self> {
        match **server {}
    }

    pub(crate) fn handshake_bytes(&self) -> usize {
        match *self {}
    }

    pub(crate) fn send(&mut self, _: &[u8], _: WaitDecision<'_>) -> Result<()> {
        match *self {}
    }

    pub(crate) fn send_last(&mut self, _: &[u8], _: WaitDecision<'_>) -> Result<()> {
        match *self {}
    }

    pub(crate) fn receive(&mut self, _: &mut [u8], _: WaitDecision<'_>) -> Result<usize> {
        match *self {}
    }

    pub(crate) fn receive_ready(&mut self, _: &mut [u8]) -> Result<usize> {
        match *self {}
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        match *self {}
    }

    pub(crate) fn receive_end(&mut self, _: WaitDecision<'_>) -> Result<()> {
        match *self {}
    }
}

#[derive(Debug)]
pub(crate) enum TlsChannel {}

impl TlsChannel {
    pub(crate) fn of_server(server: &Arc<TlsServer>) -> Self {
        match **server {}
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        match *self {}
    }

    pub(crate) fn into_data(self) -> Option<DataCipher> {
        match self {}
    }

    pub(crate) fn usage(&self) -> ConnectionUse {
        match *self {}
    }

    pub(crate) fn is_foreign(&self) -> bool {
        match *self {}
    }

    pub(crate) fn failure(&self) -> Option<&TlsError> {
        match *self {}
    }

    pub(crate) fn has_unread(&mut self) -> bool {
        match *self {}
    }

    pub(crate) fn read(&mut self, _: &mut [u8]) -> Option<usize> {
        match *self {}
    }

    pub(crate) fn write(&mut self, _: &[u8]) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn take_outgoing(&mut self) -> Vec<u8> {
        match *self {}
    }

    pub(crate) fn receive(&mut self, _: &TcpStream) -> ReceiveOutcome {
        match *self {}
    }
}
