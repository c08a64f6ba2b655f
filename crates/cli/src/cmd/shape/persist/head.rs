//! The lines by which linerate knows its own files.

use super::wish::Wish;

/// The line that counts; the interface is in quotes, with backslashes before what would end them.
fn mark(device: &str) -> String {
    format!("# Made by linerate for the shaper of {device:?}.")
}

/// The comment at the beginning of each file; no date, so that the same wish makes the same file.
pub(super) fn comment(wish: &Wish) -> String {
    let device = &wish.device;
    format!(
        "{}\n# `linerate shape DEV unpersist` takes it away; `persist` makes it anew, and changes by hand are lost then.\n",
        mark(device)
    )
}

/// Whether linerate made this file for this interface: the mark is among its first lines.
pub(super) fn is_ours(contents: &str, device: &str) -> bool {
    let mark = mark(device);
    contents.lines().take(3).any(|line| line == mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_first_lines_and_its_interface() {
        let wish = |device: &str| Wish::to_forget(device).expect("a name");
        let text = format!("#!/bin/sh\n{}exit 0\n", comment(&wish("eth0")));
        assert!(is_ours(&text, "eth0"));
        assert!(!is_ours(&text, "eth00") && !is_ours(&text, "eth"));
        assert!(!is_ours(&format!("\n\n\n{text}"), "eth0"), "a copy within another file");
        assert!(!is_ours(&text.replace("Made", "Once made"), "eth0"));
        assert!(!is_ours("", "eth0"));
        let odd = comment(&wish("a\"\\"));
        assert!(is_ours(&odd, "a\"\\"));
        assert!(odd.lines().all(|line| line.starts_with("# ") && !line.ends_with('\\')), "{odd}");
    }
}
