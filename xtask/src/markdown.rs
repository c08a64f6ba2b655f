//! Links, anchors and paths of Markdown pages.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Link or picture of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageLink {
    /// Line number, from 1.
    pub(crate) line: usize,
    /// Target as written: a path, an address, or an anchor.
    pub(crate) target: String,
    /// Place of the target in the page's text, in bytes.
    pub(crate) place: Range<usize>,
}

/// Returns the links and pictures of a page, but those in blocks and spans of code.
pub(crate) fn links(text: &str) -> Vec<PageLink> {
    let mut found = Vec::new();
    for (number, (start, line)) in prose(text).enumerate() {
        let Some(line) = line else { continue };
        let plain = without_code(line);
        for (index, _) in plain.match_indices("](") {
            let from = index + 2;
            let Some(length) = plain[from..].find([')', ' ']) else { continue };
            found.push(link(number + 1, line, start, from..from + length));
        }
        if let Some(index) = plain.find("]: ").filter(|_| plain.starts_with('[')) {
            let from = index + 3;
            let length = plain[from..].find(' ').unwrap_or(plain.len() - from);
            found.push(link(number + 1, line, start, from..from + length));
        }
    }
    found
}

fn link(number: usize, line: &str, start: usize, place: Range<usize>) -> PageLink {
    let target = line[place.clone()].to_owned();
    PageLink { line: number, target, place: start + place.start..start + place.end }
}

/// Returns the anchors of a page's headings, as forges make them.
pub(crate) fn anchors(text: &str) -> BTreeSet<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(text) {
        let Some(title) = line.and_then(heading) else { continue };
        let plain = anchor(title);
        let count = counts.entry(plain.clone()).or_default();
        anchors.insert(if *count == 0 { plain } else { format!("{plain}-{count}") });
        *count += 1;
    }
    anchors
}

/// Returns the first heading of a page.
pub(crate) fn title(text: &str) -> Option<&str> {
    prose(text).find_map(|(_, line)| heading(line?))
}

fn heading(line: &str) -> Option<&str> {
    let title = line.trim_start_matches('#');
    let depth = line.len() - title.len();
    (1..=6).contains(&depth).then(|| title.strip_prefix(' ')).flatten().map(str::trim)
}

/// Anchor of a heading: lower case, without punctuation and the targets of links, blanks as hyphens.
fn anchor(title: &str) -> String {
    let mut plain = title.to_owned();
    for link in links(title).iter().rev() {
        plain.replace_range(link.place.clone(), "");
    }
    let kept = |letter: char| letter.is_alphanumeric() || letter == '-' || letter == '_';
    let letters = plain.chars().filter(|letter| *letter == ' ' || kept(*letter));
    letters.map(|letter| if letter == ' ' { '-' } else { letter }).flat_map(char::to_lowercase).collect()
}

/// Lines of a page with their start in bytes; `None` for those of blocks of code.
fn prose(text: &str) -> impl Iterator<Item = (usize, Option<&str>)> {
    let mut fence: Option<&str> = None;
    let mut start = 0;
    text.split_inclusive('\n').map(move |whole| {
        let line = whole.trim_end_matches('\n');
        let at = start;
        start += whole.len();
        let trimmed = line.trim_start();
        let marks = ["```", "~~~"].into_iter().find(|marks| trimmed.starts_with(marks));
        match (fence, marks) {
            (None, Some(marks)) => fence = Some(marks),
            (Some(open), Some(marks)) if open == marks => fence = None,
            (None, None) => return (at, Some(line)),
            (Some(_), _) => {}
        }
        (at, None)
    })
}

/// Line with spans of code replaced by blanks of the same length.
fn without_code(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    let blank = |index: usize| index % 2 == 1 && index + 1 < parts.len();
    let shown: Vec<String> = parts
        .iter()
        .enumerate()
        .map(|(index, part)| if blank(index) { " ".repeat(part.len()) } else { (*part).to_owned() })
        .collect();
    shown.join("`")
}

/// Path from the repository's root, and anchor, that a link on `page` leads to; `None` for addresses of other hosts.
pub(crate) fn destination(page: &str, target: &str) -> Option<(String, Option<String>)> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = match target.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor.to_owned())),
        None => (target, None),
    };
    if path.is_empty() {
        return Some((page.to_owned(), anchor));
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    Some((parts.join("/"), anchor))
}

/// Relative path from the file `from` to the file `to`.
pub(crate) fn relative(from: &str, to: &str) -> String {
    let from: Vec<&str> = from.split('/').collect();
    let to: Vec<&str> = to.split('/').collect();
    let folders = from.len() - 1;
    let common = (0..folders.min(to.len() - 1)).take_while(|index| from[*index] == to[*index]).count();
    let up = std::iter::repeat_n("..", folders - common);
    up.chain(to[common..].iter().copied()).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_of_code() {
        let text = "# A [b](c.md)\n`[no](x)` ![d](e.svg \"f\") [`g`](h.md#i)\n```sh\n[no](y)\n```\n[j]: k.md\n";
        let found: Vec<(usize, String)> = links(text).into_iter().map(|link| (link.line, link.target)).collect();
        let expected = [(1, "c.md"), (2, "e.svg"), (2, "h.md#i"), (6, "k.md")];
        assert_eq!(found, expected.map(|(line, target)| (line, target.to_owned())));
        assert!(links(text).iter().all(|link| text[link.place.clone()] == link.target));
    }

    #[test]
    fn anchors_are_those_of_forges() {
        let text = "# `tune`: 10 Gbit/s, [twice](x.md)\n```\n# no\n```\n## Results\n## Results\n#hash\n";
        assert_eq!(anchors(text).into_iter().collect::<Vec<_>>(), ["results", "results-1", "tune-10-gbits-twice"]);
        assert_eq!(title(text), Some("`tune`: 10 Gbit/s, [twice](x.md)"));
    }

    #[test]
    fn targets_are_resolved_from_their_page() {
        let to = |page: &str, target: &str| {
            destination(page, target).map(|(path, anchor)| (path, anchor.unwrap_or_default()))
        };
        let path = |path: &str, anchor: &str| Some((path.to_owned(), anchor.to_owned()));
        assert_eq!(to("docs/guides/a.md", "../b.md#c"), path("docs/b.md", "c"));
        assert_eq!(to("docs/a.md", "../examples/"), path("examples", ""));
        assert_eq!(to("a.md", "#b"), path("a.md", "b"));
        assert_eq!(to("a.md", "../b.md"), path("../b.md", ""));
        assert_eq!(to("a.md", "https://b.example/c"), None);
    }

    #[test]
    fn relative_paths_lead_back() {
        for (from, to, expected) in [
            ("a.md", "b.md", "b.md"),
            ("guides/a.md", "b.md", "../b.md"),
            ("guides/a.md", "guides/b.md", "b.md"),
            ("a.md", "repository/x/b.rs", "repository/x/b.rs"),
            ("repository/x/a.md", "repository/y/b.md", "../y/b.md"),
        ] {
            assert_eq!(relative(from, to), expected);
            assert_eq!(destination(from, expected).map(|found| found.0).as_deref(), Some(to));
        }
    }
}
