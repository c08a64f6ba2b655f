use std::time::Duration;

use linerate_units::iperf3;

use super::super::command::BitrateLimit;
use super::super::draft::CommandRole;
use super::super::error::{ParameterRefusal, ParseStop};
use super::OptionArgument::{None, Required};
use super::{CommandOption, either, server};

/// Default averaging time of iperf3.
const DEFAULT_AVERAGING_TIME: Duration = Duration::from_secs(5);

/// Options of servers only. Credentials are checked at the end, with the related options.
pub(super) const OPTIONS: &[CommandOption] = &[
    either("s", "server", None, "run as a server", |draft, _| draft.set_role(CommandRole::Server)),
    server("D", "daemon", None, "run in the background", |draft, _| {
        draft.server.daemon = true;
        Ok(())
    }),
    server("1", "one-off", None, "exit after one client", |draft, _| {
        draft.server.one_off = true;
        Ok(())
    }),
    server(
        "",
        "idle-timeout",
        Required("#"),
        "start listening afresh after # seconds without a client; with -1, exit (default: never)",
        |draft, value| {
            draft.server.idle_timeout = Some(value.seconds(1..=86_400, ParameterRefusal::IdleTimeout)?);
            Ok(())
        },
    ),
    server(
        "",
        "server-bitrate-limit",
        Required("#[KMG][/#]"),
        "refuse or end tests above this total rate in bits/sec (default 0, no limit; slash and the seconds to average \
         over, default 5)",
        |draft, value| {
            draft.server.bitrate_limit = bitrate_limit(&value.text())?;
            Ok(())
        },
    ),
    server(
        "",
        "server-max-duration",
        Required("#"),
        "refuse tests that may last longer than # seconds (default 0, no limit)",
        |draft, value| {
            let duration = value.seconds(0..=86_400, ParameterRefusal::Duration)?;
            draft.server.max_duration = (!duration.is_zero()).then_some(duration);
            Ok(())
        },
    ),
    either(
        "",
        "rsa-private-key-path",
        Required("file"),
        "RSA private key (PEM) that decrypts the clients' credentials",
        |draft, value| {
            draft.private_key = Some(value.path());
            Ok(())
        },
    ),
    either(
        "",
        "authorized-users-path",
        Required("file"),
        "user names and password hashes of authorized users",
        |draft, value| {
            draft.users = Some(value.path());
            Ok(())
        },
    ),
    either(
        "",
        "time-skew-threshold",
        Required("#"),
        "largest difference in seconds from a client's clock at login (default 10)",
        |draft, value| {
            // iperf3 accepts any int.
            draft.time_skew = Some(value.seconds(1..=i32::MAX.unsigned_abs(), ParameterRefusal::TimeSkew)?);
            Ok(())
        },
    ),
];

/// Parses `rate[/seconds]`; iperf3 checks the seconds first.
fn bitrate_limit(text: &str) -> Result<Option<BitrateLimit>, ParseStop> {
    let (rate, averaging) = match text.split_once('/') {
        Some((rate, seconds)) => (rate, averaging(seconds)?),
        Option::None => (text, DEFAULT_AVERAGING_TIME),
    };
    let rate = iperf3::parse_rate(rate)?;
    Ok((!rate.is_zero()).then_some(BitrateLimit { rate, averaging }))
}

fn averaging(text: &str) -> Result<Duration, ParameterRefusal> {
    let time = iperf3::parse_seconds(text).ok_or(ParameterRefusal::AveragingInterval)?;
    if time.is_zero() {
        return Ok(DEFAULT_AVERAGING_TIME);
    }
    let allowed = Duration::from_millis(100)..=Duration::from_secs(60);
    if allowed.contains(&time) { Ok(time) } else { Err(ParameterRefusal::AveragingInterval) }
}
