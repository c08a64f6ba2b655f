//! Text of exports: comments, quotes, names.

use core::fmt::Write;

use linerate_model::change::HostChange;

/// Width of comments: linters of YAML refuse lines longer than 80, and a playbook indents the files by 10.
const MAX_COMMENT_WIDTH: usize = 70;

/// Joins a text to one line without control characters.
pub(super) fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.replace(char::is_control, "\u{fffd}")
}

/// Formats a text as comment lines with this indentation.
pub(super) fn comment(indent: usize, text: &str) -> String {
    let start = format!("{:indent$}#", "");
    let mut lines = start.clone();
    let mut width = start.len();
    for token in one_line(text).split(' ') {
        let length = token.chars().count() + 1;
        if width + length > MAX_COMMENT_WIDTH && width > start.len() {
            let _ = write!(lines, "\n{start}");
            width = start.len();
        }
        let _ = write!(lines, " {token}");
        width += length;
    }
    lines + "\n"
}

/// Returns the reason of a change as comment text.
pub(super) fn reason(change: &HostChange) -> String {
    let text = one_line(&change.reason.text);
    if text.is_empty() { format!("rule {}", one_line(&change.reason.rule)) } else { text }
}

/// Quotes with double quotes for YAML.
pub(super) fn yaml_quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

/// Quotes with double quotes for Nix, in which `${` begins an expression.
pub(super) fn nix_quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text).replace("${", "\\${"))
}

fn escaped(text: &str) -> String {
    one_line(text).replace('\\', "\\\\").replace('"', "\\\"")
}

/// Quotes with single quotes for shells.
pub(super) fn shell_quoted(text: &str) -> String {
    format!("'{}'", one_line(text).replace('\'', r"'\''"))
}

/// Returns a name as part of a file name: letters, digits, and `.-_`. At the start is no dot, which hides files, and no
/// hyphen, which programs take for an option.
pub(super) fn file_name(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || ".-_".contains(letter) { letter } else { '-' };
    let name: String = name.chars().map(plain).collect();
    match name.strip_prefix(['.', '-']) {
        Some(rest) => format!("_{rest}"),
        None if name.is_empty() => "host".to_owned(),
        None => name,
    }
}

/// Numbers those of these ASCII names that are there already, also where case does not count.
pub(super) fn unique_names(names: impl Iterator<Item = String>, max_length: usize) -> Vec<String> {
    let mut taken: Vec<String> = Vec::new();
    for name in names {
        let is_free = |candidate: &str| !taken.iter().any(|other| other.eq_ignore_ascii_case(candidate));
        let numbered = (2..).map(|number: u32| {
            let suffix = format!("-{number}");
            let start: String = name.chars().take(max_length.saturating_sub(suffix.len())).collect();
            start.trim_end_matches('-').to_owned() + &suffix
        });
        let free = core::iter::once(name.clone()).chain(numbered).find(|candidate| is_free(candidate));
        taken.extend(free);
    }
    taken
}

/// Returns a YAML document; its lines may be long only where they cannot be wrapped.
pub(super) fn yaml_document(text: &str) -> String {
    let is_long = text.lines().any(|line| line.chars().count() > 80);
    let directive = if is_long { "# yamllint disable rule:line-length\n" } else { "" };
    format!("{directive}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_wrapped() {
        let text = comment(2, &format!("a{}", " word".repeat(30)));
        assert!(text.lines().all(|line| line.starts_with("  # ") && line.chars().count() <= MAX_COMMENT_WIDTH));
        assert_eq!(text.matches("word").count(), 30);
        assert_eq!(comment(0, "one\ntwo\u{7}"), "# one two\u{fffd}\n");
        let long = "x".repeat(100);
        assert_eq!(comment(0, &long), format!("# {long}\n"));
    }

    #[test]
    fn quotes_and_names() {
        let hostile = "a'\"\n$(x)${y}\\";
        assert_eq!(yaml_quoted(hostile), r#""a'\" $(x)${y}\\""#);
        assert_eq!(nix_quoted(hostile), r#""a'\" $(x)\${y}\\""#);
        assert_eq!(shell_quoted(hostile), r#"'a'\''" $(x)${y}\'"#);
        for (name, expected) in
            [("fe80::1%eth0", "fe80--1-eth0"), ("../x", "_.-x"), ("-rf", "_rf"), ("", "host"), ("a.b", "a.b")]
        {
            assert_eq!(file_name(name), expected);
        }
        let names = ["a-b", "A-b", "c", "a-b", "a-b-2"].map(str::to_owned);
        assert_eq!(unique_names(names.clone().into_iter(), 63), ["a-b", "A-b-2", "c", "a-b-3", "a-b-2-2"]);
        assert_eq!(unique_names(names.into_iter(), 4), ["a-b", "A-2", "c", "a-3", "a-b-2"]);
    }
}
