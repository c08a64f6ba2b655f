use std::io::{PipeReader, PipeWriter};

use linerate_model::change::{ChangeGroup, ChangeReason, ChangeTarget, EffectTiming, HostChange};
use linerate_sys::host_access::{FakeHost, HostAccess as _};
use linerate_units::WallTime;
use serde_json::{Value, json};

use super::*;
use crate::tuning::scratch::ScratchDirectory;

pub(in crate::tuning) const BEFORE: &str = "4096 131072 6291456";
const WANTED: &str = "4096 131072 67108864";

pub(in crate::tuning) fn target() -> ChangeTarget {
    ChangeTarget::Setting { key: "net.ipv4.tcp_rmem".to_owned() }
}

pub(in crate::tuning) fn host() -> FakeHost {
    FakeHost::new([(target(), BEFORE.to_owned())].into())
}

pub(in crate::tuning) fn plan(target: ChangeTarget, to: &str) -> ChangePlan {
    let change = HostChange {
        target,
        from: None,
        to: to.to_owned(),
        group: ChangeGroup::Buffers,
        takes_effect: EffectTiming::NewConnections,
        reason: ChangeReason::default(),
    };
    ChangePlan { made_at: WallTime::from_unix(Duration::from_secs(5)), changes: vec![change] }
}

/// Answers to all requests after the greeting, the end of the service, and the final value of the host.
fn conversation(asked: &[u8]) -> (Vec<Value>, ServiceEnd, String) {
    let (host, scratch) = (host(), ScratchDirectory::new());
    let store = ChangeStore::at(scratch.path());
    let (mut input, writer): (PipeReader, PipeWriter) = io::pipe().expect("descriptors");
    let mut output = Vec::new();
    let mut near = NearHost::new(&store, &host, RollbackGuard::Unguarded);
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
    assert_eq!((&hello["schema"], &hello["hello"]), (&json!(1), &json!(GREETING_TEXT)));
    drop(near);
    let now = host.read(&target()).expect("in memory").expect("there");
    (answers, ended, now)
}

fn asked(requests: &[AgentRequest]) -> Vec<u8> {
    requests.iter().flat_map(|request| protocol::encode(request).expect("short").into_bytes()).collect()
}

fn begin(target: ChangeTarget) -> AgentRequest {
    AgentRequest::Begin { plan: (&plan(target, WANTED)).into(), purpose: "a test".to_owned(), limit_ms: 60_000 }
}

fn apply() -> AgentRequest {
    AgentRequest::Apply { group: ChangeGroup::Buffers }
}

#[test]
fn the_end_of_the_connection_rolls_everything_back() {
    let (answers, ended, now) = conversation(&asked(&[begin(target()), apply()]));
    assert_eq!((ended, now.as_str()), (ServiceEnd::Connection, BEFORE));
    assert_eq!((&answers[0]["answer"], &answers[1]["answer"]), (&json!("begun"), &json!("applied")));
    assert_eq!(answers[1]["outcomes"][0]["now"], WANTED);
}

#[test]
fn an_unknown_request_is_answered_and_the_next_one_served() {
    let mut text = b"{\"schema\":1,\"request\":\"reboot\"}\n{\"schema\":2,\"request\":\"apply\"}\nhello\n".to_vec();
    text.extend(b"{\"schema\":1,\"request\":\"apply\",\"group\":\"luck\"}\n");
    text.extend(asked(&[apply(), begin(target()), begin(target())]));
    let (answers, ended, _) = conversation(&text);
    let reasons: Vec<&str> = answers.iter().map(|answer| answer["reason"].as_str().unwrap_or_default()).collect();
    for (reason, part) in reasons.iter().zip([
        "reboot",
        "schema 2",
        "not a JSON",
        "unknown variant `luck`",
        "no changes are being tried",
        "",
        "already",
    ]) {
        assert!(reason.contains(part), "{part:?} is not in {reason:?}");
    }
    assert_eq!((ended, reasons.len(), &answers[5]["answer"]), (ServiceEnd::Connection, 7, &json!("begun")));
}

#[test]
fn a_line_without_end_ends_it() {
    let mut text = asked(&[begin(target()), apply()]);
    text.resize(text.len() + crate::far::lines::MAX_LINE_LENGTH + 1, b'x');
    let (answers, ended, now) = conversation(&text);
    assert_eq!((ended, now.as_str()), (ServiceEnd::Garbage, BEFORE));
    assert!(answers.last().is_some_and(|answer| answer["reason"].as_str().is_some_and(|text| text.contains("4 MiB"))));
}

#[test]
fn only_network_settings_are_changed_remotely() {
    for target in [
        ChangeTarget::Setting { key: "kernel.core_pattern".to_owned() },
        ChangeTarget::File { path: "/sys/kernel/uevent_helper".to_owned() },
    ] {
        let extend = AgentRequest::Extend { plan: (&plan(target.clone(), "x")).into() };
        let (answers, _, _) = conversation(&asked(&[begin(target), begin(self::target()), extend]));
        for place in [0, 2] {
            let reason = answers[place]["reason"].as_str().unwrap_or_default();
            assert!(reason.contains("not changed remotely"), "{answers:?}");
        }
    }
}

#[test]
fn kept_stays() {
    let keep = AgentRequest::Keep { in_file: false, evidence: String::new(), warnings: vec!["w".to_owned()] };
    let (answers, _, now) = conversation(&asked(&[begin(target()), apply(), keep]));
    let kept = &answers[2]["kept"];
    assert_eq!(
        (kept["file"].clone(), kept["until_reboot"][0]["key"].as_str()),
        (json!(null), Some("net.ipv4.tcp_rmem"))
    );
    assert_eq!(now, WANTED);
}
