//! Files of `/sys`, as lines of `tmpfiles.d(5)`.

use linerate_model::change::{ChangeTarget, HostChange};

use super::text::one_line;

/// Location of the lines.
pub(super) const FILE: &str = "etc/tmpfiles.d/linerate.conf";

/// Returns the line that writes the value at boot. `None` for other targets, and for characters that the format would
/// interpret.
pub(super) fn line(change: &HostChange) -> Option<String> {
    let ChangeTarget::File { path } = &change.target else { return None };
    let is_plain =
        |text: &str| text.chars().all(|letter| letter.is_ascii_alphanumeric() || ",.:/_@- ".contains(letter));
    let to = one_line(&change.to);
    let is_supported = path.starts_with("/sys/") && is_plain(path) && !path.contains(' ') && is_plain(&to);
    is_supported.then(|| format!("w {path} - - - - {to}"))
}

/// Returns the lines of these changes.
pub(super) fn lines(changes: &[&HostChange]) -> Vec<String> {
    changes.iter().filter_map(|change| line(change)).collect()
}
