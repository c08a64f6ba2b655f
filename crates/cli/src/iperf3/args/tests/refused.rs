//! Tests of iperf3's refusals, with number and text.
//!
//! Verified against iperf3 3.12 as far as it has the check; the profile is 3.21, which added some and reworded others.

use super::super::{ArgumentsError, ParameterError};
use super::read;

/// Text of each refusal of iperf3.
fn text(code: i32) -> &'static str {
    match code {
        1 => "cannot be both server and client",
        2 => "must either be a client (-c) or server (-s)",
        3 => "some option you are trying to set is server only",
        4 => "some option you are trying to set is client only",
        5 => "test duration valid values are 0 to 86400 seconds",
        6 => "invalid number of parallel streams (min = 1, max = 128)",
        7 => "block size too large (maximum = 1048576 bytes)",
        8 => "socket buffer size too large (maximum = 536870912 bytes)",
        9 => "invalid report interval (min = 0.1, max = 60 seconds)",
        10 => "TCP MSS too large (maximum = 32767 bytes)",
        12 => "bogus value for --omit (maximum = 600 seconds)",
        15 => "invalid burst count (maximum = 1000)",
        16 => "only one test end condition (-t, -n, -k) may be specified",
        18 => "no SCTP support available",
        20 => "block size invalid (minimum = 16 bytes, maximum = 65507 bytes)",
        21 => "bad TOS value (must be between 0 and 255 inclusive)",
        22 => "you must specify a username, password, and path to a valid RSA public key",
        23 => "you must specify a path to a valid RSA private key and a user credential file",
        24 => "bad format specifier (valid formats are in the set [kmgtKMGT])",
        25 => "cannot be both reverse and bidirectional",
        26 => "port number must be between 1 and 65535 inclusive",
        28 => "invalid time interval for calculating average data rate",
        29 => "skew threshold must be a positive number",
        30 => "idle timeout parameter is not positive or larger than allowed limit",
        31 => "receive timeout value is incorrect or not in range: ",
        32 => "client receive timeout is valid only in receiving mode: ",
        33 => "send timeout value is incorrect or not in range: ",
        34 => "cannot transfer file using UDP",
        36 => "control connection Keepalive period should be larger than the full retry period (interval * count): ",
        40 => {
            "bad DSCP value (numeric: 0-63 inclusive, symbolic: one of [af11-13, af21-23, af31-33, af41-43, cs1-7, ef, \
             va, lowdelay, throughput, reliability])"
        }
        127 => "unable to set IPv6 flow label",
        132 => "unable to set CPU affinity: ",
        other => panic!("no text for {other}"),
    }
}

#[track_caller]
fn assert_refused(line: &str, error: ParameterError) {
    assert_eq!(read(line), Err(ArgumentsError::Parameter { error, timestamps: None }), "{line}");
}

/// Command lines and their error codes.
const TABLE: &[(&str, i32)] = &[
    // Roles.
    ("", 2),
    ("-p 9", 2),
    ("-t 5", 2),
    ("-D", 2),
    ("-s -c host", 1),
    ("-c host -s", 1),
    ("-s -c host -t -1", 1),
    ("-t -1 -s -c host", 5),
    ("-c host -D", 3),
    ("-c host -1", 3),
    ("-c host --idle-timeout 5", 3),
    ("-c host --server-bitrate-limit 5", 3),
    ("-c host --server-max-duration 5", 3),
    ("-c host --rsa-private-key-path x", 3),
    ("-c host --authorized-users-path x", 3),
    ("-c host --time-skew-threshold 5", 3),
    ("-c host --max-sessions 5", 3),
    ("-c host --queue", 3),
    ("-c host --open-firewall", 3),
    ("-s -u", 4),
    ("-s --connect-timeout 5", 4),
    ("-s -b 1", 4),
    ("-s --pacing-timer 5", 4),
    ("-s --fq-rate 5", 4),
    ("-s --no-fq-socket-pacing", 4),
    ("-s -t 5", 4),
    ("-s -n 5", 4),
    ("-s -k 5", 4),
    ("-s -l 5", 4),
    ("-s -P 5", 4),
    ("-s -R", 4),
    ("-s --bidir", 4),
    ("-s -w 5", 4),
    ("-s -C cubic", 4),
    ("-s -M 5", 4),
    ("-s -N", 4),
    ("-s -S 4", 4),
    ("-s --dscp 4", 4),
    ("-s -L 4", 4),
    ("-s -Z", 4),
    ("-s --skip-rx-copy", 4),
    ("-s -O 4", 4),
    ("-s -T x", 4),
    ("-s --extra-data x", 4),
    ("-s --get-server-output", 4),
    ("-s --gsro", 4),
    ("-s --repeating-payload", 4),
    ("-s --dont-fragment", 4),
    ("-s --username x", 4),
    ("-s --rsa-public-key-path x", 4),
    ("-s -A 0,0", 4),
    // An invalid value is reported before the wrong role, in any order.
    ("-s -t -1", 5),
    ("-s -l 2M", 4),
    ("-t 86401 -s", 5),
    // The first invalid value of several is reported.
    ("-c host -t -1 -P 129", 5),
    ("-c host -P 129 -t -1", 6),
    // Values.
    ("-c host -p 0", 26),
    ("-c host -p 65536", 26),
    ("-c host -p x", 26),
    ("-c host -p -1", 26),
    ("-c host --cport 0", 26),
    ("-c host --cport 70000", 26),
    ("-c host -f a", 24),
    ("-c host -f A", 24),
    ("-c host -f b", 24),
    ("-c host --format=", 24),
    ("-c host -i 0.05", 9),
    ("-c host -i 60.1", 9),
    ("-c host -i -1", 9),
    ("-c host -t 86401", 5),
    ("-c host -t -1", 5),
    ("-c host -t 99999999999999999999", 5),
    ("-s --server-max-duration 86401", 5),
    ("-s --server-max-duration -1", 5),
    ("-c host -O 601", 12),
    ("-c host -O -1", 12),
    ("-c host -P 129", 6),
    ("-c host -P 0", 6),
    ("-c host -P -1", 6),
    ("-c host -P x", 6),
    ("-c host -P 4294967297", 6),
    ("-c host -l 1048577", 7),
    ("-c host -l 2M", 7),
    ("-c host -l -1", 7),
    ("-c host -u -l 2M", 7),
    ("-c host -u -l 15", 20),
    ("-c host -u -l 65508", 20),
    ("-c host -l 65508 -u", 20),
    ("-c host -w 513M", 8),
    ("-c host -w 536870913", 8),
    ("-c host -M 32768", 10),
    ("-c host -M -1", 10),
    ("-c host -b 10M/0", 15),
    ("-c host -b 10M/1001", 15),
    ("-c host -b 10M/x", 15),
    ("-c host -b 10M/", 15),
    ("-c host -b 10x/0", 15),
    ("-c host -S x", 21),
    ("-c host -S 256", 21),
    ("-c host -S -1", 21),
    ("-c host --tos=", 21),
    ("-c host --dscp 64", 40),
    ("-c host --dscp -1", 40),
    ("-c host --dscp x", 40),
    ("-c host --dscp 12x", 40),
    ("-c host --dscp=", 40),
    ("-c host -L 0", 127),
    ("-c host -L 0x100000", 127),
    ("-c host -L x", 127),
    ("-c host -A x", 132),
    ("-c host -A 1025", 132),
    ("-c host -A -1", 132),
    ("-c host -A 0,1025", 132),
    ("-s --idle-timeout 0", 30),
    ("-s --idle-timeout 86401", 30),
    ("-c host -R --rcv-timeout 99", 31),
    ("-c host -R --rcv-timeout 86400001", 31),
    ("-c host --snd-timeout -1", 33),
    ("-c host --snd-timeout 86400001", 33),
    ("-c host --cntl-ka=10/5/2", 36),
    ("-c host --cntl-ka=1/1/1", 36),
    ("-s --server-bitrate-limit 1M/0.05", 28),
    ("-s --server-bitrate-limit 1M/61", 28),
    ("-s --server-bitrate-limit 10x/61", 28),
    ("-c host --time-skew-threshold 0", 29),
    ("-s --time-skew-threshold -5", 29),
    // Features that are not built in.
    ("-c host --sctp", 18),
    ("-c host -X lo", 18),
    ("-c host --nstreams 2", 18),
    ("-s --sctp", 18),
    // Combinations.
    ("-c host -R --bidir", 25),
    ("-c host --bidir -R", 25),
    ("-s -R --bidir", 25),
    ("-c host -n 1 -t 5", 16),
    ("-c host -k 1 -t 5", 16),
    ("-c host -n 1 -k 5", 16),
    ("-c host -t 0 -n 1", 16),
    ("-n 1 -k 1", 16),
    ("-c host --rcv-timeout 500", 32),
    ("-c host -u -F file", 34),
    ("-c host --username x", 22),
    ("-c host --user x", 22),
    ("-c host --rsa-public-key-path x", 22),
    ("-s --rsa-private-key-path x", 23),
    ("-s --authorized-users-path x", 23),
    // Order of the final checks.
    ("-c host -D --username x", 3),
    ("-c host --username x --rsa-private-key-path y", 22),
    ("-c host --rcv-timeout 500 -D", 3),
    ("-c host --rcv-timeout 500 -u -F file", 32),
    ("-c host -u -F file -l 70000", 34),
    ("-c host -n 1 -t 5 -l 2M", 7),
    ("-c host -u -n 1 -t 5 -l 5", 20),
    ("-l 2M", 7),
];

#[test]
fn codes_and_texts() {
    for (line, code) in TABLE {
        let Err(ArgumentsError::Parameter { error, timestamps: None }) = read(line) else { panic!("{line}") };
        assert_eq!((error.code, error.text.as_str()), (*code, text(*code)), "{line}");
        // Units that guides use and iperf3 does not have.
        assert_eq!(error.hint.is_some(), line.contains("-f a") || line.contains("-f A"), "{line}");
    }
}

#[test]
fn every_text_is_in_the_table() {
    for code in (1..=36).chain([127, 132]) {
        let unused = [11, 13, 14, 17, 19, 27, 35].contains(&code);
        assert_ne!(TABLE.iter().any(|(_, refused)| *refused == code), unused, "{code}");
    }
}

#[test]
fn units() {
    let options =
        ["-n", "-k", "-l", "-w", "-b", "--fq-rate", "--pacing-timer", "--connect-timeout", "--server-bitrate-limit"];
    for option in options {
        for value in ["10x", "x", "K", "10b", "1ex", "nan"] {
            let error =
                ParameterError { code: 38, text: format!("invalid unit value or suffix: '{value}'"), hint: None };
            assert_refused(&format!("-c host {option} {value}"), error.clone());
            assert_refused(&format!("{option} {value} -s"), error);
        }
    }
    let rate_only = ParameterError { code: 38, text: "invalid unit value or suffix: '10x'".to_owned(), hint: None };
    assert_refused("-c host -b 10x/4", rate_only.clone());
    assert_refused("-s --server-bitrate-limit 10x/4", rate_only);
}

#[test]
fn own_options() {
    for value in ["0", "-1", "x", "1k", ""] {
        let text = format!("invalid number of sessions '{value}' (a whole number, min = 1)");
        assert_refused(&format!("-s --max-sessions={value}"), ParameterError { code: 38, text, hint: None });
    }
}

#[test]
fn a_time_stamp_option_before_the_error_is_returned_with_it() {
    let stamped = |line: &str| match read(line) {
        Err(ArgumentsError::Parameter { timestamps, .. }) => timestamps,
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(stamped("-c host --timestamps=X -t -1").as_deref(), Some("X"));
    assert_eq!(stamped("-c host -t -1 --timestamps=X"), None);
    assert_eq!(stamped("-s -u --timestamps").as_deref(), Some("%c "));
}
