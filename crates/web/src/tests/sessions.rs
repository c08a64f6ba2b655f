//! Sessions of browsers: what they open, move and end with.

use core::num::NonZeroUsize;
use core::time::Duration;

use linerate_documents::run::RunResult;
use linerate_units::BitRate;

use crate::test_support::wait_until;

use super::*;

/// Claims with this number of round trips in each phase.
fn claims(count: usize) -> Vec<u8> {
    let list = vec![(5, 1000); count];
    serde_json::json!({ "round_trips": { "idle": list, "down": list, "up": list } }).to_string().into_bytes()
}

/// Begins an upload and sends a part of it; returns once the server has counted that.
fn upload_part(service: &Service, token: &str, part: &[u8], length: usize) -> TcpStream {
    let mut stream = service.connect();
    let head = format!(
        "POST /api/upload?session={token} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n",
        service.address
    );
    let counted = || {
        let samples = service.get(&format!("/api/session?session={token}&from=0")).json()["samples"].take();
        samples.as_array().and_then(|samples| samples.last()?["bytes"].as_u64())
    };
    stream.write_all(head.as_bytes()).expect("sent");
    // What arrives with the head is counted before the phase begins.
    wait_until(|| counted().is_some());
    stream.write_all(part).expect("sent");
    wait_until(|| counted() == Some(part.len() as u64));
    stream
}

#[test]
fn an_opened_session_has_what_the_page_needs() {
    let service = Service::start(|options, server| {
        options.shows_history = true;
        server.limits.max_total_rate = Some(BitRate::from_bits_per_second(1e9));
    });
    let answer = service.ask("POST /api/session", "", b"");
    assert_eq!(answer.status, 201);
    let opened = answer.json();
    assert_eq!(opened["session"].as_str().map(str::len), Some(32));
    assert_eq!(opened["address"], "127.0.0.1");
    assert_eq!(opened["number"], 1);
    assert_eq!(opened["phase_ms"], 8000);
    assert_eq!(opened["rate_limit_bits_per_second"], 1e9);
    assert_eq!(opened["shows_history"], true);
    assert_eq!(opened["linerate_version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn both_phases_fit_into_the_longest_duration_of_a_session() {
    for (seconds, phase) in [(None, 8000), (Some(60), 8000), (Some(20), 8000), (Some(10), 4000), (Some(1), 1000)] {
        let service = Service::start(|_, server| server.limits.max_duration = seconds.map(Duration::from_secs));
        assert_eq!(service.ask("POST /api/session", "", b"").json()["phase_ms"], phase, "{seconds:?}");
    }
}

#[test]
fn requests_of_no_session_are_gone() {
    let service = Service::usual();
    service.open();
    for query in ["", "?session=", "?session=x", "?session=00000000000000000000000000000000"] {
        for request in
            ["GET /api/ping", "GET /api/download", "GET /api/session", "POST /api/upload", "POST /api/result"]
        {
            assert_eq!(service.ask(&format!("{request}{query}"), "", b"").status, 410, "{request}{query}");
        }
    }
}

#[test]
fn a_session_is_pinged_and_moves_data_in_both_directions() {
    let service = Service::usual();
    let token = service.open();
    assert_eq!(service.get(&format!("/api/ping?session={token}")).status, 204);
    let download = service.get(&format!("/api/download?bytes=300000&session={token}"));
    assert_eq!((download.status, download.body.len()), (200, 300_000));
    let head = service.ask(&format!("HEAD /api/download?session={token}"), "", b"");
    assert_eq!((head.status, head.body.len()), (200, 0));
    let upload = service.ask(&format!("POST /api/upload?session={token}"), "", &vec![7; 300_000]);
    assert_eq!((upload.status, upload.json()), (200, serde_json::json!({ "bytes": 300_000 })));
}

#[test]
fn a_download_without_a_size_is_bounded() {
    let service = Service::usual();
    let token = service.open();
    for query in ["", "&bytes=x", "&bytes=-1", "&bytes=18446744073709551615"] {
        let mut stream = service.send(&format!("GET /api/download?session={token}{query}"), "", b"");
        let mut head = [0; 1024];
        stream.read_exact(&mut head).expect("an answer");
        let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
        assert!(head.contains(&format!("\r\ncontent-length: {}\r\n", 4_u64 << 30)), "{query}: {head}");
    }
}

#[test]
fn a_full_server_refuses_a_session_for_now() {
    let service = Service::start(|_, server| server.max_sessions = NonZeroUsize::MIN);
    service.open();
    let refused = service.ask("POST /api/session", "", b"");
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("10")));
    assert!(refused.json()["error"].as_str().is_some_and(|reason| reason.contains("limit of sessions (1)")));
    assert_eq!(service.get("/garbage?ckSize=1").status, 503, "librespeed's clients have none either");
}

#[test]
fn a_result_ends_its_session_and_is_handed_over_once() {
    let service = Service::usual();
    let token = service.open();
    let mut upload = upload_part(&service, &token, &[7; 5000], 6000);
    upload.write_all(&[7; 1000]).expect("sent");
    assert_eq!(Answer::read(upload).json()["bytes"], 6000);
    let name = "Browser ".repeat(100);
    let result = format!("POST /api/result?session={token}");
    let answer = service.ask(&result, &format!("User-Agent: {name}\r\n"), &claims(20));
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["kept_as_run"], KEPT_AS);
    assert_eq!(service.ask(&result, "", &claims(20)).status, 410, "the session is over");
    assert_eq!(service.get(&format!("/api/ping?session={token}")).status, 410);
    let [(number, run, keeps)] = &service.finished.runs()[..] else { panic!("one run") };
    assert_eq!((*number, *keeps, run.host.as_str()), (1, true, "127.0.0.1"));
    assert_eq!(answer.json()["run"]["verdict"], run.verdict.as_str());
    let RunResult::Web(document) = &run.result else { panic!("a browser's: {run:?}") };
    let bytes = document.phases.iter().find_map(|phase| phase.bytes).expect("an upload");
    assert!(bytes >= 5000, "{bytes}");
}

#[test]
fn the_name_of_a_browser_is_shortened() {
    let service = Service::usual();
    let name = "b".repeat(1000);
    let opened = service.ask("POST /api/session", &format!("User-Agent: {name}\r\n"), b"").json();
    let token = opened["session"].as_str().expect("a token");
    let upload = upload_part(&service, token, &[7; 10], 20);
    assert_eq!(service.ask(&format!("POST /api/result?session={token}"), "", &claims(1)).status, 200);
    drop(upload);
    let [(_, run, _)] = &service.finished.runs()[..] else { panic!("one run") };
    let RunResult::Web(document) = &run.result else { panic!("a browser's: {run:?}") };
    assert_eq!(document.browser.as_deref(), Some(&name[..160]));
}

#[test]
fn a_session_that_moved_nothing_is_no_measurement() {
    let service = Service::usual();
    let token = service.open();
    let answer = service.ask(&format!("POST /api/result?session={token}"), "", &claims(20));
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["kept_as_run"], Value::Null);
    assert!(service.finished.runs().is_empty());
}

#[test]
fn a_server_that_keeps_nothing_hands_results_over_as_such() {
    let service = Service::start(|options, _| options.keeps_results = false);
    let token = service.open();
    let upload = upload_part(&service, &token, &[7; 10], 20);
    let answer = service.ask(&format!("POST /api/result?session={token}"), "", &claims(1));
    drop(upload);
    assert_eq!(answer.json()["kept_as_run"], Value::Null);
    assert_eq!(service.finished.runs().iter().map(|(_, _, keeps)| *keeps).collect::<Vec<_>>(), [false]);
}

#[test]
fn a_refused_result_leaves_the_session_as_it_was() {
    let service = Service::usual();
    let token = service.open();
    let result = format!("POST /api/result?session={token}");
    let largest = crate::request_body::MAX_BODY;
    for (body, status, reason) in [
        (b"{".to_vec(), 400, "the body is invalid"),
        (b"{\"bytes\":1}".to_vec(), 400, "unknown field"),
        (claims(3001), 400, "more than 3000 round trips"),
        (vec![b' '; largest], 400, "the body is invalid"),
        (vec![b' '; largest + 1], 413, "too large"),
    ] {
        let answer = service.ask(&result, "", &body);
        let length = body.len();
        assert_eq!(answer.status, status, "{length} bytes: {answer:?}");
        assert!(answer.json()["error"].as_str().is_some_and(|text| text.contains(reason)), "{answer:?}");
    }
    assert_eq!(service.get(&format!("/api/ping?session={token}")).status, 204);
    assert_eq!(service.ask(&result, "", &claims(0)).status, 200);
}

#[test]
fn samples_are_those_from_the_asked_one_on() {
    let service = Service::usual();
    let token = service.open();
    let upload = upload_part(&service, &token, &[7; 10], 20);
    let samples = |from: &str| service.get(&format!("/api/session?session={token}{from}")).json()["samples"].clone();
    let first = samples("")[0].clone();
    assert_eq!(first["direction"], "up");
    assert_eq!(samples("&from=0")[0], first, "of none, all are sent");
    assert_ne!(samples("&from=1")[0], first);
    assert_eq!(samples("&from=18446744073709551615"), serde_json::json!([]));
    drop(upload);
}
