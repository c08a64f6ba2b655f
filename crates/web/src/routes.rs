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
}
