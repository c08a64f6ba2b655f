//! Body of the fuzz target, shared with the short deterministic run among the tests.

use crate::HttpRequest;

/// Fuzz target: takes any bytes; panics on a violated invariant.
pub type ExportFuzzTarget = fn(&[u8]);

/// Every target by name, as in `fuzz/fuzz_targets` and `fuzz/corpus`.
pub const TARGETS: &[(&str, ExportFuzzTarget)] = &[("export_http_request", export_http_request)];

/// Parses text of any kind as a request of a scraper: its parts have no spaces or line ends, and what a parameter decodes to is no
/// longer than the request.
///
/// # Panics
///
/// When one of these invariants is violated.
pub fn export_http_request(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let request = HttpRequest::parse(&text);
    let is_word = |part: &str| !part.contains(char::is_whitespace);
    assert!(is_word(&request.method) && is_word(&request.path) && !request.path.contains('?'), "{request:?}");
    let has_header = text.to_ascii_lowercase().contains("x-prometheus-scrape-timeout-seconds");
    assert!(has_header || request.scrape_timeout.is_none(), "{request:?}");
    for name in ["target", "module", ""] {
        assert!(request.parameter(name).is_none_or(|value| value.len() <= text.len()), "{request:?}");
    }
}
