//! Limits of a server: those asked for, else those of its kind.

use std::num::NonZeroUsize;
use std::time::Duration;

use linerate_engine::server::{ClientChoices, DEFAULT_MAX_SESSIONS, ServerOptions};
use linerate_units::BitRate;
use linerate_wire::parameters::ServerLimits;

use super::ServeArguments;

const PUBLIC_MAX_SESSIONS: NonZeroUsize = NonZeroUsize::new(32).expect("not zero");
const PUBLIC_MAX_DURATION: Duration = Duration::from_secs(60);
const PUBLIC_STALL_TIMEOUT: Duration = Duration::from_secs(20);

/// Limits of a server.
#[derive(Debug)]
pub(super) struct ServeLimits {
    pub(super) max_sessions: NonZeroUsize,
    pub(super) stall_timeout: Duration,
    pub(super) requests: ServerLimits,
    pub(super) choices: ClientChoices,
}

impl ServeLimits {
    pub(super) fn of(arguments: &ServeArguments) -> Self {
        let usual = if arguments.public { Self::public() } else { Self::trusting() };
        Self {
            max_sessions: arguments.max_sessions.unwrap_or(usual.max_sessions),
            stall_timeout: arguments.stall_timeout.unwrap_or(usual.stall_timeout),
            requests: ServerLimits {
                max_duration: arguments.server_max_duration.or(usual.requests.max_duration),
                max_total_rate: arguments
                    .server_bitrate_limit
                    .or(usual.requests.max_total_rate)
                    .filter(|rate| !rate.is_zero()),
                ..usual.requests
            },
            choices: usual.choices,
        }
    }

    /// For the clients of one's own network.
    fn trusting() -> Self {
        Self {
            max_sessions: DEFAULT_MAX_SESSIONS,
            stall_timeout: ServerOptions::default().stall_timeout,
            requests: ServerLimits::default(),
            choices: ClientChoices::All,
        }
    }

    /// For anybody (`--public`).
    fn public() -> Self {
        Self {
            max_sessions: PUBLIC_MAX_SESSIONS,
            stall_timeout: PUBLIC_STALL_TIMEOUT,
            requests: ServerLimits {
                max_duration: Some(PUBLIC_MAX_DURATION),
                max_total_rate: Some(BitRate::from_bits_per_second(1e9)),
                ..ServerLimits::default()
            },
            choices: ClientChoices::Bounded,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cmd::serve::stamp::stamp_options;

    #[derive(Debug, Parser)]
    struct CommandLine {
        #[command(flatten)]
        arguments: ServeArguments,
    }

    fn arguments(words: &[&str]) -> ServeArguments {
        CommandLine::try_parse_from([&["serve"], words].concat()).expect("a valid command line").arguments
    }

    fn figures(words: &[&str]) -> (usize, u64, Option<u64>, Option<f64>) {
        let limits = ServeLimits::of(&arguments(words));
        let seconds = |time: Duration| time.as_secs();
        let rate = limits.requests.max_total_rate.map(|rate| rate.bits_per_second() / 1e6);
        let duration = limits.requests.max_duration.map(seconds);
        (limits.max_sessions.get(), seconds(limits.stall_timeout), duration, rate)
    }

    #[test]
    fn public_servers_have_limits_and_options_replace_them() {
        assert_eq!(figures(&[]), (1000, 120, None, None));
        assert_eq!(figures(&["--public"]), (32, 20, Some(60), Some(1000.0)));
        let own = ["--public", "--max-sessions", "4", "--server-bitrate-limit", "0", "--server-max-duration", "10s"];
        assert_eq!(figures(&own), (4, 20, Some(10), None));
        assert_eq!(figures(&["--public", "--stall-timeout", "5s"]), (32, 5, Some(60), Some(1000.0)));
        let choices = |words| ServeLimits::of(&arguments(words)).choices;
        assert_eq!((choices(&[]), choices(&["--public"])), (ClientChoices::All, ClientChoices::Bounded));
    }

    #[test]
    fn a_public_server_answers_stamp_senders_only_if_asked() {
        let answers = |words: &[&str]| stamp_options(&arguments(words)).expect("no key to read").is_some();
        assert!(answers(&[]) && !answers(&["--public"]));
        assert!(answers(&["--public", "--stamp-port", "5202"]) && !answers(&["--public", "--stamp-port", "0"]));
    }
}
