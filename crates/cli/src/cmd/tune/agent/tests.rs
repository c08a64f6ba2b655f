use std::io::{PipeReader, PipeWriter};

use linerate_model::change::{Change, Reason, TakesEffect, Target};
use linerate_sys::host_access::{FakeHost, Host as _};
use linerate_units::WallTime;
use serde_json::{Value, json};

use super::*;
use crate::cmd::tune::scratch::Scratch;

pub(in crate::cmd::tune) const BEFORE: &str = "4096 131072 6291456";
const WANTED: &str = "4096 131072 67108864";

pub(in crate::cmd::tune) fn target() -> Target {
    Target::Setting { key: "net.ipv4.tcp_rmem".to_owned() }
}

pub(in crate::cmd::tune) fn host() -> FakeHost {
    FakeHost::new([(target(), BEFORE.to_owned())].into())
}

pub(in crate::cmd::tune) fn plan(target: Target, to: &str) -> Plan {
    let change = Change {
        target,
        from: None,
        to: to.to_owned(),
        group: Group::Buffers,
        takes_effect: TakesEffect::NewConnections,
        reason: Reason::default(),
    };
    Plan { made_at: WallTime::from_unix(Duration::from_secs(5)), changes: vec![change] }
}

/// What is answered to all of this, besides the greeting, and how it ended; and what the host has then.
fn conversation(asked: &[u8]) -> (Vec<Value>, Ended, String) {
    let (host, scratch) = (host(), Scratch::new());
    let store = Store::at(scratch.path());
    let (mut input, writer): (PipeReader, PipeWriter) = io::pipe().expect("descriptors");
    let mut output = Vec::new();
    let mut near = Near::new(&store, &host, Guard::Nobody);
    let ended = std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut writer = writer;
            let _ = writer.write_all(asked);
        });
        serve(&mut near, &mut input, &mut output, None)
    });
    let answers = String::from_utf8(output).expect("text");
    let mut answers: Vec<Value> =
        answers.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    let hello = answers.remove(0);
    assert_eq!((&hello["schema"], &hello["hello"]), (&json!(1), &json!(HELLO)));
    drop(near);
    let now = host.read(&target()).expect("in memory").expect("there");
    (answers, ended, now)
}

fn asked(requests: &[Request]) -> Vec<u8> {
    requests.iter().flat_map(|request| protocol::encode(request).expect("short").into_bytes()).collect()
}

fn begin(target: Target) -> Request {
    Request::Begin { plan: (&plan(target, WANTED)).into(), purpose: "a test".to_owned(), limit_ms: 60_000 }
}

fn apply() -> Request {
    Request::Apply { group: "buffers".to_owned() }
}

#[test]
fn the_end_of_the_connection_takes_everything_back() {
    let (answers, ended, now) = conversation(&asked(&[begin(target()), apply()]));
    assert_eq!((ended, now.as_str()), (Ended::Connection, BEFORE));
    assert_eq!((&answers[0]["answer"], &answers[1]["answer"]), (&json!("begun"), &json!("applied")));
    assert_eq!(answers[1]["outcomes"][0]["now"], WANTED);
}

#[test]
fn a_request_that_is_not_understood_is_answered_and_the_next_one_served() {
    let mut text = b"{\"schema\":1,\"request\":\"reboot\"}\n{\"schema\":2,\"request\":\"apply\"}\nhello\n".to_vec();
    text.extend(asked(&[Request::Apply { group: "luck".to_owned() }, apply(), begin(target()), begin(target())]));
    let (answers, ended, _) = conversation(&text);
    let reasons: Vec<&str> = answers.iter().map(|answer| answer["reason"].as_str().unwrap_or_default()).collect();
    for (reason, part) in reasons.iter().zip([
        "reboot",
        "schema 2",
        "no JSON",
        "no group of changes \"luck\"",
        "no changes are being tried",
        "",
        "already",
    ]) {
        assert!(reason.contains(part), "{part:?} is not in {reason:?}");
    }
    assert_eq!((ended, reasons.len(), &answers[5]["answer"]), (Ended::Connection, 7, &json!("begun")));
}

#[test]
fn a_line_without_end_ends_it() {
    let mut text = asked(&[begin(target()), apply()]);
    text.resize(text.len() + protocol::LONGEST + 1, b'x');
    let (answers, ended, now) = conversation(&text);
    assert_eq!((ended, now.as_str()), (Ended::Garbage, BEFORE));
    assert!(answers.last().is_some_and(|answer| answer["reason"].as_str().is_some_and(|text| text.contains("4 MiB"))));
}

#[test]
fn what_is_not_of_the_network_is_not_changed_from_afar() {
    for target in [
        Target::Setting { key: "kernel.core_pattern".to_owned() },
        Target::File { path: "/sys/kernel/uevent_helper".to_owned() },
    ] {
        let extend = Request::Extend { plan: (&plan(target.clone(), "x")).into() };
        let (answers, _, _) = conversation(&asked(&[begin(target), begin(self::target()), extend]));
        for place in [0, 2] {
            let reason = answers[place]["reason"].as_str().unwrap_or_default();
            assert!(reason.contains("not changed from afar"), "{answers:?}");
        }
    }
}

#[test]
fn kept_stays() {
    let keep = Request::Keep { in_file: false, evidence: String::new(), warnings: vec!["w".to_owned()] };
    let (answers, _, now) = conversation(&asked(&[begin(target()), apply(), keep]));
    let kept = &answers[2]["kept"];
    assert_eq!(
        (kept["file"].clone(), kept["until_reboot"][0]["key"].as_str()),
        (json!(null), Some("net.ipv4.tcp_rmem"))
    );
    assert_eq!(now, WANTED);
}
