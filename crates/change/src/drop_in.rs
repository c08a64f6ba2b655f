//! The `sysctl.d(5)` file that makes settings persistent. Keys of earlier sets, and of users, are preserved.

use core::fmt::Write;

/// The file, ordered between the distributions' files and those that users call `99-`.
pub const DEFAULT_FILE: &str = "/etc/sysctl.d/90-linerate.conf";

/// Contents of the heading of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropInHeading {
    /// Version of linerate.
    pub linerate_version: String,
    /// Date and time in UTC, as text.
    pub date: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Number of the change set.
    pub id: String,
    /// Location of the evidence, for example `runs 31 and 32 of linerate history`; empty when there is none.
    pub evidence: String,
}

/// A setting for the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropInSetting {
    /// Name of the setting.
    pub key: String,
    /// Value of the setting.
    pub value: String,
    /// Reason, in one sentence.
    pub reason: String,
}

#[derive(Debug, PartialEq, Eq)]
struct DropInEntry {
    /// Comment lines above the setting.
    comments: Vec<String>,
    key: String,
    line: String,
}

/// Converts a key with slashes, or with a leading hyphen (`sysctl.d(5)`), to dots.
fn normalize_key(key: &str) -> String {
    let key = key.trim().trim_start_matches('-');
    match (key.find('/'), key.find('.')) {
        (Some(slash), dot) if dot.is_none_or(|dot| slash < dot) => key
            .chars()
            .map(|character| match character {
                '/' => '.',
                '.' => '/',
                other => other,
            })
            .collect(),
        _ => key.to_owned(),
    }
}

const HEADING_PREFIX: &str = "# Written by linerate ";

/// Settings of the file without linerate's heading, each with the comments above it, and the trailing comments.
fn entries(text: &str) -> (Vec<DropInEntry>, Vec<String>) {
    let (mut found, mut comments, mut in_head) = (Vec::new(), Vec::new(), false);
    for line in text.lines() {
        let is_comment = line.trim_start().starts_with(['#', ';']);
        in_head = line.starts_with(HEADING_PREFIX) || in_head && is_comment;
        if in_head || line.trim().is_empty() {
            continue;
        }
        match line.split_once('=') {
            Some((key, _)) if !is_comment => {
                let comments = core::mem::take(&mut comments);
                found.push(DropInEntry { comments, key: normalize_key(key), line: line.to_owned() });
            }
            _ => comments.push(line.to_owned()),
        }
    }
    (found, comments)
}

fn render(heading: Option<&str>, entries: &[DropInEntry], rest: &[String]) -> String {
    let mut text = heading.unwrap_or_default().to_owned();
    for entry in entries {
        if !text.is_empty() {
            text.push('\n');
        }
        for line in entry.comments.iter().chain([&entry.line]) {
            text.push_str(line);
            text.push('\n');
        }
    }
    for line in rest {
        let _ = writeln!(text, "{line}");
    }
    text
}

fn heading_of(text: &str) -> Option<String> {
    let start = text.lines().position(|line| line.starts_with(HEADING_PREFIX))?;
    let head = text.lines().skip(start).take_while(|line| line.starts_with('#'));
    Some(head.fold(String::new(), |head, line| head + line + "\n"))
}

/// Contents of the file with these settings added or replaced.
#[must_use]
pub fn add_settings(before: Option<&str>, settings: &[DropInSetting], heading: &DropInHeading) -> String {
    let (mut entries, rest) = entries(before.unwrap_or_default());
    for setting in settings {
        let key = normalize_key(&setting.key);
        let entry = DropInEntry {
            comments: vec![format!("# {}: {}", heading.id, one_line(&setting.reason))],
            line: format!("{} = {}", setting.key, setting.value),
            key: key.clone(),
        };
        entries.retain(|other| other.key != key);
        entries.push(entry);
    }
    let DropInHeading { linerate_version, date, kernel, id, evidence } = heading;
    let mut head = format!("{HEADING_PREFIX}{linerate_version} on {date}, change set {id}, on Linux {kernel}.\n");
    if !evidence.is_empty() {
        let _ = writeln!(head, "# Evidence: {}.", one_line(evidence));
    }
    let _ = writeln!(head, "# `linerate rollback {id}` reverts the lines of that set, here and in the running kernel.");
    head.push_str("# To remove all of it: delete this file and restart. The number above a line is its change set.\n");
    render(Some(&head), &entries, &rest)
}

/// Contents of the file without those settings that still have the given values; their earlier lines are restored.
/// `None` when the file would be empty. Also returns the keys that another program has changed since.
#[must_use]
pub fn remove_settings(
    now: &str,
    settings: &[(String, String)],
    before: Option<&str>,
) -> (Option<String>, Vec<String>) {
    let (mut entries, rest) = entries(now);
    let (mut earlier, _) = self::entries(before.unwrap_or_default());
    let mut changed = Vec::new();
    for (key, value) in settings {
        let name = normalize_key(key);
        let Some(place) = entries.iter().rposition(|entry| entry.key == name) else { continue };
        let present =
            entries[place].line.split_once('=').map(|(_, value)| value.split_whitespace().collect::<Vec<_>>());
        if present != Some(value.split_whitespace().collect()) {
            changed.push(key.clone());
            continue;
        }
        match earlier.iter().rposition(|entry| entry.key == name) {
            Some(old) => entries[place] = earlier.swap_remove(old),
            None => drop(entries.remove(place)),
        }
    }
    let is_empty = entries.is_empty() && rest.is_empty() && before.is_none_or(|before| before.trim().is_empty());
    let text = (!is_empty).then(|| render(heading_of(before.unwrap_or(now)).as_deref(), &entries, &rest));
    (text, changed)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn heading(id: &str) -> DropInHeading {
        DropInHeading {
            linerate_version: "0.1.0".into(),
            date: "2026-11-22 04:00 UTC".into(),
            kernel: "6.18.0".into(),
            id: id.into(),
            evidence: "runs 3 and 4 of linerate history".into(),
        }
    }

    fn setting(key: &str, value: &str) -> DropInSetting {
        DropInSetting { key: key.into(), value: value.into(), reason: "the window\nwas too small".into() }
    }

    #[test]
    fn foreign_lines_are_preserved() {
        let before = "# mine\nvm.swappiness=10\n\nnet/ipv4/tcp_sack = 1\n; the end\n";
        let text = add_settings(Some(before), &[setting("net.ipv4.tcp_rmem", "4096 131072 67108864")], &heading("7"));
        assert!(
            text.starts_with("# Written by linerate 0.1.0 on 2026-11-22 04:00 UTC, change set 7, on Linux 6.18.0.\n")
        );
        for part in [
            "# mine\nvm.swappiness=10\n",
            "net/ipv4/tcp_sack = 1\n",
            "; the end\n",
            "# Evidence: runs 3 and 4",
            "\n# 7: the window was too small\nnet.ipv4.tcp_rmem = 4096 131072 67108864\n",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        let again = add_settings(Some(&text), &[setting("net.ipv4.tcp_rmem", "1 2 3")], &heading("8"));
        assert_eq!(again.matches("tcp_rmem").count(), 1);
        assert_eq!(again.matches(HEADING_PREFIX).count(), 1);
        let settings = [("net.ipv4.tcp_rmem".to_owned(), "1 2 3".to_owned())];
        let (back, changed) = remove_settings(&again, &settings, Some(&text));
        assert_eq!((back.as_deref(), changed), (Some(text.as_str()), vec![]));
        let edited = again.replace("1 2 3", "1 2 4");
        let (left, changed) = remove_settings(&edited, &settings, Some(&text));
        assert_eq!(changed, ["net.ipv4.tcp_rmem"]);
        assert!(left.expect("something is left").contains("1 2 4"));
    }

    #[test]
    fn a_file_without_foreign_lines_is_removed() {
        let text = add_settings(None, &[setting("net.a", "1"), setting("net.b", "2")], &heading("1"));
        let settings = [("net.a".to_owned(), "1".to_owned()), ("net.b".to_owned(), "2".to_owned())];
        assert_eq!(remove_settings(&text, &settings, None), (None, vec![]));
        let (rest, _) = remove_settings(&text, &settings[..1], None);
        assert!(rest.expect("one is left").contains("net.b = 2"));
    }

    proptest! {
        #[test]
        fn stacked_sets_are_removed_in_any_order(
            values in proptest::collection::vec((0..4_u8, 0..9_u8), 1..6),
            first: bool,
        ) {
            let (mut text, mut stack) = (None::<String>, Vec::new());
            for (index, (key, value)) in values.iter().enumerate() {
                let (key, value) = (format!("net.k{key}"), value.to_string());
                let after = add_settings(text.as_deref(), &[setting(&key, &value)], &heading(&index.to_string()));
                stack.push((text.clone(), key, value));
                text = Some(after);
            }
            // In reverse order, each step restores the previous text, except for comments and order.
            while let Some((before, key, value)) = if first && stack.len() > 1 { Some(stack.remove(0)) } else { stack.pop() } {
                let Some(now) = text else { break };
                let (after, _) = remove_settings(&now, &[(key, value)], before.as_deref());
                text = after;
            }
            if !first {
                prop_assert_eq!(text, None);
            }
        }
    }
}
