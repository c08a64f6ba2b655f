//! Connections and requests of a client.

use core::pin::Pin;
use core::task::Poll;
use core::time::Duration;

use hyper::body::{Body as _, Bytes};
use hyper::header::LOCATION;

use crate::connection::MAX_QUANTUM;

use super::*;

/// Answers by the path of the request.
fn answers(request: &Request<Incoming>) -> WebResponse {
    match request.uri().path() {
        "/named" => {
            let agent = request.headers().get("user-agent").and_then(|agent| agent.to_str().ok());
            response::text(StatusCode::OK, BYTES, format!("{} {:?}", request.uri(), agent))
        }
        "/five" => response::text(StatusCode::OK, BYTES, "12345"),
        "/moved" => {
            let mut moved = response::text(StatusCode::FOUND, BYTES, "");
            let location = "x".repeat(1000).try_into().expect("text");
            moved.headers_mut().insert(LOCATION, location);
            moved
        }
        _ => response::refuse(StatusCode::NOT_FOUND, "no such object"),
    }
}

fn get(path: &'static str, most: usize) -> Result<Vec<u8>, String> {
    Loopback::new().block_on(async move {
        let target = serve(&[HTTP2], answers).await;
        let mut opened = target.open().await?;
        let address = target.authority.clone();
        let got = target.get(&mut opened.sender, path, most).await;
        got.map_err(|reason| reason.replace(&address, "HOST"))
    })
}

#[test]
fn an_answer_is_returned_whole_up_to_its_largest_size() {
    assert_eq!(get("/five", 5), Ok(b"12345".to_vec()));
    assert_eq!(get("/five", 4), Err("https://HOST/five has more than 4 bytes".to_owned()));
}

#[test]
fn a_request_names_the_host_and_this_program() {
    let named = String::from_utf8(get("/named", 1000).expect("an answer")).expect("text");
    assert!(named.starts_with("https://127.0.0.1:"), "{named}");
    assert!(named.ends_with(&format!("/named Some(\"linerate/{}\")", env!("CARGO_PKG_VERSION"))), "{named}");
}

#[test]
fn an_answer_other_than_success_is_named_and_no_redirection_followed() {
    assert_eq!(get("/nothing", 9), Err("GET https://HOST/nothing: the server answered 404 Not Found".to_owned()));
    let shown = "x".repeat(100);
    assert_eq!(
        get("/moved", 9),
        Err(format!("GET https://HOST/moved: redirected to \"{shown}\", which is not followed"))
    );
}

#[test]
fn an_open_connection_has_the_time_of_each_handshake() {
    Loopback::new().block_on(async {
        let opened = serve(&[HTTP2], answers).await.open().await.expect("a connection");
        assert!(opened.tcp > Duration::ZERO && opened.tls > Duration::ZERO);
        assert_eq!(opened.tls_version, "1.3");
    });
}

#[test]
fn connections_that_are_of_no_use_are_refused_with_the_remedy() {
    let loopback = Loopback::new();
    let (closed, _held) = closed_port(&loopback);
    loopback.block_on(async {
        let server = serve(&[b"http/1.1"], answers).await;
        let reason = server.open().await.err().expect("no HTTP/2");
        assert_eq!(reason, format!("TLS with {}: {}", server.authority, https::NO_HTTP2));
        // A protocol is offered by a server only that knows the client's.
        let server = serve(&[], answers).await;
        let reason = server.open().await.err().expect("no HTTP/2");
        assert_eq!(reason, format!("{}: {}", server.authority, https::NO_HTTP2));
        let (_, other) = https::server(&ServerIdentity::NewKey, &[]).expect("a new key");
        let reason = target(server.connect.remote, other, &[HTTP2]).open().await.err().expect("another key");
        assert!(reason.starts_with("TLS with 127.0.0.1:") && reason.contains("pin"), "{reason}");
        let reason = target(closed, other, &[HTTP2]).open().await.err().expect("nothing listens");
        assert!(reason.starts_with("connecting to 127.0.0.1:"), "{reason}");
        assert!(reason.contains("refused") && reason.contains("`linerate serve --responsiveness`"), "{reason}");
    });
}

#[test]
fn an_upload_is_endless_in_parts_of_the_quantum() {
    let loopback = Loopback::new();
    let (connection, _client) = loopback.connect(1);
    let part = |body: &mut RequestBody| -> Option<Bytes> {
        let frame = loopback.poll_once(core::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)));
        let Poll::Ready(frame) = frame else { panic!("it waits") };
        Some(frame?.expect("it never fails").into_data().expect("no trailers"))
    };
    let mut body = RequestBody::Endless(connection);
    for _ in 0..100 {
        assert_eq!(part(&mut body).map(|part| part.len()), Some(MAX_QUANTUM));
    }
    assert!(!body.is_end_stream());
    let mut body = RequestBody::Empty;
    assert!(part(&mut body).is_none() && body.is_end_stream());
}
