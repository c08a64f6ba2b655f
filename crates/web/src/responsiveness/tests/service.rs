//! Our own server, and a test against it.

use core::num::NonZeroUsize;
use core::time::Duration;

use hyper::client::conn::http1;
use hyper::header::HOST;
use linerate_analysis::latency_under_load::LatencyClass;
use linerate_engine::load::{LoadEvent, LoadTestOptions, LoadTestOutcome};
use linerate_engine::probe::ProbeTarget;
use linerate_model::load::PhaseKind;
use serde_json::Value;

use crate::test_support::wait_until;

use super::super::client::next;
use super::super::service::CONFIGURATIONS;
use super::super::{HttpTestOptions, run};
use super::*;

const MAX: usize = 10_000;

async fn request(target: &HttpTarget, method: Method, path: &str) -> Result<Vec<u8>, String> {
    let mut opened = target.open().await?;
    let mut body = target.request(&mut opened.sender, method, path, RequestBody::Empty).await?.into_body();
    let mut bytes = Vec::new();
    while let Some(data) = next(&mut body).await? {
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

#[test]
fn each_path_of_the_configuration_names_the_objects_of_the_host_that_was_asked() {
    let server = OwnServer::start(|_| ());
    Loopback::new().block_on(async {
        let mut opened = server.target.open().await.expect("a connection");
        for path in CONFIGURATIONS {
            let text = server.target.get(&mut opened.sender, path, MAX).await.expect("a configuration");
            let url = HttpsUrl::parse_configuration(&format!("https://{}/", server.address())).expect("a URL");
            let found = super::super::config::parse(&text, &url, &[]).expect("usable by our own client");
            assert_eq!(found, *objects(server.address()));
        }
    });
}

#[test]
fn objects_answer_their_methods_only() {
    let server = OwnServer::start(|_| ());
    Loopback::new().block_on(async {
        for (method, path, answer) in [
            (Method::GET, "/small", Ok(b"0".to_vec())),
            (Method::HEAD, "/large", Ok(Vec::new())),
            (Method::POST, "/upload", Ok(br#"{"bytes":0}"#.to_vec())),
            (Method::POST, "/small", Err("405 Method Not Allowed")),
            (Method::GET, "/upload", Err("405 Method Not Allowed")),
            (Method::POST, "/config", Err("405 Method Not Allowed")),
            (Method::GET, "/", Err("404 Not Found")),
        ] {
            let got = request(&server.target, method.clone(), path).await;
            let expected = answer
                .map_err(|status| format!("{method} https://{}{path}: the server answered {status}", server.address()));
            assert_eq!(got, expected);
        }
    });
}

#[test]
fn a_full_server_refuses_loads_and_answers_probes() {
    let server = OwnServer::start(|options| options.max_sessions = NonZeroUsize::MIN);
    let session = server.access.open(crate::test_support::client(1)).expect("the only session");
    Loopback::new().block_on(async {
        for (method, path) in [(Method::GET, "/large"), (Method::POST, "/upload")] {
            let refused = request(&server.target, method, path).await.expect_err("no session is left");
            assert!(refused.ends_with("the server answered 503 Service Unavailable"), "{refused}");
        }
        assert_eq!(request(&server.target, Method::GET, "/small").await, Ok(b"0".to_vec()));
        drop(session);
        assert!(request(&server.target, Method::POST, "/upload").await.is_ok());
    });
}

/// Configuration over HTTP/1.1 with these headers.
fn configuration(server: &OwnServer, headers: &[(&str, &str)]) -> (StatusCode, Value) {
    Loopback::new().block_on(async {
        let target = target(server.address(), server.pin, &[b"http/1.1"]);
        let (stream, _) = target.open_tcp().await.expect("a connection");
        let socket = Connection::new(stream, server.address(), 1);
        let stream = target.tls.connect(target.name.clone(), SocketIo(Arc::clone(&socket))).await.expect("TLS");
        let (mut sender, driver) = http1::handshake(StreamIo::new(stream, socket)).await.expect("HTTP/1.1");
        tokio::spawn(driver);
        let mut asked = Request::builder().uri("/config");
        for (name, value) in headers {
            asked = asked.header(*name, *value);
        }
        let asked = asked.body(RequestBody::Empty).expect("a request");
        let response: Response<Incoming> = sender.send_request(asked).await.expect("an answer");
        let (status, mut body) = (response.status(), response.into_body());
        let mut bytes = Vec::new();
        while let Some(data) = next(&mut body).await.expect("a whole body") {
            bytes.extend_from_slice(&data);
        }
        (status, serde_json::from_slice(&bytes).expect("JSON"))
    })
}

#[test]
fn older_clients_are_known_by_their_host_header_and_a_user_in_it_is_ignored() {
    let server = OwnServer::start(|_| ());
    let url = |host: &str| configuration(&server, &[(HOST.as_str(), host)]).1["urls"]["upload_url"].clone();
    assert_eq!(url("a.example:4043"), "https://a.example:4043/upload");
    let own = url("user@a.example");
    let own = own.as_str().expect("a URL");
    assert!(own.ends_with(&format!(":{}/upload", server.address().port())) && !own.contains('@'), "{own}");
}

#[test]
fn pages_of_web_sites_are_refused() {
    let server = OwnServer::start(|_| ());
    let (status, answer) = configuration(&server, &[(HOST.as_str(), "a"), ("sec-fetch-site", "cross-site")]);
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert_eq!(answer["error"], "requests of web sites are not answered here");
}

/// Runs the idle phase of a test for a moment.
fn measure(server: &OwnServer, url: &str) -> (LoadTestOutcome, Vec<LoadEvent>) {
    let url = HttpsUrl::parse_configuration(url).expect("a URL");
    let trust = ServerTrust::Pin(server.pin);
    let tls = Some(Arc::new(TlsClientOptions { trust, certificate: None }));
    let target = ProbeTarget { tls, ..ProbeTarget::new(url.host.clone(), url.port) };
    let options = LoadTestOptions {
        congestion_control: None,
        phases: vec![PhaseKind::Idle],
        idle_time: Duration::from_millis(250),
        ..LoadTestOptions::new(target)
    };
    let mut events = Vec::new();
    let test = HttpTestOptions { url, other_hosts: Vec::new() };
    let outcome = run(&options, &test, None, &mut |event| events.push(event.clone()));
    (outcome, events)
}

#[test]
fn the_idle_path_is_probed_on_new_connections_and_an_existing_one() {
    use LatencyClass::{HttpRequest, TcpApplication, TcpHandshake, TlsHandshake};
    let server = OwnServer::start(|_| ());
    // A busy host may answer no probe in such a short time.
    wait_until(|| {
        let (outcome, events) = measure(&server, &format!("https://{}", server.address()));
        assert!(outcome.error.is_none(), "{:?}", outcome.error);
        let http = outcome.document.http.expect("a server was found");
        assert_eq!((http.address, http.tls_version.as_str()), (server.address().to_string(), "1.3"));
        assert!(events.contains(&LoadEvent::Phase(PhaseKind::Idle)));
        let phase = outcome.document.phases.first().expect("the idle phase");
        let is_probed = |class| phase.classes.iter().any(|samples| samples.class == class);
        [TcpHandshake, TlsHandshake, HttpRequest, TcpApplication].into_iter().all(is_probed)
    });
}

#[test]
fn a_test_without_a_configuration_fails_with_what_was_tried() {
    let server = OwnServer::start(|_| ());
    for (path, reason) in [("/nothing", "the server answered 404"), ("/small", "no JSON of a responsiveness server")] {
        let (outcome, _) = measure(&server, &format!("https://{}{path}", server.address()));
        let error = outcome.error.expect("no measurement").to_string();
        assert!(error.contains(reason), "{error}");
    }
}
