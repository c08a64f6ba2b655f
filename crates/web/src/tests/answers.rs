//! Status and headers of the answers, without a session.

use super::*;

#[test]
fn each_path_answers_its_methods_and_names_them() {
    let service = Service::usual();
    for (request, status, allowed) in [
        ("GET /", 200, None),
        ("HEAD /page.js", 200, None),
        ("POST /", 405, Some("GET, HEAD")),
        ("GET /nothing", 404, None),
        ("GET /../page.js", 404, None),
        ("GET /page.js/", 404, None),
        ("GET /api/upload", 405, Some("POST")),
        ("GET /api/result", 405, Some("POST")),
        ("DELETE /api/session", 405, Some("GET, HEAD, POST")),
        ("OPTIONS /api/ping", 405, Some("GET, HEAD")),
        ("OPTIONS /garbage", 204, None),
        ("POST /garbage", 405, Some("GET, HEAD, OPTIONS")),
        ("POST /backend/empty.php", 200, None),
        ("HEAD /getIP", 200, None),
        ("GET /history", 404, None),
    ] {
        let answer = service.ask(request, "", b"");
        assert_eq!((answer.status, answer.header("allow")), (status, allowed), "{request}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{request}");
        assert!(!request.starts_with("HEAD") || answer.body.is_empty(), "{request}");
    }
}

#[test]
fn files_have_their_type() {
    let service = Service::usual();
    for (path, content_type) in [
        ("/", "text/html; charset=utf-8"),
        ("/page.css", "text/css; charset=utf-8"),
        ("/worker.js", "text/javascript; charset=utf-8"),
        ("/icon.svg", "image/svg+xml"),
    ] {
        let answer = service.get(path);
        assert_eq!(answer.header("content-type"), Some(content_type));
        let length = answer.header("content-length").and_then(|length| length.parse().ok());
        assert_eq!(length, Some(answer.body.len()), "{path}");
        assert!(!answer.body.is_empty());
    }
}

#[test]
fn other_web_sites_have_the_page_and_nothing_else() {
    let service = Service::usual();
    for (request, status) in [
        ("GET /", 200),
        ("POST /api/session", 403),
        ("GET /api/ping", 403),
        ("GET /history", 403),
        ("GET /garbage?ckSize=1", 403),
        ("POST /empty", 403),
        ("GET /getIP?cors=true", 200),
        ("OPTIONS /empty?cors=true", 204),
    ] {
        for headers in ["Sec-Fetch-Site: cross-site\r\n", "Origin: http://attacker.example\r\n"] {
            let answer = service.ask(request, headers, b"");
            assert_eq!(answer.status, status, "{request} {headers}");
            let is_shared = answer.header("access-control-allow-origin") == Some("*");
            assert_eq!(is_shared, request.contains("cors="), "{request} {headers}");
        }
    }
}

#[test]
fn librespeeds_clients_have_bytes_and_their_address_without_a_session() {
    let service = Service::usual();
    let download = service.get("/backend/garbage.php?ckSize=2&r=0.1");
    assert_eq!((download.status, download.body.len()), (200, 2 << 20));
    assert_eq!(download.header("content-type"), Some("application/octet-stream"));
    let upload = service.ask("POST /backend/empty.php?r=0.1", "", &vec![7; 100_000]);
    assert_eq!((upload.status, upload.body.len()), (200, 0));
    assert_eq!(service.get("/getIP").json()["processedString"], "127.0.0.1 - localhost IPv4 access");
    assert!(service.finished.runs().is_empty(), "such a test has no result");
}

#[test]
fn the_history_is_shown_where_asked_and_under_this_hosts_name_only() {
    let link = |service: &Service| {
        let page = service.get("/");
        core::str::from_utf8(&page.body).expect("text").contains("<nav id=\"history\">")
    };
    assert!(!link(&Service::usual()));
    let service = Service::start(|options, _| options.shows_history = true);
    assert!(link(&service));
    let mut stream = service.connect();
    let request = b"GET /history HTTP/1.1\r\nHost: attacker.example\r\nConnection: close\r\n\r\n";
    stream.write_all(request).expect("sent");
    let answer = Answer::read(stream);
    assert_eq!(answer.status, 403);
    assert!(answer.json()["error"].as_str().is_some_and(|reason| reason.contains("ADDRESS:PORT")), "{answer:?}");
}

#[test]
fn requests_beyond_the_bounds_of_http_are_refused() {
    let service = Service::usual();
    // Three are there already.
    for (count, status) in [(61, 200), (62, 431)] {
        assert_eq!(service.ask("GET /", &"X: y\r\n".repeat(count), b"").status, status, "{count}");
    }
    let mut stream = service.connect();
    stream.write_all(b"not HTTP\r\n\r\n").expect("sent");
    assert_eq!(Answer::read(stream).status, 400);
    assert_eq!(service.get("/").status, 200, "others are served");
}

#[test]
fn a_service_ends_with_its_connections() {
    let service = Service::usual();
    let mut idle = service.connect();
    assert_eq!(service.get("/").status, 200);
    drop(service);
    assert!(matches!(idle.read(&mut [0]), Ok(0) | Err(_)), "it is closed");
}
