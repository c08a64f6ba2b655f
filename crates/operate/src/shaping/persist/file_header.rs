//! Header lines that identify linerate's own files.

use super::request::PersistRequest;

/// Marker line; the interface is quoted and escaped.
fn mark(device: &str) -> String {
    format!("# Made by linerate for the shaper of {device:?}.")
}

/// Header comment of each file; no date, so that equal requests produce equal files.
pub(super) fn comment(wish: &PersistRequest) -> String {
    let device = &wish.device;
    format!(
        "{}\n# `linerate shape DEV unpersist` removes it; `persist` rewrites it and discards manual changes.\n",
        mark(device)
    )
}

/// True when linerate made this file for this interface: the marker is among its first lines.
pub(super) fn is_ours(contents: &str, device: &str) -> bool {
    let mark = mark(device);
    contents.lines().take(3).any(|line| line == mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_identified_by_its_header_and_interface() {
        let wish = |device: &str| PersistRequest::to_forget(device).expect("a name");
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
