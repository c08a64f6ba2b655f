//! A probe session against servers that refuse, answer nonsense, or vanish.

use core::time::Duration;
use std::io::{Read, Write};

use linerate_units::{ByteCount, PacketCount, WallTime};
use linerate_wire::probe::{
    FarFacts, PacketRecord, ProbeResponse, RecordBatch, RecordDetail, RequestRefused, StreamNumber, StreamRef,
};

use crate::probe::messages::ServerHello;
use crate::probe::{LoadOptions, ProbeError, ProbeOrder, ProbeSession};

use super::support::{PATIENCE, RawPeer, RawServer, target};

fn hello() -> Vec<u8> {
    ProbeResponse::Hello(ServerHello::new(&["probe"])).encode()
}

/// Opens a session with a server that says hello and goes on with `script`.
fn session(script: impl FnOnce(&mut RawPeer) + Send + 'static) -> (ProbeSession, RawServer) {
    let server = RawServer::start(move |mut peer| {
        peer.send(&hello());
        script(&mut peer);
    });
    let session = ProbeSession::open(&target(server.address), None).expect("it says hello");
    (session, server)
}

/// Waits for a request that contains `text`.
fn await_request(peer: &mut RawPeer, text: &str) {
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    while !String::from_utf8_lossy(&seen).contains(text) {
        let count = peer.control.read(&mut buffer).expect("a request");
        assert_ne!(count, 0, "the client closed before it sent \"{text}\"");
        seen.extend_from_slice(&buffer[..count]);
    }
}

fn refusal(request: &str, stream: Option<StreamNumber>, reason: &str) -> Vec<u8> {
    let (request, reason) = (request.to_owned(), reason.to_owned());
    ProbeResponse::Refused(RequestRefused { request, stream, connection: None, reason }).encode()
}

fn refused(request: &str, reason: &str) -> ProbeError {
    ProbeError::Refused { request: request.to_owned(), reason: reason.to_owned() }
}

#[test]
fn answers_may_arrive_in_pieces_and_in_batches() {
    let facts = FarFacts { kernel: Some("6.99".to_owned()), processors: Some(3), ..FarFacts::default() };
    let expected = facts.clone();
    let (session, server) = session(move |peer| {
        await_request(peer, "facts");
        let answer = ProbeResponse::Facts(Box::new(facts)).encode();
        // An unsolicited message before it, and both byte by byte.
        for byte in refusal("collect", None, "unsolicited").into_iter().chain(answer) {
            peer.control.write_all(&[byte]).expect("buffer space");
        }
        let _ = peer.control.read(&mut [0]);
    });
    assert_eq!(session.facts(), Ok(expected));
    drop(session);
    server.join();
}

#[test]
fn a_server_that_closes_loses_the_session_once_and_for_all() {
    let (session, server) = session(|peer| await_request(peer, "facts"));
    let lost = ProbeError::Lost("the server closed it".to_owned());
    assert_eq!(session.facts(), Err(lost.clone()));
    assert!(!session.is_alive());
    server.join();
    // Each later request fails at once, with the first reason.
    assert_eq!(session.facts(), Err(lost.clone()));
    assert_eq!(session.open_datagrams(), Err(lost.clone()));
    assert_eq!(session.far_receive(session.new_stream(), RecordDetail::Counts), Err(lost.clone()));
    assert_eq!(session.open_load(&LoadOptions::new(linerate_model::direction::Direction::Up)).err(), Some(lost));
}

#[test]
fn nonsense_from_the_server_ends_the_session() {
    for nonsense in [&b"X"[..], b"L\xff\xff\xff\xff", b"L\0\0\0\x02[]", b"L\0\0\0\x0d{\"facts\": 17}"] {
        let (session, server) = session(move |peer| {
            await_request(peer, "facts");
            peer.send(nonsense);
            let _ = peer.control.read_to_end(&mut Vec::new());
        });
        let error = session.facts().expect_err("nonsense");
        assert!(
            matches!(&error, ProbeError::Lost(reason) if reason.starts_with("invalid message from the server: ")),
            "{nonsense:?}: {error}"
        );
        assert!(!session.is_alive());
        drop(session);
        server.join();
    }
}

#[test]
fn a_refusal_answers_the_request_that_it_names() {
    let (session, server) = session(|peer| {
        await_request(peer, "receive");
        let stream = StreamNumber::FIRST_RECORDED;
        // Refusals of another request, of no stream, and of another stream are not meant.
        peer.send(&refusal("send", Some(stream), "another request"));
        peer.send(&refusal("receive", None, "no stream"));
        peer.send(&refusal("receive", Some(StreamNumber::new(stream.get() + 9)), "another stream"));
        peer.send(&refusal("receive", Some(stream), "meant"));
        await_request(peer, "open");
        peer.send(&refusal("open", None, "no datagrams here"));
        let _ = peer.control.read_to_end(&mut Vec::new());
    });
    let stream = session.new_stream();
    assert_eq!(stream, StreamNumber::FIRST_RECORDED);
    assert_eq!(session.far_receive(stream, RecordDetail::Arrivals), Err(refused("receive", "meant")));
    assert_eq!(session.open_datagrams(), Err(refused("open", "no datagrams here")));
    assert!(session.is_alive(), "a refusal is not the end");
    drop(session);
    server.join();
}

#[test]
fn a_refusal_of_the_whole_session_answers_every_request() {
    let (session, server) = session(|peer| {
        await_request(peer, "facts");
        peer.send(&refusal("probe", None, "too many sessions"));
        let _ = peer.control.read_to_end(&mut Vec::new());
    });
    assert_eq!(session.facts(), Err(refused("probe", "too many sessions")));
    drop(session);
    server.join();
}

#[test]
fn records_of_several_messages_are_joined_in_their_order() {
    let record = |sequence| PacketRecord {
        sequence,
        sent: WallTime::from_unix(Duration::from_secs(u64::from(sequence))),
        arrived: WallTime::from_unix(Duration::from_secs(u64::from(sequence) + 1)),
        size: ByteCount::new(64),
        time_to_live: Some(64),
        type_of_service: None,
    };
    let batch = move |stream, from: u32, last| {
        ProbeResponse::Records(RecordBatch {
            stream,
            packets: (from..from + 100).map(record).collect(),
            last,
            not_kept: PacketCount::new(u64::from(from)),
            dropped_in_host: last.then(|| PacketCount::new(5)),
        })
        .encode()
    };
    let (session, server) = session(move |peer| {
        let stream = StreamNumber::FIRST_RECORDED;
        await_request(peer, "receive");
        peer.send(&ProbeResponse::Receiving(StreamRef { stream }).encode());
        await_request(peer, "collect");
        for (from, last) in [(0, false), (100, false), (200, true)] {
            // Records of a stream that was not requested are dropped.
            peer.send(&batch(StreamNumber::new(stream.get() + 1), 7, false));
            peer.send(&batch(stream, from, last));
        }
        let _ = peer.control.read_to_end(&mut Vec::new());
    });
    let stream = session.new_stream();
    session.far_receive(stream, RecordDetail::Arrivals).expect("accepted");
    let arrivals = session.far_collect(stream).expect("records");
    let numbers: Vec<u32> = arrivals.packets.iter().map(|packet| packet.sequence).collect();
    assert_eq!(numbers, (0..300).collect::<Vec<_>>());
    assert_eq!((arrivals.not_kept, arrivals.dropped_in_host), (PacketCount::new(200), Some(PacketCount::new(5))));
    drop(session);
    server.join();
}

#[test]
fn without_a_datagram_channel_there_are_no_probes() {
    let (session, server) = session(|peer| {
        let _ = peer.control.read_to_end(&mut Vec::new());
    });
    assert_eq!(session.probe(ProbeOrder::every(Duration::from_millis(10))).err(), Some(ProbeError::NotOpened));
    assert_eq!(session.socket().err(), Some(ProbeError::NotOpened));
    assert_eq!(session.datagram_addresses(), None);
    let numbers: Vec<u16> = (0..3).map(|_| session.new_stream().get()).collect();
    let first = StreamNumber::FIRST_RECORDED.get();
    assert_eq!(numbers, [first, first + 1, first + 2]);
    drop(session);
    server.join();
}

#[test]
fn a_client_that_ends_its_session_closes_the_connection() {
    let (session, server) = session(|peer| {
        peer.control.set_read_timeout(Some(PATIENCE)).expect("an option");
        let mut left = Vec::new();
        peer.control.read_to_end(&mut left).expect("closed in order");
    });
    drop(session);
    server.join();
}
