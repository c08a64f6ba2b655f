//! `linerate report`: finished runs as something to read, to look at and to send.

mod arguments;
mod source;

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_report::presentation::{Presentation, compare, present};
use linerate_report::{html, markdown, text};
use linerate_sys::command;

use arguments::Format;
pub(crate) use arguments::ReportArguments;
use source::{Found, SourceError};

use crate::console;
use crate::exit::Exit;
use crate::keep::explained;

/// Does what was asked for.
pub(crate) fn run(arguments: &ReportArguments) -> Exit {
    if arguments.compare && arguments.runs.len() != 2 {
        let way_out = "--compare takes two runs, before and after: `linerate report --compare last-1 last`";
        console::error(&format!("not two runs: {way_out}"), None);
        return Exit::Unable;
    }
    let found = match source::find(&arguments.runs) {
        Ok(found) => found,
        Err(SourceError::History(error)) => return refused(&explained(&error)),
        Err(error) => return refused(&error.to_string()),
    };
    if arguments.compare && found.len() != 2 {
        return refused("--compare takes two runs, but the files have more");
    }
    let rendered = match render(arguments, &found) {
        Ok(rendered) => rendered,
        Err(error) => return refused(&format!("cannot write the runs as JSON: {error}")),
    };
    match target(arguments, &found) {
        None => {
            console::data(&rendered);
            Exit::Success
        }
        Some(file) => write(arguments, &file, &rendered),
    }
}

fn refused(problem: &str) -> Exit {
    console::error(problem, None);
    Exit::Unable
}

fn render(arguments: &ReportArguments, found: &[Found]) -> Result<String, serde_json::Error> {
    if arguments.format == Format::Json {
        let runs: Vec<_> = found.iter().map(|found| &found.run).collect();
        let document = match runs.as_slice() {
            [one] => serde_json::to_string_pretty(one)?,
            several => serde_json::to_string_pretty(several)?,
        };
        return Ok(document + "\n");
    }
    let presentations: Vec<Presentation<'_>> = match found {
        [before, after] if arguments.compare => vec![compare(&before.run, &after.run)],
        runs => runs.iter().map(|found| present(&found.run)).collect(),
    };
    Ok(match arguments.format {
        Format::Html => html::render(&presentations),
        Format::Markdown => markdown::render(&presentations),
        Format::Text | Format::Json => text::render(&presentations, console::data_style()),
    })
}

/// The file to write; `None` for the standard output.
fn target(arguments: &ReportArguments, found: &[Found]) -> Option<PathBuf> {
    match &arguments.out {
        Some(file) if file == Path::new("-") => None,
        Some(file) => Some(file.clone()),
        None if arguments.format != Format::Html => None,
        None => Some(PathBuf::from(file_name(found, arguments.compare))),
    }
}

/// `linerate-report-17.html`, `linerate-report-16-and-17.html`; of many runs, the first and the last.
fn file_name(found: &[Found], compared: bool) -> String {
    let names = match found {
        [] => String::new(),
        [one] => one.name.clone(),
        [first, last] if compared => format!("{}-against-{}", first.name, last.name),
        [first, last] => format!("{}-and-{}", first.name, last.name),
        [first, .., last] => format!("{}-to-{}", first.name, last.name),
    };
    format!("linerate-report-{names}.html")
}

fn write(arguments: &ReportArguments, file: &Path, rendered: &str) -> Exit {
    let mut options = OpenOptions::new();
    options.write(true);
    if arguments.force {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    let written = options.open(file).and_then(|mut open| open.write_all(rendered.as_bytes()));
    if let Err(cause) = written {
        let way_out = match cause.kind() {
            io::ErrorKind::AlreadyExists => ". --force overwrites it, --out names another one",
            _ => "",
        };
        let cause = linerate_sys::describe_os_error(&cause);
        return refused(&format!("cannot write the report to {}: {cause}{way_out}", file.display()));
    }
    console::note(&format!("report written to {}", file.display()));
    if arguments.open {
        return open(file);
    }
    Exit::Success
}

/// Shows a file in the user's browser.
fn open(file: &Path) -> Exit {
    const PROGRAM: &str = "xdg-open";
    let path = std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf());
    match command::run_checked(PROGRAM, &[&path.to_string_lossy()], None, Duration::from_secs(10)) {
        Ok(_) => Exit::Success,
        Err(error) => {
            console::note(&format!("cannot open it: {error}. Open {} in a browser", path.display()));
            Exit::of(&error)
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        report: ReportArguments,
    }

    fn parsed(line: &[&str]) -> ReportArguments {
        let all = ["report"].iter().chain(line);
        Line::try_parse_from(all).expect("a valid line").report
    }

    #[test]
    fn without_anything_the_last_run_becomes_a_page() {
        let arguments = parsed(&[]);
        assert_eq!(arguments.runs, ["last"]);
        assert_eq!(arguments.format, Format::Html);
        assert!(!arguments.compare && !arguments.force && !arguments.open);
    }

    #[test]
    fn only_pages_have_a_file_of_their_own() {
        assert_eq!(target(&parsed(&["--format", "text"]), &[]), None);
        assert_eq!(target(&parsed(&["--out", "-"]), &[]), None);
        assert_eq!(target(&parsed(&["--format", "json", "--out", "x"]), &[]), Some(PathBuf::from("x")));
        assert_eq!(target(&parsed(&[]), &[]), Some(PathBuf::from("linerate-report-.html")));
    }
}
