//! Configuration files of `OpenWrt` (UCI): sections are read, and one section is written without a change of any other byte.
//!
//! Statements are `config TYPE [NAME]`, `option NAME VALUE` and `list NAME VALUE`, one a line or separated by `;`. A word is
//! `'literal'`, `"with \ escapes"` or plain with escapes; adjacent parts are one word; `#` begins a comment (libuci, `file.c`).

use core::ops::Range;

/// Option or element of a list in a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UciEntry {
    /// True for an element of a list.
    pub is_list: bool,
    /// Name.
    pub name: String,
    /// Value.
    pub value: String,
}

impl UciEntry {
    /// Option.
    #[must_use]
    pub fn option(name: &str, value: &str) -> Self {
        Self { is_list: false, name: name.to_owned(), value: value.to_owned() }
    }

    /// Element of a list.
    #[must_use]
    pub fn list(name: &str, value: &str) -> Self {
        Self { is_list: true, ..Self::option(name, value) }
    }
}

/// Section of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UciSection {
    /// Type.
    pub kind: String,
    /// Name; `None` for an anonymous section.
    pub name: Option<String>,
    /// Entries, in order.
    pub entries: Vec<UciEntry>,
    /// Bytes of the file from its first line to its last, with the line's end.
    pub range: Range<usize>,
    /// True when its lines also have comments, or parts of other sections.
    pub has_other_text: bool,
}

impl UciSection {
    /// Value of an option; the last one counts.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        let found = self.entries.iter().rfind(|entry| !entry.is_list && entry.name == name);
        found.map(|entry| entry.value.as_str())
    }
}

/// Statement with the bytes from its first to its last word.
struct Statement {
    words: Vec<String>,
    range: Range<usize>,
}

/// Sections of a file, or a line that is none of UCI's.
pub fn sections(text: &str) -> Result<Vec<UciSection>, String> {
    let (statements, comments) = statements(text)?;
    let mut sections: Vec<UciSection> = Vec::new();
    for statement in &statements {
        let error = |reason: &str| format!("line {}: {reason}", line_number(text, statement.range.start));
        let words: Vec<&str> = statement.words.iter().map(String::as_str).collect();
        match (words.as_slice(), sections.last_mut()) {
            (["config" | "c", kind, name @ ..], _) if name.len() < 2 => {
                let (kind, name) = ((*kind).to_owned(), name.first().map(|name| (*name).to_owned()));
                let range = whole_lines(text, &statement.range);
                sections.push(UciSection { kind, name, entries: Vec::new(), range, has_other_text: false });
            }
            (["package" | "p", _], None) => {}
            (["package" | "p", _], _) => return Err(error("'package' within the file is not supported")),
            ([command @ ("option" | "o" | "list" | "l"), name, value], Some(section)) => {
                let is_list = command.starts_with('l');
                section.entries.push(UciEntry { is_list, ..UciEntry::option(name, value) });
                section.range.end = whole_lines(text, &statement.range).end;
            }
            (["option" | "o" | "list" | "l", _, _], None) => return Err(error("it belongs to no section")),
            _ => return Err(error("expected config TYPE [NAME], option NAME VALUE or list NAME VALUE")),
        }
    }
    mark_other_text(&mut sections, &comments);
    Ok(sections)
}

/// Marks sections with comments, and those that share a line.
fn mark_other_text(sections: &mut [UciSection], comments: &[usize]) {
    let ranges: Vec<Range<usize>> = sections.iter().map(|section| section.range.clone()).collect();
    for (number, section) in sections.iter_mut().enumerate() {
        let shares = |other: &Range<usize>| other.start < section.range.end && section.range.start < other.end;
        section.has_other_text = comments.iter().any(|place| section.range.contains(place))
            || ranges.iter().enumerate().any(|(other, range)| other != number && shares(range));
    }
}

/// Text without these bytes, and without the blank lines after them.
#[must_use]
pub fn without(text: &str, range: &Range<usize>) -> String {
    let after = &text[range.end..];
    let blank = after.len() - after.trim_start_matches(['\n', '\r']).len();
    format!("{}{}", &text[..range.start], &after[blank..])
}

/// Section as `uci export` writes it.
#[must_use]
pub fn section_text(kind: &str, name: &str, entries: &[UciEntry]) -> String {
    let entry = |entry: &UciEntry| {
        let command = if entry.is_list { "list" } else { "option" };
        format!("\t{command} {} {}\n", entry.name, quoted(&entry.value))
    };
    format!("config {kind} {}\n{}", quoted(name), entries.iter().map(entry).collect::<String>())
}

/// Word in single quotes; one within is outside of them, escaped.
#[must_use]
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn line_number(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Bytes of the lines that a statement is on.
fn whole_lines(text: &str, range: &Range<usize>) -> Range<usize> {
    let start = text[..range.start].rfind('\n').map_or(0, |end| end + 1);
    let end = text[range.end..].find('\n').map_or(text.len(), |end| range.end + end + 1);
    start..end
}

/// Statements of a file, and where its comments begin.
fn statements(text: &str) -> Result<(Vec<Statement>, Vec<usize>), String> {
    let (mut found, mut comments) = (Vec::new(), Vec::new());
    let mut open: Option<Statement> = None;
    let mut at = 0;
    while let Some(letter) = text[at..].chars().next() {
        match letter {
            '\n' | ';' => {
                found.extend(open.take());
                at += 1;
            }
            '#' => {
                comments.push(at);
                at += text[at..].find('\n').unwrap_or(text.len() - at);
            }
            _ if letter.is_ascii_whitespace() => at += 1,
            _ => {
                let (word, end) = word(text, at)?;
                let statement = open.get_or_insert(Statement { words: Vec::new(), range: at..end });
                statement.words.push(word);
                statement.range.end = end;
                at = end;
            }
        }
    }
    found.extend(open);
    Ok((found, comments))
}

/// Word that begins here, and the byte after it.
fn word(text: &str, start: usize) -> Result<(String, usize), String> {
    let unfinished = || format!("line {}: the quote does not end", line_number(text, start));
    let (mut word, mut quote) = (String::new(), None);
    let mut letters = text[start..].char_indices();
    while let Some((place, letter)) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (None | Some('"'), '\\') => {
                word.extend(letters.next().map(|(_, escaped)| escaped).filter(|one| *one != '\n'));
            }
            (None, ';' | '#') => return Ok((word, start + place)),
            (None, _) if letter.is_ascii_whitespace() => return Ok((word, start + place)),
            _ => word.push(letter),
        }
    }
    if quote.is_some() { Err(unfinished()) } else { Ok((word, text.len())) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FILE: &str = "# Ours and theirs\n\nconfig shaper 'eth0'\n\toption up '20M'\n\tlist options '--nat'\n\n\
                        config other\n\toption a \"b \\\" c\"; option d e\\ f # a remark\n";

    #[test]
    fn sections_and_their_lines_are_found() {
        let found = sections(FILE).expect("valid");
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].kind.as_str(), found[0].name.as_deref()), ("shaper", Some("eth0")));
        assert_eq!(found[0].entries, [UciEntry::option("up", "20M"), UciEntry::list("options", "--nat")]);
        assert_eq!(found[0].value("up"), Some("20M"));
        assert_eq!(found[0].value("options"), None, "a list is no option");
        assert!(!found[0].has_other_text && found[1].has_other_text);
        assert_eq!(found[1].entries, [UciEntry::option("a", "b \" c"), UciEntry::option("d", "e f")]);
        let rest = without(FILE, &found[0].range);
        assert_eq!(rest, FILE.replace("config shaper 'eth0'\n\toption up '20M'\n\tlist options '--nat'\n\n", ""));
    }

    #[test]
    fn single_quotes_are_written_as_libuci_writes_them() {
        let text = section_text("shaper", "eth0", &[UciEntry::option("name", "it's 'so'")]);
        assert_eq!(text, "config shaper 'eth0'\n\toption name 'it'\\''s '\\''so'\\'''\n");
        assert_eq!(sections(&text).expect("valid")[0].value("name"), Some("it's 'so'"));
    }

    #[test]
    fn other_text_is_refused_with_its_line() {
        for (text, line) in [
            ("option a b", "line 1"),
            ("config shaper 'eth0'\nsurprise", "line 2"),
            ("config shaper\n\n\toption 'a", "line 3"),
            ("config a b c", "line 1"),
            ("config a\npackage b", "line 2"),
        ] {
            let error = sections(text).expect_err(text);
            assert!(error.starts_with(line), "{text}: {error}");
        }
        assert_eq!(sections("package linerate\n# nothing\n"), Ok(Vec::new()));
        let shared = sections("config a; config b\n").expect("valid");
        assert!(shared.iter().all(|section| section.has_other_text), "on one line");
    }

    proptest! {
        #[test]
        fn values_lead_back(value in "[^\\x00-\\x1f]{0,40}", name in "[a-z_0-9]{1,15}") {
            let entries = [UciEntry::option("a", &value), UciEntry::list("b", &value)];
            let text = section_text("shaper", &name, &entries);
            let found = sections(&text).expect("valid");
            prop_assert_eq!(&found[0].entries[..], &entries[..]);
            prop_assert_eq!(found[0].name.as_deref(), Some(name.as_str()));
            prop_assert!(found.len() == 1 && without(&text, &found[0].range).is_empty());
        }
    }
}
