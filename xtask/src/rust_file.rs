//! Rust files as flat lists of tokens, in which test code is marked.
//!
//! Checks and figures look for short sequences of tokens, also within macro calls, which a syntax tree leaves unread.

use std::ops::Range;

use anyhow::{Result, anyhow};
use proc_macro2::{Delimiter, Group, LineColumn, Span, TokenStream, TokenTree};

/// Kind of a [`RustToken`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// Identifier or keyword.
    Word,
    /// Punctuation or bracket.
    Sign,
    /// String, byte string, character or number.
    Literal,
    /// One `///` or `//!` line, one block of documentation, or one `#[doc = …]`.
    Documentation,
}

/// Token of a [`RustFile`].
#[derive(Clone, Debug)]
pub(crate) struct RustToken {
    pub(crate) kind: TokenKind,
    /// Text as written; of documentation, the text alone.
    pub(crate) text: String,
    /// Location in the file: lines from 1, columns in characters from 0, the end exclusive.
    pub(crate) location: Range<LineColumn>,
    /// True for test code.
    pub(crate) in_tests: bool,
    /// Index of the closing bracket, for an opening one.
    pub(crate) closed_by: Option<usize>,
}

impl RustToken {
    /// Returns the line on which the token begins, from 1.
    pub(crate) fn line(&self) -> usize {
        self.location.start.line
    }

    fn is_code(&self, text: &str) -> bool {
        matches!(self.kind, TokenKind::Word | TokenKind::Sign) && self.text == text
    }
}

/// Rust file as a list of tokens.
#[derive(Clone, Debug, Default)]
pub(crate) struct RustFile {
    tokens: Vec<RustToken>,
}

impl RustFile {
    /// Splits the text of the file at `path`; the path tells when all of it is test code.
    pub(crate) fn parse(path: &str, text: &str) -> Result<Self> {
        let stream: TokenStream = text.parse().map_err(|error| anyhow!("cannot read {path} as Rust: {error}"))?;
        let mut file = Self::default();
        file.append(stream, is_test_path(path));
        Ok(file)
    }

    /// Returns all tokens in the order of the file.
    pub(crate) fn tokens(&self) -> &[RustToken] {
        &self.tokens
    }

    /// Marks the whole file as test code.
    pub(crate) fn mark_as_tests(&mut self) {
        self.tokens.iter_mut().for_each(|token| token.in_tests = true);
    }

    /// Returns the indexes at which the code is `sequence`, such as `Command : : new`.
    pub(crate) fn find<'a>(&'a self, sequence: &'a str) -> impl Iterator<Item = usize> + 'a {
        (0..self.tokens.len()).filter(move |index| self.has_code(*index, sequence))
    }

    /// True when the code at `index` is `sequence`.
    pub(crate) fn has_code(&self, index: usize, sequence: &str) -> bool {
        let mut tokens = self.tokens[index..].iter();
        sequence.split(' ').all(|text| tokens.next().is_some_and(|token| token.is_code(text)))
    }

    /// Returns the names of modules in other files that are compiled for tests only.
    pub(crate) fn test_modules(&self) -> impl Iterator<Item = &str> {
        self.find("mod")
            .filter(|index| self.tokens[*index].in_tests)
            .filter(|index| self.tokens.get(index + 2).is_some_and(|token| token.is_code(";")))
            .map(|index| self.tokens[index + 1].text.as_str())
    }

    fn append(&mut self, stream: TokenStream, mut around: bool) {
        let trees: Vec<TokenTree> = stream.into_iter().collect();
        let mut in_tests = around;
        let mut index = 0;
        while index < trees.len() {
            if let Some((attribute, length)) = attribute_at(&trees[index..]) {
                if let Some(text) = documentation(attribute) {
                    let span = trees[index].span().start()..attribute.span().end();
                    self.push(TokenKind::Documentation, text, span, in_tests);
                    index += length;
                    continue;
                }
                in_tests |= is_for_tests(attribute);
                around |= in_tests && length == 3;
            }
            self.append_tree(&trees[index], in_tests);
            let ends_item = match &trees[index] {
                TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                TokenTree::Punct(sign) => sign.as_char() == ';',
                _ => false,
            };
            in_tests = if ends_item { around } else { in_tests };
            index += 1;
        }
    }

    fn append_tree(&mut self, tree: &TokenTree, in_tests: bool) {
        let kind = match tree {
            TokenTree::Group(group) => return self.append_group(group, in_tests),
            TokenTree::Ident(_) => TokenKind::Word,
            TokenTree::Punct(_) => TokenKind::Sign,
            TokenTree::Literal(_) => TokenKind::Literal,
        };
        self.push(kind, tree.to_string(), location(tree.span()), in_tests);
    }

    fn append_group(&mut self, group: &Group, in_tests: bool) {
        let (open, close) = match group.delimiter() {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Brace => ("{", "}"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::None => ("", ""),
        };
        let opening = self.tokens.len();
        self.push(TokenKind::Sign, open.to_owned(), location(group.span_open()), in_tests);
        self.append(group.stream(), in_tests);
        self.tokens[opening].closed_by = Some(self.tokens.len());
        self.push(TokenKind::Sign, close.to_owned(), location(group.span_close()), in_tests);
    }

    fn push(&mut self, kind: TokenKind, text: String, location: Range<LineColumn>, in_tests: bool) {
        self.tokens.push(RustToken { kind, text, location, in_tests, closed_by: None });
    }
}

/// Returns the value of a string literal: without quotes, with escapes left as written and continued lines joined.
pub(crate) fn string_value(literal: &str) -> Option<String> {
    let (prefix, quoted) = literal.split_once('"')?;
    let quoted = quoted.trim_end_matches('#').strip_suffix('"')?;
    if prefix.contains('r') {
        return Some(quoted.to_owned());
    }
    let mut lines = quoted.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    Some(lines.fold(first, |joined, line| joined + line.trim_start()))
}

/// True when `line` contains `word`, not as part of a longer word.
pub(crate) fn contains_word(line: &str, word: &str) -> bool {
    let is_part = |found: Option<char>| found.is_some_and(|found| found.is_alphanumeric() || found == '_');
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        !is_part(before) && !is_part(after)
    })
}

/// True when the whole file is test code, judged by its path.
pub(crate) fn is_test_path(path: &str) -> bool {
    let mut parts = path.split('/').rev();
    let file = parts.next().unwrap_or_default();
    file == "tests.rs" || parts.any(|folder| matches!(folder, "tests" | "benches" | "fuzz_targets"))
}

/// Returns the attribute at the start of `trees`, and its length: 3 for one of the surrounding item (`#![…]`), else 2.
fn attribute_at(trees: &[TokenTree]) -> Option<(&Group, usize)> {
    let is_sign = |tree: &TokenTree, sign| matches!(tree, TokenTree::Punct(found) if found.as_char() == sign);
    let length = if is_sign(trees.get(1)?, '!') { 3 } else { 2 };
    match trees.get(length - 1)? {
        TokenTree::Group(group) if is_sign(&trees[0], '#') && group.delimiter() == Delimiter::Bracket => {
            Some((group, length))
        }
        _ => None,
    }
}

/// Returns the text of an attribute `doc = "…"`, which is also the form of a comment with documentation.
fn documentation(attribute: &Group) -> Option<String> {
    let mut trees = attribute.stream().into_iter();
    let is_documentation = matches!(trees.next()?, TokenTree::Ident(name) if name == "doc");
    match trees.nth(1)? {
        TokenTree::Literal(text) if is_documentation => string_value(&text.to_string()),
        _ => None,
    }
}

/// True for `#[test]`, `#[cfg(test)]` and `#[cfg(all(test, …))]`.
fn is_for_tests(attribute: &Group) -> bool {
    let text: String = attribute.stream().to_string().split_whitespace().collect();
    text == "test" || text.starts_with("cfg(test)") || text.starts_with("cfg(all(test,")
}

fn location(span: Span) -> Range<LineColumn> {
    span.start()..span.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> RustFile {
        RustFile::parse("crates/units/src/lib.rs", text).expect("the text is Rust")
    }

    fn lines(text: &str, sequence: &str) -> Vec<(usize, bool)> {
        let file = file(text);
        file.find(sequence).map(|index| (file.tokens()[index].line(), file.tokens()[index].in_tests)).collect()
    }

    #[test]
    fn strings_and_comments_are_no_code() {
        let text = "fn a() {\n let a = \"unsafe\"; // unsafe\n/* unsafe */ let b = r#\"unsafe\"#;\n unsafe { c() } }\n";
        assert_eq!(lines(text, "unsafe {"), [(4, false)]);
        assert_eq!(lines("let a = '\"'; fn f<'a>(x: &'a str) {}\nunsafe {}", "unsafe"), [(2, false)]);
    }

    #[test]
    fn a_sequence_is_found_within_macros() {
        let text = "fn a() {\n assert!(std::thread::sleep(ONE) == ());\n asleep(1); sleep }\n";
        assert_eq!(lines(text, "thread : : sleep ("), [(2, false)]);
    }

    #[test]
    fn test_code_ends_with_its_item() {
        let text = "use a;\n#[cfg(test)]\nuse b::{a};\nfn a() { c() }\n#[cfg(test)]\nmod tests {\n fn b() { c() }\n}\n\
                    #[test]\nfn d() -> [u8; 2] { c() }\nfn e() { c() }\n";
        assert_eq!(lines(text, "c ("), [(4, false), (7, true), (10, true), (11, false)]);
        assert_eq!(lines("#![cfg(test)]\nfn a() {}\nfn b() { c() }", "c"), [(3, true)]);
        assert_eq!(lines("#[cfg(not(test))]\nfn a() { c() }", "c"), [(2, false)]);
    }

    #[test]
    fn modules_of_tests_are_listed() {
        let file = file("mod a;\n#[cfg(test)]\nmod b;\n#[cfg(test)]\nmod c { fn x() {} }\nmod d;\n");
        assert_eq!(file.test_modules().collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn documentation_is_one_token_a_line() {
        let file =
            file("//! Crate.\n\n/// First \"quoted\".\n/// Second.\n#[doc = \"Third.\"]\n#[doc(hidden)]\nfn a() {}");
        let found: Vec<_> = file.tokens().iter().filter(|token| token.kind == TokenKind::Documentation).collect();
        assert_eq!(found.iter().map(|token| token.line()).collect::<Vec<_>>(), [1, 3, 4, 5]);
        assert_eq!(found[2].text, " Second.");
        assert_eq!(lines("/** Block\n of two */ fn a() {}", "fn"), [(2, false)]);
    }

    #[test]
    fn brackets_know_their_partners() {
        let file = file("fn a() { b(c) }");
        let opening = file.find("{").next().expect("there is a body");
        assert_eq!(file.tokens()[opening].closed_by, Some(file.tokens().len() - 1));
    }

    #[test]
    fn values_of_strings_have_no_quotes_and_no_continuations() {
        assert_eq!(string_value("\"a \\\n   b\""), Some("a b".to_owned()));
        assert_eq!(string_value("br##\"a\"##"), Some("a".to_owned()));
        assert_eq!(string_value("'a'"), None);
        assert_eq!(string_value("12"), None);
    }

    #[test]
    fn a_word_is_not_found_inside_a_longer_one() {
        assert!(contains_word("an aside, beside it", "beside"));
        assert!(!contains_word("besides", "beside"));
    }
}
