//! Tests of the text output: every line of both roles has exactly iperf3's layout. The stock iperf3 is the control of
//! the layouts.

use crate::support::layout::assert_made_of;
use crate::support::pairing::{Pair, Run};
use crate::support::{self, FinishedChild, Program};

const DASHES: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -";
const CONNECTING: &str = "Connecting to host %s, port %d";
const CONNECTED: &str = "[%3d] local %s port %d connected to %s port %d";
const DONE: &str = "iperf Done.";
/// Lines of a server around its tests.
const SERVER: [&str; 3] = [
    "-----------------------------------------------------------",
    "Server listening on %d (test #%d)",
    "Accepted connection from %s, port %d",
];

/// Runs a test of a second in all pairings and checks every line of both outputs.
fn check(arguments: &[&str], client: &[&str], server: &[&str]) {
    let arguments = [&["-t", "1"][..], arguments].concat();
    Run { client: &arguments, ..Run::default() }.in_all_pairings(|pair| {
        let of_client = [&[CONNECTING, CONNECTED, "", DONE], client].concat();
        let of_server = [&SERVER, &[CONNECTED][..], server].concat();
        let Pair { pairing, client, server } = pair;
        assert_made_of(&text(pairing.client, client), &of_client, &format!("{pairing}, client"));
        assert_made_of(&text(pairing.server, server), &of_server, &format!("{pairing}, server"));
        assert_eq!((client.stderr.as_str(), server.stderr.as_str()), ("", ""), "{pairing}");
    });
}

/// Output of a program, with two differences of older stock versions corrected: an additional blank before "sender",
/// and the header of a sender above the lines of a client that only receives.
fn text(program: Program, finished: &FinishedChild) -> String {
    if program == Program::Linerate {
        return finished.stdout.clone();
    }
    let receives = finished.stdout.contains("Reverse mode, remote host");
    let lines = finished.stdout.lines().map(|line| match line {
        sum if sum.starts_with("[SUM]") => sum.to_owned(),
        header if receives && header.ends_with("Retr  Cwnd") => header.replace("         Retr  Cwnd", ""),
        other => other.replace("             sender", "            sender"),
    });
    lines.map(|line| line + "\n").collect()
}

#[test]
fn tcp() {
    check(
        &[],
        &[
            "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec  %3d   %U       ",
            DASHES,
            "[ ID] Interval           Transfer     Bitrate         Retr",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec  %3d            sender",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec                  receiver",
        ],
        &[
            "[ ID] Interval           Transfer     Bitrate",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec                  ",
            DASHES,
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec                  receiver",
        ],
    );
}

#[test]
fn tcp_in_reverse() {
    check(
        &["-R"],
        &[
            "Reverse mode, remote host %s is sending",
            "[ ID] Interval           Transfer     Bitrate",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec                  ",
            DASHES,
            "[ ID] Interval           Transfer     Bitrate         Retr",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec  %3d            sender",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec                  receiver",
        ],
        &[
            "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec  %3d   %U       ",
            DASHES,
            "[ ID] Interval           Transfer     Bitrate         Retr",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec  %3d            sender",
        ],
    );
}

#[test]
fn tcp_over_parallel_streams() {
    check(
        &["-P", "2"],
        &[
            "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec  %3d   %U       ",
            "[SUM] %6.2f-%-6.2f sec  %U  %U/sec  %3d             ",
            DASHES,
            "[ ID] Interval           Transfer     Bitrate         Retr",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec  %3d            sender",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec                  receiver",
            "[SUM] %6.2f-%-6.2f sec  %U  %U/sec  %3d             sender",
            "[SUM] %6.2f-%-6.2f sec  %U  %U/sec                  receiver",
        ],
        &[
            "[ ID] Interval           Transfer     Bitrate",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec                  ",
            "[SUM] %6.2f-%-6.2f sec  %U  %U/sec                  ",
            DASHES,
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec                  receiver",
            "[SUM] %6.2f-%-6.2f sec  %U  %U/sec                  receiver",
        ],
    );
}

#[test]
fn tcp_in_both_directions() {
    check(
        &["--bidir"],
        &[
            "[ ID][Role] Interval           Transfer     Bitrate         Retr  Cwnd",
            "[%3d][TX-C] %6.2f-%-6.2f sec  %U  %U/sec  %3d   %U       ",
            "[%3d][RX-C] %6.2f-%-6.2f sec  %U  %U/sec                  ",
            DASHES,
            "[ ID][Role] Interval           Transfer     Bitrate         Retr",
            "[%3d][TX-C] %6.2f-%-6.2f sec  %U  %U/sec  %3d            sender",
            "[%3d][TX-C] %6.2f-%-6.2f sec  %U  %U/sec                  receiver",
            "[%3d][RX-C] %6.2f-%-6.2f sec  %U  %U/sec  %3d            sender",
            "[%3d][RX-C] %6.2f-%-6.2f sec  %U  %U/sec                  receiver",
        ],
        &[
            "[ ID][Role] Interval           Transfer     Bitrate         Retr  Cwnd",
            "[%3d][RX-S] %6.2f-%-6.2f sec  %U  %U/sec                  ",
            "[%3d][TX-S] %6.2f-%-6.2f sec  %U  %U/sec  %3d   %U       ",
            DASHES,
            "[ ID][Role] Interval           Transfer     Bitrate         Retr",
            "[%3d][RX-S] %6.2f-%-6.2f sec  %U  %U/sec                  receiver",
            "[%3d][TX-S] %6.2f-%-6.2f sec  %U  %U/sec  %3d            sender",
        ],
    );
}

#[test]
fn tcp_with_omitted_start() {
    check(
        &["-O", "1"],
        &[
            "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec  %3d   %U       (omitted)",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec  %3d   %U       ",
            DASHES,
            "[ ID] Interval           Transfer     Bitrate         Retr",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec  %3d            sender",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec                  receiver",
        ],
        &[
            "[ ID] Interval           Transfer     Bitrate",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec                  (omitted)",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec                  ",
            DASHES,
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec                  receiver",
        ],
    );
}

#[test]
fn udp() {
    check(
        &["-u", "-b", "10M"],
        &[
            "[ ID] Interval           Transfer     Bitrate         Total Datagrams",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec  %d  ",
            DASHES,
            "[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec  %5.3f ms  %d/%d (%g%%)  sender",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec  %5.3f ms  %d/%d (%g%%)  receiver",
        ],
        &[
            "[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec  %5.3f ms  %d/%d (%g%%)  ",
            DASHES,
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec  %5.3f ms  %d/%d (%g%%)  receiver",
        ],
    );
}

#[test]
fn udp_over_parallel_streams_in_reverse() {
    check(
        &["-u", "-b", "10M", "-R", "-P", "2"],
        &[
            "Reverse mode, remote host %s is sending",
            "[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec  %5.3f ms  %d/%d (%g%%)  ",
            "[SUM] %6.2f-%-6.2f sec  %U  %U/sec  %5.3f ms  %d/%d (%g%%)  ",
            DASHES,
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec  %5.3f ms  %d/%d (%g%%)  sender",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec  %5.3f ms  %d/%d (%g%%)  receiver",
            "[SUM] %6.2f-%-6.2f sec  %U  %U/sec  %5.3f ms  %d/%d (%g%%)  sender",
            "[SUM] %6.2f-%-6.2f sec  %U  %U/sec  %5.3f ms  %d/%d (%g%%)  receiver",
        ],
        &[
            "[ ID] Interval           Transfer     Bitrate         Total Datagrams",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec  %d  ",
            "[SUM] %6.2f-%-6.2f sec  %U  %U/sec  %d  ",
            DASHES,
            "[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec  %5.3f ms  %d/%d (%g%%)  sender",
            "[SUM] %6.2f-%-6.2f sec  %U  %U/sec  %5.3f ms  %d/%d (%g%%)  sender",
        ],
    );
}

#[test]
fn verbose_tcp() {
    check(
        &["-V"],
        &[
            "iperf %*",
            "Linux %*",
            "Control connection MSS %d",
            "Time: %s, %02d %s %d %*",
            "      Cookie: %s",
            "      TCP MSS: %d (default)",
            "Starting Test: protocol: TCP, 1 streams, 131072 byte blocks, omitting 0 seconds, 1 second test, tos 0",
            "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec  %3d   %U       ",
            DASHES,
            "Test Complete. Summary Results:",
            "[ ID] Interval           Transfer     Bitrate         Retr",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec  %3d            sender",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec                  receiver",
            "CPU Utilization: local/sender %.1f%% (%.1f%%u/%.1f%%s), remote/receiver %.1f%% (%.1f%%u/%.1f%%s)",
            "snd_tcp_congestion %s",
            "rcv_tcp_congestion %s",
        ],
        &[
            "[ ID] Interval           Transfer     Bitrate",
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec                  ",
            DASHES,
            "[%3d] %6.2f-%-6.2f sec  %U  %U/sec                  receiver",
        ],
    );
}

#[test]
fn the_unit_of_the_rate_can_be_chosen() {
    for (format, unit) in [("k", "Kbits"), ("m", "Mbits"), ("g", "Gbits"), ("K", "KBytes"), ("M", "MBytes")] {
        let arguments = ["-t", "1", "-b", "100M", "-f", format];
        let run = Run { client: &arguments, ..Run::default() };
        let both = [support::pairing::PAIRINGS[0], support::pairing::PAIRINGS[3]];
        run.in_pairings(&both, |pair| {
            let rates = pair.client.stdout.lines().filter(|line| line.contains("/sec"));
            for line in rates {
                assert!(line.contains(&format!(" {unit}/sec")), "{}: {line}", pair.pairing);
            }
        });
    }
}
