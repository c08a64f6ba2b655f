use linerate_model::address_family::AddressFamily;
use std::num::NonZeroU32;
use std::time::Duration;

use linerate_model::parameters::CpuIndex;
use linerate_units::iperf3::{UnitFormat, parse_seconds};

use super::super::command::{DebugLevel, KeepAlive};
use super::super::draft::split_device;
use super::super::error::{ParameterRefusal, ParseStop};
use super::super::value::{ArgumentValue, decimal, prefixed};
use super::OptionArgument::{None, Optional, Required};
use super::{CommandOption, either};

/// Options of both roles.
pub(super) const OPTIONS: &[CommandOption] = &[
    either("p", "port", Required("#"), "server port to listen on or connect to", |draft, value| {
        draft.common.port = value.port()?;
        Ok(())
    }),
    either(
        "f",
        "format",
        Required("[kmgtKMGT]"),
        "unit of the bitrate: Kbits, Mbits, Gbits, Tbits; upper case for bytes",
        |draft, value| {
            let format = value.text().chars().next().and_then(UnitFormat::from_letter);
            draft.common.format = format.ok_or(match value.text().as_str() {
                "a" | "A" => ParameterRefusal::AdaptiveFormat,
                _ => ParameterRefusal::Format,
            })?;
            Ok(())
        },
    ),
    either("i", "interval", Required("#"), "seconds between reports (default 1, 0 for none)", |draft, value| {
        draft.common.interval = interval(&value.text())?;
        Ok(())
    }),
    either("I", "pidfile", Required("file"), "write the process ID to a file", |draft, value| {
        draft.common.pid_file = Some(value.path());
        Ok(())
    }),
    either("F", "file", Required("name"), "send from, or receive into, this file (TCP)", |draft, value| {
        draft.common.file = Some(value.path());
        Ok(())
    }),
    either(
        "A",
        "affinity",
        Required("n[,m]"),
        "run on processor n; a client may set the server's with m",
        |draft, value| {
            let text = value.text();
            let (own, _) = prefixed(&text).ok_or(ParameterRefusal::Affinity)?;
            draft.common.affinity = Some(processor(own)?);
            if let Some((_, server)) = text.split_once(',') {
                draft.client.parameters.server_affinity = Some(processor(decimal(server))?);
                draft.client_option_given = true;
            }
            Ok(())
        },
    ),
    either(
        "B",
        "bind",
        Required("<host>[%<dev>]"),
        "bind to this address, also for the data connections; %<dev> is short for --bind-dev",
        |draft, value| {
            let (host, device) = split_device(&value.text());
            draft.common.bind = (!host.is_empty()).then_some(host);
            draft.bind_device(device);
            Ok(())
        },
    ),
    either("", "bind-dev", Required("<dev>"), "bind to this network device (SO_BINDTODEVICE)", |draft, value| {
        draft.bind_device(Some(value.text()));
        Ok(())
    }),
    either("V", "verbose", None, "more detailed output", |draft, _| {
        draft.common.verbose = true;
        Ok(())
    }),
    either("J", "json", None, "write one JSON document at the end", |draft, _| {
        draft.json = true;
        Ok(())
    }),
    either("", "json-stream", None, "write one line of JSON per event", |draft, _| {
        draft.json_stream = true;
        Ok(())
    }),
    either("", "json-stream-full-output", None, "with --json-stream, write the document too", |draft, _| {
        draft.json_full_output = true;
        Ok(())
    }),
    either("", "logfile", Required("f"), "append output and errors to this file", |draft, value| {
        draft.common.log_file = Some(value.path());
        Ok(())
    }),
    either("", "forceflush", None, "flush the output after every interval", |draft, _| {
        draft.common.force_flush = true;
        Ok(())
    }),
    either(
        "",
        "timestamps",
        Optional("<=format>"),
        "begin each line of output with the time (\"=\" and a format as for strftime(3), default \"%c \")",
        |draft, value| {
            draft.common.timestamps = Some(value.optional_text().unwrap_or_else(|| "%c ".to_owned()));
            Ok(())
        },
    ),
    either(
        "",
        "rcv-timeout",
        Required("#"),
        "give up after this many ms without data to receive (default 120000)",
        |draft, value| {
            draft.common.receive_timeout = value.milliseconds(100..=86_400_000, ParameterRefusal::ReceiveTimeout)?;
            draft.receive_timeout_given = true;
            Ok(())
        },
    ),
    either(
        "",
        "snd-timeout",
        Required("#"),
        "give up when sent TCP data stays unacknowledged for this many ms (default: the system's)",
        |draft, value| {
            let timeout = value.milliseconds(0..=86_400_000, ParameterRefusal::SendTimeout)?;
            draft.common.send_timeout = (!timeout.is_zero()).then_some(timeout);
            Ok(())
        },
    ),
    either(
        "",
        "cntl-ka",
        Optional("[=#/#/#]"),
        "TCP keep-alive on the control connection (idle seconds, seconds between probes, number of probes; \
         each may be omitted)",
        |draft, value| {
            draft.common.control_keep_alive = Some(keep_alive(&value.text())?);
            Ok(())
        },
    ),
    either("4", "version4", None, "use IPv4 only", |draft, _| {
        draft.common.address_family = Some(AddressFamily::Ipv4);
        Ok(())
    }),
    either("6", "version6", None, "use IPv6 only", |draft, _| {
        draft.common.address_family = Some(AddressFamily::Ipv6);
        Ok(())
    }),
    either("m", "mptcp", None, "use Multipath TCP for the data", |draft, _| {
        draft.client.parameters.multipath = true;
        draft.server.multipath = true;
        Ok(())
    }),
    either("", "use-pkcs1-padding", None, "pad credentials as iperf3 before 3.17 did", |draft, _| {
        draft.common.pkcs1_padding = true;
        Ok(())
    }),
    either(
        "d",
        "debug",
        Optional("[=#]"),
        "debugging output (\"=\" and a level, 1 to 4, default 4)",
        |draft, value| {
            draft.common.debug = Some(debug_level(value));
            Ok(())
        },
    ),
    either("v", "version", None, "show version and features, and exit", |_, _| Err(ParseStop::Version)),
    either("h", "help", None, "show this text, and exit", |_, _| Err(ParseStop::Help)),
];

/// Parses an interval: 0 is off; else 0.1 s to 60 s.
fn interval(text: &str) -> Result<Option<Duration>, ParameterRefusal> {
    let interval = parse_seconds(text).ok_or(ParameterRefusal::Interval)?;
    if interval.is_zero() {
        return Ok(Option::None);
    }
    let allowed = Duration::from_millis(100)..=Duration::from_secs(60);
    if allowed.contains(&interval) { Ok(Some(interval)) } else { Err(ParameterRefusal::Interval) }
}

fn processor(index: i64) -> Result<CpuIndex, ParameterRefusal> {
    u16::try_from(index).ok().filter(|index| *index <= 1024).map(CpuIndex).ok_or(ParameterRefusal::Affinity)
}

/// Parses `idle/interval/count`, each possibly empty. The kernel would give up before the first probe if the idle time
/// were not longer than all probes together.
fn keep_alive(text: &str) -> Result<KeepAlive, ParameterRefusal> {
    let mut numbers = text.splitn(3, '/').map(|number| u32::try_from(decimal(number)).unwrap_or(0));
    let [idle, interval, count] = std::array::from_fn(|_| numbers.next().unwrap_or(0));
    if idle > 0 && u64::from(idle) <= u64::from(interval) * u64::from(count) {
        return Err(ParameterRefusal::KeepAlive);
    }
    let seconds = |seconds: u32| (seconds > 0).then(|| Duration::from_secs(seconds.into()));
    Ok(KeepAlive { idle: seconds(idle), interval: seconds(interval), count: NonZeroU32::new(count) })
}

/// Parses a debugging level; levels above 4 are 4, and negative ones are "everything", as in iperf3.
fn debug_level(value: &ArgumentValue) -> DebugLevel {
    value.optional_text().map_or(DebugLevel::ALL, |_| {
        u8::try_from(value.integer()).map_or(DebugLevel::ALL, |level| DebugLevel(level).min(DebugLevel::ALL))
    })
}
