//! Results: the server's own counts, kept at a limited rate, and shown only where asked.

use std::time::Duration;

use linerate_history::result_log::ResultLog;
use serde_json::Value;

use crate::support::fleet_results::append;
use crate::support::process::run;

use super::WebServer;
use super::http::{ask, claims, download, finish, get, open_session, token, upload};

const LIMIT: Duration = Duration::from_secs(60);

fn phase<'a>(run: &'a Value, kind: &str) -> &'a Value {
    let phases = run["result"]["web"]["phases"].as_array().expect("phases");
    phases.iter().find(|phase| phase["kind"] == kind).unwrap_or_else(|| panic!("no phase {kind}"))
}

/// Moves data until the server has sampled it often enough for a rate; returns the bytes.
fn until_sampled(server: &WebServer, token: &str, direction: &str, move_data: fn(u16, &str, Duration) -> u64) -> u64 {
    let mut bytes = 0;
    for _ in 0..60 {
        bytes += move_data(server.web, token, Duration::from_millis(500));
        let answer = get(server.web, &format!("/api/session?session={token}")).json();
        let samples = answer["samples"].as_array().expect("samples");
        if samples.iter().filter(|sample| sample["direction"] == direction).count() >= 6 {
            return bytes;
        }
    }
    panic!("too few samples {direction}");
}

/// Measures as a browser does, and returns the answer.
fn measured(server: &WebServer) -> Value {
    let token = token(&open_session(server.web));
    let bytes = until_sampled(server, &token, "down", download);
    until_sampled(server, &token, "up", upload);
    let answer = finish(server.web, &token, &claims(40)).json();
    let counted = phase(&answer["run"], "down")["bytes"].as_u64().expect("bytes");
    assert!(counted >= bytes / 2 && counted <= bytes + (64 << 20), "{counted} of {bytes}");
    answer
}

#[test]
fn a_result_has_the_servers_counts_and_enters_the_history_once() {
    let server = WebServer::start(&[]);
    let answer = measured(&server);
    let run_document = &answer["run"];
    assert_eq!(
        (&run_document["kind"], &run_document["host"], &answer["kept_as_run"]),
        (&"web".into(), &"127.0.0.1".into(), &1.into())
    );
    for kind in ["down", "up"] {
        let phase = phase(run_document, kind);
        assert!(phase["goodput_bits_per_second"].as_f64().expect("a rate") > 1e6, "{phase}");
        assert!(!phase["verdicts"].as_array().expect("verdicts").is_empty(), "{phase}");
    }
    assert!(phase(run_document, "down")["kernel_rtt"]["median_ns"].as_u64().is_some());
    assert!(phase(run_document, "up")["kernel_rtt"].is_null(), "only the sender knows it");
    // 41 − 1 ms by the upload: B; 2 − 1 ms by the download: A+.
    let grade = &run_document["result"]["web"]["grade"];
    assert_eq!([&grade["letter"], &grade["up"], &grade["down"]], ["B", "B", "A+"]);
    let shown = run(server.command(&["history", "show", "1", "--json"]), LIMIT).expect_code(0).document();
    assert_eq!(&shown, run_document);
    let list = run(server.command(&["history", "list", "--kind", "web"]), LIMIT).expect_code(0).stdout;
    assert!(list.contains("127.0.0.1") && list.contains("web"), "{list}");
    let text = run(server.command(&["report", "1", "--format", "text"]), LIMIT).expect_code(0).stdout;
    assert!(text.contains("Round trips, as the browser reports them") && text.contains("Browser test"), "{text}");
    let exported = run(server.command(&["history", "export"]), LIMIT).expect_code(0).stdout;
    let file = server.scratch.file("exported", exported);
    let mut import = server.command(&["history", "import", &file]);
    import.env("LINERATE_HISTORY", server.scratch.path("other"));
    run(import, LIMIT).expect_code(0);
    assert!(server.stop().contains("browser, "));
}

#[test]
fn a_session_without_data_or_with_invalid_claims_is_not_kept() {
    let server = WebServer::start(&[]);
    let idle = token(&open_session(server.web));
    let answer = finish(server.web, &idle, &claims(40));
    assert_eq!((answer.status, &answer.json()["kept_as_run"]), (200, &Value::Null));
    assert_eq!(finish(server.web, &idle, &claims(40)).status, 410, "it is over");
    let token = token(&open_session(server.web));
    download(server.web, &token, Duration::from_millis(500));
    for (body, status) in [("", 400), ("{\"bytes\":1}", 400), ("{\"round_trips\":{\"idle\":[[1,-1]]}}", 400)] {
        assert_eq!(finish(server.web, &token, body).status, status, "{body}");
    }
    assert_eq!(finish(server.web, &token, &" ".repeat(100 << 10)).status, 413);
    assert!(!std::path::Path::new(&server.scratch.path("history")).exists());
    server.stop();
}

#[test]
fn other_web_sites_start_no_session_and_read_nothing() {
    let server = WebServer::start(&["--web-history"]);
    for headers in [
        "Origin: http://attacker.example\r\n",
        "Origin: null\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
    ] {
        for start in ["POST /api/session", "GET /api/ping", "GET /history", "GET /garbage?ckSize=1", "POST /empty"] {
            let answer = ask(server.web, start, headers, b"");
            assert_eq!(answer.status, 403, "{start} with {headers}");
            assert_eq!(answer.header("access-control-allow-origin"), None);
        }
        let shared = ask(server.web, "GET /garbage?cors=true&ckSize=1", headers, b"");
        assert_eq!((shared.status, shared.header("access-control-allow-origin")), (200, Some("*")));
    }
    let own = format!("Origin: http://127.0.0.1:{}\r\nSec-Fetch-Site: same-origin\r\n", server.web);
    assert_eq!(ask(server.web, "POST /api/session", &own, b"").status, 201);
    server.stop();
}

#[test]
fn the_history_is_shown_where_asked_and_only_under_this_hosts_name() {
    let server = WebServer::start(&["--web-history"]);
    assert!(get(server.web, "/history").text().contains("No run is kept yet"));
    for _ in 0..2 {
        measured(&server);
    }
    let list = get(server.web, "/history");
    assert!(list.text().contains("/history/run?id=2") && list.text().contains("figure=goodput_down"), "{list:?}");
    let report = get(server.web, "/history/run?id=1");
    assert_eq!(report.header("content-security-policy"), Some("sandbox allow-scripts; frame-ancestors 'none'"));
    assert!(report.text().contains("Browser test: 127.0.0.1"));
    assert!(get(server.web, "/history/compare?before=1&after=2").text().contains("Goodput down"));
    assert!(get(server.web, "/history/trend?figure=goodput_down").text().contains("<polyline"));
    for (path, status) in [
        ("/history/run?id=99", 404),
        ("/history/run?id=-1", 404),
        ("/history/run?id=last", 400),
        ("/history/run", 400),
        ("/history/compare?before=1", 400),
        ("/history/trend?figure=%3Cscript%3E", 404),
        ("/history/trend", 404),
    ] {
        assert_eq!(get(server.web, path).status, status, "{path}");
    }
    // Results of a monitor of this host.
    assert_eq!(get(server.web, "/history/results").status, 404);
    let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs();
    let log = ResultLog::open(std::path::Path::new(&server.scratch.path("results"))).expect("a log");
    append(&log, seconds - 60..seconds - 58);
    assert!(get(server.web, "/history").text().contains("href=\"/history/results\""));
    let page = get(server.web, "/history/results");
    assert_eq!(page.header("content-security-policy"), Some("sandbox allow-scripts; frame-ancestors 'none'"));
    assert!(page.text().contains("2 results between 2 hosts: 2 of 2 directions measured"), "{page:?}");
    // A stranger's name that points here (DNS rebinding).
    let mut stream = super::http::connect(server.web);
    let rebound = b"GET /history HTTP/1.1\r\nHost: attacker.example:8080\r\n\r\n";
    std::io::Write::write_all(&mut stream, rebound).expect("sent");
    assert_eq!(super::http::receive(&mut stream).expect("an answer").status, 403);
    server.stop();
}
