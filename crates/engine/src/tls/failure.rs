//! Reasons of failed handshakes, with the remedy.

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

use super::ServerTrust;

/// Reason for a client without TLS.
pub(super) const PLAIN_CLIENT: &str = "a client without TLS: it needs linerate with --tls, --tls-pin, --tls-ca or \
                                       --shared-key-file; iperf3 has no TLS";

/// Describes a failure; `trust` is that of a client, and `None` at a server.
pub(super) fn describe(error: &Error, trust: Option<&ServerTrust>) -> String {
    let Some(trust) = trust else { return of_server(error) };
    match error {
        Error::InvalidMessage(InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion) => {
            "the server does not use TLS: start it with `linerate serve --tls`, or omit the TLS options here".to_owned()
        }
        Error::InvalidCertificate(reason) => of_certificate(reason, trust),
        Error::AlertReceived(alert) => of_alert(*alert, trust),
        other => format!("the TLS handshake with the server failed: {other}"),
    }
}

/// Describes a failure of a data stream; `None` for others.
pub(super) fn of_data(error: &Error) -> Option<String> {
    match error {
        Error::DecryptError => Some(
            "a TLS record of the data does not decrypt: something on the path has changed it, or it is not the peer's"
                .to_owned(),
        ),
        Error::InvalidMessage(_) | Error::PeerSentOversizedRecord => {
            Some(format!("the data is not in TLS records ({error})"))
        }
        _ => None,
    }
}

fn of_certificate(reason: &CertificateError, trust: &ServerTrust) -> String {
    match (reason, trust) {
        (CertificateError::ApplicationVerificationFailure, ServerTrust::SharedKey(file)) => format!(
            "the server has another shared key than {}: give both ends the same file by --shared-key-file",
            file.display()
        ),
        (CertificateError::ApplicationVerificationFailure, ServerTrust::SessionKey(_)) => {
            "the server has another key than it named in the conversation: another host may answer on this port"
                .to_owned()
        }
        (CertificateError::ApplicationVerificationFailure, _) => {
            "the server has another key than --tls-pin names: it may \
            have been started again with a new one (keep one by --tls-key FILE there), or it is another server"
                .to_owned()
        }
        (CertificateError::UnknownIssuer, _) => {
            "the server's certificate is from an authority that this host does not \
            trust: name that authority by --tls-ca, or the server's key by --tls-pin"
                .to_owned()
        }
        (CertificateError::BadSignature | CertificateError::Other(_), _) => format!(
            "the server's certificate is unusable ({reason}): a certificate that signs itself is trusted only by --tls-pin"
        ),
        (CertificateError::Expired | CertificateError::ExpiredContext { .. }, _) => {
            format!(
                "the server's certificate has expired ({reason}): renew it there, and check the clocks of both hosts"
            )
        }
        (CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. }, _) => {
            format!("the server's certificate is not valid yet ({reason}): check the clocks of both hosts")
        }
        (CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }, _) => format!(
            "the server's certificate is for another name ({reason}): use that name, or pin the server's key by --tls-pin"
        ),
        _ => format!("the server's certificate is refused: {reason}"),
    }
}

fn of_alert(alert: AlertDescription, trust: &ServerTrust) -> String {
    let is_by_key = matches!(trust, ServerTrust::Pin(_) | ServerTrust::SessionKey(_) | ServerTrust::SharedKey(_));
    match alert {
        AlertDescription::CertificateRequired => {
            "the server requires a certificate of this client: name it by --tls-cert \
            and --tls-key"
                .to_owned()
        }
        AlertDescription::NoApplicationProtocol => "the server uses TLS, but is no linerate: check the port".to_owned(),
        AlertDescription::UnsupportedCertificate | AlertDescription::HandshakeFailure if is_by_key => {
            "the server requires that this client has its shared key, or a certificate: name it by --shared-key-file, or by \
             --tls-cert and --tls-key"
                .to_owned()
        }
        AlertDescription::UnsupportedCertificate | AlertDescription::HandshakeFailure => {
            "the server has only a key, and no \
            certificate: recognize it by --tls-pin, with the pin that it printed, or by --shared-key-file if it has one"
                .to_owned()
        }
        AlertDescription::UnknownCA
        | AlertDescription::BadCertificate
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::AccessDenied
        | AlertDescription::DecryptError => format!(
            "the server refused the certificate or key of this client ({alert:?}): check --tls-cert, or --shared-key-file, \
             against those of the server"
        ),
        other => format!("the server refused the TLS handshake ({other:?})"),
    }
}

fn of_server(error: &Error) -> String {
    match error {
        Error::AlertReceived(alert) => {
            format!("the client refused this server's certificate or key ({alert:?}): compare its pin or authority")
        }
        Error::NoCertificatesPresented => {
            "a client without a certificate: it needs --tls-cert and --tls-key".to_owned()
        }
        Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure) => {
            "a client with another shared key: give both ends the same file by --shared-key-file".to_owned()
        }
        Error::InvalidCertificate(reason) => format!("a client whose certificate is refused: {reason}"),
        other => format!("the TLS handshake with a client failed: {other}"),
    }
}
