//! HTTP request of a scraper: any client that reaches the address writes it.

use core::time::Duration;

/// Header in which Prometheus names the time after which it gives up.
const SCRAPE_TIMEOUT_HEADER: &str = "x-prometheus-scrape-timeout-seconds";

/// Request of a client that polls metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpRequest {
    /// Method; empty without one.
    pub method: String,
    /// Path without the query.
    pub path: String,
    query: String,
    /// Time after which Prometheus gives up.
    pub scrape_timeout: Option<Duration>,
}

impl HttpRequest {
    /// Parses the request's lines; unknown headers are ignored.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut lines = text.lines();
        let mut fields = lines.next().unwrap_or_default().split_whitespace();
        let method = fields.next().unwrap_or_default().to_owned();
        let target = fields.next().unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let headers = lines.filter_map(|line| line.split_once(':'));
        let mut timeout = headers.filter(|(name, _)| name.trim().eq_ignore_ascii_case(SCRAPE_TIMEOUT_HEADER));
        let seconds = timeout.find_map(|(_, value)| value.trim().parse().ok());
        let scrape_timeout = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Self { method, path: path.to_owned(), query: query.to_owned(), scrape_timeout }
    }

    /// Parameter of the query, decoded; `None` when it is missing or wrongly encoded.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<String> {
        let of = |pair: &str| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (key == name).then(|| value.to_owned())
        };
        decode(&self.query.split('&').find_map(of)?)
    }
}

/// Decodes `%41` and `+`.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_parameters_and_a_time() {
        let text = "GET /probe?target=a%2Eb&module=rtt&x HTTP/1.1\r\nX-Prometheus-Scrape-Timeout-Seconds: 1.5\r\n\r\n";
        let request = HttpRequest::parse(text);
        assert_eq!((request.path.as_str(), request.scrape_timeout), ("/probe", Some(Duration::from_millis(1500))));
        let of = |name: &str| request.parameter(name);
        assert_eq!([of("target"), of("module"), of("x")].map(Option::unwrap_or_default), ["a.b", "rtt", ""]);
        assert_eq!((of("y"), decode("%"), decode("%ff"), decode("%g0")), (None, None, None, None));
        for timeout in ["-1", "nan", "1e300", "x"] {
            let text = format!("GET / HTTP/1.1\r\nx-prometheus-scrape-timeout-seconds: {timeout}\r\n\r\n");
            assert_eq!(HttpRequest::parse(&text).scrape_timeout, None, "{timeout}");
        }
        assert_eq!(HttpRequest::parse(""), HttpRequest::default());
    }
}
