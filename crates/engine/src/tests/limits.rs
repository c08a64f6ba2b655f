//! Limits of a server: duration, rate, streams, sessions, users.

use core::num::NonZeroUsize;
use core::time::Duration;

use linerate_model::event::TestEvent;
use linerate_model::parameters::{EndCondition, TestDirection, TestParameters, TestProtocol};
use linerate_model::report::TestTermination;
use linerate_units::{BitRate, ByteCount, StreamCount};
use linerate_wire::cookie::{AdmissionKey, KEY_LENGTH};
use linerate_wire::error::ErrorCode;
use linerate_wire::parameters::ServerLimits;
use linerate_wire::state::ControlState;

use crate::client::ClientOptions;
use crate::probe::{ProbeSession, ProbeTarget};
use crate::server::ServerOptions;

use super::support::{ClientRun, RawClient, ServerNews, TestServer, client_options, exact, results_of, target};

fn limited(limits: ServerLimits) -> ServerOptions {
    ServerOptions { limits, ..ServerOptions::default() }
}

fn megabits(rate: f64) -> BitRate {
    BitRate::from_bits_per_second(rate * 1e6)
}

fn timed(seconds: u64) -> TestParameters {
    TestParameters { end: EndCondition::Time(Duration::from_secs(seconds)), ..TestParameters::default() }
}

#[test]
fn requests_above_a_limit_are_refused_with_its_number() {
    let duration = ServerLimits { max_duration: Some(Duration::from_secs(5)), ..ServerLimits::default() };
    let rate = ServerLimits { max_total_rate: Some(megabits(10.0)), ..ServerLimits::default() };
    let streams = ServerLimits { max_streams: StreamCount::new(2), ..ServerLimits::default() };
    let no_udp = ServerLimits { udp: false, ..ServerLimits::default() };
    let omitting = TestParameters { omit: Duration::from_secs(3), ..timed(3) };
    let two_at_six = TestParameters { rate: Some(megabits(6.0)), parallel: StreamCount::new(2), ..timed(1) };
    let both_at_six = TestParameters { rate: Some(megabits(6.0)), direction: TestDirection::Bidirectional, ..timed(1) };
    let three = TestParameters { parallel: StreamCount::new(3), ..timed(1) };
    let udp = TestParameters { protocol: TestProtocol::Udp, block_size: ByteCount::new(1000), ..timed(1) };
    for (limits, parameters, code) in [
        (duration, timed(6), ErrorCode::MAX_DURATION),
        (duration, omitting, ErrorCode::MAX_DURATION),
        (duration, timed(0), ErrorCode::MAX_DURATION),
        (duration, exact(1), ErrorCode::MAX_DURATION),
        (rate, two_at_six, ErrorCode::TOTAL_RATE),
        (rate, both_at_six, ErrorCode::TOTAL_RATE),
        (streams, three, ErrorCode::STREAM_COUNT),
        (no_udp, udp, ErrorCode::UDP_FILE),
    ] {
        let server = TestServer::start(limited(limits));
        let run = ClientRun::against(server.address, parameters.clone());
        assert_eq!(run.code(), Some(code), "{parameters:?}");
        let error = run.outcome.error.expect("refused");
        assert!(error.is_from_server());
        assert_eq!(error.to_string(), code.text());
        assert_eq!(server.failure().code(), code);
    }
}

#[test]
fn requests_at_the_limit_are_accepted() {
    let limits = ServerLimits {
        max_duration: Some(Duration::from_secs(1)),
        max_total_rate: Some(megabits(10.0)),
        max_streams: StreamCount::new(2),
        udp: true,
    };
    let server = TestServer::start(limited(limits));
    let parameters = TestParameters { rate: Some(megabits(5.0)), parallel: StreamCount::new(2), ..timed(1) };
    ClientRun::against(server.address, parameters).successful();
    assert_eq!(server.report().termination, TestTermination::Complete);
}

#[test]
fn a_client_that_exceeds_the_total_rate_is_ended() {
    let options = ServerOptions {
        rate_averaging: Duration::from_millis(100),
        ..limited(ServerLimits { max_total_rate: Some(megabits(1.0)), ..ServerLimits::default() })
    };
    let server = TestServer::start(options);
    // Without a target rate, the client promises nothing.
    let run = ClientRun::against(server.address, timed(600));
    assert_eq!(run.code(), Some(ErrorCode::TOTAL_RATE));
    assert!(matches!(&run.report().termination, TestTermination::Failed { message } if message.contains("bandwidth")));
    assert_eq!(server.failure().code(), ErrorCode::TOTAL_RATE);
}

#[test]
fn a_test_in_which_nothing_moves_is_ended() {
    let options = ServerOptions { stall_timeout: Duration::from_millis(200), ..ServerOptions::default() };
    let server = TestServer::start(options);
    let (mut client, _streams) = RawClient::running(server.address, &exact(1_000_000));
    assert_eq!(client.expect_error(), ErrorCode::IDLE_RECEIVER);
    assert_eq!(server.failure().code(), ErrorCode::IDLE_RECEIVER);
}

#[test]
fn a_busy_server_refuses_and_serves_again_afterwards() {
    let one = NonZeroUsize::new(1).expect("not zero");
    let server = TestServer::start(ServerOptions { max_sessions: one, ..ServerOptions::default() });
    let (client, streams) = RawClient::running(server.address, &exact(1_000_000));
    let refused = ClientRun::against(server.address, exact(1000));
    assert_eq!(refused.code(), Some(ErrorCode::ACCESS_DENIED));
    assert_eq!(
        refused.outcome.error.as_ref().map(ToString::to_string).as_deref(),
        Some("the server is busy running a test. try again later")
    );
    // A client that was refused has not been connected, as in iperf3.
    assert!(!refused.events.iter().any(|event| matches!(event, TestEvent::Connected(_))));
    drop((client, streams));
    assert_eq!(server.find(|news| matches!(news, ServerNews::Idle(2)).then_some(2)), 2);
    ClientRun::against(server.address, exact(1000)).successful();
}

#[test]
fn many_sessions_of_one_address_do_not_keep_others_away() {
    let three = NonZeroUsize::new(3).expect("not zero");
    let server = TestServer::start(ServerOptions { max_sessions: three, ..ServerOptions::default() });
    // Two that never open their streams, and one that runs.
    let _holding: Vec<RawClient> = (0..2).map(|_| RawClient::accepted(server.address, &exact(1000))).collect();
    let _running = RawClient::running(server.address, &exact(1_000_000));
    let same = ClientRun::against(server.address, exact(1000));
    assert_eq!(same.code(), Some(ErrorCode::ACCESS_DENIED));
    let other = Some(std::net::Ipv4Addr::new(127, 0, 0, 2).into());
    ClientRun::with(&ClientOptions { bind: other, ..client_options(server.address, exact(1000)) }).successful();
}

#[test]
fn a_refused_client_reads_one_byte_and_the_end() {
    let one = NonZeroUsize::new(1).expect("not zero");
    let server = TestServer::start(ServerOptions { max_sessions: one, ..ServerOptions::default() });
    let _running = RawClient::running(server.address, &exact(1_000_000));
    let mut second = RawClient::connect(server.address);
    assert_eq!(second.remainder(), [ControlState::AccessDenied.byte()]);
}

#[test]
fn queued_clients_are_served_in_the_order_of_their_arrival() {
    let one = NonZeroUsize::new(1).expect("not zero");
    let server = TestServer::start(ServerOptions { max_sessions: one, queue: true, ..ServerOptions::default() });
    let (mut first, streams) = RawClient::running(server.address, &exact(1_000_000));
    // The acceptor reads a connection's cookie before it accepts the next connection.
    let mut waiting: Vec<RawClient> = (0..3).map(|_| RawClient::connect(server.address)).collect();
    first.send_state(ControlState::ClientTerminate);
    drop(streams);
    for mut client in waiting.drain(..) {
        client.expect_state(ControlState::ParamExchange);
        client.send_state(ControlState::ClientTerminate);
    }
    let mut ended = Vec::new();
    while ended.len() < 4 {
        if let ServerNews::Failed(number, error) = server.next() {
            assert_eq!(error.code(), ErrorCode::CLIENT_TERMINATED);
            ended.push(number);
        }
    }
    assert_eq!(ended, [1, 2, 3, 4]);
}

#[test]
fn a_client_that_gives_up_in_the_queue_gets_no_session() {
    let one = NonZeroUsize::new(1).expect("not zero");
    let server = TestServer::start(ServerOptions { max_sessions: one, queue: true, ..ServerOptions::default() });
    let (mut first, streams) = RawClient::running(server.address, &exact(1_000_000));
    let impatient = RawClient::connect(server.address);
    let mut patient = RawClient::connect(server.address);
    drop(impatient);
    first.send_state(ControlState::ClientTerminate);
    drop(streams);
    patient.expect_state(ControlState::ParamExchange);
    drop(patient);
    // The departed client may have been admitted in the moment before its departure was noticed; the patient one is
    // served in any case.
    let last = server.find(|news| match news {
        ServerNews::Idle(next) if next > 2 => Some(next),
        _ => None,
    });
    assert!((3..=4).contains(&last), "{last}");
}

#[test]
fn a_one_off_server_ends_without_a_client() {
    let options =
        ServerOptions { one_off: true, idle_timeout: Some(Duration::from_millis(50)), ..ServerOptions::default() };
    let server = TestServer::start(options);
    assert_eq!(server.idle(), 1);
    assert_eq!(server.join(), Ok(()));
}

#[test]
fn a_one_off_server_serves_one_client_at_a_time_and_ends_after_it() {
    let server = TestServer::start(ServerOptions { one_off: true, ..ServerOptions::default() });
    let address = server.address;
    let (mut client, streams) = RawClient::running(address, &exact(10));
    assert_eq!(RawClient::connect(address).remainder(), [ControlState::AccessDenied.byte()]);
    client.send_state(ControlState::TestEnd);
    client.expect_state(ControlState::ExchangeResults);
    client.send_document(&results_of(&[0]));
    client.document();
    client.expect_state(ControlState::DisplayResults);
    client.send_state(ControlState::IperfDone);
    drop(streams);
    assert_eq!(server.join(), Ok(()));
    assert!(std::net::TcpStream::connect(address).is_err(), "the listener is closed");
}

#[test]
fn the_reader_of_a_slow_application_limits_the_rate() {
    let options = ServerOptions { read_rate: Some(megabits(8.0)), ..ServerOptions::default() };
    let server = TestServer::start(options);
    let parameters = TestParameters { window: Some(ByteCount::from_kibibytes(16)), ..timed(2) };
    let run = ClientRun::against(server.address, parameters).successful();
    let received = run.report().streams[0].received.expect("the server's results");
    // 1 MB a second, and at most one read in advance.
    let most = 1e6 * received.duration.as_secs_f64() + 256e3;
    assert!(received.bytes.as_f64() <= most, "{} of {most}", received.bytes);
}

#[cfg(feature = "auth")]
mod users {
    //! Clients with and without credentials.

    use std::sync::Arc;

    use linerate_wire::authentication::{Authenticator, RsaPadding};

    use super::*;
    use crate::client::UserCredentials;

    const PRIVATE: &str = include_str!("../../../wire/testdata/keys/private_pkcs8.pem");
    const PUBLIC: &str = include_str!("../../../wire/testdata/keys/public.pem");
    const USERS: &str = "mario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b\n";

    fn server() -> TestServer {
        let skew = Duration::from_secs(600);
        let authenticator = Authenticator::new(PRIVATE, USERS, RsaPadding::Oaep, skew).expect("a good key");
        TestServer::start(ServerOptions {
            authenticator: Some(Arc::new(authenticator)),
            one_off: true,
            ..ServerOptions::default()
        })
    }

    fn credentials(user: &str, password: &str) -> UserCredentials {
        let (user, password, public_key) = (user.to_owned(), password.to_owned(), PUBLIC.to_owned());
        UserCredentials { user, password, public_key, padding: RsaPadding::Oaep }
    }

    #[test]
    fn only_users_with_their_password_are_admitted() {
        let server = server();
        assert_eq!(server.idle(), 1);
        let attempts = [
            None,
            Some(credentials("mario", "luigi")),
            Some(credentials("luigi", "rossi")),
            Some(UserCredentials { padding: RsaPadding::Pkcs1, ..credentials("mario", "rossi") }),
        ];
        for credentials in attempts {
            let options = ClientOptions { credentials, ..client_options(server.address, exact(1000)) };
            let run = ClientRun::with(&options);
            assert_eq!(run.code(), Some(ErrorCode::AUTHORIZATION), "{:?}", options.credentials);
            let failure = server.failure();
            assert_eq!(failure.code(), ErrorCode::AUTHORIZATION);
            assert!(failure.advice().is_some(), "the operator learns the reason");
            // Until then its session has the only slot.
            server.idle();
        }
        // A refused client is not the one test of `-1`.
        let options = ClientOptions {
            credentials: Some(credentials("mario", "rossi")),
            ..client_options(server.address, exact(1000))
        };
        ClientRun::with(&options).successful();
        assert_eq!(server.join(), Ok(()));
    }

    #[test]
    fn a_bad_key_fails_at_the_client() {
        let server = server();
        let bad = UserCredentials { public_key: "no key".to_owned(), ..credentials("mario", "rossi") };
        let options = ClientOptions { credentials: Some(bad), ..client_options(server.address, exact(1000)) };
        let run = ClientRun::with(&options);
        assert_eq!(run.code(), Some(ErrorCode::CLIENT_AUTHENTICATION));
        assert!(!format!("{options:?}").contains("rossi"), "a password is never shown");
    }
}

#[test]
fn only_the_client_with_the_key_is_served() {
    let key = AdmissionKey::random([3; KEY_LENGTH]);
    let server = TestServer::start(ServerOptions { admission: Some(key), ..ServerOptions::default() });
    for other in [None, Some(AdmissionKey::random([4; KEY_LENGTH]))] {
        let options = ClientOptions { key: other, ..client_options(server.address, exact(1000)) };
        assert_eq!(ClientRun::with(&options).code(), Some(ErrorCode::ACCESS_DENIED), "{other:?}");
        let stranger = ProbeTarget { key: other, ..target(server.address) };
        assert!(ProbeSession::open(&stranger, None).is_err(), "{other:?}");
    }
    assert_eq!(RawClient::connect(server.address).remainder(), [ControlState::AccessDenied.byte()]);
    let options = ClientOptions { key: Some(key), ..client_options(server.address, exact(1000)) };
    ClientRun::with(&options).successful();
    let own = ProbeTarget { key: Some(key), ..target(server.address) };
    assert!(ProbeSession::open(&own, None).is_ok());
}
