//! Streams that stall, break or never open.

use std::io::Write;
use std::time::{Duration, Instant};

use super::Attack;
use super::wire::{REPLY_TIMEOUT, SERVER_RESULTS, Step, datagram, error, state};

#[test]
fn stalled_and_broken_streams() {
    // Sender: a server that never reads cannot prevent the end of a timed test; a test by bytes ends with a limit.
    let end = Attack::on(&["-t", "1"]).by(|listener| listener.client_at(Step::Running).conclude(SERVER_RESULTS));
    assert_eq!(end.code(), Some(0), "{end:#?}");
    let limited = Attack::on(&["-n", "1G", "--snd-timeout", "1000"]).within(REPLY_TIMEOUT);
    limited.fails("unable to write to stream socket", |listener| listener.client_at(Step::Running));
    // Receiver.
    let idle = Attack::on(&["-R", "-t", "10", "--rcv-timeout", "1000"]);
    let start = Instant::now();
    idle.fails("idle timeout for receiving data", |listener| listener.client_at(Step::Running));
    assert!(start.elapsed() > Duration::from_secs(1), "{:?}", start.elapsed());
    let (broken, closed) = ("unable to write to stream socket", "stream socket has closed unexpectedly");
    for (arguments, texts) in [
        (&["-t", "10"][..], [broken, broken]),
        (&["-n", "1G"], [broken, broken]),
        (&["-R", "-t", "10"], [closed, closed]),
        (&["-R", "-n", "1G"], [closed, closed]),
        (&["--bidir", "-t", "10"], [broken, closed]),
    ] {
        let end = Attack::on(arguments).by(|listener| {
            let mut client = listener.client_at(Step::Streams);
            if arguments[0] == "--bidir" {
                client.accept_stream();
            }
            client.control.send([state::TEST_START, state::TEST_RUNNING]);
            client.wait_until_read();
            if arguments[0] != "-R" {
                assert!(client.streams[0].peek(&mut [0]).is_ok_and(|count| count == 1), "the client sends");
            }
            // Closed with unread data of the client: a reset, if the client sends.
            client.streams.clear();
            client
        });
        assert!(texts.iter().any(|text| end.stderr.contains(&format!("iperf3: error - {text}"))), "{end:#?}");
        assert_eq!(end.code(), Some(1));
    }
}

#[test]
fn an_endless_sender() {
    let end = Attack::on(&["-R", "-t", "1"]).by(|listener| {
        let mut client = listener.client_at(Step::Running);
        let mut stream = client.streams[0].try_clone().expect("a descriptor");
        let block = vec![0; 1 << 16];
        std::thread::spawn(move || while stream.write_all(&block).is_ok() {});
        let results = SERVER_RESULTS.replace("\"retransmits\":-1", "\"retransmits\":0");
        client.conclude(&results);
        client
    });
    assert_eq!(end.code(), Some(0), "{end:#?}");
}

#[test]
fn invalid_datagrams() {
    // On a busy host, the datagrams need more than a second.
    let end = Attack::on(&["-u", "-R", "-t", "3", "-l", "1000", "-J"])
        .by(|listener| {
            let mut client = listener.client_at(Step::Parameters);
            client.control.send([state::CREATE_STREAMS]);
            let target = client.accept_udp();
            client.control.send([state::TEST_START, state::TEST_RUNNING]);
            client.wait_until_read();
            let send = |bytes: &[u8]| listener.udp().send_to(bytes, target).expect("sent");
            for length in 0..12 {
                send(&datagram(9, 12)[..length]);
            }
            for number in [0, 1, 2, 2, 0, u32::MAX, (1 << 31) + 2, 4, 3, 1, 5] {
                send(&datagram(number, 1000));
            }
            send(&datagram(6, 65_000));
            client.conclude(SERVER_RESULTS);
        })
        .expect_code(0);
    let sum = &end.json()["end"]["sum_received"];
    assert_eq!((sum["packets"].as_u64(), sum["lost_packets"].as_u64()), (Some(6), Some(0)), "{sum}");
}

#[test]
fn invalid_replies_to_the_udp_handshake() {
    for arguments in [&["-u", "-t", "1", "-b", "1M"][..], &["-u", "-R", "-t", "1"]] {
        let attack = Attack::on(arguments).within(REPLY_TIMEOUT);
        // The client continues when the server reports that all streams are open.
        let end = attack.by(|listener| {
            let mut client = listener.client_at(Step::Parameters);
            client.control.send([state::CREATE_STREAMS]);
            let (_, source) = listener.udp().recv_from(&mut [0; 64]).expect("a request");
            for length in [0, 1, 3, 4, 5, 100, 60_000] {
                listener.udp().send_to(&vec![0xa5; length], source).expect("sent");
            }
            client.control.send([state::TEST_START, state::TEST_RUNNING]);
            client.conclude(SERVER_RESULTS);
        });
        assert_eq!(end.code(), Some(0), "{end:#?}");
        // An error while the client waits for a reply is reported at once.
        attack.fails("test authorization failed", |listener| {
            let mut client = listener.client_at(Step::Parameters);
            client.control.send([state::CREATE_STREAMS]);
            client.control.send(error(142, 0));
            client
        });
    }
}
