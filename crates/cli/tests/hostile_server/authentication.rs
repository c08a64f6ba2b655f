//! Tokens that are none.

use std::time::{Duration, Instant, SystemTime};

use linerate_units::WallTime;
use linerate_wire::authentication::{Padding, encrypt_token};

use super::support::Scratch;
use super::wire::{Client, Holdings, SOON, Said, TCP, state, with};
use super::{Target, at_once};

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
    encrypt_token(PUBLIC, "mario", password, WallTime::from_unix(now), Padding::Oaep).expect("a good key")
}

fn answer(target: &Target, token: &str) -> Said {
    let quoted = serde_json::to_string(token).expect("JSON");
    Client::asking(target.port, with(TCP, "authtoken", &quoted)).control.said()
}

/// Unlike [`Target::serves_at_once`], with a token.
fn serves_at_once(target: &Target) {
    at_once(|| {
        let token = token("rossi", 0);
        let start = Instant::now();
        assert_eq!(answer(target, &token), Said::State(state::CREATE_STREAMS));
        start.elapsed()
    });
}

#[test]
fn tokens_that_are_none() {
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
        assert_eq!(answer(&target, token), Said::Error(142), "{token:?}");
        serves_at_once(&target);
    }
    assert_eq!(answer(&target, &"A".repeat(8192)), Said::Error(114), "a document too long");
    let mut without = Client::asking(target.port, TCP);
    assert_eq!(without.control.said(), Said::Error(142));
    drop(without);
    for seconds in [-8, 8] {
        assert_eq!(answer(&target, &token("rossi", seconds)), Said::State(state::CREATE_STREAMS));
    }
    assert_eq!(answer(&target, &good), Said::State(state::CREATE_STREAMS));
    assert_eq!(answer(&target, &good), Said::Error(142), "a token is good once");
    assert!(target.is_idle(), "{:?}", Holdings::of(target.id()));
}

#[test]
fn who_is_not_let_in_does_not_end_a_server_for_one_test() {
    let folder = Scratch::new();
    let mut target = target(&folder, &["-1"]);
    for _ in 0..3 {
        assert_eq!(answer(&target, &token("wrong", 0)), Said::Error(142));
        assert!(target.is_idle(), "{:?}", Holdings::of(target.id()));
    }
    std::thread::sleep(Duration::from_millis(700));
    assert!(target.server.process.is_running());
    assert_eq!(answer(&target, &token("rossi", 0)), Said::State(state::CREATE_STREAMS));
    target.server.finish(target.since.elapsed() + SOON).expect_code(0);
}
