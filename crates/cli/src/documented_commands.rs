//! Commands in the documentation, parsed: each option that a page shows exists.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;

use crate::command_line::{adapted, is_command, parse};

/// Folders below the repository's root with pages for users.
const FOLDERS: [&str; 5] = [".", "docs", "docs/guides", "packaging", "packaging/ansible"];

/// Fewest commands on all pages together: fewer were not found.
const MIN_COMMANDS: usize = 100;

#[test]
fn every_documented_command_is_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages: Vec<PathBuf> = FOLDERS.iter().flat_map(|folder| pages(&root.join(folder))).collect();
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("a page");
        for (line, is_example) in commands(&text) {
            count += 1;
            if let Some(error) = refusal(&line, is_example) {
                wrong.push(format!("{}: {line}\n  {error}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= MIN_COMMANDS, "only {count} commands were found");
}

fn pages(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    // The changelog has commands of the past.
    let is_page = |path: &PathBuf| path.extension().is_some_and(|end| end == "md") && !path.ends_with("CHANGELOG.md");
    entries.filter(is_page).collect()
}

/// Command lines of linerate without comments; of a pipe or a redirection the first command. Those in the blocks for a
/// shell are examples (`true`); those in the rows of tables may also be a command's name.
fn commands(text: &str) -> Vec<(String, bool)> {
    let mut is_shell = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some(kind) = line.trim_start().strip_prefix("```") {
            is_shell = matches!(kind, "sh" | "console");
            continue;
        }
        let typed: Vec<&str> = match (is_shell, line.starts_with('|')) {
            (true, _) => vec![line],
            (false, true) => line.split('`').skip(1).step_by(2).collect(),
            (false, false) => Vec::new(),
        };
        found.extend(typed.into_iter().filter_map(command).map(|line| (line.to_owned(), is_shell)));
    }
    found
}

/// Command of linerate on a line; `None` for other commands and those with place-holders.
fn command(line: &str) -> Option<&str> {
    let line = without_sudo(line.trim().trim_start_matches("$ "));
    // On another host.
    let line = line.strip_prefix("ssh ").and_then(|rest| rest.split_once(' ')).map_or(line, |(_, there)| there);
    let line = without_sudo(line);
    let line = line.split(" #").next()?.split([';', '>', '|']).next()?.trim();
    let is_plain = !line.contains(['$', '…', '\\', '&', '[', '<']);
    (is_plain && line.starts_with("linerate ")).then_some(line)
}

fn without_sudo(line: &str) -> &str {
    line.strip_prefix("sudo ").unwrap_or(line)
}

/// Words of a command line: quotes keep blanks.
fn words(line: &str) -> Vec<OsString> {
    let quoted = |(index, part): (usize, &str)| match index % 2 {
        1 => vec![part.to_owned()],
        _ => part.split_whitespace().map(str::to_owned).collect(),
    };
    line.split(['"', '\'']).enumerate().flat_map(quoted).skip(1).map(OsString::from).collect()
}

/// Error of a command line; an argument may be missing where it is no example.
fn refusal(line: &str, is_example: bool) -> Option<String> {
    let words = words(line);
    // It has its own parser.
    if words.first().is_some_and(|first| first == "iperf3") {
        return None;
    }
    let error = parse(&adapted(&words, is_command)).err()?;
    let is_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    let lacks = ["arguments were not provided", "but none was supplied", "requires a subcommand"];
    let text = error.to_string();
    let value = text.split('\'').nth(1);
    let is_placeholder = value.is_some_and(|value| !value.contains(|letter: char| !letter.is_ascii_uppercase()));
    let is_name = !is_example && (is_placeholder || lacks.iter().any(|lack| text.contains(lack)));
    (!is_help && !is_name).then_some(text)
}

#[test]
fn commands_are_found_in_blocks_for_a_shell() {
    let text = "linerate no\n```sh\nsudo linerate test far   # a comment\nlinerate history tag last \"before fq\"\nls\nssh root@far sudo linerate doctor\n```\n| far? | `sudo linerate path far` |\n";
    let found = [
        ("linerate test far", true),
        ("linerate history tag last \"before fq\"", true),
        ("linerate doctor", true),
        ("linerate path far", false),
    ];
    assert_eq!(commands(text), found.map(|(line, is_example)| (line.to_owned(), is_example)));
    assert_eq!(words("linerate history tag last \"before fq\""), ["history", "tag", "last", "before fq"]);
    assert!(refusal("linerate test far --no-such-option", false).is_some());
    assert!(refusal("linerate test", true).is_some() && refusal("linerate test", false).is_none());
}
