use std::num::NonZeroU32;

use linerate_engine::tls::{KeyPin, ServerTrust};

use super::super::draft::CommandDraft;
use super::super::error::{ParameterError, ParseStop};
use super::OptionArgument::{None, Required};
use super::{CommandOption, client, either, server};

/// Server options of linerate that iperf3 does not have.
pub(super) const SERVER_OPTIONS: &[CommandOption] = &[
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

/// Client options of linerate that iperf3 does not have: TLS, for which the server has to be a linerate.
pub(super) const CLIENT_OPTIONS: &[CommandOption] = &[
    client(
        "",
        "tls",
        None,
        "talk to a linerate in TLS 1.3; it needs a certificate that this host trusts",
        |draft, _| {
            draft.client.tls.get_or_insert(ServerTrust::System);
            Ok(())
        },
    ),
    client("", "tls-pin", Required("<pin>"), "the same, with a server that has this key", |draft, value| {
        let pin = value.text().parse::<KeyPin>().map_err(|reason| refused(format!("--tls-pin: {reason}")))?;
        trust(draft, ServerTrust::Pin(pin))
    }),
    client(
        "",
        "tls-ca",
        Required("<file>"),
        "the same, with a certificate from an authority in this file",
        |draft, value| trust(draft, ServerTrust::Authorities(value.text().into())),
    ),
    client(
        "",
        "shared-key-file",
        Required("<file>"),
        "the same, with a server that has the same secret",
        |draft, value| trust(draft, ServerTrust::SharedKey(value.text().into())),
    ),
    client("", "tls-data", None, "the payload of TCP streams in TLS, too", |draft, _| {
        draft.client.parameters.tls_data = true;
        Ok(())
    }),
];

/// Sets the means to recognize the server; a second one would leave in doubt which counts.
fn trust(draft: &mut CommandDraft, trust: ServerTrust) -> Result<(), ParseStop> {
    match draft.client.tls.replace(trust) {
        Option::None | Some(ServerTrust::System) => Ok(()),
        Some(_) => Err(refused("only one of --tls-pin, --tls-ca and --shared-key-file may be given".to_owned()).into()),
    }
}

const fn refused(text: String) -> ParameterError {
    ParameterError { code: 38, text, hint: Option::None }
}
