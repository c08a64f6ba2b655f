//! Tests of the web page's service (`linerate serve --web`): its endpoints, its limits, and hostile clients.

mod hostile;
mod http;
mod limits;
mod results;

use std::process::Command;

use http::{ask, get};

use crate::support::{self, Process, Scratch, Server, free_port, linerate};

/// Server with its web page, and a history of its own.
struct WebServer {
    server: Server,
    /// Port of the page.
    web: u16,
    scratch: Scratch,
}

impl WebServer {
    fn start(arguments: &[&str]) -> Self {
        let (scratch, web, port) = (Scratch::new(), free_port(), free_port());
        let mut command = linerate();
        command.args(["serve", "--no-stamp", "-B", "127.0.0.1", "-p", &port.to_string(), &format!("--web={web}")]);
        command.args(arguments).env("LINERATE_HISTORY", scratch.path("history"));
        let server = Server::listening(command, web);
        assert!(support::process::eventually(http::PATIENCE, || support::server::is_listening(port)));
        Self { server: Server { port, ..server }, web, scratch }
    }

    fn id(&self) -> u32 {
        self.server.process.id()
    }

    /// Command of linerate with the server's history.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = linerate();
        command.args(arguments).env("LINERATE_HISTORY", self.scratch.path("history"));
        command
    }

    /// Ends the server, which must not have panicked; returns its output.
    fn stop(self) -> String {
        self.server.process.signal("INT");
        let process: Process = self.server.process;
        let end = process.finish(http::PATIENCE).expect_code(0);
        assert!(!end.stderr.contains("panicked"), "{end:#?}");
        end.stdout
    }
}

#[test]
fn the_page_has_a_strict_policy_and_no_cookies() {
    let server = WebServer::start(&[]);
    for path in ["/", "/page.js", "/page.css", "/worker.js", "/chart.js", "/icon.svg", "/getIP", "/nothing"] {
        let answer = get(server.web, path);
        assert_eq!(answer.status, if path == "/nothing" { 404 } else { 200 }, "{path}");
        let policy = answer.header("content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
        assert!(!policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"), "{policy}");
        for (name, value) in [
            ("x-content-type-options", Some("nosniff")),
            ("referrer-policy", Some("no-referrer")),
            ("cache-control", Some("no-store")),
            ("set-cookie", None),
            ("access-control-allow-origin", None),
        ] {
            assert_eq!(answer.header(name), value, "{path}");
        }
    }
    assert!(get(server.web, "/").text().contains("<noscript>"));
    server.stop();
}

#[test]
fn paths_and_methods_that_do_not_exist_have_a_clear_status() {
    let server = WebServer::start(&[]);
    for (start, status) in [
        ("GET /../etc/passwd", 404),
        ("GET /..%2f..%2fetc%2fpasswd", 404),
        ("GET //etc/passwd", 404),
        ("GET /page.js/..", 404),
        ("GET /history", 404),
        ("GET /history/run?id=1", 404),
        ("DELETE /", 405),
        ("POST /", 405),
        ("GET /api/result", 405),
        ("PROPFIND /garbage", 405),
        ("TRACE /", 405),
        ("OPTIONS /api/session", 405),
        ("GET /api/ping", 410),
        ("GET /api/download?session=00000000000000000000000000000000", 410),
        ("GET /api/download?session=%00", 410),
        ("POST /api/result?session=../..", 410),
    ] {
        let answer = ask(server.web, start, "", b"");
        assert_eq!(answer.status, status, "{start}");
        assert!(answer.json()["error"].is_string(), "{start}");
        assert_eq!(answer.header("allow").is_some(), status == 405, "{start}");
    }
    let head = ask(server.web, "HEAD /garbage?ckSize=1024", "Connection: close\r\n", b"");
    assert_eq!((head.status, head.body.len()), (200, 0));
    server.stop();
}

#[test]
fn clients_of_librespeed_find_their_endpoints() {
    let server = WebServer::start(&[]);
    for path in ["/garbage?ckSize=2", "/garbage.php?ckSize=2", "/backend/garbage.php?r=0.5&ckSize=2"] {
        let answer = get(server.web, path);
        assert_eq!((answer.status, answer.body.len()), (200, 2 << 20), "{path}");
        assert_eq!(answer.header("content-type"), Some("application/octet-stream"));
    }
    let upload = vec![1; 300_000];
    for (start, body) in
        [("GET /backend/empty.php?r=1", &b""[..]), ("POST /empty", &upload[..]), ("POST /empty.php", b"")]
    {
        let answer = ask(server.web, start, "", body);
        assert_eq!((answer.status, answer.body.len()), (200, 0), "{start}");
    }
    let address = get(server.web, "/backend/getIP.php?isp=true").json();
    assert_eq!(address["processedString"], "127.0.0.1 - localhost IPv4 access");
    assert_eq!(address["rawIspInfo"], "");
    let shared = ask(server.web, "OPTIONS /backend/empty.php?cors=true", "Origin: http://other\r\n", b"");
    assert_eq!((shared.status, shared.header("access-control-allow-origin")), (204, Some("*")));
    assert_eq!(
        get(server.web, "/empty?cors").header("access-control-allow-headers"),
        Some("Content-Encoding, Content-Type")
    );
    server.stop();
}
