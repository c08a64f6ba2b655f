//! Tests of the splitting as by `getopt_long`.

use std::time::Duration;

use linerate_model::parameters::{EndCondition, TestDirection};

use super::super::ArgumentsError;
use super::super::command::DebugLevel;
use super::{client, client_of, read, read_arguments};

#[test]
fn short_options_join_and_take_attached_values() {
    let expected = client("-R -V -P 4 -t 5");
    for line in ["-RVP4 -t5", "-RVP 4 -t 5", "-P4 -t5 -VR", "--reverse --verbose --parallel=4 --time=5"] {
        assert_eq!(client(line), expected, "{line}");
    }
    assert_eq!(expected.parameters.direction, TestDirection::Reverse);
    assert_eq!(expected.parameters.parallel.get(), 4);
    // The remainder after the letter is its value, even if it looks like options.
    assert_eq!(client("-TRV").parameters.title.as_deref(), Some("RV"));
    assert_eq!(client("-T=x").parameters.title.as_deref(), Some("=x"));
}

#[test]
fn the_next_argument_is_the_value_whatever_it_is() {
    assert_eq!(client("-T -V").parameters.title.as_deref(), Some("-V"));
    assert_eq!(client("--title -- -V").parameters.title.as_deref(), Some("--"));
    assert_eq!(client("--title=").parameters.title.as_deref(), Some(""));
    assert_eq!(client("--title=a=b").parameters.title.as_deref(), Some("a=b"));
    assert_eq!(client_of(read_arguments(&["-c", "host", "-T", ""])).parameters.title.as_deref(), Some(""));
    assert_eq!(client_of(read_arguments(&["-c", "-s"])).host, "-s");
}

#[test]
fn long_names_may_be_shortened() {
    for line in ["--para 4", "--parallel 4", "--par=4"] {
        assert_eq!(client(line).parameters.parallel.get(), 4, "{line}");
    }
    assert_eq!(client("--ban 5").parameters.rate, client("--bitrate 5").parameters.rate);
    // An exact name is not an abbreviation of longer ones.
    assert!(client("--json").common.json.is_some());
    assert!(client("--udp").parameters.block_size.get() == 1460);
    assert_eq!(client("--time 5").parameters.end, EndCondition::Time(Duration::from_secs(5)));
    assert_eq!(client("--bind a").common.bind.as_deref(), Some("a"));
    assert!(client("--m").parameters.multipath, "iperf3's --mptcp, in spite of --max-sessions");
    assert!(read("-s --max 3").is_ok());
    assert!(read("-s --q").is_ok());
}

#[test]
fn optional_values_need_the_equals_sign() {
    assert_eq!(client("--timestamps").common.timestamps.as_deref(), Some("%c "));
    let stamped = client_of(read_arguments(&["-c", "host", "--timestamps=%H "]));
    assert_eq!(stamped.common.timestamps.as_deref(), Some("%H "));
    assert_eq!(client("--timestamps=").common.timestamps.as_deref(), Some(""));
    assert_eq!(client("-d").common.debug, Some(DebugLevel(4)));
    assert_eq!(client("--debug").common.debug, Some(DebugLevel(4)));
    assert_eq!(client("--debug=2").common.debug, Some(DebugLevel(2)));
    assert_eq!(client("--debug=9").common.debug, Some(DebugLevel(4)));
    // The short form has no value: this is -d and -2, and there is no -2.
    assert_eq!(read("-c host -d2"), Err(ArgumentsError::Usage("invalid option -- '2'".to_owned())));
    let parsed = read("-c host --debug 3").expect("an operand is not an error");
    assert_eq!(parsed.warnings, ["ignored '3': unexpected argument"]);
}

#[test]
fn operands_may_appear_anywhere_and_are_reported() {
    let parsed = read("one -c host - two -t 5 -- -R").expect("operands are not errors");
    let ignored = |operand: &str| format!("ignored '{operand}': unexpected argument");
    assert_eq!(parsed.warnings, ["one", "-", "two", "-R"].map(ignored));
    assert_eq!(client_of(Ok(parsed)), client("-t 5"));
}

#[test]
fn unknown_options_are_refused() {
    let table = [
        ("--foo", "unrecognized option '--foo'"),
        ("--foo=3", "unrecognized option '--foo=3'"),
        ("-q", "invalid option -- 'q'"),
        ("-Vq", "invalid option -- 'q'"),
        ("-P", "option requires an argument -- 'P'"),
        ("--parallel", "option '--parallel' requires an argument"),
        ("--para", "option '--parallel' requires an argument"),
        ("--udp=1", "option '--udp' doesn't allow an argument"),
        ("--version=1", "option '--version' doesn't allow an argument"),
        ("--bi 5", "option '--bi' is ambiguous; possibilities: '--bind' '--bind-dev' '--bitrate' '--bidir'"),
        ("--use", "option '--use' is ambiguous; possibilities: '--use-pkcs1-padding' '--username'"),
        ("--sk=1", "option '--skip-rx-copy' doesn't allow an argument"),
    ];
    for (options, message) in table {
        assert_eq!(read(options), Err(ArgumentsError::Usage(message.to_owned())), "{options}");
        // The error precedes any check of roles.
        assert_eq!(read(&format!("-s -u {options}")), Err(ArgumentsError::Usage(message.to_owned())), "{options}");
    }
}

#[test]
fn bytes_that_are_not_utf8_stay_in_paths() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    let path = OsString::from_vec(b"/tmp/\xff".to_vec());
    let arguments = ["-c".into(), "host".into(), "-F".into(), path.clone()];
    assert_eq!(client_of(super::super::parse(arguments)).common.file, Some(path.into()));
    let attached = OsString::from_vec(b"--file=/tmp/\xff".to_vec());
    let file = client_of(super::super::parse(["-c".into(), "host".into(), attached])).common.file;
    assert_eq!(file, Some(OsString::from_vec(b"/tmp/\xff".to_vec()).into()));
    let name = OsString::from_vec(b"--\xff".to_vec());
    assert_eq!(super::super::parse([name]), Err(ArgumentsError::Usage("unrecognized option '--\u{fffd}'".to_owned())));
}
