//! The clock of this host.

use core::mem::MaybeUninit;
use core::time::Duration;

use linerate_model::environment::{ClockState, HostClock};

use super::UnreadableNotes;
use crate::error::{Error, Result, check};

const SOURCES: &str = "/sys/devices/system/clocksource/clocksource0";

pub(super) fn read(notes: &mut UnreadableNotes) -> HostClock {
    let sources = notes.file("clock sources", &format!("{SOURCES}/available_clocksource"));
    HostClock {
        source: notes.file("clock source", &format!("{SOURCES}/current_clocksource")),
        sources: sources.map(|names| names.split(' ').map(str::to_owned).collect()),
        state: notes.keep("clock synchronisation", clock_state()),
    }
}

/// Synchronisation state of the kernel's clock (adjtimex(2)).
pub fn clock_state() -> Result<ClockState> {
    let mut clock = MaybeUninit::<libc::timex>::zeroed();
    // SAFETY: `clock` is ours alone: integers, for which zero is a value; no mode asks for a change.
    let (state, clock) = unsafe { (libc::adjtimex(clock.as_mut_ptr()), clock.assume_init()) };
    let state = check(state)
        .map_err(|cause| Error::system("asking the kernel for the state of its clock (adjtimex)", cause))?;
    Ok(from_kernel(&clock, state))
}

fn from_kernel(clock: &libc::timex, state: libc::c_int) -> ClockState {
    let microseconds = |count| Duration::from_micros(u64::try_from(count).unwrap_or(0));
    // Parts per million with 16 bits behind the point.
    let correction = i32::try_from(clock.freq).map_or(0.0, |scaled| f64::from(scaled) / 65_536.0);
    ClockState {
        synchronised: state != libc::TIME_ERROR && clock.status & libc::STA_UNSYNC == 0,
        estimated_error: microseconds(clock.esterror),
        largest_error: microseconds(clock.maxerror),
        rate_correction: correction,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_reports_its_clocks_state() {
        let state = clock_state().expect("needs no privilege");
        assert_eq!(state.error_bound().is_some(), state.synchronised && state.largest_error < Duration::from_secs(16));
        assert!(state.rate_correction.abs() <= 500.0, "the kernel's limit: {state:?}");
    }

    #[test]
    fn numbers_of_the_kernel() {
        // SAFETY: timex is integers, for which zero is a value.
        let mut clock: libc::timex = unsafe { core::mem::zeroed() };
        (clock.esterror, clock.maxerror, clock.freq) = (1500, 25_000, -98_304);
        let state = from_kernel(&clock, libc::TIME_OK);
        assert_eq!(
            (state.estimated_error, state.largest_error),
            (Duration::from_micros(1500), Duration::from_millis(25))
        );
        assert!(state.synchronised && (state.rate_correction + 1.5).abs() < 1e-9);
        assert!(!from_kernel(&clock, libc::TIME_ERROR).synchronised);
        clock.status = libc::STA_UNSYNC;
        assert!(!from_kernel(&clock, libc::TIME_OK).synchronised);
    }
}
