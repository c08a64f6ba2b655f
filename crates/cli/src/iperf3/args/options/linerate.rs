use std::num::NonZeroU32;

use super::super::error::ParameterError;
use super::OptionArgument::{None, Required};
use super::{CommandOption, either, server};

/// Server options of linerate that iperf3 does not have.
pub(super) const OPTIONS: &[CommandOption] = &[
    server(
        "",
        "max-sessions",
        Required("#"),
        "largest number of concurrent tests (default 1000; 1 as in iperf3)",
        |draft, value| {
            let text = value.text();
            let sessions = text.parse::<NonZeroU32>().map_err(|_| ParameterError {
                code: 38,
                text: format!("invalid number of sessions '{text}' (a whole number, min = 1)"),
                hint: Option::None,
            })?;
            draft.server.max_sessions = Some(sessions);
            Ok(())
        },
    ),
    server("", "queue", None, "let clients above that number wait instead of refusing them", |draft, _| {
        draft.server.queue = true;
        Ok(())
    }),
    server("", "open-firewall", None, "open the port in this host's firewall while serving", |draft, _| {
        draft.server.open_firewall = true;
        Ok(())
    }),
    // For a client this is an abbreviated --username, as in iperf3; the role decides at the end.
    either("", "user", Required("name"), "become this user once the port is bound", |draft, value| {
        draft.user = Some(value.text());
        Ok(())
    }),
];
