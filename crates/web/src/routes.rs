//! Paths and queries. A path is compared as it is: nothing is decoded, and no file is looked for.

use crate::assets::{self, PageFile};
use crate::librespeed::LibrespeedEndpoint;

/// Longest query that is looked at.
const MAX_QUERY: usize = 1024;

/// Destination of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Route {
    File(PageFile),
    Librespeed(LibrespeedEndpoint),
    /// `POST` opens a session, `GET` returns what the server has sampled in one.
    Session,
    Ping,
    Download,
    Upload,
    Result,
    /// List of the runs.
    History,
    /// One run's report.
    HistoryRun,
    HistoryComparison,
    HistoryTrend,
    /// Results of the monitors and agents of this host.
    HistoryResults,
}

impl Route {
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        Some(match path {
            "/api/session" => Self::Session,
            "/api/ping" => Self::Ping,
            "/api/download" => Self::Download,
            "/api/upload" => Self::Upload,
            "/api/result" => Self::Result,
            "/history" => Self::History,
            "/history/run" => Self::HistoryRun,
            "/history/compare" => Self::HistoryComparison,
            "/history/trend" => Self::HistoryTrend,
            "/history/results" => Self::HistoryResults,
            path => match LibrespeedEndpoint::of_path(path) {
                Some(endpoint) => Self::Librespeed(endpoint),
                None => Self::File(assets::file(path)?),
            },
        })
    }

    /// Methods that it answers.
    pub(crate) const fn methods(self) -> &'static str {
        match self {
            Self::Session => "GET, HEAD, POST",
            Self::Upload | Self::Result => "POST",
            Self::Librespeed(LibrespeedEndpoint::Empty) => "GET, HEAD, POST, OPTIONS",
            Self::Librespeed(_) => "GET, HEAD, OPTIONS",
            _ => "GET, HEAD",
        }
    }
}

/// Parameters of a query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Query<'a>(&'a str);

impl<'a> Query<'a> {
    /// Parameters of a query; too long ones are as none.
    pub(crate) fn new(query: Option<&'a str>) -> Self {
        Self(query.filter(|query| query.len() <= MAX_QUERY).unwrap_or_default())
    }

    /// Value of a parameter, as it is: no parameter needs characters that are encoded.
    pub(crate) fn value(self, name: &str) -> Option<&'a str> {
        self.0.split('&').find_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (key == name).then_some(value)
        })
    }

    pub(crate) fn number(self, name: &str) -> Option<u64> {
        self.value(name)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_known_paths_have_a_destination() {
        for path in ["/", "/page.js", "/api/session", "/backend/garbage.php", "/history/run"] {
            assert!(Route::of_path(path).is_some(), "{path}");
        }
        for path in [
            "/../etc/passwd",
            "/..%2f..%2fetc/passwd",
            "//etc/passwd",
            "/page.js/",
            "/page.js%00",
            "/API/session",
            "/api/session/../result",
            "/%2e%2e/page.js",
            "",
            "*",
        ] {
            assert!(Route::of_path(path).is_none(), "{path}");
        }
    }

    #[test]
    fn parameters_are_found() {
        let query = Query::new(Some("cors&ckSize=20&session=&bytes=x"));
        assert_eq!(
            (query.value("cors"), query.value("ckSize"), query.number("ckSize")),
            (Some(""), Some("20"), Some(20))
        );
        assert_eq!((query.value("session"), query.number("bytes"), query.value("size")), (Some(""), None, None));
        let long = format!("cors={}", "x".repeat(MAX_QUERY));
        assert_eq!(Query::new(Some(&long)).value("cors"), None);
    }

    #[test]
    fn each_destination_has_its_methods() {
        for (path, methods) in [
            ("/", "GET, HEAD"),
            ("/api/session", "GET, HEAD, POST"),
            ("/api/ping", "GET, HEAD"),
            ("/api/download", "GET, HEAD"),
            ("/api/upload", "POST"),
            ("/api/result", "POST"),
            ("/garbage", "GET, HEAD, OPTIONS"),
            ("/empty", "GET, HEAD, POST, OPTIONS"),
            ("/getIP", "GET, HEAD, OPTIONS"),
            ("/history", "GET, HEAD"),
            ("/history/compare", "GET, HEAD"),
            ("/history/trend", "GET, HEAD"),
            ("/history/results", "GET, HEAD"),
        ] {
            assert_eq!(Route::of_path(path).map(Route::methods), Some(methods), "{path}");
        }
    }

    #[test]
    fn a_query_is_read_up_to_its_longest_length() {
        for (length, is_read) in [(MAX_QUERY, true), (MAX_QUERY + 1, false)] {
            let query = format!("a=1&b={}", "x".repeat(length - "a=1&b=".len()));
            assert_eq!(Query::new(Some(&query)).number("a"), is_read.then_some(1), "{length}");
        }
        assert_eq!(Query::new(None).value("a"), None);
    }

    proptest! {
        #[test]
        fn the_first_parameter_of_a_name_counts(pairs in proptest::collection::vec(("[a-c]{0,2}", "[a-z0-9=%]{0,4}"), 0..8)) {
            let text = pairs.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join("&");
            for name in ["a", "b", "ab", "c"] {
                let first = pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
                prop_assert_eq!(Query::new(Some(&text)).value(name), first, "{} in {}", name, text);
            }
        }

        #[test]
        fn any_number_is_read_and_nothing_else(number: u64, text in "[0-9]{0,3}[a-z.-]{1,2}[0-9]{0,3}|[1-9][0-9]{20,29}") {
            let query = format!("good={number}&bad={text}");
            let query = Query::new(Some(&query));
            prop_assert_eq!((query.number("good"), query.number("bad")), (Some(number), None));
        }
    }
}
