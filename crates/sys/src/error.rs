use core::time::Duration;
use std::io;

/// The outcome of a system operation.
pub type Result<T> = core::result::Result<T, Error>;

/// A system operation that did not work.
///
/// The text is complete: what was tried and on what, what the kernel said, and the way out where there is an obvious
/// one. The kernel's answer is part of the text, so it is not repeated as [`std::error::Error::source`]; ask
/// [`Error::io_error`] for it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel refused.
    #[error("{operation}: {}{}", describe_os_error(cause), way_out(*hint))]
    System {
        /// What was tried, on what.
        operation: String,
        /// What the kernel said.
        cause: io::Error,
        /// The way out, if there is an obvious one.
        hint: Option<&'static str>,
    },
    /// The kernel refused a socket option.
    #[error("{operation} ({option}): {}{}", describe_os_error(cause), way_out(*hint))]
    SocketOption {
        /// What was tried.
        operation: String,
        /// The option's name in the kernel's headers, for example `TCP_CONGESTION`.
        option: &'static str,
        /// What the kernel said.
        cause: io::Error,
        /// The way out, if there is an obvious one.
        hint: Option<&'static str>,
    },
    /// What was asked for cannot be: this program itself refuses it.
    #[error("{operation}: {reason}")]
    Refused {
        /// What was asked for.
        operation: String,
        /// Why not, and the way out.
        reason: String,
    },
    /// Another program ran and failed.
    #[error("`{command}` failed ({status}){}", quoted_output(output))]
    Program {
        /// The program with its arguments.
        command: String,
        /// How it ended.
        status: String,
        /// What it wrote to its standard error, trimmed.
        output: String,
    },
    /// It took too long.
    #[error("{operation}: timed out after {} ms", after.as_millis())]
    TimedOut {
        /// What was tried, on what.
        operation: String,
        /// The time that it was given.
        after: Duration,
    },
    /// The caller called it off.
    #[error("{operation}: cancelled")]
    Cancelled {
        /// What was being tried.
        operation: String,
    },
}

impl Error {
    /// The kernel refused `operation`.
    pub(crate) fn system(operation: impl Into<String>, cause: io::Error) -> Self {
        let hint = general_hint(&cause);
        Self::System { operation: operation.into(), cause, hint }
    }

    /// The kernel refused `operation`; it said so through `errno`.
    pub(crate) fn last(operation: impl Into<String>) -> Self {
        Self::system(operation, io::Error::last_os_error())
    }

    /// This program refuses `operation`.
    pub(crate) fn refused(operation: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Refused { operation: operation.into(), reason: reason.into() }
    }

    /// Adds the way out when the kernel's answer was `errno`.
    pub(crate) fn hint_on(mut self, errno: i32, text: &'static str) -> Self {
        if let Self::System { cause, hint, .. } | Self::SocketOption { cause, hint, .. } = &mut self
            && cause.raw_os_error() == Some(errno)
        {
            *hint = Some(text);
        }
        self
    }

    /// What the kernel said; `None` when it was not the kernel that refused.
    #[must_use]
    pub fn io_error(&self) -> Option<&io::Error> {
        match self {
            Self::System { cause, .. } | Self::SocketOption { cause, .. } => Some(cause),
            _ => None,
        }
    }

    /// The kernel's error number; `None` when it was not the kernel that refused.
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

    /// The reason alone, without what was tried: for the kernel's answers, the text of `strerror(3)`, as iperf3 appends
    /// it to its own messages.
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
    /// Keeps the kernel's error number, so that text is lost: for callers that only look at the number or kind.
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

/// Ways out that hold whatever was tried.
fn general_hint(cause: &io::Error) -> Option<&'static str> {
    Some(match cause.raw_os_error()? {
        libc::EMFILE => "this process has too many open files: raise `ulimit -n`",
        libc::ENFILE => "the system has too many open files: raise the sysctl fs.file-max",
        libc::EADDRINUSE => "another socket has this address: `ss -lntup` shows whose it is",
        libc::EADDRNOTAVAIL => "this host does not have that address: `ip address` lists the ones it has",
        libc::EAFNOSUPPORT => "this system does not support that address family",
        _ => return None,
    })
}

fn way_out(hint: Option<&'static str>) -> String {
    hint.map(|hint| format!(" ({hint})")).unwrap_or_default()
}

fn quoted_output(output: &str) -> String {
    if output.is_empty() { String::new() } else { format!(": {output}") }
}

/// The result of a system call that answers -1 on failure.
pub(crate) fn check(answer: libc::c_int) -> io::Result<libc::c_int> {
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_was_tried_and_what_the_kernel_said_and_the_way_out() {
        let error = Error::system("listening on [::]:5201", io::Error::from_raw_os_error(libc::EADDRINUSE));
        assert_eq!(
            error.to_string(),
            "listening on [::]:5201: Address already in use (another socket has this address: `ss -lntup` shows whose \
             it is)"
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
    fn a_time_out_has_the_kernels_words() {
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
