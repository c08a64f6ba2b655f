//! Questions to the person at the terminal, and waiting for somebody to confirm.

use std::io;
use std::time::Duration;

use linerate_sys::poll::{self, Interest, PollItem};
use linerate_sys::signals::Interrupts;
use linerate_sys::{clock, terminal};
use linerate_units::display;

use super::error::ShapeError;
use super::shaped::Shaped;
use super::shaper::Shaper;
use crate::console;

/// A shaper that waits for confirmation is taken back this much later by the watchdog than by its own process.
const SLACK: Duration = Duration::from_secs(10);

/// How often a waiting process looks whether another one has confirmed.
const LOOK: Duration = Duration::from_millis(200);

/// Whether the person says yes.
pub(super) fn answers(question: &str, stop: Interrupts) -> Result<bool, ShapeError> {
    console::ask(question);
    let input = io::stdin();
    let mut items = [PollItem::new(&stop, Interest::READ), PollItem::new(&input, Interest::READ)];
    poll::wait(&mut items, None)?;
    if items[0].is_readable() || !items[1].is_readable() {
        console::note("");
        return Ok(false);
    }
    let mut answer = String::new();
    Ok(input.read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Whether somebody says within this time that the line still works: here, or with `shape DEV confirm` elsewhere.
pub(super) fn is_confirmed(shaper: &mut Shaper<'_>, within: Duration, stop: Interrupts) -> Result<bool, ShapeError> {
    shaper.renew(within + SLACK)?;
    let (device, time) = (shaper.device().to_owned(), display::duration(within));
    let input = io::stdin();
    let asks = terminal::is_terminal(&input);
    let here = if asks { " (or Enter here)" } else { "" };
    console::note(&format!(
        "It stands. Without `linerate shape {device} confirm`{here} within {time} it is taken back."
    ));
    let deadline = clock::monotonic_now() + within;
    while clock::monotonic_now() < deadline {
        if shaper.is_confirmed() {
            return Ok(true);
        }
        let time = LOOK.min(deadline - clock::monotonic_now());
        match heard(&input, asks, stop, time)? {
            Heard::Nothing => {}
            Heard::Ending => return Ok(false),
            Heard::Answer => {
                let mut line = String::new();
                return Ok(input.read_line(&mut line).is_ok_and(|bytes| bytes > 0));
            }
        }
    }
    Ok(shaper.is_confirmed())
}

enum Heard {
    Nothing,
    Ending,
    Answer,
}

fn heard(input: &io::Stdin, asks: bool, stop: Interrupts, time: Duration) -> Result<Heard, ShapeError> {
    if !asks {
        let is_ending = poll::wait_for(&stop, Interest::READ, Some(time))?;
        return Ok(if is_ending { Heard::Ending } else { Heard::Nothing });
    }
    let mut items = [PollItem::new(&stop, Interest::READ), PollItem::new(input, Interest::READ)];
    poll::wait(&mut items, Some(time))?;
    Ok(if items[0].is_readable() {
        Heard::Ending
    } else if items[1].is_readable() {
        Heard::Answer
    } else {
        Heard::Nothing
    })
}
