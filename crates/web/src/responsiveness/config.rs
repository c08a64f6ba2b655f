//! Configuration of a responsiveness server: the URLs of its objects. It comes from a stranger, and names where load goes to.

use linerate_units::Port;
use serde::Deserialize;

/// Most bytes of a configuration.
pub(super) const MAX_CONFIGURATION: usize = 64 << 10;

/// Longest URL.
const MAX_URL: usize = 2048;

/// Path of the configuration where the user names none.
const WELL_KNOWN: &str = "/.well-known/nq";

/// Port of HTTPS.
const HTTPS_PORT: u16 = 443;

/// A URL of HTTPS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpsUrl {
    /// Name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: Port,
    /// Path and query.
    pub path: String,
}

impl HttpsUrl {
    /// Parses the URL of a configuration, as the user gives it; without a path it is the well-known one.
    ///
    /// # Errors
    ///
    /// The reason why it is unusable.
    pub fn parse_configuration(text: &str) -> Result<Self, String> {
        let url = Self::parse(text)?;
        let has_path = text.trim_start_matches("https://").contains('/') && url.path != "/";
        Ok(if has_path { url } else { Self { path: WELL_KNOWN.to_owned(), ..url } })
    }

    /// Parses a URL.
    fn parse(text: &str) -> Result<Self, String> {
        let shown = || super::shown(text);
        if text.len() > MAX_URL {
            return Err(format!("{} is longer than {MAX_URL} bytes", shown()));
        }
        let uri: hyper::Uri = text.parse().map_err(|_| format!("{} is no URL", shown()))?;
        match uri.scheme_str() {
            Some("https") => {}
            Some("http") => return Err(format!("{} is without TLS: only https:// is measured", shown())),
            _ => return Err(format!("{} does not begin with https://", shown())),
        }
        let authority = uri.authority().ok_or_else(|| format!("{} names no host", shown()))?;
        if authority.as_str().contains('@') {
            return Err(format!("{} has a user name, which is not sent", shown()));
        }
        let host = authority.host();
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let port = match authority.as_str().rsplit_once(':') {
            Some((_, port)) if !port.contains(']') => port.parse().ok().and_then(Port::new),
            _ => Port::new(HTTPS_PORT),
        };
        let port = port.ok_or_else(|| format!("{} has an invalid port", shown()))?;
        if host.is_empty() {
            return Err(format!("{} names no host", shown()));
        }
        let path = uri.path_and_query().map_or("/", hyper::http::uri::PathAndQuery::as_str);
        Ok(Self { host: host.to_ascii_lowercase(), port, path: path.to_owned() })
    }

    /// Host and port as in a URL.
    #[must_use]
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port.get() == HTTPS_PORT { host } else { format!("{host}:{}", self.port) }
    }
}

/// Objects of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerObjects {
    /// Host and port of all objects.
    pub host: HttpsUrl,
    /// Path of an object of one byte.
    pub small: String,
    /// Path of an object of 8 GB and more.
    pub large: String,
    /// Path of a sink.
    pub upload: String,
    /// Host to which the configuration asks clients to connect instead; it is not used.
    pub ignored_endpoint: Option<String>,
}

#[derive(Deserialize)]
struct ConfigurationDocument {
    version: u64,
    urls: ConfigurationUrls,
    #[serde(default)]
    test_endpoint: Option<String>,
}

/// URLs under their names in the draft, and in implementations before it.
#[derive(Deserialize)]
#[expect(clippy::struct_field_names, reason = "the names of the keys")]
struct ConfigurationUrls {
    #[serde(default)]
    small_download_url: Option<String>,
    #[serde(default)]
    small_https_download_url: Option<String>,
    #[serde(default)]
    large_download_url: Option<String>,
    #[serde(default)]
    large_https_download_url: Option<String>,
    #[serde(default)]
    upload_url: Option<String>,
    #[serde(default)]
    https_upload_url: Option<String>,
}

/// Reads the configuration that was found at `url`. Its objects must be on the host that the user named, or on one of `allowed`.
///
/// # Errors
///
/// The reason why it is unusable.
pub fn parse(text: &[u8], url: &HttpsUrl, allowed: &[String]) -> Result<ServerObjects, String> {
    if text.len() > MAX_CONFIGURATION {
        return Err(format!("the configuration has more than {MAX_CONFIGURATION} bytes"));
    }
    let document: ConfigurationDocument = serde_json::from_slice(text)
        .map_err(|cause| format!("the configuration is no JSON of a responsiveness server: {cause}"))?;
    if document.version != 1 {
        return Err(format!("the configuration has version {}, and only 1 is known", document.version));
    }
    let object = |name: &str, new: Option<String>, old: Option<String>| {
        let text = new.or(old).ok_or_else(|| format!("the configuration has no {name}"))?;
        HttpsUrl::parse(&text).map_err(|reason| format!("{name} of the configuration: {reason}"))
    };
    let urls = document.urls;
    let small = object("small_download_url", urls.small_download_url, urls.small_https_download_url)?;
    let large = object("large_download_url", urls.large_download_url, urls.large_https_download_url)?;
    let upload = object("upload_url", urls.upload_url, urls.https_upload_url)?;
    for other in [&small, &upload] {
        if (&other.host, other.port) != (&large.host, large.port) {
            return Err(format!(
                "the configuration names {} and {}: probes share the connections of the load, so that all objects must be on \
                 one host",
                super::shown(&large.authority()),
                super::shown(&other.authority())
            ));
        }
    }
    let is_allowed = large.host == url.host || allowed.iter().any(|host| host.eq_ignore_ascii_case(&large.host));
    if !is_allowed {
        let host = super::shown(&large.host);
        return Err(format!("the configuration sends the load to another host, {host}: --also-host {host} allows it"));
    }
    let (small, large_path, upload) = (small.path, large.path.clone(), upload.path);
    let ignored_endpoint = document.test_endpoint.map(|host| super::shown(&host));
    Ok(ServerObjects { host: large, small, large: large_path, upload, ignored_endpoint })
}

/// Checks the parser for any input: what it accepts is on the named host, or an allowed one.
///
/// # Panics
///
/// When it is not.
pub fn fuzz(data: &[u8]) {
    let Ok(url) = HttpsUrl::parse_configuration("https://measure.example:4043/config") else { return };
    for allowed in [Vec::new(), vec!["other.example".to_owned()]] {
        if let Ok(objects) = parse(data, &url, &allowed) {
            assert!(objects.host.host == url.host || allowed.contains(&objects.host.host));
            assert!(!objects.host.authority().contains('@'));
            for path in [&objects.small, &objects.large, &objects.upload] {
                let again = HttpsUrl::parse(&format!("https://{}{path}", objects.host.authority()));
                assert_eq!(again.map(|url| url.path).as_ref(), Ok(path), "a path stays on its host");
            }
        }
    }
    if let Ok(text) = core::str::from_utf8(data) {
        let _ = HttpsUrl::parse_configuration(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> HttpsUrl {
        HttpsUrl::parse_configuration(text).expect("valid")
    }

    fn document(small: &str, large: &str, upload: &str) -> String {
        format!(
            r#"{{"version":1,"urls":{{"small_download_url":"{small}","large_https_download_url":"{large}",
            "upload_url":"{upload}"}},"test_endpoint":"edge.example","more":[]}}"#
        )
    }

    #[test]
    fn urls_of_users_have_a_host_a_port_and_a_path() {
        let parsed = |text: &str| {
            let url = url(text);
            (url.authority(), url.port.get(), url.path)
        };
        assert_eq!(parsed("https://a.example"), ("a.example".into(), 443, WELL_KNOWN.into()));
        assert_eq!(parsed("https://A.example:4043/"), ("a.example:4043".into(), 4043, WELL_KNOWN.into()));
        assert_eq!(parsed("https://[2001:db8::1]/x?y=1"), ("[2001:db8::1]".into(), 443, "/x?y=1".into()));
        assert_eq!(parsed("https://192.0.2.1:80/c"), ("192.0.2.1:80".into(), 80, "/c".into()));
        for wrong in
            ["", "a", "http://a.example/", "https://", "https://u@a.example/", "https://a:0/", "https://a:99999/"]
        {
            assert!(HttpsUrl::parse_configuration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn objects_are_on_the_named_host() {
        let from = url("https://a.example:4043/config");
        let text = document("https://a.example/s", "https://a.example/l", "https://A.example:443/u?x");
        let objects = parse(text.as_bytes(), &from, &[]).expect("valid");
        assert_eq!((objects.host.port.get(), objects.small.as_str(), objects.upload.as_str()), (443, "/s", "/u?x"));
        assert_eq!(objects.ignored_endpoint.as_deref(), Some("edge.example"));
        let elsewhere = document("https://b.example/s", "https://b.example/l", "https://b.example/u");
        let refused = parse(elsewhere.as_bytes(), &from, &[]).expect_err("another host");
        assert!(refused.contains("--also-host b.example"), "{refused}");
        assert!(parse(elsewhere.as_bytes(), &from, &["B.example".to_owned()]).is_ok());
        for (wrong, reason) in [
            (document("https://a.example/s", "https://a.example/l", "https://b.example/u"), "on one host"),
            (document("https://a.example/s", "https://a.example:1/l", "https://a.example/u"), "on one host"),
            (document("http://a.example/s", "https://a.example/l", "https://a.example/u"), "without TLS"),
            (document("/s", "https://a.example/l", "https://a.example/u"), "does not begin"),
            (
                document("https://169.254.169.254/", "https://169.254.169.254/", "https://169.254.169.254/"),
                "--also-host",
            ),
            (r#"{"version":2,"urls":{}}"#.to_owned(), "version 2"),
            (r#"{"version":1,"urls":{}}"#.to_owned(), "no small_download_url"),
            ("<html>".to_owned(), "no JSON"),
            (" ".repeat(MAX_CONFIGURATION + 1), "more than 65536 bytes"),
        ] {
            let refused = parse(wrong.as_bytes(), &from, &[]).expect_err(reason);
            assert!(refused.contains(reason), "{refused}");
        }
    }

    #[test]
    fn every_seed_of_the_fuzz_target_is_usable_or_refused() {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/responsiveness_configuration");
        let seeds: Vec<_> = std::fs::read_dir(corpus).expect("a corpus").collect();
        assert!(!seeds.is_empty());
        for seed in seeds {
            fuzz(&std::fs::read(seed.expect("a file").path()).expect("a file"));
        }
    }

    #[test]
    fn a_url_is_read_up_to_its_longest_length() {
        let of_length = |length: usize| format!("https://a/{}", "x".repeat(length - "https://a/".len()));
        assert!(HttpsUrl::parse_configuration(&of_length(MAX_URL)).is_ok());
        let refused = HttpsUrl::parse_configuration(&of_length(MAX_URL + 1)).expect_err("too long");
        assert!(refused.ends_with("is longer than 2048 bytes") && refused.len() < 200, "shortened: {refused}");
    }

    #[test]
    fn keys_of_the_draft_precede_those_before_it() {
        let text = r#"{"version":1,"urls":{"small_download_url":"https://a.example:4043/new",
            "small_https_download_url":"https://b.example/old","large_download_url":"https://a.example:4043/l",
            "https_upload_url":"https://a.example:4043/u"}}"#;
        let objects = parse(text.as_bytes(), &url("https://a.example:4043"), &[]).expect("valid");
        assert_eq!((objects.small.as_str(), objects.upload.as_str(), objects.ignored_endpoint), ("/new", "/u", None));
    }

    proptest::proptest! {
        #[test]
        fn any_url_is_written_as_it_was_read(
            host in "[a-z][a-z0-9-]{0,8}(\\.[a-z]{1,5}){0,2}|\\[2001:db8::[0-9a-f]{1,4}\\]",
            port in proptest::option::of(1..=u16::MAX),
            path in "/[a-z0-9._~-]{1,9}(/[a-z]{0,3})?(\\?[a-z]=[0-9/]{0,3})?",
        ) {
            let authority = port.map_or(host.clone(), |port| format!("{host}:{port}"));
            let read = url(&format!("https://{authority}{path}"));
            proptest::prop_assert_eq!((read.port.get(), &read.path), (port.unwrap_or(443), &path));
            proptest::prop_assert!(!read.host.contains(['[', ']']), "{}", read.host);
            let again = url(&format!("https://{}{}", read.authority(), read.path));
            proptest::prop_assert_eq!(again, read);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_configuration_is_usable_or_refused(
            hosts in proptest::collection::vec("(https?://)?[a-c@.:0-9\\[\\]]{0,12}(/[ -~]{0,8})?", 3),
            text in ".{0,80}",
        ) {
            fuzz(document(&hosts[0], &hosts[1], &hosts[2]).as_bytes());
            fuzz(text.as_bytes());
        }
    }
}
