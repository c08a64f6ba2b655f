//! Shell hooks that managers run on interface events.

use linerate_sys::command::command_line;

use super::file_header;
use super::request::PersistRequest;
use super::systemd;

/// Quotes an argument for the shell.
pub(super) fn word(text: &str) -> String {
    command_line(text, &[])
}

/// Builds a script: `conditions` (whole lines), then the command. Where linerate's unit is active, the unit follows the
/// interface and the script does nothing.
pub(super) fn script(wish: &PersistRequest, conditions: &str, arguments: &[&str]) -> String {
    let unit = word(&systemd::unit_name(wish));
    let command = command_line(&wish.program, arguments);
    format!(
        "#!/bin/sh\n{head}\n{conditions}# The systemd unit follows the interface.\n\
         if [ -d /run/systemd/system ] && systemctl --quiet is-active {unit}; then\n    exit 0\nfi\n\
         # A link without a shaper is better than no link: this never fails.\n\
         {command} || echo \"linerate: the shaper was not changed\" >&2\nexit 0\n",
        head = file_header::comment(wish),
    )
}

/// Arguments that set the shaper up from a script.
pub(super) fn set_up(wish: &PersistRequest) -> Vec<&str> {
    wish.set_up(&["--replace", "--quiet"])
}
