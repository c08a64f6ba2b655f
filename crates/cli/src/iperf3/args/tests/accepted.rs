//! Effects of options.

use linerate_engine::tls::ServerTrust;
use linerate_model::address_family::AddressFamily;
use std::num::NonZeroU32;
use std::time::Duration;

use linerate_model::parameters::{CpuIndex, EndCondition, TestDirection, TestParameters, TestProtocol};
use linerate_units::iperf3::UnitFormat;
use linerate_units::{BitRate, BlockCount, ByteCount, FlowLabel, Mss, PacketCount, Port, StreamCount, TypeOfService};

use super::super::command::{
    BitrateLimit, ClientArguments, ClientAuthentication, CommonArguments, Iperf3Command, JsonOutput, KeepAlive,
    ServerArguments, ServerAuthentication,
};
use super::{client, read, server};

const MEGA: f64 = 1e6;

#[expect(clippy::unnecessary_wraps, reason = "as in the fields")]
fn rate(bits: f64) -> Option<BitRate> {
    Some(BitRate::from_bits_per_second(bits))
}

#[test]
fn the_role_alone_gives_the_defaults() {
    assert_eq!(server(""), ServerArguments::default());
    assert_eq!(client(""), ClientArguments { host: "host".to_owned(), ..ClientArguments::default() });
    assert_eq!(client("").parameters, TestParameters::default());
    assert_eq!(client("").common.interval, Some(Duration::from_secs(1)));
    assert_eq!(client("").common.receive_timeout, Duration::from_secs(120));
    assert_eq!(client("").common.port.get(), 5201);
}

/// Change of the defaults by options.
type Change<T> = fn(&mut T);

#[test]
fn parameters_of_the_test() {
    let table: &[(&str, Change<TestParameters>)] = &[
        ("-b 10M", |p| p.rate = rate(10.0 * MEGA)),
        ("-b 10M/32", |p| (p.rate, p.burst) = (rate(10.0 * MEGA), Some(PacketCount::new(32)))),
        ("--bandwidth 1.5g", |p| p.rate = rate(1500.0 * MEGA)),
        ("-b 0", |p| p.rate = None),
        ("--fq-rate 5m", |p| p.fq_rate = rate(5.0 * MEGA)),
        ("--fq-rate 5m --no-fq-socket-pacing", |p| p.fq_rate = None),
        ("--pacing-timer 2K", |p| p.pacing_timer = Duration::from_micros(2048)),
        ("-t 5", |p| p.end = EndCondition::Time(Duration::from_secs(5))),
        ("-t 0", |p| p.end = EndCondition::Time(Duration::ZERO)),
        ("-t 5x", |p| p.end = EndCondition::Time(Duration::from_secs(5))),
        ("-n 1.5M", |p| p.end = EndCondition::Bytes(ByteCount::new(1_572_864))),
        ("-k 2k", |p| p.end = EndCondition::Blocks(BlockCount::new(2048))),
        ("-n 0", |_| {}),
        ("-n 0 -t 5", |p| p.end = EndCondition::Time(Duration::from_secs(5))),
        ("-n 0 -k 3", |p| p.end = EndCondition::Blocks(BlockCount::new(3))),
        ("-l 0", |_| {}),
        ("-l 8K", |p| p.block_size = ByteCount::new(8192)),
        ("-l 1M", |p| p.block_size = ByteCount::new(1_048_576)),
        ("-l 1", |p| p.block_size = ByteCount::new(1)),
        ("-P 128", |p| p.parallel = StreamCount::new(128)),
        ("-R", |p| p.direction = TestDirection::Reverse),
        ("--bidir --bidir", |p| p.direction = TestDirection::Bidirectional),
        ("-w 512M", |p| p.window = Some(ByteCount::from_mebibytes(512))),
        ("-w 0", |_| {}),
        ("-C bbr", |p| p.congestion = Some("bbr".to_owned())),
        ("--linux-congestion reno", |p| p.congestion = Some("reno".to_owned())),
        ("-M 1400", |p| p.mss = Some(Mss::new(1400))),
        ("-M 0", |_| {}),
        ("-N", |p| p.no_delay = true),
        ("-S 52", |p| p.type_of_service = TypeOfService::new(0x34)),
        ("-S 064", |p| p.type_of_service = TypeOfService::new(0x34)),
        ("-S 0x34", |p| p.type_of_service = TypeOfService::new(0x34)),
        ("-S 52junk", |p| p.type_of_service = TypeOfService::new(0x34)),
        ("-S 0x", |_| {}),
        ("--dscp ef", |p| p.type_of_service = TypeOfService::new(0xb8)),
        ("--dscp EF", |p| p.type_of_service = TypeOfService::new(0xb8)),
        ("--dscp va", |p| p.type_of_service = TypeOfService::new(0xb0)),
        ("--dscp af41", |p| p.type_of_service = TypeOfService::new(0x88)),
        ("--dscp cs7", |p| p.type_of_service = TypeOfService::new(0xe0)),
        ("--dscp 63", |p| p.type_of_service = TypeOfService::new(0xfc)),
        ("--dscp 0x2e", |p| p.type_of_service = TypeOfService::new(0xb8)),
        ("--dscp lowdelay", |p| p.type_of_service = TypeOfService::new(0x10)),
        ("--dscp throughput", |p| p.type_of_service = TypeOfService::new(0x08)),
        ("--dscp reliability", |p| p.type_of_service = TypeOfService::new(0x04)),
        ("-L 0xfffff", |p| p.flow_label = FlowLabel::new(0xf_ffff)),
        ("-Z", |p| p.zero_copy = true),
        ("--skip-rx-copy", |p| p.skip_receive_copy = true),
        ("-O 3", |p| p.omit = Duration::from_secs(3)),
        ("-T title", |p| p.title = Some("title".to_owned())),
        ("--extra-data {}", |p| p.extra_data = Some("{}".to_owned())),
        ("--get-server-output", |p| p.get_server_output = true),
        ("--udp-counters-64bit", |p| p.udp_counters_64bit = true),
        ("--gsro", |p| p.segmentation_offload = true),
        ("--repeating-payload", |p| p.repeating_payload = true),
        ("--dont-fragment", |p| p.dont_fragment = true),
        ("-A 3,5", |p| p.server_affinity = Some(CpuIndex(5))),
        ("-m", |p| p.multipath = true),
    ];
    for (options, change) in table {
        let mut expected = TestParameters::default();
        change(&mut expected);
        assert_eq!(client(options).parameters, expected, "{options}");
    }
}

#[test]
fn udp_has_its_own_defaults() {
    let udp = client("-u");
    assert_eq!(udp.parameters.protocol, TestProtocol::Udp);
    assert_eq!(udp.parameters.rate, rate(1_048_576.0));
    assert_eq!((udp.parameters.block_size.get(), udp.block_size), (1460, None));
    assert_eq!(client("-u -l 0").block_size, None);
    assert_eq!(client("-l 16 -u").block_size, Some(ByteCount::new(16)));
    assert_eq!(client("-u -l 65507").parameters.block_size.get(), 65_507);
    assert_eq!(client("-u -b 0").parameters.rate, None);
    assert_eq!(client("-b 100M -u").parameters.rate, rate(100.0 * MEGA));
    assert_eq!(client("-u -b 1M/2").parameters.burst, Some(PacketCount::new(2)));
    assert_eq!(client("").block_size, None);
    assert_eq!(client("-l 4K").block_size, Some(ByteCount::new(4096)));
}

#[test]
fn options_of_both_roles() {
    let table: &[(&str, Change<CommonArguments>)] = &[
        ("-p 5299", |c| c.port = Port::new(5299).expect("not 0")),
        ("-f m", |c| c.format = UnitFormat::Megabits),
        ("-f Kx", |c| c.format = UnitFormat::Kilobytes),
        ("-i 0", |c| c.interval = None),
        ("-i 0.1", |c| c.interval = Some(Duration::from_millis(100))),
        ("-i 60", |c| c.interval = Some(Duration::from_secs(60))),
        ("-i x", |c| c.interval = None),
        ("-I /run/pid", |c| c.pid_file = Some("/run/pid".into())),
        ("-F data", |c| c.file = Some("data".into())),
        ("-A 3", |c| c.affinity = Some(CpuIndex(3))),
        ("-A 0x10", |c| c.affinity = Some(CpuIndex(16))),
        ("-B 192.0.2.1", |c| c.bind = Some("192.0.2.1".to_owned())),
        ("-B 192.0.2.1%eth0", |c| {
            c.bind = Some("192.0.2.1".to_owned());
            c.bind_device = Some("eth0".to_owned());
        }),
        ("-B %eth0", |c| c.bind_device = Some("eth0".to_owned())),
        ("-B fe80::1%eth0", |c| c.bind = Some("fe80::1%eth0".to_owned())),
        ("-B 2001:db8::1%eth0", |c| {
            c.bind = Some("2001:db8::1".to_owned());
            c.bind_device = Some("eth0".to_owned());
        }),
        ("--bind-dev eth0", |c| c.bind_device = Some("eth0".to_owned())),
        ("-V", |c| c.verbose = true),
        ("-J", |c| c.json = Some(JsonOutput::Document)),
        ("--json-stream", |c| c.json = Some(JsonOutput::Stream)),
        ("-J --json-stream", |c| c.json = Some(JsonOutput::Stream)),
        ("--json-stream-full --json-stream", |c| c.json = Some(JsonOutput::StreamAndDocument)),
        ("-J --json-stream-full-output", |c| c.json = Some(JsonOutput::Document)),
        // As in iperf3, nothing without --json-stream.
        ("--json-stream-full-output", |_| {}),
        ("--logfile log", |c| c.log_file = Some("log".into())),
        ("--forceflush", |c| c.force_flush = true),
        ("--timestamps", |c| c.timestamps = Some("%c ".to_owned())),
        ("--snd-timeout 1500", |c| c.send_timeout = Some(Duration::from_millis(1500))),
        ("--snd-timeout 0", |c| c.send_timeout = None),
        ("--cntl-ka", |c| c.control_keep_alive = Some(KeepAlive::default())),
        ("--cntl-ka=10/3/2", |c| {
            c.control_keep_alive = Some(KeepAlive {
                idle: Some(Duration::from_secs(10)),
                interval: Some(Duration::from_secs(3)),
                count: NonZeroU32::new(2),
            });
        }),
        ("--cntl-ka=//2", |c| {
            c.control_keep_alive = Some(KeepAlive { count: NonZeroU32::new(2), ..KeepAlive::default() });
        }),
        ("--cntl-ka=/3", |c| {
            c.control_keep_alive = Some(KeepAlive { interval: Some(Duration::from_secs(3)), ..KeepAlive::default() });
        }),
        ("-4", |c| c.address_family = Some(AddressFamily::Ipv4)),
        ("-4 -6", |c| c.address_family = Some(AddressFamily::Ipv6)),
        ("--use-pkcs1-padding", |c| c.pkcs1_padding = true),
    ];
    for (options, change) in table {
        let mut expected = CommonArguments::default();
        change(&mut expected);
        assert_eq!(client(options).common, expected, "client {options}");
        assert_eq!(server(options).common, expected, "server {options}");
    }
}

#[test]
fn receive_timeout_of_receivers() {
    let timeout = Duration::from_millis(500);
    assert_eq!(client("-R --rcv-timeout 500").common.receive_timeout, timeout);
    assert_eq!(client("--rcv-timeout 500 --bidir").common.receive_timeout, timeout);
    assert_eq!(server("--rcv-timeout 500").common.receive_timeout, timeout);
}

#[test]
fn client_options() {
    let table: &[(&str, Change<ClientArguments>)] = &[
        ("--cport 5000", |c| c.client_port = Port::new(5000)),
        ("--connect-timeout 1500", |c| c.connect_timeout = Some(Duration::from_millis(1500))),
        ("--connect-timeout 2K", |c| c.connect_timeout = Some(Duration::from_millis(2048))),
        ("--connect-timeout 0", |c| c.connect_timeout = None),
        ("-c other", |c| c.host = "other".to_owned()),
        ("-c 192.0.2.1%eth0", |c| {
            c.host = "192.0.2.1".to_owned();
            c.common.bind_device = Some("eth0".to_owned());
        }),
        ("-c fe80::1%eth0", |c| c.host = "fe80::1%eth0".to_owned()),
        ("--username mario --rsa-public-key-path key", |c| c.authentication = Some(mario())),
        ("--user mario --rsa-pub key", |c| c.authentication = Some(mario())),
        ("-t 10", |c| c.end_given = true),
    ];
    for (options, change) in table {
        let mut expected = ClientArguments { host: "host".to_owned(), ..ClientArguments::default() };
        change(&mut expected);
        assert_eq!(client(options), expected, "{options}");
    }
    assert!(!client("-n 0").end_given);
    assert!(client("-n 1").end_given && client("-k 1").end_given);
}

fn mario() -> ClientAuthentication {
    ClientAuthentication { username: "mario".to_owned(), public_key: "key".into() }
}

#[test]
fn tls_options_of_clients() {
    let key = || Some(ServerTrust::SharedKey("key".into()));
    let encrypted = client("--tls-data --shared-key-file key");
    assert!(encrypted.parameters.tls_data && encrypted.tls == key());
    assert_eq!(client("--tls").tls, Some(ServerTrust::System));
    assert_eq!(client("--tls --tls-ca ca.pem").tls, Some(ServerTrust::Authorities("ca.pem".into())));
    assert_eq!(client("--shared-key-file key --tls").tls, key(), "a key is not replaced by all authorities");
    assert_eq!(client("-t 1").tls, None);
    for (line, expected) in [
        ("-c host --tls-pin x", "--tls-pin: "),
        ("-c host --tls-ca a --shared-key-file b", "only one of"),
        ("-s --tls-data", "client only"),
    ] {
        let error = read(line).expect_err(line);
        assert!(format!("{error:?}").contains(expected), "{line}: {error:?}");
    }
}

#[test]
fn server_options() {
    let limit = |rate: f64, seconds: f64| {
        let rate = BitRate::from_bits_per_second(rate);
        Some(BitrateLimit { rate, averaging: Duration::from_secs_f64(seconds) })
    };
    let credentials = |seconds| {
        let time_skew = Duration::from_secs(seconds);
        Some(ServerAuthentication { private_key: "key".into(), users: "users".into(), time_skew })
    };
    let keys = "--rsa-private-key-path key --authorized-users-path users";
    assert!(server("-D").daemon && server("-1").one_off && server("-m").multipath);
    assert_eq!(server("--idle-timeout 86400").idle_timeout, Some(Duration::from_secs(86_400)));
    assert_eq!(server("--server-bitrate-limit 10M").bitrate_limit, limit(1e7, 5.0));
    assert_eq!(server("--server-bitrate-limit 10M/0.1").bitrate_limit, limit(1e7, 0.1));
    assert_eq!(server("--server-bitrate-limit 10M/0").bitrate_limit, limit(1e7, 5.0));
    assert_eq!(server("--server-bitrate-limit 0/9").bitrate_limit, None);
    assert_eq!(server("--server-max-duration 60").max_duration, Some(Duration::from_secs(60)));
    assert_eq!(server("--server-max-duration 0").max_duration, None);
    assert_eq!(server(keys).authentication, credentials(10));
    assert_eq!(server(&format!("--time-skew-threshold 3 {keys}")).authentication, credentials(3));
    assert_eq!(server("--time-skew-threshold 3").authentication, None);
    assert_eq!(server("--max-sessions 8").max_sessions, NonZeroU32::new(8));
    assert!(server("--queue").queue && server("--open-firewall").open_firewall);
    assert_eq!(server("--user nobody").user.as_deref(), Some("nobody"));
    // Client options that iperf3's server accepts silently.
    assert_eq!(server("--cport 5 --udp-counters-64bit"), ServerArguments::default());
}

#[test]
fn help_and_version_stop_the_parse() {
    for (line, command) in [
        ("-h", Iperf3Command::Help),
        ("--help -t -1", Iperf3Command::Help),
        ("-s -u --help", Iperf3Command::Help),
        ("-v", Iperf3Command::Version),
        ("--version --foo", Iperf3Command::Version),
        ("-vh", Iperf3Command::Version),
    ] {
        assert_eq!(read(line).map(|parsed| parsed.command), Ok(command), "{line}");
    }
    assert!(read("-t -1 -h").is_err(), "an earlier error wins");
}

#[test]
fn warnings() {
    let warnings = |line: &str| read(line).expect(line).warnings;
    let format = "Report format (-f) flag ignored with JSON output (-J)";
    let verbose = "Verbose output (-v) may interfere with JSON output (-J)";
    let debug = "Debug output (-d) may interfere with JSON output (-J)";
    assert_eq!(warnings("-c host -f m -V -d"), [""; 0]);
    assert_eq!(warnings("-c host -f m -J"), [format]);
    assert_eq!(warnings("-s --json-stream -f m"), [format]);
    assert_eq!(warnings("-s -J -V -d"), [verbose, debug]);
    assert_eq!(warnings("-c host --no-fq-socket-pacing"), ["--no-fq-socket-pacing is deprecated"]);
}
