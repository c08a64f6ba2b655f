//! TLS between real clients and servers on loopback.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use linerate_model::direction::Direction;
use linerate_model::parameters::{TestDirection, TestParameters};
use linerate_model::stream::StreamRole;
use linerate_units::StreamCount;
use proptest::prelude::*;

use super::*;
use crate::client::ClientOptions;
use crate::probe::{LoadOptions, ProbeSession, ProbeTarget};
use crate::server::ServerOptions;
use crate::tests::support::{ClientRun, ServerNews, TestServer, bytes_of, client_options, connect, exact, target};

/// Time within which ends that disagree have parted.
const QUICK: Duration = Duration::from_secs(5);

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/tls/fixtures").join(name)
}

/// Certificate of the fixtures; all have the same key.
fn files(name: &str) -> CertificateFiles {
    CertificateFiles { certificate: fixture(name), key: fixture("key.pem") }
}

/// File with this key. Another test that runs at the same time sees it whole or not at all.
pub(super) fn shared(key: &str) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let file = std::env::temp_dir().join(format!("linerate-shared-key-{}-{key}", std::process::id()));
    let part = file.with_extension(COUNT.fetch_add(1, Ordering::Relaxed).to_string());
    std::fs::write(&part, format!("{key}\n")).expect("a writable directory");
    std::fs::rename(&part, &file).expect("the same directory");
    file
}

pub(super) const KEY: &str = "0123456789abcdef";

pub(super) fn serve(identity: ServerIdentity, client_authorities: Option<PathBuf>) -> (TestServer, Option<KeyPin>) {
    let tls = TlsServer::new(&TlsServerOptions { identity, client_authorities }).expect("usable files");
    let pin = tls.pin();
    (TestServer::start(ServerOptions { tls: Some(Arc::new(tls)), ..ServerOptions::default() }), pin)
}

#[expect(clippy::unnecessary_wraps, reason = "as the options of a client have it")]
pub(super) fn trusting(trust: ServerTrust) -> Option<Arc<TlsClientOptions>> {
    Some(Arc::new(TlsClientOptions { trust, certificate: None }))
}

fn authority() -> ServerTrust {
    ServerTrust::Authorities(fixture("authority.pem"))
}

fn probe_target(server: &TestServer, tls: Option<Arc<TlsClientOptions>>) -> ProbeTarget {
    ProbeTarget { tls, ..target(server.address) }
}

pub(super) fn test(server: &TestServer, tls: Option<Arc<TlsClientOptions>>, parameters: TestParameters) -> ClientRun {
    ClientRun::with(&ClientOptions { tls, ..client_options(server.address, parameters) })
}

/// Reason for which a probe session is not opened; it must come quickly.
fn refusal(server: &TestServer, tls: Option<Arc<TlsClientOptions>>) -> String {
    let start = Instant::now();
    let error = ProbeSession::open(&probe_target(server, tls), None).expect_err("refused");
    assert!(start.elapsed() < QUICK, "{error}: {:?}", start.elapsed());
    error.to_string()
}

#[test]
fn tests_run_as_without_it() {
    let (server, _) = serve(ServerIdentity::SharedKey(shared(KEY)), None);
    for direction in [TestDirection::Forward, TestDirection::Reverse, TestDirection::Bidirectional] {
        let parameters = TestParameters { direction, parallel: StreamCount::new(3), ..exact(3_000_000) };
        let run = test(&server, trusting(ServerTrust::SharedKey(shared(KEY))), parameters).successful();
        for (role, used) in [
            (StreamRole::Sender, direction != TestDirection::Reverse),
            (StreamRole::Receiver, direction != TestDirection::Forward),
        ] {
            let received = bytes_of(run.report(), role, true);
            assert_eq!(received, if used { 3_000_000 } else { 0 }, "{direction:?} {role:?}");
        }
    }
}

#[test]
fn probe_sessions_and_their_loads_run_as_without_it() {
    let (server, pin) = serve(ServerIdentity::NewKey, None);
    let session = ProbeSession::open(&probe_target(&server, trusting(ServerTrust::Pin(pin.expect("a pin")))), None);
    let session = session.expect("the right pin");
    assert!(session.facts().expect("an answer").kernel.is_some());
    let load = session.open_load(&LoadOptions::new(Direction::Down)).expect("a free connection");
    load.start().expect("alive");
    let start = Instant::now();
    while load.bytes().get() < 1 << 20 && start.elapsed() < Duration::from_secs(10) {
        std::thread::yield_now();
    }
    let outcome = load.stop();
    assert!(outcome.near.bytes.get() >= 1 << 20, "{outcome:?}");
}

#[test]
fn servers_are_recognized_by_name_and_authority_or_by_their_key() {
    let (server, pin) = serve(ServerIdentity::Certificate(files("valid.pem")), None);
    let pin = ServerTrust::Pin(pin.expect("a pin"));
    for trust in [authority(), pin.clone()] {
        ProbeSession::open(&probe_target(&server, trusting(trust)), None).expect("the same key");
    }
    let (by_key, same) = serve(ServerIdentity::Key(fixture("key.pem")), None);
    assert_eq!(same.map(ServerTrust::Pin), Some(pin.clone()), "the pin is that of the key");
    ProbeSession::open(&probe_target(&by_key, trusting(pin)), None).expect("the same key");
    let text = refusal(&by_key, trusting(authority()));
    assert!(text.contains("recognize it by --tls-pin"), "{text}");
}

#[test]
fn wrong_servers_are_refused_with_the_reason() {
    let other: KeyPin = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=".parse().expect("a pin");
    let certificate = |name: &str| ServerIdentity::Certificate(files(name));
    for (identity, trust, reason) in [
        (certificate("expired.pem"), authority(), "has expired"),
        (certificate("other.pem"), authority(), "for another name"),
        (certificate("self.pem"), authority(), "an authority that this host does not trust"),
        (certificate("valid.pem"), ServerTrust::Authorities(fixture("self.pem")), "does not trust"),
        (certificate("valid.pem"), ServerTrust::Pin(other), "another key than --tls-pin names"),
        (ServerIdentity::NewKey, ServerTrust::Pin(other), "another key than --tls-pin names"),
        (
            ServerIdentity::SharedKey(shared(KEY)),
            ServerTrust::SharedKey(shared("another key of 16")),
            "another shared key",
        ),
    ] {
        let (server, _) = serve(identity, None);
        let text = refusal(&server, trusting(trust.clone()));
        assert!(text.contains(reason), "{text}");
        for tls_data in [false, true] {
            let run = test(&server, trusting(trust.clone()), TestParameters { tls_data, ..exact(1000) });
            let advice = run.outcome.error.expect("refused").advice().map(str::to_owned).unwrap_or_default();
            assert!(advice.contains(reason), "{advice}");
        }
        let note = server.find(|news| match news {
            ServerNews::Note(text) if text.contains("refused 127.0.0.1") => Some(text),
            ServerNews::Session(_) => panic!("a session"),
            _ => None,
        });
        assert!(note.contains("refused this server's certificate or key"), "{note}");
    }
}

#[test]
fn clients_without_the_right_certificate_are_refused() {
    let (server, pin) = serve(ServerIdentity::NewKey, Some(fixture("authority.pem")));
    let with =
        |certificate| Some(Arc::new(TlsClientOptions { trust: ServerTrust::Pin(pin.expect("a pin")), certificate }));
    ProbeSession::open(&probe_target(&server, with(Some(files("valid.pem")))), None).expect("a known client");
    test(&server, with(Some(files("valid.pem"))), exact(100_000)).successful();
    for (certificate, reason) in [
        (None, "requires a certificate of this client"),
        (Some(files("self.pem")), "refused the certificate or key of this client"),
        (Some(files("expired.pem")), "refused the certificate or key of this client"),
    ] {
        let text = refusal(&server, with(certificate.clone()));
        assert!(text.contains(reason), "{text}");
        for tls_data in [false, true] {
            let run = test(&server, with(certificate.clone()), TestParameters { tls_data, ..exact(1000) });
            let error = run.outcome.error.expect("refused");
            assert!(error.advice().is_some_and(|advice| advice.contains(reason)), "{error:?}");
        }
    }
}

#[test]
fn who_knows_only_the_pin_has_no_shared_key() {
    let (server, _) = serve(ServerIdentity::SharedKey(shared(KEY)), None);
    let keys = identity::SharedKeys::of(KEY.as_bytes()).expect("long enough");
    let text = refusal(&server, trusting(ServerTrust::Pin(identity::pin_of(&keys.server))));
    assert!(text.contains("requires that this client has its shared key"), "{text}");
}

#[test]
fn ends_that_disagree_part_quickly_with_the_remedy() {
    let (with, pin) = serve(ServerIdentity::NewKey, None);
    let text = refusal(&with, None);
    assert!(text.contains("serves only clients with TLS: use --tls"), "{text}");
    let start = Instant::now();
    let error = test(&with, None, exact(1000)).outcome.error.expect("refused");
    assert_eq!(error.to_string(), "test authorization failed", "as iperf3 has it");
    assert!(error.advice().is_some_and(|advice| advice.contains("--tls-pin")), "{error:?}");
    let note = with.find(|news| if let ServerNews::Note(text) = news { Some(text) } else { None });
    assert!(note.starts_with("refused 127.0.0.1: a client without TLS: it needs"), "{note}");

    let without = TestServer::start(ServerOptions::default());
    let tls = trusting(ServerTrust::Pin(pin.expect("a pin")));
    let text = refusal(&without, tls.clone());
    assert!(text.contains("start it with `linerate serve --tls`"), "{text}");
    let error = test(&without, tls, exact(1000)).outcome.error.expect("refused");
    assert!(error.advice().is_some_and(|advice| advice.contains("linerate serve --tls")), "{error:?}");
    let note = without.find(|news| if let ServerNews::Note(text) = news { Some(text) } else { None });
    assert!(note.contains("start it with --tls"), "{note}");
    assert!(start.elapsed() < QUICK, "{:?}", start.elapsed());
}

/// Relays one connection to the server, and records what the client sends.
fn recording(server: &TestServer) -> (std::net::SocketAddr, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let (address, recorded) = (listener.local_addr().expect("bound"), Arc::new(Mutex::new(Vec::new())));
    let (far, record) = (server.address, Arc::clone(&recorded));
    std::thread::spawn(move || {
        let mut client = listener.accept().expect("a client").0;
        let mut server = TcpStream::connect(far).expect("it listens");
        let (mut from, mut to) = (server.try_clone().expect("a copy"), client.try_clone().expect("a copy"));
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
        });
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = client.read(&mut buffer) {
            record.lock().expect("no panic").extend_from_slice(&buffer[..count]);
            if server.write_all(&buffer[..count]).is_err() {
                return;
            }
        }
        let _ = server.shutdown(Shutdown::Both);
    });
    (address, recorded)
}

/// Sends bytes to a server, and waits until it closes.
fn send_until_closed(server: &TestServer, bytes: &[u8]) {
    let mut stream = connect(server.address);
    let start = Instant::now();
    // A server that refuses early resets the connection.
    let _ = stream.write_all(bytes).and_then(|()| stream.shutdown(Shutdown::Write));
    let _ = stream.read_to_end(&mut Vec::new());
    assert!(start.elapsed() < QUICK, "{:?}", start.elapsed());
}

fn records(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    while let [_, _, _, high, low, ..] = bytes {
        let length = (5 + usize::from(u16::from_be_bytes([*high, *low]))).min(bytes.len());
        let (record, rest) = bytes.split_at(length);
        all.push(record);
        bytes = rest;
    }
    all
}

#[test]
fn replayed_truncated_and_reordered_conversations_start_no_session() {
    let (server, _) = serve(ServerIdentity::SharedKey(shared(KEY)), None);
    let tls = trusting(ServerTrust::SharedKey(shared(KEY)));
    let (relay, recorded) = recording(&server);
    let session = ProbeSession::open(&ProbeTarget { tls: tls.clone(), ..target(relay) }, None).expect("relayed");
    session.facts().expect("an answer");
    drop(session);
    let recorded = recorded.lock().expect("no panic").clone();
    assert_eq!(server.find(session_number), 1);

    send_until_closed(&server, &recorded);
    let note = server.find(|news| if let ServerNews::Note(text) = news { Some(text) } else { None });
    assert!(note.contains("the TLS handshake with a client failed"), "{note}");
    let parts = records(&recorded);
    assert!(parts.len() > 3, "{}", parts.len());
    for length in [1, 4, 5, 6, 50, parts[0].len() - 1, parts[0].len(), parts[0].len() + 3] {
        send_until_closed(&server, &recorded[..length]);
    }
    for first in 1..parts.len().min(4) {
        let mut reordered = parts.clone();
        reordered.swap(0, first);
        send_until_closed(&server, &reordered.concat());
        send_until_closed(&server, &[parts[0], parts[first], parts[0]].concat());
    }
    for position in (0..parts[0].len()).step_by(7) {
        let mut damaged = recorded.clone();
        damaged[position] ^= 0x55;
        send_until_closed(&server, &damaged);
    }
    ProbeSession::open(&probe_target(&server, tls), None).expect("the server goes on");
    assert_eq!(server.find(session_number), 2, "no session in between");
}

#[expect(clippy::needless_pass_by_value, reason = "as the finder of events gives them")]
fn session_number(news: ServerNews) -> Option<u64> {
    if let ServerNews::Session(number) = news { Some(number) } else { None }
}

/// The cookie of a session is taken from its client, as an eavesdropper cannot: TLS is asked for all the same.
#[test]
fn a_cookie_outside_tls_joins_no_session() {
    let (server, pin) = serve(ServerIdentity::NewKey, None);
    let options = Arc::new(TlsClientOptions { trust: ServerTrust::Pin(pin.expect("a pin")), certificate: None });
    let session = ProbeSession::open(&probe_target(&server, Some(Arc::clone(&options))), None).expect("the right pin");
    let cookie = linerate_wire::cookie::Cookie::load(session.token().expect("an answer"));
    let mut plain = connect(server.address);
    plain.write_all(cookie.as_bytes()).expect("buffer space");
    let mut answer = Vec::new();
    plain.read_to_end(&mut answer).expect("closed in order");
    assert_eq!(answer, linerate_wire::error::encode(linerate_wire::error::ErrorCode::AUTHORIZATION));
    // A connection that keeps TLS is no data connection, and one that ends it is no conversation.
    let client = TlsClient::new(&options, "127.0.0.1").expect("a pin");
    for (usage, cookie) in
        [(ConnectionUse::Control, cookie), (ConnectionUse::Data, linerate_wire::cookie::Cookie::probes([7; 36]))]
    {
        let mut connection = client.secure(connect(server.address), usage, None).expect("a handshake");
        connection.send(cookie.as_bytes()).expect("buffer space");
        let stream = connection.into_stream();
        stream.set_nonblocking(false).expect("an option");
        assert_eq!((&stream).read(&mut [0]).expect("closed in order"), 0, "{usage:?}");
    }
    assert!(session.is_alive());
    assert_eq!(server.find(session_number), 1);
}

#[test]
fn endless_handshakes_are_cut() {
    let (server, _) = serve(ServerIdentity::NewKey, None);
    // Records of one handshake message that announces 60000 bytes.
    let mut bytes = vec![22, 3, 1, 0x40, 0, 1, 0, 0xea, 0x60];
    bytes.resize(5 + 0x4000, 0);
    let record = [&[22, 3, 1, 0x40, 0][..], &[0; 0x4000]].concat();
    bytes.extend(record.repeat(2));
    send_until_closed(&server, &bytes);
    let note = server.find(|news| if let ServerNews::Note(text) = news { Some(text) } else { None });
    assert!(note.contains("more than 32768 bytes"), "{note}");
}

#[test]
fn unusable_files_are_named() {
    let server = |identity| TlsServer::new(&TlsServerOptions { identity, client_authorities: None });
    for (identity, reason) in [
        (ServerIdentity::Key(fixture("none.pem")), "none.pem: No such file"),
        (ServerIdentity::Key(fixture("valid.pem")), "has no private key in PEM"),
        (ServerIdentity::Certificate(files("key.pem")), "key.pem has no certificate"),
        (
            ServerIdentity::Certificate(CertificateFiles {
                key: fixture("key.pem"),
                certificate: fixture("authority.pem"),
            }),
            "do not belong together",
        ),
        (ServerIdentity::SharedKey(shared("fifteen bytes..")), "has 15 bytes, which can be guessed, and needs 16"),
    ] {
        let text = server(identity).expect_err("unusable").to_string();
        assert!(text.contains(reason), "{text}");
    }
}

#[test]
fn pins_are_those_of_curl() {
    let (_, pin) = serve(ServerIdentity::Key(fixture("key.pem")), None);
    // openssl pkey -in key.pem -pubout -outform DER | openssl dgst -sha256 -binary | base64
    assert_eq!(pin.expect("a pin").to_string(), "sha256//syBb6EQfHJMFOKqZ68SYAN39bmx7uOF86Us3RT7Iyts=");
    for wrong in ["", "sha256//", "sha256//AAAA", "md5//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="] {
        assert!(wrong.parse::<KeyPin>().is_err(), "{wrong}");
    }
}

#[test]
fn every_seed_of_the_fuzz_targets_is_usable_or_refused() {
    let corpus = |name: &str| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    for (name, target) in [("tls_pin", fuzzing::tls_pin as fn(&[u8])), ("tls_key_file", fuzzing::tls_key_file)] {
        let seeds: Vec<_> = std::fs::read_dir(corpus(name)).expect("a corpus").collect();
        assert!(!seeds.is_empty(), "{name}");
        for seed in seeds {
            target(&std::fs::read(seed.expect("a file").path()).expect("a file"));
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_a_pin_or_refused(text in ".{0,60}", digest in any::<[u8; 32]>()) {
        let pin = pin_of_public_key(&digest);
        prop_assert_eq!(pin.to_string().parse::<KeyPin>(), Ok(pin));
        fuzzing::tls_pin(text.as_bytes());
    }

    #[test]
    fn any_key_file_is_usable_or_refused(
        label in prop::sample::select(vec!["PRIVATE KEY", "EC PRIVATE KEY", "CERTIFICATE", ""]),
        body in prop::collection::vec(any::<u8>(), 0..80),
        position in 0..241_usize,
        damage in any::<u8>(),
    ) {
        use base64::Engine as _;
        let body = base64::engine::general_purpose::STANDARD.encode(body);
        fuzzing::tls_key_file(format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n").as_bytes());
        let mut damaged = std::fs::read(fixture("key.pem")).expect("a fixture");
        damaged[position] ^= damage;
        fuzzing::tls_key_file(&damaged);
    }

    #[test]
    fn equal_shared_keys_give_equal_pairs(key in prop::collection::vec(any::<u8>(), 0..64)) {
        match (identity::SharedKeys::of(&key), identity::SharedKeys::of(&key)) {
            (Ok(one), Ok(other)) => {
                prop_assert!(key.len() >= 16);
                prop_assert_eq!(identity::pin_of(&one.server), identity::pin_of(&other.server));
                prop_assert_ne!(identity::pin_of(&one.server), identity::pin_of(&one.client));
            }
            _ => prop_assert!(key.len() < 16),
        }
    }
}
