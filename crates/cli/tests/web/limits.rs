//! Limits that the page shares with all services of the server.

use std::time::{Duration, Instant};

use crate::support::Program;
use crate::support::process::{eventually, run};

use super::WebServer;
use super::http::{ask, claims, download, finish, open_session, token, upload};

#[test]
fn browsers_and_other_clients_share_the_sessions() {
    let server = WebServer::start(&["--max-sessions", "1"]);
    let first = token(&open_session(server.web));
    let refused = ask(server.web, "POST /api/session", "", b"");
    assert_eq!(refused.status, 503);
    assert!(
        refused.json()["error"]
            .as_str()
            .expect("text")
            .contains("the server is busy: its limit of sessions (1) is reached")
    );
    assert_eq!(refused.header("retry-after"), Some("10"));
    let mut client = Program::Linerate.command();
    client.args(["-c", "127.0.0.1", "-p", &server.server.port.to_string(), "-t", "1"]);
    assert!(run(client, Duration::from_secs(60)).expect_code(1).stderr.contains("the server is busy"));
    assert_eq!(finish(server.web, &first, "{}").status, 200);
    open_session(server.web);
    server.stop();
}

#[test]
fn the_rate_of_the_server_holds_for_browsers() {
    let server = WebServer::start(&["--server-bitrate-limit", "80M"]);
    let session = open_session(server.web);
    assert_eq!(session["rate_limit_bits_per_second"], 80e6);
    let token = token(&session);
    for (name, move_data) in [("down", download as fn(u16, &str, Duration) -> u64), ("up", upload)] {
        let (begin, time) = (Instant::now(), Duration::from_secs(3));
        let bytes = move_data(server.web, &token, time);
        let seconds = begin.elapsed().as_secs_f64();
        // Buffers of both ends take some megabytes at once.
        let rate = f64::from(u32::try_from(bytes).expect("few bytes")) / seconds;
        assert!((1e6..15e6).contains(&rate), "{name}: {rate} B/s");
    }
    let run = finish(server.web, &token, "{}").json();
    for phase in run["run"]["result"]["web"]["phases"].as_array().expect("phases") {
        assert_eq!(phase["verdicts"][0]["cause"], "application-pacing", "{phase}");
    }
    server.stop();
}

#[test]
fn files_of_the_page_count_in_the_rate() {
    let server = WebServer::start(&["--server-bitrate-limit", "1M"]);
    let begin = Instant::now();
    let bytes: usize = (0..40).map(|_| super::http::get(server.web, "/page.js").body.len()).sum();
    let seconds = begin.elapsed().as_secs_f64();
    assert!(bytes > 300_000);
    let least = f64::from(u32::try_from(bytes).expect("few bytes")) * 8.0 / 1e6;
    assert!(seconds > least * 0.8, "{bytes} bytes in {seconds} s");
    server.stop();
}

#[test]
fn the_longest_duration_holds_for_browsers() {
    let server = WebServer::start(&["--server-max-duration", "2s"]);
    let session = open_session(server.web);
    assert_eq!(session["phase_ms"], 1000, "both phases fit");
    let token = token(&session);
    // Slower than the link, so that the time of the server decides.
    let slowly = |start: &str| {
        let mut stream = super::http::connect(server.web);
        super::http::send(&mut stream, start, "", b"");
        super::http::read_for(&mut stream, Duration::from_secs(30), Duration::from_millis(1))
    };
    let begin = Instant::now();
    assert!(slowly(&format!("GET /api/download?session={token}")) > 0);
    assert!((1.9..10.0).contains(&begin.elapsed().as_secs_f64()), "{:?}", begin.elapsed());
    let refused = ask(server.web, &format!("GET /api/download?session={token}"), "", b"");
    assert_eq!(refused.status, 429);
    assert!(refused.json()["error"].as_str().expect("text").contains("--server-max-duration"));
    // The same holds for librespeed's clients, which have no session of their own.
    let begin = Instant::now();
    let bytes = slowly("GET /garbage?ckSize=1024");
    assert!(bytes < 1 << 30 && begin.elapsed() < Duration::from_secs(10), "{bytes} in {:?}", begin.elapsed());
    server.stop();
}

#[test]
fn a_public_server_keeps_no_results() {
    let server = WebServer::start(&["--public"]);
    let token = token(&open_session(server.web));
    download(server.web, &token, Duration::from_millis(700));
    let answer = finish(server.web, &token, &claims(12));
    assert_eq!((answer.status, &answer.json()["kept_as_run"]), (200, &serde_json::Value::Null));
    assert!(eventually(Duration::from_secs(10), || server.server.process.stdout().contains("browser, ")));
    assert!(!std::path::Path::new(&server.scratch.path("history")).exists());
    server.stop();
}

#[test]
fn fifty_browsers_are_served_at_once() {
    // A rate that leaves the processors to other tests.
    let server = WebServer::start(&["--server-bitrate-limit", "500M"]);
    let (web, time) = (server.web, Duration::from_secs(2));
    let runs: Vec<serde_json::Value> = std::thread::scope(|scope| {
        let browser = move || {
            let token = token(&open_session(web));
            let streams: Vec<_> = (0..3)
                .map(|_| {
                    let token = token.clone();
                    std::thread::spawn(move || download(web, &token, time))
                })
                .collect();
            let bytes: u64 = streams.into_iter().map(|stream| stream.join().expect("no panic")).sum();
            assert!(bytes > 0);
            upload(web, &token, Duration::from_millis(500));
            finish(web, &token, &claims(20)).json()
        };
        let browsers: Vec<_> = (0..50).map(|_| scope.spawn(browser)).collect();
        browsers.into_iter().map(|browser| browser.join().expect("no panic")).collect()
    });
    for run in &runs {
        let web = &run["run"]["result"]["web"];
        let down =
            web["phases"].as_array().expect("phases").iter().find(|phase| phase["kind"] == "down").expect("a download");
        assert!(down["bytes"].as_u64().expect("a count") > 0 && down["connections"] == 3, "{down}");
    }
    assert!(server.server.resident_memory() < 128 << 10, "{} KiB", server.server.resident_memory());
    server.stop();
}
