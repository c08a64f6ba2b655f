//! Tests of the protocol between real processes: linerate and the stock iperf3 as client and server of each other, with
//! common option sets. The stock iperf3 with itself is the control of each check.
//!
//! `cargo xtask interop` runs all options, without a check of the figures.

use linerate_model::parameters::TestDirection;
use serde_json::Value;

use crate::support::document::{array, count, number, text};
use crate::support::figures::{Amount, RequestedTest, check};
use crate::support::pairing::{PAIRINGS, Pair, Run};
use crate::support::{self, Program, iperf3_has_oaep};

/// Runs `arguments` with `-J` in all pairings, checks the figures, and calls `more`.
fn matrix(arguments: &[&str], asked: RequestedTest, more: impl Fn(&Pair, &Value, &Value) + Sync) {
    let arguments: Vec<&str> = arguments.iter().copied().chain(["-J"]).collect();
    let run = Run { client: &arguments, server: &["-J"], ..Run::default() };
    run.in_all_pairings(|pair| {
        let (client, server) = check(pair, asked);
        more(pair, &client, &server);
    });
}

fn nothing_more(_: &Pair, _: &Value, _: &Value) {}

const MEBIBYTE: u64 = 1 << 20;

/// Rate of tests for which any rate will do: other suites need the processors.
const PACED: &str = "200M";

#[test]
fn time() {
    matrix(&["-t", "1"], RequestedTest::TCP, |_, client, server| {
        for document in [client, server] {
            assert_eq!(count(document, "/start/test_start/duration"), 1);
            assert_eq!(count(document, "/start/test_start/bytes"), 0);
            assert_eq!(count(document, "/start/test_start/blocks"), 0);
            assert_eq!(count(document, "/start/test_start/blksize"), 131_072);
        }
    });
}

#[test]
fn bytes() {
    let asked = RequestedTest { amount: Amount::Bytes(32 * MEBIBYTE), ..RequestedTest::TCP };
    matrix(&["-n", "32M"], asked, |pair, client, server| {
        for document in [client, server] {
            assert_eq!(count(document, "/start/test_start/bytes"), 32 * MEBIBYTE);
            assert_eq!(count(document, "/start/test_start/duration"), 0);
        }
        // A stock server stops reading when the client reports its end, and a stock client sends more than that.
        if pair.pairing == PAIRINGS[0] {
            assert_eq!(count(client, "/end/sum_received/bytes"), 32 * MEBIBYTE, "{}", pair.pairing);
        }
    });
}

#[test]
fn an_odd_number_of_bytes_is_sent_exactly_to_a_linerate() {
    let asked = RequestedTest { amount: Amount::Bytes(1_234_567), ..RequestedTest::TCP };
    matrix(&["-n", "1234567"], asked, |pair, client, _| {
        if pair.pairing == PAIRINGS[0] {
            assert_eq!(count(client, "/end/sum_received/bytes"), 1_234_567);
        }
    });
}

#[test]
fn bytes_in_reverse() {
    let asked =
        RequestedTest { amount: Amount::Bytes(32 * MEBIBYTE), direction: TestDirection::Reverse, ..RequestedTest::TCP };
    matrix(&["-n", "32M", "-R"], asked, |pair, client, _| {
        if pair.pairing == PAIRINGS[0] {
            assert_eq!(count(client, "/end/sum_received/bytes"), 32 * MEBIBYTE, "{}", pair.pairing);
        }
    });
}

#[test]
fn blocks() {
    let asked = RequestedTest { amount: Amount::Bytes(256 * 131_072), ..RequestedTest::TCP };
    matrix(&["-k", "256"], asked, |_, client, server| {
        for document in [client, server] {
            assert_eq!(count(document, "/start/test_start/blocks"), 256);
        }
    });
}

#[test]
fn bytes_over_parallel_streams() {
    let asked = RequestedTest { amount: Amount::Bytes(32 * MEBIBYTE), streams: 4, ..RequestedTest::TCP };
    matrix(&["-n", "32M", "-P", "4"], asked, |pair, client, _| {
        if pair.pairing == PAIRINGS[0] {
            assert_eq!(count(client, "/end/sum_received/bytes"), 32 * MEBIBYTE, "{}", pair.pairing);
        }
    });
}

#[test]
fn bytes_over_parallel_streams_in_reverse() {
    let asked = RequestedTest {
        amount: Amount::Bytes(32 * MEBIBYTE),
        streams: 4,
        direction: TestDirection::Reverse,
        ..RequestedTest::TCP
    };
    matrix(&["-n", "32M", "-P", "4", "-R"], asked, |pair, client, _| {
        if pair.pairing == PAIRINGS[0] {
            assert_eq!(count(client, "/end/sum_received/bytes"), 32 * MEBIBYTE, "{}", pair.pairing);
        }
    });
}

#[test]
fn reverse() {
    let asked = RequestedTest { direction: TestDirection::Reverse, ..RequestedTest::TCP };
    matrix(&["-t", "1", "-R"], asked, |_, client, server| {
        assert_eq!(count(client, "/start/test_start/reverse"), 1);
        assert_eq!(count(server, "/start/test_start/reverse"), 1);
    });
}

#[test]
fn bidirectional() {
    matrix(
        &["-t", "1", "--bidir"],
        RequestedTest { direction: TestDirection::Bidirectional, ..RequestedTest::TCP },
        nothing_more,
    );
}

#[test]
fn parallel() {
    matrix(&["-t", "1", "-P", "4"], RequestedTest { streams: 4, ..RequestedTest::TCP }, |pair, client, _| {
        let streams = array(client, "/end/streams");
        let sent: u64 = streams.iter().map(|stream| count(stream, "/sender/bytes")).sum();
        assert_eq!(sent, count(client, "/end/sum_sent/bytes"), "{}", pair.pairing);
        assert!(streams.iter().all(|stream| count(stream, "/sender/bytes") > 0), "{}", pair.pairing);
    });
}

#[test]
fn parallel_in_both_directions() {
    let asked = RequestedTest { direction: TestDirection::Bidirectional, streams: 2, ..RequestedTest::TCP };
    matrix(&["-t", "1", "-P", "2", "--bidir"], asked, nothing_more);
}

/// UDP without `-b` is 1 Mbit/s (1048576 bit/s).
fn check_default_rate(pair: &Pair, client: &Value, _: &Value) {
    let rate = number(client, "/end/sum_sent/bits_per_second");
    assert!((0.7e6..1.4e6).contains(&rate), "{}: {rate} bit/s", pair.pairing);
    assert_eq!(count(client, "/start/test_start/target_bitrate"), 1_048_576);
}

#[test]
fn udp() {
    matrix(&["-u", "-t", "1"], RequestedTest::UDP, check_default_rate);
}

#[test]
fn udp_reverse() {
    matrix(
        &["-u", "-R", "-t", "1"],
        RequestedTest { direction: TestDirection::Reverse, ..RequestedTest::UDP },
        check_default_rate,
    );
}

#[test]
fn udp_bidirectional() {
    let asked = RequestedTest { direction: TestDirection::Bidirectional, ..RequestedTest::UDP };
    matrix(&["-u", "--bidir", "-t", "1", "-b", "10M"], asked, nothing_more);
}

#[test]
fn udp_parallel() {
    let asked = RequestedTest { streams: 4, ..RequestedTest::UDP };
    matrix(&["-u", "-P", "4", "-t", "1", "-b", "5M"], asked, nothing_more);
}

#[test]
fn udp_at_a_rate_with_a_block_size() {
    matrix(&["-u", "-b", "20M", "-l", "1200", "-t", "1"], RequestedTest::UDP, |pair, client, _| {
        assert_eq!(count(client, "/start/test_start/blksize"), 1200);
        let rate = number(client, "/end/sum_sent/bits_per_second");
        // A busy host ends the test with its last batch unsent.
        assert!((16e6..21e6).contains(&rate), "{}: {rate} bit/s", pair.pairing);
    });
}

#[test]
fn udp_with_wide_counters() {
    matrix(&["-u", "-b", "10M", "--udp-counters-64bit", "-t", "1"], RequestedTest::UDP, nothing_more);
}

#[test]
fn udp_bytes() {
    let asked = RequestedTest { amount: Amount::Bytes(100 << 10), ..RequestedTest::UDP };
    matrix(&["-u", "-b", "10M", "-l", "1000", "-n", "100K"], asked, nothing_more);
}

#[test]
fn udp_bytes_in_reverse() {
    let asked =
        RequestedTest { amount: Amount::Bytes(100 << 10), direction: TestDirection::Reverse, ..RequestedTest::UDP };
    matrix(&["-u", "-b", "10M", "-l", "1000", "-n", "100K", "-R"], asked, nothing_more);
}

#[test]
fn udp_with_omitted_start() {
    let arguments = ["-u", "-b", "10M", "-l", "1200", "-t", "1", "-O", "1", "-J"];
    let run = Run { client: &arguments, server: &["-J"], ..Run::default() };
    run.in_all_pairings(|pair| {
        let (client, server) = (pair.client.json(), pair.server.json());
        let (sent, received) = (count(&client, "/end/sum_sent/bytes"), count(&server, "/end/sum_received/bytes"));
        assert!((1_000_000..1_600_000).contains(&sent), "{}: {sent} bytes in a second", pair.pairing);
        assert!((1_000_000..1_600_000).contains(&received), "{}: {received} bytes in a second", pair.pairing);
        if pair.pairing == PAIRINGS[0] {
            assert_eq!(count(&client, "/end/sum_received/lost_packets"), 0);
        }
        if pair.pairing.client == Program::Linerate {
            compare_packets(pair, &client, 1200);
        }
    });
}

#[test]
fn udp_with_omitted_start_in_reverse() {
    let arguments = ["-u", "-b", "10M", "-l", "1200", "-t", "1", "-O", "1", "-R", "-J"];
    let run = Run { client: &arguments, ..Run::default() };
    run.in_pairings(&PAIRINGS[..2], |pair| compare_packets(pair, &pair.client.json(), 1200));
}

/// Compares the packets of a client's sums with the bytes sent, without the omitted part: before 3.16, iperf3 does not report
/// that part to its peer.
fn compare_packets(pair: &Pair, client: &Value, length: u64) {
    let sent = count(client, "/end/sum_sent/bytes") / length;
    for key in ["/end/sum_sent/packets", "/end/sum_received/packets"] {
        let packets = count(client, key);
        assert!(packets.abs_diff(sent) < 50, "{}, {key}: {packets} of {sent}", pair.pairing);
    }
}

#[test]
fn tcp_at_a_rate() {
    matrix(&["-t", "1", "-b", "50M"], RequestedTest::TCP, |pair, client, _| {
        let rate = number(client, "/end/sum_sent/bits_per_second");
        assert!((45e6..55e6).contains(&rate), "{}: {rate} bit/s", pair.pairing);
        assert_eq!(count(client, "/start/test_start/target_bitrate"), 50_000_000);
    });
}

#[test]
fn zero_copy() {
    matrix(&["-t", "1", "-Z"], RequestedTest::TCP, nothing_more);
}

#[test]
fn zero_copy_in_reverse() {
    matrix(
        &["-t", "1", "-Z", "-R"],
        RequestedTest { direction: TestDirection::Reverse, ..RequestedTest::TCP },
        nothing_more,
    );
}

#[test]
fn omitted_start() {
    matrix(&["-t", "1", "-b", PACED, "-O", "1"], RequestedTest { omit: 1, ..RequestedTest::TCP }, |pair, client, _| {
        let intervals = array(client, "/intervals");
        let omitted = intervals.iter().filter(|interval| interval["sum"]["omitted"] == true).count();
        assert_eq!((intervals.len(), omitted), (2, 1), "{}", pair.pairing);
        let start = number(&intervals[1], "/sum/start");
        assert!(start < 0.1, "{}: the clock restarts at 0, not at {start}", pair.pairing);
    });
}

#[test]
fn omitted_start_in_reverse() {
    let asked = RequestedTest { omit: 1, direction: TestDirection::Reverse, ..RequestedTest::TCP };
    matrix(&["-t", "1", "-b", PACED, "-O", "1", "-R"], asked, nothing_more);
}

#[test]
fn window() {
    matrix(&["-t", "1", "-b", PACED, "-w", "256K"], RequestedTest::TCP, |pair, client, server| {
        for document in [client, server] {
            assert_eq!(count(document, "/start/sock_bufsize"), 262_144, "{}", pair.pairing);
            // The kernel doubles it for its own overhead (tcp(7)), within its limits.
            for buffer in ["sndbuf_actual", "rcvbuf_actual"] {
                let actual = count(document, &format!("/start/{buffer}"));
                assert!((262_144..=524_288).contains(&actual), "{}: {buffer} is {actual}", pair.pairing);
            }
        }
    });
}

#[test]
fn segment_size() {
    matrix(&["-t", "1", "-b", PACED, "-M", "1400"], RequestedTest::TCP, |pair, client, _| {
        let mss = count(client, "/start/tcp_mss");
        assert_eq!(mss, 1400, "{}", pair.pairing);
        let socket = array(client, "/intervals")[0]["streams"][0]["snd_cwnd"].as_u64().expect("a window");
        assert!(socket > 0, "{}", pair.pairing);
    });
}

#[test]
fn no_delay() {
    matrix(&["-t", "1", "-N", "-l", "1000", "-b", "10M"], RequestedTest::TCP, nothing_more);
}

#[test]
fn congestion_control() {
    matrix(&["-t", "1", "-b", PACED, "-C", "reno"], RequestedTest::TCP, |pair, client, server| {
        assert_eq!(text(client, "/end/sender_tcp_congestion"), "reno", "{}", pair.pairing);
        for document in [client, server] {
            assert_eq!(text(document, "/end/receiver_tcp_congestion"), "reno", "{}", pair.pairing);
        }
    });
}

#[test]
fn type_of_service() {
    matrix(&["-t", "1", "-b", PACED, "-S", "0x28"], RequestedTest::TCP, |pair, client, server| {
        for document in [client, server] {
            assert_eq!(count(document, "/start/test_start/tos"), 0x28, "{}", pair.pairing);
        }
    });
}

#[test]
fn ipv6() {
    let run =
        Run { host: Some("::1"), client: &["-6", "-t", "1", "-b", PACED, "-J"], server: &["-J"], ..Run::default() };
    run.in_all_pairings(|pair| {
        let (client, server) = check(pair, RequestedTest::TCP);
        assert_eq!(text(&client, "/start/connected/0/remote_host"), "::1");
        assert_eq!(text(&server, "/start/accepted_connection/host"), "::1");
    });
}

#[test]
fn ipv6_udp() {
    let arguments = ["-6", "-u", "-b", "10M", "-t", "1", "-J"];
    let run = Run { host: Some("::1"), client: &arguments, server: &["-J"], ..Run::default() };
    run.in_all_pairings(|pair| drop(check(pair, RequestedTest::UDP)));
}

#[test]
fn ipv4_arrives_as_ipv4_at_a_server_of_both() {
    matrix(&["-4", "-t", "1", "-b", PACED], RequestedTest::TCP, |pair, _, server| {
        let host = text(server, "/start/accepted_connection/host");
        assert_eq!(host.trim_start_matches("::ffff:"), "127.0.0.1", "{}", pair.pairing);
    });
}

#[test]
fn verbose() {
    let run = Run { client: &["-t", "1", "-b", PACED, "-V"], server: &["-V"], ..Run::default() };
    run.in_all_pairings(|pair| {
        for line in ["Starting Test: protocol: TCP, 1 streams, 131072 byte blocks", "CPU Utilization: local/"] {
            assert!(pair.client.stdout.contains(line), "{}: no {line:?} in {}", pair.pairing, pair.client.stdout);
        }
        assert!(pair.client.stdout.contains("Test Complete. Summary Results:"), "{}", pair.client.stdout);
    });
}

#[test]
fn server_output_as_text() {
    let run = Run { client: &["-t", "1", "-b", PACED, "-J", "--get-server-output"], ..Run::default() };
    run.in_all_pairings(|pair| {
        let client = pair.client.json();
        let output = text(&client, "/server_output_text");
        for part in ["Accepted connection from", "local ", "[ ID] Interval", "receiver"] {
            assert!(output.contains(part), "{}: no {part:?} in {output}", pair.pairing);
        }
        assert_eq!(client.get("server_output_json"), None);
    });
}

#[test]
fn server_output_in_text() {
    let run = Run { client: &["-t", "1", "-b", PACED, "--get-server-output"], ..Run::default() };
    run.in_all_pairings(|pair| {
        let (_, after) = pair.client.stdout.split_once("\nServer output:\n").expect("the server's output");
        assert!(after.contains("Accepted connection from") && after.contains("receiver"), "{after}");
    });
}

#[test]
fn server_output_as_json() {
    matrix(&["-t", "1", "-b", PACED, "--get-server-output"], RequestedTest::TCP, |pair, client, _| {
        let there = count(client, "/server_output_json/end/sum_received/bytes");
        assert_eq!(there, count(client, "/end/sum_received/bytes"), "{}", pair.pairing);
        assert_eq!(client.get("server_output_text"), None);
    });
}

#[test]
fn title_and_extra_data() {
    matrix(
        &["-t", "1", "-b", "10M", "-T", "a title", "--extra-data", "more"],
        RequestedTest::TCP,
        |pair, client, server| {
            for document in [client, server] {
                assert_eq!(text(document, "/extra_data"), "more", "{}", pair.pairing);
            }
            assert_eq!(text(client, "/title"), "a title", "{}", pair.pairing);
        },
    );
}

#[test]
fn repeating_payload() {
    matrix(&["-t", "1", "-b", "10M", "--repeating-payload"], RequestedTest::TCP, nothing_more);
}

#[test]
fn no_intervals() {
    matrix(&["-t", "1", "-b", PACED, "-i", "0"], RequestedTest::TCP, |pair, client, _| {
        let intervals = array(client, "/intervals");
        assert_eq!(intervals.len(), 1, "{}: the whole test is one", pair.pairing);
        assert!(number(&intervals[0], "/sum/seconds") > 0.9);
    });
}

mod authentication {
    use super::*;

    const PRIVATE_KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/keys/private.pem");
    const PUBLIC_KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/keys/public.pem");
    /// Example of iperf3's manual page: mario, rossi.
    const USERS: &str = "mario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b\n";

    const CLIENT: [&str; 9] =
        ["-t", "1", "-b", PACED, "-J", "--username", "mario", "--rsa-public-key-path", PUBLIC_KEY];

    /// Runs `pairing`; with `pkcs1`, both hosts pad with PKCS#1.
    fn run(pairing: support::pairing::Pairing, pkcs1: bool) {
        let scratch = support::Scratch::new();
        let users = scratch.file("users.csv", USERS);
        // A stock iperf3 before 3.17 has no other padding, and no option for it.
        let option = |program| pkcs1 && (program == Program::Linerate || iperf3_has_oaep());
        let mut client = CLIENT.to_vec();
        let mut server = vec!["-J", "--rsa-private-key-path", PRIVATE_KEY, "--authorized-users-path", &users];
        for (program, arguments) in [(pairing.client, &mut client), (pairing.server, &mut server)] {
            if option(program) {
                arguments.push("--use-pkcs1-padding");
            }
        }
        let environment = [("IPERF3_PASSWORD", "rossi")];
        let run = Run { client: &client, server: &server, environment: &environment, ..Run::default() };
        check(&run.run(pairing), RequestedTest::TCP);
    }

    #[test]
    fn with_pkcs1_padding() {
        for pairing in PAIRINGS {
            run(pairing, true);
        }
    }

    #[test]
    fn with_oaep_padding() {
        for pairing in PAIRINGS {
            let stock = pairing.client == Program::Iperf3 || pairing.server == Program::Iperf3;
            if !stock || iperf3_has_oaep() {
                run(pairing, false);
            }
        }
    }

    #[test]
    fn a_wrong_password_is_refused_and_does_not_end_a_one_off_server() {
        use crate::support::pairing::LIMIT;
        let scratch = support::Scratch::new();
        let users = scratch.file("users.csv", USERS);
        let arguments = ["-1", "--use-pkcs1-padding", "--rsa-private-key-path", PRIVATE_KEY];
        let arguments = [&arguments[..], &["--authorized-users-path", &users]].concat();
        let server = support::Server::start(Program::Linerate, &arguments);
        let client = |program, password| {
            let mut arguments = CLIENT.to_vec();
            if program == Program::Linerate || iperf3_has_oaep() {
                arguments.push("--use-pkcs1-padding");
            }
            let mut command = server.client(program, &arguments);
            command.env("IPERF3_PASSWORD", password);
            support::process::run(command, LIMIT)
        };
        for program in [Program::Linerate, Program::Iperf3] {
            let refused = client(program, "wrong");
            // Before 3.17, iperf3 with -J always exits with 0.
            assert!(program == Program::Iperf3 || refused.code() == Some(1), "{refused:#?}");
            let error = text(&refused.json(), "/error").to_owned();
            assert!(error.contains("test authorization failed"), "{error}");
        }
        let without = || {
            let mut without = server.client(Program::Linerate, &["-t", "1"]);
            without.env_remove("IPERF3_PASSWORD");
            support::process::run(without, LIMIT).expect_code(1)
        };
        // The session of the client before may still be about to end.
        let mut attempts =
            (0..50).map(|_| without()).skip_while(|refused| refused.stderr.contains("the server is busy"));
        let refused = attempts.next().expect("the session before ends");
        assert!(refused.stderr.contains("test authorization failed"), "{refused:#?}");
        client(Program::Iperf3, "rossi").expect_code(0);
        server.finish(LIMIT).expect_code(0);
    }
}
