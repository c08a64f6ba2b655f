use std::time::Duration;

use linerate_units::iperf3;

use super::super::command::BitrateLimit;
use super::super::draft::Role;
use super::super::error::{Refusal, Stop};
use super::Argument::{None, Required};
use super::{CommandOption, either, server};

/// iperf3's averaging time when none is given.
const AVERAGING: Duration = Duration::from_secs(5);

/// Options that only a server takes. The credentials' are checked at the end, with the others of their kind.
pub(super) const OPTIONS: &[CommandOption] = &[
    either("s", "server", None, "run as a server", |draft, _| draft.take_role(Role::Server)),
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
            draft.server.idle_timeout = Some(value.seconds(1..=86_400, Refusal::IdleTimeout)?);
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
            let duration = value.seconds(0..=86_400, Refusal::Duration)?;
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
        "user names and password hashes of those who may test",
        |draft, value| {
            draft.users = Some(value.path());
            Ok(())
        },
    ),
    either(
        "",
        "time-skew-threshold",
        Required("#"),
        "seconds that a client's clock may be off when it logs in (default 10)",
        |draft, value| {
            // iperf3 takes any int.
            draft.time_skew = Some(value.seconds(1..=i32::MAX.unsigned_abs(), Refusal::TimeSkew)?);
            Ok(())
        },
    ),
];

/// `rate[/seconds]`; iperf3 looks at the seconds first.
fn bitrate_limit(text: &str) -> Result<Option<BitrateLimit>, Stop> {
    let (rate, averaging) = match text.split_once('/') {
        Some((rate, seconds)) => (rate, averaging(seconds)?),
        Option::None => (text, AVERAGING),
    };
    let rate = iperf3::parse_rate(rate)?;
    Ok((!rate.is_zero()).then_some(BitrateLimit { rate, averaging }))
}

fn averaging(text: &str) -> Result<Duration, Refusal> {
    let time = iperf3::parse_seconds(text).ok_or(Refusal::AveragingInterval)?;
    if time.is_zero() {
        return Ok(AVERAGING);
    }
    let allowed = Duration::from_millis(100)..=Duration::from_secs(60);
    if allowed.contains(&time) { Ok(time) } else { Err(Refusal::AveragingInterval) }
}
