//! Several tests with one server after each other.

use core::time::Duration;

use linerate_sys::clock;
use linerate_sys::signals::Interrupts;
use linerate_wire::error::ErrorCode;

use crate::course;
use crate::error::Error;

/// A busy server is asked again for this long,
const LIMIT: Duration = Duration::from_secs(5);
/// with this long in between.
const PAUSE: Duration = Duration::from_millis(100);

/// Whether the server has shown itself before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquaintance {
    /// Nothing is known: that it refuses the connection is the answer.
    New,
    /// It has answered before. A stock iperf3 makes its listener anew after each test, and refuses connections meanwhile.
    Known,
}

/// Makes an attempt at a test, and again while the server is busy: an iperf3 server is for a moment after each test.
/// Gives the last attempt's error and result.
pub fn when_free<T>(
    server: Acquaintance,
    stop: Option<Interrupts>,
    mut attempt: impl FnMut() -> (Option<Error>, T),
) -> (Option<Error>, T) {
    let until = clock::monotonic_now() + LIMIT;
    loop {
        let (error, result) = attempt();
        let again = error.as_ref().is_some_and(|error| is_for_a_moment(error.code(), server));
        if !again || clock::monotonic_now() >= until || course::wait(stop, PAUSE).is_err() {
            return (error, result);
        }
    }
}

fn is_for_a_moment(code: ErrorCode, server: Acquaintance) -> bool {
    code == ErrorCode::ACCESS_DENIED || (code == ErrorCode::CONNECT && server == Acquaintance::Known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempts(server: Acquaintance, errors: &[Option<ErrorCode>]) -> (Option<ErrorCode>, usize) {
        let mut made = 0;
        let (error, count) = when_free(server, None, || {
            let code = errors[made];
            made += 1;
            (code.map(Error::new), made)
        });
        (error.map(|error| error.code()), count)
    }

    #[test]
    fn only_what_passes_is_waited_for() {
        use Acquaintance::{Known, New};
        let (denied, refused) = (Some(ErrorCode::ACCESS_DENIED), Some(ErrorCode::CONNECT));
        assert_eq!(attempts(New, &[denied, denied, None]), (None, 3));
        assert_eq!(attempts(New, &[refused, None]), (refused, 1));
        assert_eq!(attempts(Known, &[refused, None]), (None, 2));
        let other = Some(ErrorCode::SELECT);
        assert_eq!(attempts(Known, &[other, None]), (other, 1));
    }
}
