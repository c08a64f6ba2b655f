use std::time::Duration;

use linerate_model::parameters::{TestDirection, TestProtocol};
use linerate_units::iperf3::{self, Iperf3NumberError};
use linerate_units::{BitRate, ByteCount, Dscp, FlowLabel, Mss, PacketCount, StreamCount, TypeOfService};

use super::super::draft::{CommandRole, split_device};
use super::super::error::{ParameterRefusal, ParseStop};
use super::super::value::{ArgumentValue, decimal, prefixed};
use super::OptionArgument::{None, Required};
use super::{CommandOption, client, either};

/// Largest socket buffer of iperf3.
const MAX_WINDOW: ByteCount = ByteCount::from_mebibytes(512);

/// Options of clients only, and some that iperf3's server ignores.
pub(super) const OPTIONS: &[CommandOption] = &[
    either(
        "c",
        "client",
        Required("<host>[%<dev>]"),
        "run as a client of <host>; %<dev> is short for --bind-dev",
        |draft, value| {
            draft.set_role(CommandRole::Client)?;
            let (host, device) = split_device(&value.text());
            draft.client.host = host;
            draft.bind_device(device);
            Ok(())
        },
    ),
    client("", "sctp", None, "refused: no SCTP support", |_, _| Err(ParameterRefusal::NoSctp.into())),
    client("X", "xbind", Required("<name>"), "refused: no SCTP support", |_, _| Err(ParameterRefusal::NoSctp.into())),
    client("", "nstreams", Required("#"), "refused: no SCTP support", |_, _| Err(ParameterRefusal::NoSctp.into())),
    client("u", "udp", None, "use UDP instead of TCP", |draft, _| {
        draft.client.parameters.protocol = TestProtocol::Udp;
        Ok(())
    }),
    client(
        "",
        "connect-timeout",
        Required("#"),
        "give up connecting to the server after # ms (default: the system's)",
        |draft, value| {
            let timeout = Duration::from_millis(value.scaled_integer()?);
            draft.client.connect_timeout = (!timeout.is_zero()).then_some(timeout);
            Ok(())
        },
    ),
    client(
        "b",
        "bitrate",
        Required("#[KMG][/#]"),
        "target rate of each stream in bits/sec, 0 for unlimited (default 1 Mbit/sec for UDP, unlimited for TCP; \
         slash and the number of packets to send back to back)",
        |draft, value| {
            let (rate, burst) = rate_and_burst(&value.text())?;
            draft.rate = Some(rate);
            draft.client.parameters.burst = burst.or(draft.client.parameters.burst);
            Ok(())
        },
    )
    .with_alias("bandwidth"),
    client(
        "",
        "pacing-timer",
        Required("#[KMG]"),
        "microseconds of which the blocks leave together (default 1000)",
        |draft, value| {
            draft.client.parameters.pacing_timer = Duration::from_micros(value.scaled_integer()?);
            Ok(())
        },
    ),
    client(
        "",
        "fq-rate",
        Required("#[KMG]"),
        "let the kernel pace each stream to this rate in bits/sec (SO_MAX_PACING_RATE)",
        |draft, value| {
            let rate = value.rate()?;
            draft.client.parameters.fq_rate = (!rate.is_zero()).then_some(rate);
            Ok(())
        },
    ),
    client("", "no-fq-socket-pacing", None, "deprecated: the same as --fq-rate 0", |draft, _| {
        draft.client.parameters.fq_rate = Option::None;
        draft.warn("--no-fq-socket-pacing is deprecated");
        Ok(())
    }),
    client("t", "time", Required("#"), "seconds to test (default 10, 0 until stopped)", |draft, value| {
        draft.time = Some(value.seconds(0..=86_400, ParameterRefusal::Duration)?);
        Ok(())
    }),
    client("n", "bytes", Required("#[KMGT]"), "bytes to send (instead of -t)", |draft, value| {
        draft.bytes = value.size()?;
        Ok(())
    }),
    client("k", "blockcount", Required("#[KMGT]"), "blocks or packets to send (instead of -t)", |draft, value| {
        draft.blocks = value.count()?;
        Ok(())
    }),
    client(
        "l",
        "length",
        Required("#[KMG]"),
        "bytes to write or read at once (default 128K for TCP; for UDP what fits the path, else 1460)",
        |draft, value| {
            draft.block_size = block_size(value)?;
            Ok(())
        },
    ),
    either(
        "",
        "cport",
        Required("<port>"),
        "local port of the first data connection (default: any)",
        |draft, value| {
            draft.client.client_port = Some(value.port()?);
            Ok(())
        },
    ),
    client("P", "parallel", Required("#"), "number of parallel streams (default 1, at most 128)", |draft, value| {
        let streams = value.in_range(1..=128, ParameterRefusal::Streams)?;
        draft.client.parameters.parallel = StreamCount::new(streams.into());
        Ok(())
    }),
    client("R", "reverse", None, "the server sends, the client receives", |draft, _| {
        draft.set_direction(TestDirection::Reverse)
    }),
    client("", "bidir", None, "both send and receive at the same time", |draft, _| {
        draft.set_direction(TestDirection::Bidirectional)
    }),
    client(
        "w",
        "window",
        Required("#[KMG]"),
        "socket buffer sizes of both sides, and so the TCP window",
        |draft, value| {
            let window = value.size()?;
            if window > MAX_WINDOW {
                return Err(ParameterRefusal::WindowSize.into());
            }
            draft.client.parameters.window = (!window.is_zero()).then_some(window);
            Ok(())
        },
    ),
    client("C", "congestion", Required("<algo>"), "TCP congestion control algorithm of both sides", |draft, value| {
        draft.client.parameters.congestion = Some(value.text());
        Ok(())
    })
    .with_alias("linux-congestion"),
    client("M", "set-mss", Required("#"), "TCP maximum segment size (MTU - 40 bytes)", |draft, value| {
        let mss = value.in_range(0..=32_767, ParameterRefusal::Mss)?;
        draft.client.parameters.mss = (mss > 0).then_some(Mss::new(mss));
        Ok(())
    }),
    client("N", "no-delay", None, "do not coalesce small writes (TCP_NODELAY)", |draft, _| {
        draft.client.parameters.no_delay = true;
        Ok(())
    }),
    client(
        "S",
        "tos",
        Required("N"),
        "IP type of service, 0 to 255, also in octal (064) or hexadecimal (0x34)",
        |draft, value| {
            let octet = value.prefixed_integer().and_then(|(number, _)| u8::try_from(number).ok());
            draft.client.parameters.type_of_service =
                octet.map(TypeOfService::new).ok_or(ParameterRefusal::TypeOfService)?;
            Ok(())
        },
    ),
    client(
        "",
        "dscp",
        Required("N or --dscp val"),
        "DSCP, 0 to 63 as for --tos, or by name: af11 to af43, cs0 to cs7, ef, va",
        |draft, value| {
            draft.client.parameters.type_of_service = dscp(&value.text()).ok_or(ParameterRefusal::DscpValue)?;
            Ok(())
        },
    ),
    client("L", "flowlabel", Required("N"), "IPv6 flow label, 1 to 0xfffff", |draft, value| {
        let number = value.prefixed_integer().and_then(|(number, _)| u32::try_from(number).ok());
        let label = number.and_then(FlowLabel::new).ok_or(ParameterRefusal::FlowLabel)?;
        draft.client.parameters.flow_label = Some(label);
        Ok(())
    }),
    client("Z", "zerocopy", None, "send without copying (TCP, sendfile)", |draft, _| {
        draft.client.parameters.zero_copy = true;
        Ok(())
    }),
    client("", "skip-rx-copy", None, "receive without copying (TCP, MSG_TRUNC)", |draft, _| {
        draft.client.parameters.skip_receive_copy = true;
        Ok(())
    }),
    client(
        "O",
        "omit",
        Required("N"),
        "leave the first N seconds, slow start, out of the statistics",
        |draft, value| {
            draft.client.parameters.omit = value.seconds(0..=600, ParameterRefusal::Omit)?;
            Ok(())
        },
    ),
    client("T", "title", Required("str"), "begin every line of output with this", |draft, value| {
        draft.client.parameters.title = Some(value.text());
        Ok(())
    }),
    client("", "extra-data", Required("str"), "text to copy into both JSON documents", |draft, value| {
        draft.client.parameters.extra_data = Some(value.text());
        Ok(())
    }),
    client("", "get-server-output", None, "show the server's output too", |draft, _| {
        draft.client.parameters.get_server_output = true;
        Ok(())
    }),
    either("", "udp-counters-64bit", None, "number UDP packets with 64 bits", |draft, _| {
        draft.client.parameters.udp_counters_64bit = true;
        Ok(())
    }),
    client("", "gsro", None, "UDP segmentation and receive offload (GSO, GRO) on both sides", |draft, _| {
        draft.client.parameters.segmentation_offload = true;
        Ok(())
    }),
    client("", "repeating-payload", None, "send a repeating pattern instead of random bytes", |draft, _| {
        draft.client.parameters.repeating_payload = true;
        Ok(())
    }),
    client("", "dont-fragment", None, "forbid fragmentation of UDP over IPv4", |draft, _| {
        draft.client.parameters.dont_fragment = true;
        Ok(())
    }),
    either(
        "",
        "username",
        Required("name"),
        "user to log in as (password: $IPERF3_PASSWORD, or asked)",
        |draft, value| {
            draft.username = Some(value.text());
            Ok(())
        },
    ),
    either(
        "",
        "rsa-public-key-path",
        Required("file"),
        "the server's RSA public key (PEM), to encrypt the credentials",
        |draft, value| {
            draft.public_key = Some(value.path());
            Ok(())
        },
    ),
];

/// Parses `rate[/burst]`; iperf3 checks the burst first.
fn rate_and_burst(text: &str) -> Result<(BitRate, Option<PacketCount>), ParseStop> {
    let (rate, burst) = match text.split_once('/') {
        Some((rate, burst)) => (rate, Some(packets(burst)?)),
        Option::None => (text, Option::None),
    };
    Ok((iperf3::parse_rate(rate)?, burst))
}

fn packets(text: &str) -> Result<PacketCount, ParameterRefusal> {
    let count = u64::try_from(decimal(text)).ok().filter(|count| (1..=1000).contains(count));
    count.map(PacketCount::new).ok_or(ParameterRefusal::Burst)
}

/// Parses a block size; iperf3 wraps a negative size around to a huge one, which the final check then refuses as too
/// large.
fn block_size(value: &ArgumentValue) -> Result<ByteCount, Iperf3NumberError> {
    value.size().or_else(|error| match value.text().trim_start().strip_prefix('-').map(iperf3::parse_size) {
        Some(Ok(_)) => Ok(ByteCount::new(u64::MAX)),
        _ => Err(error),
    })
}

/// Parses a codepoint, or one of the three names for bits of the older type-of-service octet (RFC 1349).
fn dscp(text: &str) -> Option<TypeOfService> {
    let octet = match text.to_ascii_lowercase().as_str() {
        "lowdelay" => 0x10,
        "throughput" => 0x08,
        "reliability" => 0x04,
        name => {
            let number = || {
                prefixed(name)
                    .filter(|(_, remainder)| remainder.is_empty())
                    .and_then(|(number, _)| u8::try_from(number).ok())
            };
            let codepoint = Dscp::from_name(name).or_else(|| number().and_then(Dscp::new))?;
            return Some(codepoint.type_of_service());
        }
    };
    Some(TypeOfService::new(octet))
}
