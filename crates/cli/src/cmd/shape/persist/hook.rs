//! Shell scripts that managers call when something happens to an interface.

use linerate_sys::command::command_line;

use super::head;
use super::systemd;
use super::wish::Wish;

/// A word for the shell.
pub(super) fn word(text: &str) -> String {
    command_line(text, &[])
}

/// A script: what it asks first (`conditions`, whole lines), then the command. Where linerate's unit runs, that follows
/// the interface by itself, and the script leaves it to it.
pub(super) fn script(wish: &Wish, conditions: &str, arguments: &[&str]) -> String {
    let unit = word(&systemd::unit_name(wish));
    let command = command_line(&wish.program, arguments);
    format!(
        "#!/bin/sh\n{head}\n{conditions}\
         # The unit of systemd follows the interface by itself.\n\
         if [ -d /run/systemd/system ] && systemctl --quiet is-active {unit}; then\n    exit 0\nfi\n\
         # A line without a shaper is better than none: this never fails.\n\
         {command} || echo \"linerate: the shaper was not changed\" >&2\nexit 0\n",
        head = head::comment(wish),
    )
}

/// The words that set the shaper up from a script.
pub(super) fn set_up(wish: &Wish) -> Vec<&str> {
    wish.set_up(&["--replace", "--quiet"])
}
