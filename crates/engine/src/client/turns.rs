//! Consecutive tests with one server.

use core::time::Duration;

use linerate_sys::clock;
use linerate_sys::signals::InterruptSignals;
use linerate_wire::error::ErrorCode;

use crate::error::Error;
use crate::phases;

/// Duration for which a busy server is retried,
const RETRY_LIMIT: Duration = Duration::from_secs(5);
/// with this pause between attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// Earlier contact with the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorContact {
    /// None: a refused connection is final.
    New,
    /// It has answered before. A stock iperf3 recreates its listener after each test and refuses connections meanwhile.
    Known,
}

/// Attempts a test and retries while the server is busy, as an iperf3 server is for a moment after each test. Returns
/// the last attempt's error and result.
pub fn retry_while_busy<T>(
    server: PriorContact,
    stop: Option<InterruptSignals>,
    mut attempt: impl FnMut() -> (Option<Error>, T),
) -> (Option<Error>, T) {
    let until = clock::monotonic_now() + RETRY_LIMIT;
    loop {
        let (error, result) = attempt();
        let again = error.as_ref().is_some_and(|error| is_temporary(error.code(), server));
        if !again || clock::monotonic_now() >= until || phases::wait(stop, PAUSE).is_err() {
            return (error, result);
        }
    }
}

fn is_temporary(code: ErrorCode, server: PriorContact) -> bool {
    code == ErrorCode::ACCESS_DENIED || (code == ErrorCode::CONNECT && server == PriorContact::Known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempts(server: PriorContact, errors: &[Option<ErrorCode>]) -> (Option<ErrorCode>, usize) {
        let mut made = 0;
        let (error, count) = retry_while_busy(server, None, || {
            let code = errors[made];
            made += 1;
            (code.map(Error::new), made)
        });
        (error.map(|error| error.code()), count)
    }

    #[test]
    fn only_temporary_refusals_are_retried() {
        use PriorContact::{Known, New};
        let (denied, refused) = (Some(ErrorCode::ACCESS_DENIED), Some(ErrorCode::CONNECT));
        assert_eq!(attempts(New, &[denied, denied, None]), (None, 3));
        assert_eq!(attempts(New, &[refused, None]), (refused, 1));
        assert_eq!(attempts(Known, &[refused, None]), (None, 2));
        let other = Some(ErrorCode::SELECT);
        assert_eq!(attempts(Known, &[other, None]), (other, 1));
    }
}
