//! Errors of a measurement.

use core::fmt;

use linerate_wire::error::ErrorCode;

/// A measurement that failed or was aborted.
///
/// `Display` is iperf3's text, which scripts look for; [`Error::advice`] is for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: ErrorCode,
    reason: Option<String>,
    detail: Option<String>,
    from_server: bool,
}

/// Result with this crate's error.
pub type Result<T> = core::result::Result<T, Error>;

impl Error {
    /// An error with only a number.
    #[must_use]
    pub fn new(code: ErrorCode) -> Self {
        Self { code, reason: None, detail: None, from_server: false }
    }

    /// A system operation failed.
    #[must_use]
    pub fn system(code: ErrorCode, cause: &linerate_sys::Error) -> Self {
        Self { code, reason: Some(cause.reason()), detail: Some(cause.to_string()), from_server: false }
    }

    /// An I/O operation failed.
    #[must_use]
    pub fn io(code: ErrorCode, cause: &std::io::Error) -> Self {
        let reason = linerate_sys::describe_os_error(cause);
        Self { code, reason: Some(reason), detail: None, from_server: false }
    }

    /// Adds an explanation to iperf3's text.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Error reported by the server (`SERVER_ERROR`), with its reason.
    #[must_use]
    pub fn from_server(code: ErrorCode, reason: Option<String>) -> Self {
        Self { code, reason, detail: None, from_server: true }
    }

    /// iperf3's error number.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// True when the server reported the error.
    #[must_use]
    pub fn is_from_server(&self) -> bool {
        self.from_server
    }

    /// Failed operation, its object, the kernel's reason and the remedy; `None` when iperf3's text is all there is.
    #[must_use]
    pub fn advice(&self) -> Option<&str> {
        self.detail.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.code.text())?;
        match &self.reason {
            Some(reason) if self.code.appends_strerror() => write!(f, ": {reason}"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Error {}
