//! Connections that servers refuse, each with its reason and remedy.

use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_nats::{NatsError, NatsFleet, NatsLogin, NatsSettings};

use crate::support::{self, NatsServers, certificates};

fn refusal(settings: &NatsSettings) -> String {
    let error = NatsFleet::connect(settings).expect_err("refused");
    assert!(!error.is_transient(), "{error}");
    error.to_string()
}

fn file(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("a file");
    path
}

#[test]
fn wrong_passwords_and_tokens_are_refused_with_the_remedy() {
    let servers = NatsServers::single("authorization { user: \"agent\", password: \"s3cret\" }");
    let folder = servers.folder().path("");
    let mut settings = NatsSettings::new(servers.urls(), "fleet");
    for (login, part) in [
        (NatsLogin::Anonymous, "authorization violation"),
        (NatsLogin::Password(file(&folder, "wrong", "agent:other\n")), "authorization violation"),
        (NatsLogin::Token(file(&folder, "token", "t0ken\n")), "authorization violation"),
    ] {
        settings.login = login;
        let text = refusal(&settings);
        assert!(text.starts_with(&format!("connecting to {}: ", settings.servers[0])) && text.contains(part), "{text}");
        assert!(text.contains("--nats-credentials") && !text.contains("other") && !text.contains("t0ken"), "{text}");
    }
    settings.login = NatsLogin::Password(file(&folder, "right", "agent:s3cret\n"));
    NatsFleet::connect(&settings).expect("connected").prepare(Duration::from_secs(5)).expect("prepared");
}

#[test]
fn a_server_with_another_authority_is_refused() {
    let folder = support::Folder::new();
    let root = folder.path("");
    certificates(&root);
    let [certificate, key, ca] =
        ["server.pem", "server.key", "ca.pem"].map(|name| root.join(name).display().to_string());
    let tls = |further: &str| format!("tls {{ cert_file: \"{certificate}\", key_file: \"{key}\"{further} }}");
    let servers = NatsServers::single(&tls(""));
    let mut settings = NatsSettings::new(servers.urls(), "fleet");
    settings.authority = Some(root.join("other.pem"));
    let text = refusal(&settings);
    assert!(text.contains("certificate") && text.contains("UnknownIssuer") && text.ends_with("--nats-ca"), "{text}");
    // The authorities of the system do not know it either.
    settings.authority = None;
    let text = refusal(&settings);
    assert!(text.ends_with("--nats-ca"), "{text}");
    settings.authority = Some(ca.clone().into());
    NatsFleet::connect(&settings).expect("connected").prepare(Duration::from_secs(5)).expect("prepared");
    // Clients need certificates, too.
    let mutual = NatsServers::single(&tls(&format!(", ca_file: \"{ca}\", verify: true")));
    settings.servers = mutual.urls();
    let text = refusal(&settings);
    assert!(text.contains("--nats-certificate"), "{text}");
    settings.client_certificate =
        Some(linerate_nats::ClientCertificate { certificate: certificate.into(), key: key.into() });
    NatsFleet::connect(&settings).expect("connected");
}

#[test]
fn a_server_without_jetstream_is_refused() {
    let servers = NatsServers::without_jetstream();
    let error = NatsFleet::connect(&NatsSettings::new(servers.urls(), "fleet")).expect_err("refused");
    assert!(matches!(error, NatsError::NoJetStream { .. }), "{error:?}");
    assert!(error.to_string().contains("start nats-server with `-js`"), "{error}");
}

/// Accounts of an operator, as of a hosted service: the files were written by NATS's own libraries.
#[test]
fn credentials_of_an_account_log_in_and_those_of_others_are_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/accounts");
    let accounts = std::fs::read_to_string(folder.join("accounts.conf")).expect("the accounts");
    let servers = NatsServers::single(&accounts);
    let mut settings = NatsSettings::new(servers.urls(), "fleet");
    settings.login = NatsLogin::Credentials(folder.join("agent.creds"));
    NatsFleet::connect(&settings).expect("connected").prepare(Duration::from_secs(5)).expect("prepared");
    settings.login = NatsLogin::Credentials(folder.join("stranger.creds"));
    let text = refusal(&settings);
    assert!(text.contains("authorization violation: check the login (--nats-credentials"), "{text}");
    // An account without storage.
    settings.login = NatsLogin::Credentials(folder.join("poor.creds"));
    let text = refusal(&settings);
    assert!(text.contains("has no JetStream for this account") && text.contains("not enabled for account"), "{text}");
}
