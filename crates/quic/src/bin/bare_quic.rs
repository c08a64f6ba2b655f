//! Bare loop over quinn, for `cargo xtask bench quic`: payload in one direction and two looks at the clock, without samples,
//! figures, handshakes of other kinds or an account of datagrams.
//!
//! `bare_quic serve SERVER FORM` and `bare_quic send SERVER FORM up|down STREAMS SECONDS FILE`. SERVER is a port of 127.0.0.1, or an address
//! with its port. FORM is `own` for the settings of linerate over loopback, datagrams of the interface's size and large buffers, or
//! `defaults` for those of quinn and its `perf` tool.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use aws_lc_rs::signature::Ed25519KeyPair;
use bytes::Bytes;
use linerate_engine::tls::{PinnedKey, pin_of_public_key};
use linerate_sys::options;
use linerate_units::ByteCount;
use quinn::congestion::CubicConfig;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, EndpointConfig, RecvStream, ServerConfig, TokioRuntime};
use quinn::{TransportConfig, VarInt};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::sign::CertifiedKey;
use tokio::sync::Notify;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const USAGE: &str =
    "usage: bare_quic serve SERVER own|defaults | send SERVER own|defaults up|down STREAMS SECONDS FILE";
const LARGEST_DATAGRAM: u16 = 65_487;
const WRITE: usize = 256 << 10;
const WINDOW: u32 = 16 << 20;
const OWN_BUFFER: ByteCount = ByteCount::from_mebibytes(64);
const USUAL_BUFFER: ByteCount = ByteCount::from_mebibytes(2);

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match arguments[..] {
        ["serve", server, form] => runtime.block_on(serve(address(server)?, form == "own")),
        ["send", server, form, direction, streams, seconds, output] => {
            let request =
                BareRequest { is_up: direction == "up", streams: streams.parse()?, seconds: seconds.parse()? };
            let (bytes, time) = runtime.block_on(send(address(server)?, form == "own", request))?;
            let document = format!("{{\"received_bytes\": {bytes}, \"seconds\": {}}}\n", time.as_secs_f64());
            Ok(std::fs::write(output, document)?)
        }
        _ => Err(USAGE.into()),
    }
}

/// Address of the server.
fn address(text: &str) -> Result<SocketAddr> {
    match text.parse() {
        Ok(port) => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        Err(_) => Ok(text.parse()?),
    }
}

/// Request of a client, three bytes on the wire.
#[derive(Clone, Copy)]
struct BareRequest {
    is_up: bool,
    streams: u8,
    seconds: u8,
}

fn endpoint(local: SocketAddr, is_own: bool) -> Result<Endpoint> {
    let socket = UdpSocket::bind(local)?;
    let mut configuration = EndpointConfig::default();
    if is_own {
        configuration.max_udp_payload_size(LARGEST_DATAGRAM)?;
        // Without privileges the kernel's limit holds.
        let _ = options::force_receive_buffer(&socket, OWN_BUFFER);
        let _ = options::force_send_buffer(&socket, OWN_BUFFER);
    } else {
        options::set_receive_buffer(&socket, USUAL_BUFFER)?;
        options::set_send_buffer(&socket, USUAL_BUFFER)?;
    }
    Ok(Endpoint::new(configuration, None, socket, Arc::new(TokioRuntime))?)
}

fn transport(is_own: bool) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    if is_own {
        let mut cubic = CubicConfig::default();
        cubic.initial_window(10 * u64::from(LARGEST_DATAGRAM));
        transport
            .stream_receive_window(VarInt::from_u32(WINDOW))
            .receive_window(VarInt::from_u32(WINDOW))
            .send_window(u64::from(WINDOW))
            .initial_mtu(LARGEST_DATAGRAM)
            // A call takes 64 KiB: one of these datagrams.
            .enable_segmentation_offload(false)
            .congestion_controller_factory(Arc::new(cubic));
    }
    Arc::new(transport)
}

/// The same key in both programs: nothing else is protected by it.
fn key() -> Result<CertifiedKey> {
    let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32])?.to_pkcs8v1()?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(pair.as_ref().to_vec()));
    let key = cryptography().key_provider.load_private_key(key)?;
    let public = key.public_key().ok_or("the key has no public part")?.to_vec();
    Ok(CertifiedKey::new(vec![CertificateDer::from(public)], key))
}

/// Cryptography with AES-128 first, as linerate and quinn's `perf` have it.
fn cryptography() -> rustls::crypto::CryptoProvider {
    let mut all = rustls::crypto::aws_lc_rs::default_provider();
    all.cipher_suites.sort_by_key(|suite| suite.suite() != rustls::CipherSuite::TLS13_AES_128_GCM_SHA256);
    all
}

async fn serve(server: SocketAddr, is_own: bool) -> Result<()> {
    let tls = rustls::ServerConfig::builder_with_provider(Arc::new(cryptography()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(Arc::new(key()?))));
    let mut configuration = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    configuration.transport_config(transport(is_own));
    let endpoint = endpoint(server, is_own)?;
    endpoint.set_server_config(Some(configuration));
    while let Some(incoming) = endpoint.accept().await {
        let connection = incoming.await?;
        let (mut reply, mut request) = connection.accept_bi().await?;
        let mut bytes = [0; 3];
        request.read_exact(&mut bytes).await?;
        let request = BareRequest { is_up: bytes[0] == 1, streams: bytes[1], seconds: bytes[2] };
        if request.is_up {
            let (count, time) = receive(&connection, request).await?;
            let nanoseconds = u64::try_from(time.as_nanos())?;
            reply.write_all(&[count.to_be_bytes(), nanoseconds.to_be_bytes()].concat()).await?;
            reply.finish()?;
            connection.closed().await;
        } else {
            fill(&connection, request);
            connection.closed().await;
        }
    }
    Ok(())
}

async fn send(server: SocketAddr, is_own: bool, request: BareRequest) -> Result<(u64, Duration)> {
    let pin = pin_of_public_key(key()?.cert[0].as_ref());
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(cryptography()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(PinnedKey::new(pin))
        .with_no_client_auth();
    let mut configuration = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    configuration.transport_config(transport(is_own));
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let endpoint = endpoint(any, is_own)?;
    let connection = endpoint.connect_with(configuration, server, "bare")?.await?;
    let (mut order, mut reply) = connection.open_bi().await?;
    order.set_priority(1)?;
    order.write_all(&[u8::from(request.is_up), request.streams, request.seconds]).await?;
    let figures = if request.is_up {
        fill(&connection, request);
        let figures = reply.read_to_end(16).await?;
        let [count, nanoseconds] = [0, 8].map(|at| figures.get(at..at + 8).and_then(|part| part.try_into().ok()));
        let number = |bytes: Option<[u8; 8]>| bytes.map(u64::from_be_bytes).ok_or("the reply is too short");
        (number(count)?, Duration::from_nanos(number(nanoseconds)?))
    } else {
        receive(&connection, request).await?
    };
    connection.close(VarInt::from_u32(0), b"");
    endpoint.wait_idle().await;
    Ok(figures)
}

/// Writes on the streams of a request until the connection ends.
fn fill(connection: &Connection, request: BareRequest) {
    let payload = Bytes::from(vec![0x5A; WRITE]);
    for _ in 0..request.streams {
        let (connection, payload) = (connection.clone(), payload.clone());
        tokio::spawn(async move {
            let Ok(mut stream) = connection.open_uni().await else { return };
            while stream.write_chunk(payload.clone()).await.is_ok() {}
        });
    }
}

/// Payload that has arrived.
#[derive(Default)]
struct Arrived {
    bytes: AtomicU64,
    first: Notify,
}

/// Counts payload from the first chunk on.
async fn receive(connection: &Connection, request: BareRequest) -> Result<(u64, Duration)> {
    let arrived = Arc::<Arrived>::default();
    let (accepting, counter) = (connection.clone(), Arc::clone(&arrived));
    tokio::spawn(async move {
        while let Ok(stream) = accepting.accept_uni().await {
            tokio::spawn(read(stream, Arc::clone(&counter)));
        }
    });
    arrived.first.notified().await;
    let (start, before) = (Instant::now(), arrived.bytes.load(Ordering::Relaxed));
    tokio::time::sleep(Duration::from_secs(request.seconds.into())).await;
    Ok((arrived.bytes.load(Ordering::Relaxed) - before, start.elapsed()))
}

async fn read(mut stream: RecvStream, arrived: Arc<Arrived>) {
    while let Ok(Some(chunk)) = stream.read_chunk(usize::MAX, false).await {
        if arrived.bytes.fetch_add(chunk.bytes.len() as u64, Ordering::Relaxed) == 0 {
            arrived.first.notify_one();
        }
    }
}
