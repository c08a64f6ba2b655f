//! Commands in the documentation, parsed: each option that a page shows exists.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;

use crate::command_line::{adapted, is_command, parse};

/// Folders below the repository's root with pages for users.
const FOLDERS: [&str; 3] = [".", "docs", "docs/guides"];

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
        for line in commands(&text) {
            count += 1;
            if let Some(error) = refusal(&line) {
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

/// Command lines of linerate in the blocks for a shell, without comments; of a pipe or a redirection the first command.
fn commands(text: &str) -> Vec<String> {
    let mut is_shell = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some(kind) = line.trim_start().strip_prefix("```") {
            is_shell = matches!(kind, "sh" | "console");
            continue;
        }
        let line = line.trim().trim_start_matches("$ ");
        let line = line.strip_prefix("sudo ").unwrap_or(line);
        let line = line.split(" #").next().unwrap_or_default().split([';', '>', '|']).next().unwrap_or_default().trim();
        let is_plain = !line.contains(['$', '…', '\\', '&', '[', '<']);
        if is_shell && is_plain && line.starts_with("linerate ") {
            found.push(line.to_owned());
        }
    }
    found
}

/// Words of a command line: quotes keep blanks.
fn words(line: &str) -> Vec<OsString> {
    let quoted = |(index, part): (usize, &str)| match index % 2 {
        1 => vec![part.to_owned()],
        _ => part.split_whitespace().map(str::to_owned).collect(),
    };
    line.split(['"', '\'']).enumerate().flat_map(quoted).skip(1).map(OsString::from).collect()
}

fn refusal(line: &str) -> Option<String> {
    let words = words(line);
    // It has its own parser.
    if words.first().is_some_and(|first| first == "iperf3") {
        return None;
    }
    let error = parse(&adapted(&words, is_command)).err()?;
    let is_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    (!is_help).then(|| error.to_string())
}

#[test]
fn commands_are_found_in_blocks_for_a_shell() {
    let text =
        "linerate no\n```sh\nsudo linerate test far   # a comment\nlinerate history tag last \"before fq\"\nls\n```\n";
    assert_eq!(commands(text), ["linerate test far", "linerate history tag last \"before fq\""]);
    assert_eq!(words("linerate history tag last \"before fq\""), ["history", "tag", "last", "before fq"]);
    assert!(refusal("linerate test far --no-such-option").is_some());
}
