//! Whole tests between a client and a server of this crate.

use core::time::Duration;
use std::net::{IpAddr, Ipv6Addr};

use linerate_model::event::TestEvent;
use linerate_model::parameters::{EndCondition, TestDirection, TestParameters, TestProtocol};
use linerate_model::report::{ServerOutput, TestTermination};
use linerate_model::stream::{EndpointRole, StreamRole};
use linerate_units::{BitRate, BlockCount, ByteCount, PacketCount, StreamCount, TypeOfService};

use crate::client::ClientOptions;
use crate::server::ServerOptions;

use super::support::{ClientRun, LOOPBACK, Scratch, ServerNews, TestServer, bytes_of, client_options, exact};

const DIRECTIONS: [TestDirection; 3] = [TestDirection::Forward, TestDirection::Reverse, TestDirection::Bidirectional];

/// Directions as seen from the client: the role of its streams.
fn roles(direction: TestDirection) -> &'static [StreamRole] {
    match direction {
        TestDirection::Forward => &[StreamRole::Sender],
        TestDirection::Reverse => &[StreamRole::Receiver],
        TestDirection::Bidirectional => &[StreamRole::Sender, StreamRole::Receiver],
    }
}

const fn opposite(role: StreamRole) -> StreamRole {
    match role {
        StreamRole::Sender => StreamRole::Receiver,
        StreamRole::Receiver => StreamRole::Sender,
    }
}

fn udp(datagrams: u64, size: u64) -> TestParameters {
    TestParameters {
        protocol: TestProtocol::Udp,
        block_size: ByteCount::new(size),
        rate: Some(BitRate::from_bits_per_second(20e6)),
        ..exact(datagrams * size)
    }
}

#[test]
fn tcp_moves_exactly_the_requested_bytes_in_each_direction() {
    for address in [LOOPBACK, IpAddr::V6(Ipv6Addr::LOCALHOST)] {
        let server = TestServer::start_on(address, ServerOptions::default());
        for (direction, parallel, bytes) in
            DIRECTIONS.into_iter().flat_map(|direction| [(direction, 1, 1_000_003), (direction, 3, 5_000_011)])
        {
            let parameters = TestParameters { direction, parallel: StreamCount::new(parallel), ..exact(bytes) };
            let run = ClientRun::against(server.address, parameters).successful();
            let (near, far) = (run.report(), server.report());
            let count = StreamCount::new(parallel).to_usize() * roles(direction).len();
            assert_eq!((near.streams.len(), far.streams.len()), (count, count), "{direction:?}");
            for role in roles(direction) {
                for received in [false, true] {
                    assert_eq!(bytes_of(near, *role, received), bytes, "{direction:?} × {parallel} at the client");
                    assert_eq!(bytes_of(&far, opposite(*role), received), bytes, "{direction:?} at the server");
                }
            }
            assert_eq!((&near.termination, &far.termination), (&TestTermination::Complete, &TestTermination::Complete));
        }
    }
}

#[test]
fn blocks_end_a_test_after_their_bytes() {
    let server = TestServer::start(ServerOptions::default());
    for (blocks, size) in [(1, 1), (7, 8192), (100, 1448)] {
        let parameters = TestParameters {
            end: EndCondition::Blocks(BlockCount::new(blocks)),
            block_size: ByteCount::new(size),
            ..TestParameters::default()
        };
        let run = ClientRun::against(server.address, parameters).successful();
        assert_eq!(bytes_of(run.report(), StreamRole::Sender, true), blocks * size, "{blocks} blocks of {size}");
    }
}

#[test]
fn udp_counts_each_datagram_in_each_direction() {
    for address in [LOOPBACK, IpAddr::V6(Ipv6Addr::LOCALHOST)] {
        let server = TestServer::start_on(address, ServerOptions::default());
        for (direction, counters_64bit) in DIRECTIONS.into_iter().zip([false, true, false]) {
            let parameters = TestParameters { direction, udp_counters_64bit: counters_64bit, ..udp(60, 1000) };
            let options = ClientOptions { block_size_given: true, ..client_options(server.address, parameters) };
            let run = ClientRun::with(&options).successful();
            for stream in &run.report().streams {
                let figures = stream.udp.as_ref().expect("a UDP stream");
                let received = figures.received.expect("the receiver's figures");
                assert_eq!(figures.sent, Some(PacketCount::new(60)), "{direction:?}");
                assert_eq!((received.expected, received.lost), (PacketCount::new(60), Some(PacketCount::ZERO)));
                assert_eq!(
                    (received.out_of_order, received.duplicates),
                    (Some(PacketCount::ZERO), Some(PacketCount::ZERO))
                );
                assert_eq!(stream.sent.map(|side| side.bytes), Some(ByteCount::new(60_000)));
                assert_eq!(stream.received.map(|side| side.bytes), Some(ByteCount::new(60_000)));
                assert!(stream.tcp.is_none());
            }
        }
    }
}

#[test]
fn parallel_udp_streams_share_the_budget_in_whole_datagrams() {
    let server = TestServer::start(ServerOptions::default());
    let parameters = TestParameters { parallel: StreamCount::new(3), ..udp(61, 500) };
    let options = ClientOptions { block_size_given: true, ..client_options(server.address, parameters) };
    let run = ClientRun::with(&options).successful();
    let sent: u64 = run
        .report()
        .streams
        .iter()
        .map(|stream| stream.udp.as_ref().map_or(0, |udp| udp.sent.map_or(0, PacketCount::get)))
        .sum();
    assert_eq!(sent, 61);
    assert_eq!(bytes_of(run.report(), StreamRole::Sender, false), 61 * 500);
}

#[test]
fn without_a_block_size_udp_uses_the_segment_size_of_the_control_connection() {
    let server = TestServer::start(ServerOptions::default());
    let parameters = TestParameters {
        protocol: TestProtocol::Udp,
        rate: Some(BitRate::from_bits_per_second(80e6)),
        end: EndCondition::Blocks(BlockCount::new(4)),
        ..TestParameters::default()
    };
    let run = ClientRun::against(server.address, parameters).successful();
    let derived = run.events.iter().find_map(|event| match event {
        TestEvent::Started(started) => started.derived_block_size,
        _ => None,
    });
    let size = derived.expect("derived");
    let agreed = server.find(|news| match news {
        ServerNews::Event(_, TestEvent::Started(started)) => Some(started.parameters.block_size),
        _ => None,
    });
    assert_eq!(size, agreed, "the server uses the same size");
    // More than the smallest segment (RFC 9293), and no more than the loopback device carries.
    assert!(size > ByteCount::new(536) && size <= ByteCount::new(65_483), "{size}");
    assert_eq!(bytes_of(run.report(), StreamRole::Sender, false), 4 * size.get());
}

#[test]
fn a_block_size_above_the_segment_size_is_a_warning() {
    let server = TestServer::start(ServerOptions::default());
    for (size, warns) in [(65_507, true), (1000, false)] {
        let options = ClientOptions {
            block_size_given: true,
            ..client_options(server.address, TestParameters { rate: None, ..udp(1, size) })
        };
        let run = ClientRun::with(&options);
        let warned = run.events.iter().any(|event| {
            matches!(event, TestEvent::Warning(text) if text.starts_with(&format!("UDP block size {size} exceeds TCP MSS ")))
        });
        // On loopback the segment size is 65 483 bytes, or less where the MTU was reduced.
        assert_eq!(warned, warns, "{size}");
    }
}

#[test]
fn intervals_are_adjacent_and_add_up_to_the_total() {
    let server = TestServer::start(ServerOptions::default());
    for direction in DIRECTIONS {
        let parameters = TestParameters {
            direction,
            end: EndCondition::Time(Duration::from_secs(1)),
            rate: Some(BitRate::from_bits_per_second(40e6)),
            ..TestParameters::default()
        };
        let run = ClientRun::against(server.address, parameters).successful();
        let intervals = run.intervals();
        assert!(!intervals.is_empty(), "{direction:?}");
        assert_eq!(intervals[0].start, Duration::ZERO);
        assert!(intervals.windows(2).all(|pair| pair[0].end == pair[1].start), "{direction:?}: {intervals:?}");
        for (index, stream) in run.report().streams.iter().enumerate() {
            let local = if stream.description.role == StreamRole::Sender { stream.sent } else { stream.received };
            let local = local.expect("its own figures");
            let sum: u64 = intervals.iter().map(|interval| interval.streams[index].bytes.get()).sum();
            assert_eq!(sum, local.bytes.get(), "{direction:?}");
            assert!(intervals.iter().all(|interval| interval.streams[index].role == stream.description.role));
            // No interval ends after the test.
            assert_eq!(intervals.last().map(|last| last.end), Some(local.duration));
        }
    }
}

#[test]
fn the_omitted_part_is_reported_and_not_counted() {
    let server = TestServer::start(ServerOptions { interval: None, ..ServerOptions::default() });
    for protocol in [TestProtocol::Tcp, TestProtocol::Udp] {
        let parameters = TestParameters {
            protocol,
            omit: Duration::from_secs(1),
            end: EndCondition::Time(Duration::from_secs(1)),
            rate: Some(BitRate::from_bits_per_second(8e6)),
            block_size: ByteCount::new(1000),
            ..TestParameters::default()
        };
        let run = ClientRun::against(server.address, parameters).successful();
        let intervals = run.intervals();
        let counted = intervals.iter().position(|interval| !interval.omitted).expect("a counted part");
        assert!(counted > 0, "no interval of the omitted part");
        assert!(intervals[counted..].iter().all(|interval| !interval.omitted));
        assert_eq!(intervals[counted].start, Duration::ZERO, "the clock begins anew");
        let bytes = |part: &[&linerate_model::sample::IntervalReport]| -> u64 {
            part.iter().flat_map(|interval| &interval.streams).map(|stream| stream.bytes.get()).sum()
        };
        assert!(bytes(&intervals[..counted]) > 0);
        let sent = bytes_of(run.report(), StreamRole::Sender, false);
        assert_eq!(bytes(&intervals[counted..]), sent, "{protocol:?}");
        if protocol == TestProtocol::Udp {
            let figures = run.report().streams[0].udp.as_ref().expect("a UDP stream");
            let size = sent / figures.sent.expect("counted").get();
            assert_eq!(sent, figures.sent.expect("counted").get() * size);
        }
    }
}

#[test]
fn a_file_arrives_unchanged_and_ends_a_timed_test() {
    let scratch = Scratch::new("transfer");
    let content: Vec<u8> = (0..3_000_017_u32).map(|number| (number * 31 % 251).to_le_bytes()[0]).collect();
    let (source, sink) = (scratch.file("source"), scratch.file("sink"));
    std::fs::write(&source, &content).expect("disk space");
    std::fs::write(&sink, b"what was there before").expect("disk space");
    let server = TestServer::start(ServerOptions { file: Some(sink.clone()), ..ServerOptions::default() });
    let parameters = TestParameters { end: EndCondition::Time(Duration::from_secs(600)), ..TestParameters::default() };
    let options = ClientOptions { file: Some(source.clone()), ..client_options(server.address, parameters) };
    let run = ClientRun::with(&options).successful();
    let far = server.report();
    assert_eq!(bytes_of(run.report(), StreamRole::Sender, false), content.len() as u64);
    let written = std::fs::read(&sink).expect("written");
    assert!(written == content, "{} of {} bytes are equal or more", written.len(), content.len());
    let near_file = run.report().file.clone().expect("named");
    assert_eq!((near_file.name, near_file.size.get()), (source.display().to_string(), content.len() as u64));
    assert_eq!(far.file.map(|file| file.size.get()), Some(content.len() as u64));
}

#[test]
fn a_file_is_fetched_by_a_receiving_client() {
    let scratch = Scratch::new("fetch");
    let (source, sink) = (scratch.file("source"), scratch.file("sink"));
    let content = b"0123456789abcdef".repeat(10_000);
    std::fs::write(&source, &content).expect("disk space");
    let server = TestServer::start(ServerOptions { file: Some(source), ..ServerOptions::default() });
    let parameters = TestParameters { direction: TestDirection::Reverse, ..exact(content.len() as u64) };
    let options = ClientOptions { file: Some(sink.clone()), ..client_options(server.address, parameters) };
    let run = ClientRun::with(&options).successful();
    assert_eq!(bytes_of(run.report(), StreamRole::Receiver, true), content.len() as u64);
    assert_eq!(std::fs::read(&sink).expect("written"), content);
}

#[test]
fn a_missing_file_fails_before_any_connection() {
    let scratch = Scratch::new("missing");
    let server = TestServer::start(ServerOptions::default());
    let options = ClientOptions { file: Some(scratch.file("none")), ..client_options(server.address, exact(1)) };
    let run = ClientRun::with(&options);
    assert_eq!(run.code(), Some(linerate_wire::error::ErrorCode::FILE));
    let text = run.outcome.error.expect("failed").to_string();
    assert_eq!(text, "unable to open -F file: No such file or directory");
    assert!(run.events.is_empty(), "{:?}", run.events);
}

#[test]
fn the_server_output_reaches_the_client_that_requests_it() {
    for output in
        [ServerOutput::Text("line 1\nline \"2\"\n".to_owned()), ServerOutput::Json("{\"a\":[1,2]}".to_owned())]
    {
        let server = TestServer::start_with(LOOPBACK, ServerOptions::default(), Some(output.clone()));
        for wanted in [true, false] {
            let parameters = TestParameters { get_server_output: wanted, ..exact(1000) };
            let run = ClientRun::against(server.address, parameters).successful();
            match (&run.report().server_output, &output) {
                (None, _) => assert!(!wanted),
                (Some(ServerOutput::Json(found)), ServerOutput::Json(sent)) => {
                    let compact = |text: &str| text.split_whitespace().collect::<String>();
                    assert_eq!(compact(found), compact(sent));
                }
                (Some(found), sent) => assert_eq!(found, sent),
            }
        }
    }
}

#[test]
fn reports_that_wait_for_the_end_take_nothing_from_the_path() {
    let server = TestServer::start(ServerOptions { interval_by_client: true, ..ServerOptions::default() });
    // Compressed, and few enough to be sent one by one.
    for (interval, least) in [(100, 6), (400, 2)] {
        let parameters = TestParameters {
            end: EndCondition::Time(Duration::from_secs(1)),
            rate: Some(BitRate::from_bits_per_second(16e6)),
            far_interval: Some(Duration::from_millis(interval)),
            far_details: true,
            far_reports_at_end: true,
            ..TestParameters::default()
        };
        let run = ClientRun::against(server.address, parameters).successful();
        let far = run.report().far.as_ref().expect("a linerate");
        assert!((least..least + 6).contains(&far.intervals.len()), "{}", far.intervals.len());
        assert!(far.intervals.is_sorted_by_key(|report| report.start), "in their order");
        assert!(far.intervals.iter().all(|report| report.streams[0].socket.is_some()), "with details");
        let place = |is: fn(&TestEvent) -> bool| run.events.iter().position(is).expect("an event");
        let last = run.events.iter().rposition(|event| matches!(event, TestEvent::Interval(_))).expect("an interval");
        assert!(
            place(|event| matches!(event, TestEvent::FarInterval(_))) > last,
            "after the last interval of the client"
        );
    }
}

#[test]
fn two_linerates_exchange_intervals_and_closing_figures() {
    let server = TestServer::start(ServerOptions {
        interval: Some(Duration::from_secs(1)),
        interval_by_client: true,
        ..ServerOptions::default()
    });
    let parameters = TestParameters {
        end: EndCondition::Time(Duration::from_secs(1)),
        rate: Some(BitRate::from_bits_per_second(16e6)),
        far_interval: Some(Duration::from_millis(100)),
        far_details: true,
        ..TestParameters::default()
    };
    let run = ClientRun::against(server.address, parameters).successful();
    let far = run.report().far.as_ref().expect("a linerate");
    assert_eq!(far.version, linerate_wire::extension::VERSION);
    assert_eq!(far.intervals.iter().collect::<Vec<_>>(), run.far_intervals());
    assert!(far.intervals.len() > 1, "the client's interval is used: {}", far.intervals.len());
    assert_eq!(far.overlapping_tests, 0);
    let hosts = [far.host.as_ref(), run.report().host.as_ref()].map(|host| host.expect("details were requested"));
    for host in hosts {
        let load = host.processors.expect("procfs");
        assert!(load.processors > 0 && load.others.is_some_and(|others| (0.0..=1.0).contains(&others)), "{load:?}");
        assert!(host.busy.is_some_and(|busy| (0.0..=1.0).contains(&busy)));
        // Loopback has no queue of its own.
        assert!(host.link.as_ref().is_some_and(|link| link.is_loopback) && host.queues.is_none(), "{host:?}");
    }
    let limits = run.report().streams[0].tcp.as_ref().and_then(|tcp| tcp.limits).expect("a sender");
    assert!(limits.sender_cpu.is_some() && limits.receiver_cpu.is_some());
    // Both ends are this host: either counts waits, or its kernel does not.
    assert_eq!(limits.sender_wait.is_some(), linerate_sys::clock::thread_run_delay().is_some());
    assert_eq!(limits.receiver_wait.is_some(), limits.sender_wait.is_some());
    let received: u64 =
        far.intervals.iter().flat_map(|interval| &interval.streams).map(|stream| stream.bytes.get()).sum();
    assert_eq!(received, bytes_of(run.report(), StreamRole::Sender, true));
    assert!(
        far.intervals.iter().flat_map(|interval| &interval.streams).all(|stream| stream.role == StreamRole::Receiver)
    );
    assert!(run.report().streams[0].tcp.as_ref().is_some_and(|tcp| tcp.far_info.is_some()));
}

#[test]
fn events_come_in_the_order_of_the_test() {
    let server = TestServer::start(ServerOptions { one_off: true, ..ServerOptions::default() });
    let address = server.address;
    let run = ClientRun::against(address, exact(100_000)).successful();
    let name = |event: &TestEvent| match event {
        TestEvent::Connected(connected) if connected.side == EndpointRole::Client => "connected to",
        TestEvent::Connected(_) => "connected from",
        TestEvent::Started(_) => "started",
        TestEvent::Interval(_) => "interval",
        TestEvent::Finished(_) => "finished",
        TestEvent::FarInterval(_) | TestEvent::Warning(_) | TestEvent::Debug(_) => "",
    };
    let named = |events: &[TestEvent]| -> Vec<&'static str> {
        let mut names: Vec<_> = events.iter().map(name).filter(|name| !name.is_empty()).collect();
        names.dedup();
        names
    };
    assert_eq!(named(&run.events), ["connected to", "started", "interval", "finished"]);
    let mut far = Vec::new();
    let (mut idle, mut sessions) = (Vec::new(), Vec::new());
    loop {
        match server.next() {
            ServerNews::Idle(next) => idle.push(next),
            ServerNews::Session(number) => sessions.push(number),
            ServerNews::Event(_, event) => {
                let last = matches!(event, TestEvent::Finished(_));
                far.push(event);
                if last {
                    break;
                }
            }
            other => panic!("unexpected: {other:?}"),
        }
    }
    assert_eq!((idle, sessions), (vec![1], vec![1]));
    assert_eq!(named(&far), ["connected from", "started", "interval", "finished"]);
    assert_eq!(server.join(), Ok(()), "it ends after its one test");
}

#[test]
fn documents_of_the_control_connection_are_reported_on_request_only() {
    let name = |event: &TestEvent| match event {
        TestEvent::Debug(text) => text.split_once(":\n{").map(|(name, _)| name.to_owned()),
        _ => None,
    };
    for (debug, near, far) in [
        (true, vec!["send_parameters", "send_results", "get_results"], vec!["get_parameters", "get_results"]),
        (false, Vec::new(), Vec::new()),
    ] {
        let server = TestServer::start(ServerOptions { debug, ..ServerOptions::default() });
        let options = ClientOptions { debug, ..client_options(server.address, exact(1000)) };
        let run = ClientRun::with(&options).successful();
        assert_eq!(run.events.iter().filter_map(name).collect::<Vec<_>>(), near);
        let mut names = Vec::new();
        let until_finished = |news| match news {
            ServerNews::Event(_, TestEvent::Finished(_)) => Some(()),
            ServerNews::Event(_, event) => {
                names.extend(name(&event));
                None
            }
            _ => None,
        };
        server.find(until_finished);
        assert_eq!(names, far);
    }
}

#[test]
fn the_start_describes_both_ends_alike() {
    let server = TestServer::start(ServerOptions::default());
    let parameters = TestParameters {
        direction: TestDirection::Bidirectional,
        parallel: StreamCount::new(2),
        type_of_service: TypeOfService::new(0x20),
        no_delay: true,
        title: Some("a title".to_owned()),
        ..exact(50_000)
    };
    let run = ClientRun::against(server.address, parameters.clone()).successful();
    let near = run.events.iter().find_map(|event| match event {
        TestEvent::Started(started) => Some(started.clone()),
        _ => None,
    });
    let near = near.expect("started");
    let far = server.find(|news| match news {
        ServerNews::Event(_, TestEvent::Started(started)) => Some(started),
        _ => None,
    });
    assert_eq!(near.cookie, far.cookie);
    assert!(near.peer_is_linerate && far.peer_is_linerate);
    assert_eq!((far.parameters.parallel, far.parameters.end), (parameters.parallel, parameters.end));
    assert_eq!((far.parameters.type_of_service, far.parameters.no_delay), (parameters.type_of_service, true));
    assert_eq!(far.parameters.title, parameters.title);
    assert_eq!(near.streams.len(), 4);
    for (one, other) in near.streams.iter().zip(&far.streams) {
        assert_eq!((one.id, one.role), (other.id, opposite(other.role)));
        assert_eq!((one.local, one.remote), (other.remote, other.local));
    }
    assert_eq!(near.streams.iter().map(|stream| stream.id.0).collect::<Vec<_>>(), [1, 3, 4, 5]);
}

#[test]
fn overlapping_tests_are_counted_on_both_sides() {
    let server = TestServer::start(ServerOptions::default());
    let address = server.address;
    let parameters = TestParameters {
        end: EndCondition::Time(Duration::from_secs(2)),
        rate: Some(BitRate::from_bits_per_second(8e6)),
        ..TestParameters::default()
    };
    let first = std::thread::spawn(move || ClientRun::against(address, parameters));
    server.find(|news| matches!(news, ServerNews::Event(1, TestEvent::Started(_))).then_some(()));
    // The first test runs for two seconds more.
    let second = ClientRun::against(address, exact(10_000)).successful();
    let first = first.join().expect("no panic").successful();
    for run in [&first, &second] {
        assert_eq!(run.report().far.as_ref().map(|far| far.overlapping_tests), Some(1));
    }
    for _ in 0..2 {
        assert_eq!(server.report().overlapping_tests, Some(1));
    }
}

#[test]
fn the_port_of_the_first_stream_is_the_requested_one() {
    let server = TestServer::start(ServerOptions::default());
    // Two adjacent free ports below the range of the kernel's own choices.
    let first = (20_000..30_000)
        .step_by(2)
        .find(|port| [*port, *port + 1].iter().all(|port| std::net::TcpListener::bind((LOOPBACK, *port)).is_ok()))
        .expect("two free ports");
    let options = ClientOptions {
        client_port: linerate_units::Port::new(first),
        ..client_options(server.address, TestParameters { parallel: StreamCount::new(2), ..exact(1000) })
    };
    let run = ClientRun::with(&options).successful();
    let ports: Vec<u16> = run.report().streams.iter().map(|stream| stream.description.local.port()).collect();
    assert_eq!(ports, [first, first + 1]);
}
