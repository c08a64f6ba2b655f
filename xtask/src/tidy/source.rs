//! A Rust file split into what the compiler sees and what people read.
//!
//! The checks look for words. A word in a string is data, in a comment it is prose; so both are blanked out of the
//! code, and everything else is blanked out of the comments. Lines keep their numbers.

/// A Rust file, line by line.
pub(super) struct Source {
    code: Vec<String>,
    comments: Vec<String>,
    in_tests: Vec<bool>,
}

impl Source {
    /// Splits the text of the Rust file at `path`.
    pub(super) fn new(path: &str, text: &str) -> Self {
        let (code, comments) = Splitter::new(text).split();
        let code: Vec<String> = code.split('\n').map(str::to_owned).collect();
        let comments = comments.split('\n').map(str::to_owned).collect();
        let in_tests = if is_test_file(path) { vec![true; code.len()] } else { lines_in_tests(&code) };
        Self { code, comments, in_tests }
    }

    /// Code of each line, with strings and comments blanked.
    pub(super) fn code(&self) -> &[String] {
        &self.code
    }

    /// Comments of each line, with everything else blanked.
    pub(super) fn comments(&self) -> &[String] {
        &self.comments
    }

    /// Numbers of the lines whose code holds `word` as a whole word.
    pub(super) fn lines_with(&self, word: &str) -> Vec<usize> {
        numbers(self.code.iter().map(|line| contains_word(line, word)))
    }

    /// The same, without lines of tests.
    pub(super) fn lines_with_outside_tests(&self, word: &str) -> Vec<usize> {
        let shipped =
            self.code.iter().zip(&self.in_tests).map(|(line, in_tests)| !in_tests && contains_word(line, word));
        numbers(shipped)
    }
}

fn numbers(hits: impl Iterator<Item = bool>) -> Vec<usize> {
    hits.enumerate().filter(|(_, hit)| *hit).map(|(index, _)| index + 1).collect()
}

/// Whether `line` holds `word`, not as part of a longer identifier.
pub(super) fn contains_word(line: &str, word: &str) -> bool {
    let is_identifier = |found: Option<char>| found.is_some_and(|found| found.is_alphanumeric() || found == '_');
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        let begins = is_identifier(word.chars().next()) && is_identifier(before);
        let goes_on = is_identifier(word.chars().next_back()) && is_identifier(after);
        !begins && !goes_on
    })
}

/// Whether the whole file is test code, by its place.
fn is_test_file(path: &str) -> bool {
    let mut parts = path.split('/').rev();
    let file = parts.next().unwrap_or_default();
    file == "tests.rs"
        || file.ends_with("_tests.rs")
        || parts.any(|folder| matches!(folder, "tests" | "benches" | "examples" | "fuzz_targets"))
}

/// Marks the lines under `#[cfg(test)]`, to the closing brace of the item.
fn lines_in_tests(code: &[String]) -> Vec<bool> {
    let mut marks = vec![false; code.len()];
    let mut index = 0;
    while index < code.len() {
        if code[index].contains("#[cfg(test)]") {
            let end = end_of_item(code, index);
            marks[index..=end].fill(true);
            index = end;
        }
        index += 1;
    }
    marks
}

/// The line on which the item that starts at `start` ends: at its closing brace, or at a `;` before any brace.
fn end_of_item(code: &[String], start: usize) -> usize {
    let mut depth = 0_usize;
    for (index, line) in code.iter().enumerate().skip(start) {
        for character in line.chars() {
            match character {
                '{' => depth += 1,
                '}' if depth == 1 => return index,
                '}' => depth = depth.saturating_sub(1),
                ';' if depth == 0 => return index,
                _ => {}
            }
        }
    }
    code.len() - 1
}

/// Walks the characters of a file and sends each to one of the two sides.
struct Splitter {
    characters: Vec<char>,
    position: usize,
    code: String,
    comments: String,
}

/// Where a character belongs.
#[derive(Clone, Copy)]
enum Side {
    Code,
    Comment,
    Text,
}

impl Splitter {
    fn new(text: &str) -> Self {
        Self { characters: text.chars().collect(), position: 0, code: String::new(), comments: String::new() }
    }

    fn split(mut self) -> (String, String) {
        while let Some(current) = self.at(0) {
            match (current, self.at(1)) {
                ('/', Some('/')) => self.take_while(Side::Comment, |rest| rest[0] != '\n'),
                ('/', Some('*')) => self.block_comment(),
                ('"', _) => self.string(),
                ('r', Some('"' | '#')) if self.raw_string_starts() => self.raw_string(),
                ('\'', _) if self.is_character_literal() => self.character_literal(),
                _ => self.take(Side::Code),
            }
        }
        (self.code, self.comments)
    }

    fn at(&self, offset: usize) -> Option<char> {
        self.characters.get(self.position + offset).copied()
    }

    fn take(&mut self, side: Side) {
        let character = self.characters[self.position];
        let (code, comment) = match (side, character) {
            (_, '\n') => ('\n', '\n'),
            (Side::Code, _) => (character, ' '),
            (Side::Comment, _) => (' ', character),
            (Side::Text, _) => (' ', ' '),
        };
        self.code.push(code);
        self.comments.push(comment);
        self.position += 1;
    }

    fn take_while(&mut self, side: Side, goes_on: impl Fn(&[char]) -> bool) {
        while self.position < self.characters.len() && goes_on(&self.characters[self.position..]) {
            self.take(side);
        }
    }

    fn take_many(&mut self, side: Side, count: usize) {
        for _ in 0..count.min(self.characters.len() - self.position) {
            self.take(side);
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0_usize;
        while let Some(current) = self.at(0) {
            match (current, self.at(1)) {
                ('/', Some('*')) => depth += 1,
                ('*', Some('/')) => depth -= 1,
                _ => {
                    self.take(Side::Comment);
                    continue;
                }
            }
            self.take_many(Side::Comment, 2);
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) {
        self.take(Side::Code);
        while let Some(current) = self.at(0) {
            match current {
                '"' => return self.take(Side::Code),
                '\\' => self.take_many(Side::Text, 2),
                _ => self.take(Side::Text),
            }
        }
    }

    /// Whether the `r` here opens a raw string: it is no part of a name such as `for`, and hashes lead to a quote.
    fn raw_string_starts(&self) -> bool {
        let before = self.position.checked_sub(1).map(|index| self.characters[index]);
        let in_name =
            before.is_some_and(|found| (found.is_alphanumeric() && !matches!(found, 'b' | 'c')) || found == '_');
        let after_hashes = self.characters[self.position + 1..].iter().find(|character| **character != '#');
        !in_name && after_hashes == Some(&'"')
    }

    fn raw_string(&mut self) {
        let hashes = self.characters[self.position + 1..].iter().take_while(|character| **character == '#').count();
        let closing: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
        self.take_many(Side::Code, hashes + 2);
        self.take_while(Side::Text, |rest| !rest.starts_with(&closing));
        self.take_many(Side::Code, hashes + 1);
    }

    /// Tells `'a'` and `'\n'` from the lifetime `'a`.
    fn is_character_literal(&self) -> bool {
        self.at(1) == Some('\\') || (self.at(1).is_some() && self.at(2) == Some('\''))
    }

    fn character_literal(&mut self) {
        self.take(Side::Code);
        let escaped = self.at(0) == Some('\\');
        self.take_many(Side::Text, if escaped { 2 } else { 1 });
        self.take_while(Side::Text, |rest| rest[0] != '\'' && rest[0] != '\n');
        self.take_many(Side::Code, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source::new("crates/units/src/lib.rs", text)
    }

    #[test]
    fn words_in_strings_and_comments_are_not_code() {
        let text = "let a = \"unsafe \\\" unsafe\"; // unsafe\n/* unsafe /* unsafe */\nunsafe */ let b = r#\"unsafe \" unsafe\"#;\nunsafe {}\n";
        assert_eq!(source(text).lines_with("unsafe"), [4]);
    }

    #[test]
    fn quotes_in_character_literals_and_lifetimes_open_nothing() {
        let text = "let a = ['\"', '\\'', '\\u{41}'];\nfn f<'a>(x: &'a str) {}\nunsafe {}\n";
        assert_eq!(source(text).lines_with("unsafe"), [3]);
    }

    #[test]
    fn a_name_that_ends_in_r_opens_no_raw_string() {
        assert_eq!(source("for\"text\"; unsafe").lines_with("unsafe"), [1]);
        assert_eq!(source("br\"text\"; unsafe").lines_with("unsafe"), [1]);
    }

    #[test]
    fn comments_keep_only_comments() {
        let source = source("let a = 1; // why\n");
        assert_eq!(source.comments()[0].trim(), "// why");
        assert_eq!(source.code()[0].trim(), "let a = 1;");
    }

    #[test]
    fn a_word_is_not_found_inside_a_longer_one() {
        assert!(contains_word("print!(1)", "print!"));
        assert!(!contains_word("eprint!(1)", "print!"));
        assert!(!contains_word("sleeping(1)", "sleep"));
        assert!(contains_word("thread::sleep(1)", "sleep("));
    }

    #[test]
    fn test_modules_are_told_from_shipped_code() {
        let text = "fn a() { exit() }\n#[cfg(test)]\nmod tests {\n    fn b() { exit() }\n}\nfn c() { exit() }\n";
        assert_eq!(source(text).lines_with_outside_tests("exit"), [1, 6]);
        assert_eq!(source("#[cfg(test)]\nmod tests;\nfn c() { exit() }").lines_with_outside_tests("exit"), [3]);
        assert!(Source::new("crates/cli/tests/a.rs", "exit").lines_with_outside_tests("exit").is_empty());
    }
}
