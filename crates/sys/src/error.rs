use core::time::Duration;
use std::borrow::Cow;
use std::io;

/// Result of a system operation.
pub type Result<T> = core::result::Result<T, Error>;

/// A failed system operation.
///
/// The text is complete: the operation and its object, the kernel's error, and the remedy where there is an obvious
/// one. The kernel's error is part of the text, so it is not repeated as [`std::error::Error::source`]; call
/// [`Error::io_error`] for it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel refused.
    #[error("{operation}: {}{}", describe_os_error(cause), way_out(hint.as_deref()))]
    System {
        /// Operation, with its object.
        operation: String,
        /// The kernel's error.
        cause: io::Error,
        /// Remedy, if there is an obvious one.
        hint: Option<Cow<'static, str>>,
    },
    /// The kernel refused a socket option.
    #[error("{operation} ({option}): {}{}", describe_os_error(cause), way_out(hint.as_deref()))]
    SocketOption {
        /// Operation.
        operation: String,
        /// The option's name in the kernel's headers, for example `TCP_CONGESTION`.
        option: &'static str,
        /// The kernel's error.
        cause: io::Error,
        /// Remedy, if there is an obvious one.
        hint: Option<Cow<'static, str>>,
    },
    /// This program itself refuses the operation.
    #[error("{operation}: {reason}")]
    Refused {
        /// Requested operation.
        operation: String,
        /// Reason, and the remedy.
        reason: String,
    },
    /// Another program ran and failed.
    #[error("`{command}` failed ({status}){}", quoted_output(output))]
    Program {
        /// The program with its arguments.
        command: String,
        /// Exit status.
        status: String,
        /// Standard error of the program, trimmed.
        output: String,
    },
    /// The operation took too long.
    #[error("{operation}: timed out after {} ms", after.as_millis())]
    TimedOut {
        /// Operation, with its object.
        operation: String,
        /// Time limit.
        after: Duration,
    },
    /// The caller cancelled the operation.
    #[error("{operation}: cancelled")]
    Cancelled {
        /// Cancelled operation.
        operation: String,
    },
}

impl Error {
    /// The kernel refused `operation`.
    pub(crate) fn system(operation: impl Into<String>, cause: impl Into<io::Error>) -> Self {
        let cause = cause.into();
        let hint = general_hint(&cause).map(Cow::Borrowed);
        Self::System { operation: operation.into(), cause, hint }
    }

    /// This program refuses `operation`.
    pub(crate) fn refused(operation: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Refused { operation: operation.into(), reason: reason.into() }
    }

    /// Adds the remedy when the kernel's error is `errno`.
    pub(crate) fn hint_on(mut self, errno: i32, text: impl Into<Cow<'static, str>>) -> Self {
        if let Self::System { cause, hint, .. } | Self::SocketOption { cause, hint, .. } = &mut self
            && cause.raw_os_error() == Some(errno)
        {
            *hint = Some(text.into());
        }
        self
    }

    /// Adds the value that a socket option was to have.
    pub(crate) fn with_value(mut self, value: &str) -> Self {
        if let Self::SocketOption { operation, .. } = &mut self {
            *operation = format!("{operation} to {value:?}");
        }
        self
    }

    /// The kernel's error; `None` when another program or this one refused.
    #[must_use]
    pub fn io_error(&self) -> Option<&io::Error> {
        match self {
            Self::System { cause, .. } | Self::SocketOption { cause, .. } => Some(cause),
            _ => None,
        }
    }

    /// The kernel's error number; `None` when another program or this one refused.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        self.io_error()?.raw_os_error()
    }

    /// The kind of failure, in the standard library's terms.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::System { cause, .. } | Self::SocketOption { cause, .. } => cause.kind(),
            Self::Refused { .. } => io::ErrorKind::InvalidInput,
            Self::Program { .. } => io::ErrorKind::Other,
            Self::TimedOut { .. } => io::ErrorKind::TimedOut,
            Self::Cancelled { .. } => io::ErrorKind::Interrupted,
        }
    }

    /// The socket option that was refused, for example `TCP_CONGESTION`.
    #[must_use]
    pub fn socket_option(&self) -> Option<&'static str> {
        match self {
            Self::SocketOption { option, .. } => Some(option),
            _ => None,
        }
    }

    /// The reason alone, without the operation: for kernel errors, the text of `strerror(3)`, as iperf3 appends it to
    /// its own messages.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::System { cause, .. } | Self::SocketOption { cause, .. } => describe_os_error(cause),
            Self::Refused { reason, .. } => reason.clone(),
            Self::Program { output, .. } => output.clone(),
            Self::TimedOut { .. } => describe_os_error(&io::Error::from_raw_os_error(libc::ETIMEDOUT)),
            Self::Cancelled { .. } => describe_os_error(&io::Error::from_raw_os_error(libc::EINTR)),
        }
    }
}

impl From<Error> for io::Error {
    /// Keeps the kernel's error number, and loses the text: for callers that only check the number or kind.
    fn from(error: Error) -> Self {
        match error {
            Error::System { cause, .. } | Error::SocketOption { cause, .. } => cause,
            other => Self::new(other.kind(), other.to_string()),
        }
    }
}

/// The text of an error as `strerror(3)` has it, without the "(os error N)" that Rust appends.
#[must_use]
pub fn describe_os_error(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(end) if error.raw_os_error().is_some() => text[..end].to_owned(),
        _ => text,
    }
}

/// Remedies that do not depend on the operation.
fn general_hint(cause: &io::Error) -> Option<&'static str> {
    Some(match cause.raw_os_error()? {
        libc::EMFILE => "this process has too many open files: raise `ulimit -n`",
        libc::ENFILE => "the system has too many open files: raise the sysctl fs.file-max",
        libc::EADDRINUSE => "another socket has this address: `ss -lntup` shows its process",
        libc::EADDRNOTAVAIL => "this host does not have that address: `ip address` lists the ones it has",
        libc::EAFNOSUPPORT => "this system does not support that address family",
        _ => return None,
    })
}

fn way_out(hint: Option<&str>) -> String {
    hint.map(|hint| format!(" ({hint})")).unwrap_or_default()
}

fn quoted_output(output: &str) -> String {
    if output.is_empty() { String::new() } else { format!(": {output}") }
}

/// The result of a system call that returns -1 on failure.
pub(crate) fn check<N: PartialEq + From<i8>>(answer: N) -> io::Result<N> {
    if answer == N::from(-1) { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_the_operation_the_kernels_error_and_the_remedy() {
        let error = Error::system("listening on [::]:5201", io::Error::from_raw_os_error(libc::EADDRINUSE));
        assert_eq!(
            error.to_string(),
            "listening on [::]:5201: Address already in use (another socket has this address: `ss -lntup` shows its \
             process)"
        );
        assert_eq!(error.reason(), "Address already in use");
        assert_eq!(error.errno(), Some(libc::EADDRINUSE));
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn a_hint_is_given_for_its_own_errno_only() {
        let refused = || Error::system("connecting", io::Error::from_raw_os_error(libc::ECONNREFUSED));
        assert_eq!(refused().hint_on(libc::EPERM, "be root").to_string(), "connecting: Connection refused");
        let hinted = refused().hint_on(libc::ECONNREFUSED, "start a server");
        assert_eq!(hinted.to_string(), "connecting: Connection refused (start a server)");
    }

    #[test]
    fn a_time_out_has_the_kernels_text() {
        let error = Error::TimedOut { operation: "connecting".into(), after: Duration::from_millis(1500) };
        assert_eq!(error.to_string(), "connecting: timed out after 1500 ms");
        assert_eq!(error.reason(), "Connection timed out");
    }

    #[test]
    fn becomes_an_io_error_with_the_same_number() {
        let error: io::Error = Error::system("x", io::Error::from_raw_os_error(libc::EPIPE)).into();
        assert_eq!(error.raw_os_error(), Some(libc::EPIPE));
    }
}
