//! Syntax of settings files (sysctl.d(5), sysctl.conf(5)) and of setting names.

/// Line of a file that assigns a setting, or excludes it from wildcards.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SettingAssignment {
    /// Line number, from 1.
    pub line: usize,
    /// sysctl name of the setting (`net.ipv4.tcp_rmem`); may have wildcards (`net.ipv4.conf.*.rp_filter`).
    pub key: String,
    /// Name as written.
    pub written: String,
    /// Value with single blanks between its fields; `None` for a line `-key`, which excludes wildcards for that key.
    pub value: Option<String>,
    /// True when a leading hyphen marks failures as ignorable.
    pub may_fail: bool,
}

impl SettingAssignment {
    /// True when the key has wildcards.
    #[must_use]
    pub fn is_pattern(&self) -> bool {
        self.key.contains(['*', '?', '['])
    }

    /// True when it applies to this setting, by name or by wildcard.
    #[must_use]
    pub fn concerns(&self, key: &str) -> bool {
        if self.is_pattern() { matches_pattern(&self.key, key) } else { self.key == key }
    }
}

/// Line that is neither empty nor a comment nor an assignment, and is ignored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnparsedLine {
    /// Line number, from 1.
    pub line: usize,
    /// Text of the line.
    pub text: String,
}

/// Parses a settings file: `key = value`, `-key = value`, `-key`; comments begin with `#` or `;`. systemd-sysctl and
/// procps share this syntax.
#[must_use]
pub fn parse(text: &str) -> (Vec<SettingAssignment>, Vec<UnparsedLine>) {
    let (mut assignments, mut nonsense) = (Vec::new(), Vec::new());
    for (index, raw) in text.lines().enumerate() {
        let line = index + 1;
        let content = raw.trim();
        if content.is_empty() || content.starts_with(['#', ';']) {
            continue;
        }
        match assignment(line, content) {
            Some(assignment) => assignments.push(assignment),
            None => nonsense.push(UnparsedLine { line, text: content.to_owned() }),
        }
    }
    (assignments, nonsense)
}

fn assignment(line: usize, content: &str) -> Option<SettingAssignment> {
    let (may_fail, content) = content.strip_prefix('-').map_or((false, content), |rest| (true, rest));
    let (written, value) = match content.split_once('=') {
        Some((key, value)) => (key.trim(), Some(single_blanks(value))),
        None if may_fail => (content.trim(), None),
        None => return None,
    };
    let key = normalised_name(written);
    (!key.is_empty()).then(|| SettingAssignment { line, key, written: written.to_owned(), value, may_fail })
}

/// Parses settings of the kernel command line: `sysctl.KEY=VALUE` (`Documentation/admin-guide/kernel-parameters.txt`),
/// set before any file is read. Lines are the positions of the arguments, from 1.
#[must_use]
pub fn parse_command_line(text: &str) -> Vec<SettingAssignment> {
    let words = text.split_ascii_whitespace().take_while(|word| *word != "--").enumerate();
    let setting = |(index, word): (usize, &str)| {
        let (written, value) =
            word.strip_prefix("sysctl.").or_else(|| word.strip_prefix("sysctl/"))?.split_once('=')?;
        // A dot always becomes a slash here, so that no name contains dots.
        let key = written.replace('/', ".");
        let value = single_blanks(value.trim_matches('"'));
        Some(SettingAssignment {
            line: index + 1,
            key,
            written: written.to_owned(),
            value: Some(value),
            may_fail: true,
        })
    };
    words.filter_map(setting).collect()
}

/// Value with single blanks between its fields.
#[must_use]
pub fn single_blanks(value: &str) -> String {
    value.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// Converts a name written with dots or slashes to sysctl's form: whichever comes first separates, the other is part of
/// a component (`net/ipv4/conf/eth0.100/forwarding` is `net.ipv4.conf.eth0/100.forwarding`).
#[must_use]
pub fn normalised_name(written: &str) -> String {
    let swapped = match written.find(['.', '/']).map(|position| written.as_bytes()[position]) {
        Some(b'/') => swap_separators(written),
        _ => written.to_owned(),
    };
    let words = swapped.split('.').filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(".")
}

/// Path below `/proc/sys` of a setting by its sysctl name.
#[must_use]
pub fn procfs_path(name: &str) -> String {
    swap_separators(name)
}

fn swap_separators(text: &str) -> String {
    let exchange = |character| match character {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    text.chars().map(exchange).collect()
}

/// True when a name matches a pattern with the wildcards of glob(7), which do not match the separators.
#[must_use]
pub fn matches_pattern(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<&str>, Vec<&str>) = (pattern.split('.').collect(), name.split('.').collect());
    pattern.len() == name.len() && pattern.iter().zip(name).all(|(pattern, word)| component_matches(pattern, word))
}

/// Matches one component against one pattern: `*`, `?`, and `[…]` with ranges and `!`.
fn component_matches(pattern: &str, word: &str) -> bool {
    let (pattern, word): (Vec<char>, Vec<char>) = (pattern.chars().collect(), word.chars().collect());
    // Positions in the pattern reachable with the characters so far.
    let mut reached = vec![false; pattern.len() + 1];
    reached[0] = true;
    skip_stars(&pattern, &mut reached);
    for letter in word {
        let mut next = vec![false; pattern.len() + 1];
        for position in (0..pattern.len()).filter(|position| reached[*position]) {
            if pattern[position] == '*' {
                next[position] = true;
            } else if let Some(length) = one_matches(&pattern[position..], letter) {
                next[position + length] = true;
            }
        }
        skip_stars(&pattern, &mut next);
        reached = next;
    }
    reached[pattern.len()]
}

fn skip_stars(pattern: &[char], reached: &mut [bool]) {
    for position in 0..pattern.len() {
        if reached[position] && pattern[position] == '*' {
            reached[position + 1] = true;
        }
    }
}

/// Length of the first element of the pattern, which is not a star, if it matches this character.
fn one_matches(pattern: &[char], letter: char) -> Option<usize> {
    match pattern[0] {
        '?' => Some(1),
        '[' => set_matches(pattern, letter),
        literal => (literal == letter).then_some(1),
    }
}

fn set_matches(pattern: &[char], letter: char) -> Option<usize> {
    let inverted = pattern.get(1).is_some_and(|first| matches!(first, '!' | '^'));
    let begin = if inverted { 2 } else { 1 };
    // A bracket at the very start is a character of the set.
    let Some(length) = pattern.iter().skip(begin + 1).position(|character| *character == ']') else {
        return (letter == '[').then_some(1);
    };
    let set = &pattern[begin..=begin + length];
    let mut found = false;
    let mut index = 0;
    while index < set.len() {
        if index + 2 < set.len() && set[index + 1] == '-' {
            found |= (set[index]..=set[index + 2]).contains(&letter);
            index += 3;
        } else {
            found |= set[index] == letter;
            index += 1;
        }
    }
    (found != inverted).then_some(begin + length + 2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_of_all_kinds() {
        let text = "# comment\n; another\n\n net.ipv4.tcp_sack = 0 \nnet/core/rmem_max=1\n-net.ipv4.tcp_ecn=1\n\
                    -net.ipv4.conf.all.rp_filter\nnet.ipv4.tcp_rmem=4096\t87380   16777216\nnonsense\n=5\nkernel.hostname =\n";
        let (assignments, nonsense) = parse(text);
        let short: Vec<_> = assignments
            .iter()
            .map(|found| (found.line, found.key.as_str(), found.value.as_deref(), found.may_fail))
            .collect();
        assert_eq!(
            short,
            [
                (4, "net.ipv4.tcp_sack", Some("0"), false),
                (5, "net.core.rmem_max", Some("1"), false),
                (6, "net.ipv4.tcp_ecn", Some("1"), true),
                (7, "net.ipv4.conf.all.rp_filter", None, true),
                (8, "net.ipv4.tcp_rmem", Some("4096 87380 16777216"), false),
                (11, "kernel.hostname", Some(""), false),
            ]
        );
        assert_eq!(nonsense.iter().map(|line| line.line).collect::<Vec<_>>(), [9, 10]);
    }

    #[test]
    fn names_with_slashes_and_with_dots() {
        for (written, expected) in [
            ("net.ipv4.tcp_sack", "net.ipv4.tcp_sack"),
            ("net/ipv4/tcp_sack", "net.ipv4.tcp_sack"),
            ("/net/ipv4/tcp_sack", "net.ipv4.tcp_sack"),
            ("net/ipv4/conf/eth0.100/forwarding", "net.ipv4.conf.eth0/100.forwarding"),
            ("net.ipv4.conf.eth0/100.forwarding", "net.ipv4.conf.eth0/100.forwarding"),
            ("net//core///rmem_max", "net.core.rmem_max"),
            ("", ""),
        ] {
            assert_eq!(normalised_name(written), expected, "{written}");
        }
        assert_eq!(procfs_path("net.ipv4.conf.eth0/100.forwarding"), "net/ipv4/conf/eth0.100/forwarding");
    }

    #[test]
    fn wildcards_stay_within_a_word() {
        for (pattern, name, expected) in [
            ("net.ipv4.conf.*.rp_filter", "net.ipv4.conf.eth0.rp_filter", true),
            ("net.ipv4.conf.*.rp_filter", "net.ipv4.conf.all.forwarding", false),
            ("net.*", "net.ipv4.tcp_sack", false),
            ("net.ipv4.tcp_?mem", "net.ipv4.tcp_rmem", true),
            ("net.ipv4.tcp_[rw]mem", "net.ipv4.tcp_wmem", true),
            ("net.ipv4.tcp_[!r]mem", "net.ipv4.tcp_rmem", false),
            ("net.ipv4.tcp_[a-s]mem", "net.ipv4.tcp_rmem", true),
            ("net.ipv4.*_*em", "net.ipv4.tcp_rmem", true),
            ("net.ipv4.tcp_[rmem", "net.ipv4.tcp_[rmem", true),
            ("*.*.*", "net.ipv4.tcp_rmem", true),
        ] {
            assert_eq!(matches_pattern(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn the_command_line_of_the_kernel() {
        let found =
            parse_command_line("quiet sysctl.net.ipv4.tcp_sack=0 sysctl/net/core/rmem_max=7 sysctl.x -- sysctl.a=1\n");
        let short: Vec<_> =
            found.iter().map(|found| (found.line, found.key.as_str(), found.value.as_deref())).collect();
        assert_eq!(short, [(2, "net.ipv4.tcp_sack", Some("0")), (3, "net.core.rmem_max", Some("7"))]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_line_by_line(text in "(?s).{0,200}") {
            let (assignments, nonsense) = parse(&text);
            let lines = text.lines().count();
            prop_assert!(assignments.len() + nonsense.len() <= lines);
            for found in &assignments {
                prop_assert!((1..=lines).contains(&found.line));
                prop_assert!(!found.key.is_empty());
                prop_assert!(found.value.is_some() || found.may_fail);
            }
        }

        #[test]
        fn written_assignments_are_parsed(
            words in prop::collection::vec("[a-z_]{1,8}", 1..5),
            value in "[a-z0-9]{1,6}( [a-z0-9]{1,6}){0,3}",
            slashes in any::<bool>(),
            may_fail in any::<bool>(),
        ) {
            let key = words.join(if slashes { "/" } else { "." });
            let line = format!("  {}{key}\t=  {} ", if may_fail { "-" } else { "" }, value.replace(' ', "\t "));
            let (assignments, nonsense) = parse(&line);
            prop_assert_eq!(nonsense, []);
            prop_assert_eq!(&assignments[0].key, &words.join("."));
            prop_assert_eq!(assignments[0].value.as_deref(), Some(value.as_str()));
            prop_assert_eq!(assignments[0].may_fail, may_fail);
        }

        #[test]
        fn names_are_stable_and_their_own_pattern(words in prop::collection::vec("[a-z_][a-z_.]{0,7}", 1..5)) {
            let written = words.join("/");
            prop_assert_eq!(normalised_name(&normalised_name(&written)), normalised_name(&written));
            let name = normalised_name(&written);
            prop_assert!(matches_pattern(&name, &name));
            prop_assert!(matches_pattern(&vec!["*"; name.split('.').count()].join("."), &name));
        }

        #[test]
        fn patterns_never_panic(pattern in "[a-c\\[\\]!*?^.-]{0,12}", word in "[a-c.\\]-]{0,8}") {
            let _ = matches_pattern(&pattern, &word);
        }
    }

    /// Changed, cut and joined parts of real files: nothing panics, and every line has a source.
    #[test]
    fn damaged_files() {
        let seeds = ["net.ipv4.tcp_rmem = 4096 131072 6291456\n", "-net/core/*=1\n; x\n# y\n", "= = =\n--a\n\u{0}\n"];
        for seed in seeds {
            for cut in 0..seed.len() {
                for piece in [&seed[..cut], &seed[cut..]] {
                    let (assignments, _) = parse(&format!("{piece}={piece}"));
                    assert!(assignments.iter().all(|found| !found.key.is_empty()));
                }
            }
        }
    }
}
