//! Data in TLS (`--tls-data`) between real clients and servers on loopback.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use linerate_model::event::{TestEvent, TestStart};
use linerate_model::parameters::{EndCondition, TestDirection, TestParameters};
use linerate_model::stream::StreamRole;
use linerate_units::{BitRate, StreamCount};

use super::tests::{KEY, serve, shared, test, trusting};
use super::{ServerIdentity, ServerTrust, TlsClientOptions, TlsServer, TlsServerOptions};
use crate::client::ClientOptions;
use crate::server::ServerOptions;
use crate::tests::support::{ClientRun, Scratch, TestServer, bytes_of, client_options, exact};

const DIRECTIONS: [TestDirection; 3] = [TestDirection::Forward, TestDirection::Reverse, TestDirection::Bidirectional];

fn key() -> Option<Arc<TlsClientOptions>> {
    trusting(ServerTrust::SharedKey(shared(KEY)))
}

fn secured(parameters: TestParameters) -> TestParameters {
    TestParameters { tls_data: true, ..parameters }
}

fn start_of(run: &ClientRun) -> &TestStart {
    let started = run.events.iter().find_map(|event| match event {
        TestEvent::Started(start) => Some(&**start),
        _ => None,
    });
    started.expect("a start")
}

#[test]
fn payload_is_counted_to_the_byte_in_every_direction() {
    let (server, _) = serve(ServerIdentity::SharedKey(shared(KEY)), None);
    for direction in DIRECTIONS {
        for (streams, bytes) in [(1, 10_000_000), (3, 3_000_000)] {
            let parameters = secured(TestParameters { direction, parallel: StreamCount::new(streams), ..exact(bytes) });
            let run = test(&server, key(), parameters).successful();
            for (role, used) in [
                (StreamRole::Sender, direction != TestDirection::Reverse),
                (StreamRole::Receiver, direction != TestDirection::Forward),
            ] {
                let received = bytes_of(run.report(), role, true);
                assert_eq!(received, if used { bytes } else { 0 }, "{direction:?} {role:?}");
            }
            let tls = start_of(&run).tls_data.as_ref().expect("TLS");
            let text = "TLS 1.3, raw public key (Ed25519), client authenticated, X25519";
            assert!(tls.text().starts_with(text), "{}", tls.text());
        }
    }
}

#[test]
fn a_server_with_a_file_keeps_the_payload_and_not_its_records() {
    let scratch = Scratch::new("records");
    let sink = scratch.file("sink");
    let identity = TlsServerOptions { identity: ServerIdentity::SharedKey(shared(KEY)), client_authorities: None };
    let tls = Some(Arc::new(TlsServer::new(&identity).expect("a key")));
    let server = TestServer::start(ServerOptions { tls, file: Some(sink.clone()), ..ServerOptions::default() });
    test(&server, key(), secured(exact(1_000_000))).successful();
    assert_eq!(server.report().file.map(|file| file.size.get()), Some(1_000_000));
    assert_eq!(std::fs::read(&sink).expect("written").len(), 1_000_000);
}

#[test]
fn a_paced_stream_keeps_its_rate() {
    let (server, _) = serve(ServerIdentity::SharedKey(shared(KEY)), None);
    let parameters = TestParameters {
        rate: Some(BitRate::from_bits_per_second(20e6)),
        end: EndCondition::Time(Duration::from_secs(1)),
        skip_receive_copy: true,
        ..TestParameters::default()
    };
    let run = test(&server, key(), secured(parameters)).successful();
    let bytes = bytes_of(run.report(), StreamRole::Sender, true);
    // On a busy host, the sender does not run at all of its times.
    assert!((1_000_000..3_000_000).contains(&bytes), "{bytes}");
}

#[test]
fn data_without_tls_names_no_encryption() {
    let (server, _) = serve(ServerIdentity::SharedKey(shared(KEY)), None);
    let run = test(&server, key(), exact(1000)).successful();
    assert_eq!(start_of(&run).tls_data, None);
}

#[test]
fn ends_without_it_are_named() {
    let server = TestServer::start(ServerOptions::default());
    let error = test(&server, None, secured(exact(1000))).outcome.error.expect("refused");
    assert!(error.advice().is_some_and(|advice| advice.contains("--shared-key-file")), "{error:?}");
}

/// Change of a relay to the bytes that a server sends on its first data connection.
#[derive(Clone, Copy)]
enum Damage {
    /// One bit of a byte after this many.
    Flip(usize),
    /// The end after this many.
    Cut(usize),
}

/// Relay to `server`, whose second connection is damaged. Its threads end with their connections.
fn damaging_relay(server: SocketAddr, damage: Damage) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    thread::spawn(move || {
        for (number, client) in listener.incoming().enumerate() {
            let client = client.expect("a client");
            let server = TcpStream::connect(server).expect("it listens");
            let [client_reader, server_writer] = [&client, &server].map(|one| one.try_clone().expect("a descriptor"));
            thread::spawn(move || forward(client_reader, server_writer, None));
            thread::spawn(move || forward(server, client, (number == 1).then_some(damage)));
        }
    });
    address
}

fn forward(mut from: TcpStream, mut to: TcpStream, damage: Option<Damage>) {
    let (mut buffer, mut passed) = (vec![0; 16 << 10], 0);
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let (part, mut ends) = (&mut buffer[..count], false);
        let mut length = count;
        match damage {
            Some(Damage::Flip(at)) if (passed..passed + count).contains(&at) => part[at - passed] ^= 1,
            Some(Damage::Cut(at)) if passed + count >= at => (length, ends) = (at - passed, true),
            _ => {}
        }
        passed += count;
        if to.write_all(&buffer[..length]).is_err() || ends {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

#[test]
fn damaged_and_truncated_records_are_named() {
    let (server, _) = serve(ServerIdentity::SharedKey(shared(KEY)), None);
    let parameters = TestParameters {
        direction: TestDirection::Reverse,
        end: EndCondition::Time(Duration::from_secs(20)),
        ..TestParameters::default()
    };
    for (damage, expected) in
        [(Damage::Flip(1_000_000), "does not decrypt"), (Damage::Cut(1_000_003), "ended within a TLS record")]
    {
        let relay = damaging_relay(server.address, damage);
        let options = ClientOptions { tls: key(), ..client_options(relay, secured(parameters.clone())) };
        let error = ClientRun::with(&options).outcome.error.expect("an error").to_string();
        assert!(error.contains(expected), "{error}");
    }
    test(&server, key(), secured(exact(1000))).successful();
}
