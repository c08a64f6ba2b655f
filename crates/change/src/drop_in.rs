//! The file of `sysctl.d(5)` that makes settings last. Keys of earlier sets, and of people, stay in it.

use core::fmt::Write;

/// Where it is: between distributions' files and those that people call `99-`.
pub const PATH: &str = "/etc/sysctl.d/90-linerate.conf";

/// What stands at the head of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heading {
    /// Version of linerate.
    pub linerate_version: String,
    /// The date in words, in UTC.
    pub date: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Number of the change set.
    pub id: String,
    /// Where the evidence is, for example `runs 31 and 32 of linerate history`; empty when there is none.
    pub evidence: String,
}

/// A setting for the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub key: String,
    /// Its value.
    pub value: String,
    /// Why, in one sentence.
    pub reason: String,
}

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    /// Lines above it that belong to it.
    comments: Vec<String>,
    key: String,
    line: String,
}

/// Names are written with dots or slashes, and may have a hyphen before them (`sysctl.d(5)`).
fn normal(key: &str) -> String {
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

const MARK: &str = "# Written by linerate ";

/// The settings of the file; the head that linerate writes is left out, comments below it stay with what follows them.
fn entries(text: &str) -> (Vec<Entry>, Vec<String>) {
    let (mut found, mut comments, mut in_head) = (Vec::new(), Vec::new(), false);
    for line in text.lines() {
        let is_comment = line.trim_start().starts_with(['#', ';']);
        in_head = line.starts_with(MARK) || in_head && is_comment;
        if in_head || line.trim().is_empty() {
            continue;
        }
        match line.split_once('=') {
            Some((key, _)) if !is_comment => {
                let comments = core::mem::take(&mut comments);
                found.push(Entry { comments, key: normal(key), line: line.to_owned() });
            }
            _ => comments.push(line.to_owned()),
        }
    }
    (found, comments)
}

fn render(heading: Option<&str>, entries: &[Entry], rest: &[String]) -> String {
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

fn head_of(text: &str) -> Option<String> {
    let start = text.lines().position(|line| line.starts_with(MARK))?;
    let head = text.lines().skip(start).take_while(|line| line.starts_with('#'));
    Some(head.fold(String::new(), |head, line| head + line + "\n"))
}

/// The file with these settings in it.
#[must_use]
pub fn with(before: Option<&str>, settings: &[Setting], heading: &Heading) -> String {
    let (mut entries, rest) = entries(before.unwrap_or_default());
    for setting in settings {
        let key = normal(&setting.key);
        let entry = Entry {
            comments: vec![format!("# {}: {}", heading.id, one_line(&setting.reason))],
            line: format!("{} = {}", setting.key, setting.value),
            key: key.clone(),
        };
        entries.retain(|other| other.key != key);
        entries.push(entry);
    }
    let Heading { linerate_version, date, kernel, id, evidence } = heading;
    let mut head = format!("{MARK}{linerate_version} on {date}, change set {id}, on Linux {kernel}.\n");
    if !evidence.is_empty() {
        let _ = writeln!(head, "# Evidence: {}.", one_line(evidence));
    }
    let _ = writeln!(
        head,
        "# `linerate rollback {id}` takes the lines of that set back, from here and from the running kernel."
    );
    head.push_str("# To remove all of it: delete this file and restart. The number above a line is its change set.\n");
    render(Some(&head), &entries, &rest)
}

/// The file without those settings that still have the given values, and with what stood there before instead; `None`
/// when nothing is left to stand in it. Also which of them somebody else has changed since.
#[must_use]
pub fn without(now: &str, settings: &[(String, String)], before: Option<&str>) -> (Option<String>, Vec<String>) {
    let (mut entries, rest) = entries(now);
    let (mut earlier, _) = self::entries(before.unwrap_or_default());
    let mut changed = Vec::new();
    for (key, value) in settings {
        let name = normal(key);
        let Some(place) = entries.iter().rposition(|entry| entry.key == name) else { continue };
        let stands = entries[place].line.split_once('=').map(|(_, value)| value.split_whitespace().collect::<Vec<_>>());
        if stands != Some(value.split_whitespace().collect()) {
            changed.push(key.clone());
            continue;
        }
        match earlier.iter().rposition(|entry| entry.key == name) {
            Some(old) => entries[place] = earlier.swap_remove(old),
            None => drop(entries.remove(place)),
        }
    }
    let is_empty = entries.is_empty() && rest.is_empty() && before.is_none_or(|before| before.trim().is_empty());
    let text = (!is_empty).then(|| render(head_of(before.unwrap_or(now)).as_deref(), &entries, &rest));
    (text, changed)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn heading(id: &str) -> Heading {
        Heading {
            linerate_version: "0.1.0".into(),
            date: "2026-11-22 04:00 UTC".into(),
            kernel: "6.18.0".into(),
            id: id.into(),
            evidence: "runs 3 and 4 of linerate history".into(),
        }
    }

    fn setting(key: &str, value: &str) -> Setting {
        Setting { key: key.into(), value: value.into(), reason: "the window\nwas too small".into() }
    }

    #[test]
    fn what_others_wrote_stays() {
        let before = "# mine\nvm.swappiness=10\n\nnet/ipv4/tcp_sack = 1\n; the end\n";
        let text = with(Some(before), &[setting("net.ipv4.tcp_rmem", "4096 131072 67108864")], &heading("7"));
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
        let again = with(Some(&text), &[setting("net.ipv4.tcp_rmem", "1 2 3")], &heading("8"));
        assert_eq!(again.matches("tcp_rmem").count(), 1);
        assert_eq!(again.matches(MARK).count(), 1);
        let settings = [("net.ipv4.tcp_rmem".to_owned(), "1 2 3".to_owned())];
        let (back, changed) = without(&again, &settings, Some(&text));
        assert_eq!((back.as_deref(), changed), (Some(text.as_str()), vec![]));
        let edited = again.replace("1 2 3", "1 2 4");
        let (left, changed) = without(&edited, &settings, Some(&text));
        assert_eq!(changed, ["net.ipv4.tcp_rmem"]);
        assert!(left.expect("something is left").contains("1 2 4"));
    }

    #[test]
    fn a_file_of_ours_alone_goes() {
        let text = with(None, &[setting("net.a", "1"), setting("net.b", "2")], &heading("1"));
        let settings = [("net.a".to_owned(), "1".to_owned()), ("net.b".to_owned(), "2".to_owned())];
        assert_eq!(without(&text, &settings, None), (None, vec![]));
        let (rest, _) = without(&text, &settings[..1], None);
        assert!(rest.expect("one is left").contains("net.b = 2"));
    }

    proptest! {
        #[test]
        fn sets_upon_each_other_come_off_in_any_order(values in proptest::collection::vec((0..4_u8, 0..9_u8), 1..6), first: bool) {
            let (mut text, mut stack) = (None::<String>, Vec::new());
            for (index, (key, value)) in values.iter().enumerate() {
                let (key, value) = (format!("net.k{key}"), value.to_string());
                let after = with(text.as_deref(), &[setting(&key, &value)], &heading(&index.to_string()));
                stack.push((text.clone(), key, value));
                text = Some(after);
            }
            // In the reverse order, each step leads to the text that stood there before, but for comments and order.
            while let Some((before, key, value)) = if first && stack.len() > 1 { Some(stack.remove(0)) } else { stack.pop() } {
                let Some(now) = text else { break };
                let (after, _) = without(&now, &[(key, value)], before.as_deref());
                text = after;
            }
            if !first {
                prop_assert_eq!(text, None);
            }
        }
    }
}
