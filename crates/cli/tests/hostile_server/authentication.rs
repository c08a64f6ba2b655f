//! Invalid tokens.

use std::time::{Duration, Instant, SystemTime};

use linerate_units::WallTime;
use linerate_wire::authentication::{RsaPadding, encrypt_token};

use crate::support::Scratch;
use crate::support::process::assert_some_within;

use super::wire::{Client, Holdings, PeerMessage, REPLY_TIMEOUT, TCP, state, with};
use super::{AT_ONCE, Target};

const PUBLIC: &str = include_str!("../../../wire/testdata/keys/public.pem");
const PRIVATE: &str = include_str!("../../../wire/testdata/keys/private_pkcs8.pem");
const USERS: &str = "mario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b\n";

fn target(folder: &Scratch, arguments: &[&str]) -> Target {
    let (key, users) = (folder.file("key.pem", PRIVATE), folder.file("users.csv", USERS));
    let authentication = ["--rsa-private-key-path", &key, "--authorized-users-path", &users];
    Target::start(&[&authentication, arguments].concat())
}

fn token(password: &str, seconds: i64) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    let now = Duration::from_secs(now.as_secs().saturating_add_signed(seconds));
    encrypt_token(PUBLIC, "mario", password, WallTime::from_unix(now), RsaPadding::Oaep).expect("a good key")
}

fn answer(target: &Target, token: &str) -> PeerMessage {
    let quoted = serde_json::to_string(token).expect("JSON");
    Client::asking(target.port, with(TCP, "authtoken", &quoted)).control.next_message()
}

/// Same as [`Target::serves_at_once`], with a token.
fn serves_at_once(target: &Target) {
    assert_some_within(AT_ONCE, || {
        let token = token("rossi", 0);
        let start = Instant::now();
        assert_eq!(answer(target, &token), PeerMessage::State(state::CREATE_STREAMS));
        start.elapsed()
    });
}

#[test]
fn invalid_tokens() {
    let folder = Scratch::new();
    let target = target(&folder, &[]);
    let good = token("rossi", 0);
    let broken = [
        String::new(),
        "=".into(),
        "====".into(),
        "A".into(),
        "AAAA".into(),
        "not base64!".into(),
        format!("{}\n{}", &good[..64], &good[64..]),
        format!("{good}\0"),
        good[..good.len() - 4].to_owned(),
        "A".repeat(344),
        "A".repeat(7900),
        token("wrong", 0),
        token("", 0),
        // CVE-2025-54349: the longest text that the key can encrypt.
        token(&"x".repeat(179), 0),
        token("rossi", -15),
        token("rossi", 15),
    ];
    for token in &broken {
        assert_eq!(answer(&target, token), PeerMessage::Error(142), "{token:?}");
        serves_at_once(&target);
    }
    assert_eq!(answer(&target, &"A".repeat(8192)), PeerMessage::Error(114), "a document too long");
    let mut without = Client::asking(target.port, TCP);
    assert_eq!(without.control.next_message(), PeerMessage::Error(142));
    drop(without);
    for seconds in [-8, 8] {
        assert_eq!(answer(&target, &token("rossi", seconds)), PeerMessage::State(state::CREATE_STREAMS));
    }
    assert_eq!(answer(&target, &good), PeerMessage::State(state::CREATE_STREAMS));
    assert_eq!(answer(&target, &good), PeerMessage::Error(142), "a token is good once");
    assert!(target.is_idle(), "{:?}", Holdings::of(target.id()));
}

#[test]
fn a_refused_client_does_not_end_a_one_off_server() {
    let folder = Scratch::new();
    let target = target(&folder, &["-1"]);
    for _ in 0..3 {
        assert_eq!(answer(&target, &token("wrong", 0)), PeerMessage::Error(142));
        assert!(target.is_idle(), "{:?}", Holdings::of(target.id()));
    }
    assert_eq!(answer(&target, &token("rossi", 0)), PeerMessage::State(state::CREATE_STREAMS));
    target.server.finish(target.since.elapsed() + REPLY_TIMEOUT).expect_code(0);
}
