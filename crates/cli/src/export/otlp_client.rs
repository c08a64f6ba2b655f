//! HTTP client of OTLP: one request, and what its answer means for the results in it.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use linerate_documents::civil_time;
use linerate_units::WallTime;
use ureq::Agent;
use ureq::http::{HeaderName, HeaderValue, Response, StatusCode, Uri, header};
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};

/// Largest answer that is read, and largest part of it that is shown.
const MAX_ANSWER_BYTES: u64 = 64 << 10;
const MAX_SHOWN: usize = 200;

/// Longest pause that a receiver can ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3600);

/// Base of the endpoints `/v1/metrics` and `/v1/logs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OtlpUrl(String);

impl FromStr for OtlpUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let uri: Uri = text.parse().map_err(|_| "expected a URL such as http://127.0.0.1:4318".to_owned())?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none_or(str::is_empty) {
            return Err("expected http://HOST[:PORT] or https://HOST[:PORT]".to_owned());
        }
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err("a URL is visible to other users: --otlp-header takes secrets, from a file".to_owned());
        }
        if uri.query().is_some() {
            return Err("expected a URL without a query: /v1/metrics and /v1/logs are appended".to_owned());
        }
        let base = text.trim_end_matches('/');
        if base.ends_with("/v1/metrics") || base.ends_with("/v1/logs") {
            return Err("expected the URL above /v1/metrics and /v1/logs, which are appended".to_owned());
        }
        Ok(Self(base.to_owned()))
    }
}

impl OtlpUrl {
    pub(super) fn text(&self) -> &str {
        &self.0
    }

    fn is_encrypted(&self) -> bool {
        self.0.starts_with("https:")
    }
}

/// Header whose value is in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OtlpHeader {
    name: HeaderName,
    file: PathBuf,
}

impl FromStr for OtlpHeader {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, file) = text.split_once('=').ok_or("expected NAME=FILE, for example Authorization=/etc/token")?;
        let name: HeaderName = name.trim().parse().map_err(|_| format!("\"{name}\" is no name of a header"))?;
        let own = [header::CONTENT_TYPE, header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::HOST];
        if own.contains(&name) {
            return Err(format!("linerate sets the header {name} itself"));
        }
        Ok(Self { name, file: PathBuf::from(file) })
    }
}

impl OtlpHeader {
    /// Value: the file without the space around it.
    fn value(&self) -> Result<HeaderValue, String> {
        let of_file = format!("header {} of --otlp-header: {}", self.name, self.file.display());
        let text = std::fs::read_to_string(&self.file)
            .map_err(|cause| format!("{of_file}: {}", linerate_sys::describe_os_error(&cause)))?;
        let mut value: HeaderValue =
            text.trim().parse().map_err(|_| format!("{of_file}: expected one line of printable text"))?;
        value.set_sensitive(true);
        Ok(value)
    }
}

/// Fate of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// Accepted, with the receiver's warning.
    Accepted(Option<String>),
    /// The receiver does not take these contents, now or later.
    Refused(String),
    /// An error within the receiver, from these contents or not.
    Failed(String),
    /// The receiver does not have this endpoint.
    Absent(String),
    /// The receiver may take it later, at the earliest after the time that it names.
    Unavailable(String, Option<Duration>),
}

/// Client of one receiver.
#[derive(Debug)]
pub(super) struct OtlpClient {
    agent: Agent,
    url: OtlpUrl,
    headers: Vec<OtlpHeader>,
}

impl OtlpClient {
    /// Client without a connection yet. Headers are read here once, so that a missing file is an error at the start.
    pub(super) fn new(url: &OtlpUrl, headers: &[OtlpHeader]) -> Result<Self, String> {
        for header in headers {
            header.value()?;
        }
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .user_agent(concat!("linerate/", env!("CARGO_PKG_VERSION")));
        if url.is_encrypted() {
            config = config.tls_config(tls_config()?);
        }
        Ok(Self { agent: config.build().new_agent(), url: url.clone(), headers: headers.to_vec() })
    }

    /// Posts a JSON document to an endpoint: `/v1/logs`.
    pub(super) fn post(&self, endpoint: &str, body: &str, limit: Duration, now: WallTime) -> Delivery {
        let mut request = self.agent.post(format!("{}{endpoint}", self.url.0)).content_type("application/json");
        for header in &self.headers {
            match header.value() {
                Ok(value) => request = request.header(header.name.clone(), value),
                Err(reason) => return Delivery::Unavailable(reason, None),
            }
        }
        match request.config().timeout_global(Some(limit)).build().send(body) {
            Ok(mut response) => {
                let answer = response.body_mut().with_config().limit(MAX_ANSWER_BYTES).read_to_string();
                let pause = retry_after(&response, now);
                delivery(response.status(), &answer.unwrap_or_default(), pause)
            }
            Err(error) => Delivery::Unavailable(describe(&error), None),
        }
    }
}

/// Certificates that this host trusts: a collector in a company has that company's, and the host's list is kept up to date by
/// the distribution, which one inside this program would not be.
pub(super) fn tls_config() -> Result<TlsConfig, String> {
    let found = rustls_native_certs::load_native_certs();
    let roots: Vec<Certificate<'static>> =
        found.certs.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect();
    if roots.is_empty() {
        return Err("https: this host trusts no certificates; install the package ca-certificates, or name a file of \
                    them in $SSL_CERT_FILE"
            .to_owned());
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    Ok(TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(provider)
        .root_certs(RootCerts::from(roots))
        .build())
}

pub(super) fn describe(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(cause) if cause.raw_os_error().is_some() => linerate_sys::describe_os_error(cause),
        ureq::Error::Io(cause) => cause.to_string(),
        ureq::Error::Timeout(_) => "no answer in time".to_owned(),
        ureq::Error::HostNotFound => "the host's name is unknown".to_owned(),
        other => other.to_string(),
    }
}

/// Meaning of an answer, by the specification of OTLP/HTTP and what receivers do.
fn delivery(status: StatusCode, answer: &str, retry_after: Option<Duration>) -> Delivery {
    let reason = format!("it answered {status}{}", shown(answer));
    match status.as_u16() {
        200..300 => Delivery::Accepted(partial_success(answer)),
        400 | 413 | 422 => Delivery::Refused(reason),
        404 | 405 | 501 => Delivery::Absent(reason),
        500 => Delivery::Failed(reason),
        _ => Delivery::Unavailable(reason, retry_after),
    }
}

/// First line of an answer, without control characters: a stranger wrote it.
fn shown(answer: &str) -> String {
    let document = serde_json::from_str::<serde_json::Value>(answer).ok();
    let message = document.as_ref().map_or(answer, |document| document["message"].as_str().unwrap_or_default());
    let line: String = message.trim().lines().next().unwrap_or_default().chars().take(MAX_SHOWN).collect();
    let line: String = line.chars().filter(|character| !character.is_control()).collect();
    if line.is_empty() { line } else { format!(": {line}") }
}

/// Warning of a receiver that took only a part, or all with a remark.
fn partial_success(answer: &str) -> Option<String> {
    let answer: serde_json::Value = serde_json::from_str(answer).ok()?;
    let partial = answer.get("partialSuccess")?;
    let count = |key: &str| {
        let value = partial.get(key)?;
        let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
        (number > 0).then_some(number)
    };
    let rejected = count("rejectedLogRecords").or_else(|| count("rejectedDataPoints"));
    let text = shown(partial["errorMessage"].as_str().unwrap_or_default());
    match rejected {
        Some(rejected) => Some(format!("it rejected {rejected} records{text}")),
        None => (!text.is_empty()).then(|| format!("it warns{text}")),
    }
}

/// `Retry-After`: seconds, or a date.
fn retry_after<T>(response: &Response<T>, now: WallTime) -> Option<Duration> {
    let value = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    let until = |date: WallTime| date.since_unix_epoch().saturating_sub(now.since_unix_epoch());
    let seconds = value.parse().ok().map(Duration::from_secs);
    let pause = seconds.or_else(|| civil_time::parse_http_date(value).map(until))?;
    Some(pause.min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_a_host_and_no_secret() {
        let of = |text: &str| text.parse::<OtlpUrl>().map(|url| url.0);
        assert_eq!(of("http://127.0.0.1:4318/").as_deref(), Ok("http://127.0.0.1:4318"));
        assert_eq!(of("https://otlp.example/api/otlp").as_deref(), Ok("https://otlp.example/api/otlp"));
        for wrong in [
            "",
            "x",
            "collector:4318",
            "ftp://a",
            "http://",
            "http://u:p@a",
            "http://a/v1/logs",
            "http://a/v1/metrics/",
            "http://a?key=1",
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn headers_are_names_with_files() {
        let of = |text: &str| text.parse::<OtlpHeader>();
        assert!(of("Authorization=/etc/token").is_ok());
        for wrong in ["", "Authorization", "a b=/x", "=/x", "Content-Type=/x", "host=/x"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
        let missing = of("X-Key=/nonexistent").expect("a header").value().expect_err("no file");
        assert_eq!(missing, "header x-key of --otlp-header: /nonexistent: No such file or directory");
    }

    #[test]
    fn each_answer_has_a_meaning() {
        let of = |status: u16, answer: &str| {
            delivery(StatusCode::from_u16(status).expect("a status"), answer, Some(Duration::from_secs(3)))
        };
        assert_eq!(of(200, ""), Delivery::Accepted(None));
        assert_eq!(of(200, r#"{"partialSuccess":{}}"#), Delivery::Accepted(None));
        let partial = r#"{"partialSuccess":{"rejectedLogRecords":"2","errorMessage":"too old"}}"#;
        assert_eq!(of(202, partial), Delivery::Accepted(Some("it rejected 2 records: too old".to_owned())));
        let reason = |text: &str| text.to_owned();
        assert_eq!(
            of(400, r#"{"code":3,"message":"no\u001b[2J such field"}"#),
            Delivery::Refused(reason("it answered 400 Bad Request: no[2J such field"))
        );
        assert_eq!(of(404, ""), Delivery::Absent(reason("it answered 404 Not Found")));
        assert_eq!(of(500, "x\ny"), Delivery::Failed(reason("it answered 500 Internal Server Error: x")));
        for status in [301, 401, 403, 408, 415, 429, 502, 503, 504] {
            let pause = Some(Duration::from_secs(3));
            assert!(matches!(of(status, ""), Delivery::Unavailable(_, after) if after == pause), "{status}");
        }
    }

    #[test]
    fn pauses_are_seconds_or_dates() {
        let now = WallTime::from_unix(Duration::from_secs(784_111_770));
        let of = |value: &str| {
            let response = Response::builder().header("Retry-After", value).body(()).expect("a response");
            retry_after(&response, now).map(|pause| pause.as_secs())
        };
        assert_eq!((of("7"), of("Sun, 06 Nov 1994 08:49:37 GMT"), of("99999999")), (Some(7), Some(7), Some(3600)));
        assert_eq!((of("-1"), of("soon"), of("Sun, 06 Nov 1994 08:49:00 GMT")), (None, None, Some(0)));
    }
}
