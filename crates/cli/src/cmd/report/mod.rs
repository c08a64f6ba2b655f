//! `linerate report`: finished runs as HTML, text or Markdown.

mod arguments;
mod fleet_results;
mod source;

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_documents::label::LabelledDocument;
use linerate_documents::run::RunDocument;
use linerate_report::presentation::{Presentation, compare, present, present_document};
use linerate_report::{html, markdown, text};
use linerate_sys::command;
use serde::Serialize;

pub(crate) use arguments::ReportArguments;
use arguments::ReportFormat;
use source::{NamedDocument, ReportedDocument, SourceError};

use crate::cmd::fleet::report::FLEET_REPORT_FILE;
use crate::console;
use crate::exit::ExitStatus;
use crate::recorder::explained;

/// Renders the selected runs and writes or prints the report.
pub(crate) fn run(arguments: &ReportArguments) -> ExitStatus {
    if arguments.compare && arguments.runs.len() != 2 {
        let way_out = "--compare needs two runs, before and after: `linerate report --compare last-1 last`";
        console::error(&format!("expected two runs: {way_out}"), None);
        return ExitStatus::Unable;
    }
    match fleet_results::paths(&arguments.runs) {
        Ok(Some(paths)) => return fleet_report(arguments, &paths),
        Ok(None) => {}
        Err(problem) => return report_error(&problem),
    }
    let found = match source::find(&arguments.runs) {
        Ok(found) => found,
        Err(SourceError::History(error)) => return report_error(&explained(&error)),
        Err(error) => return report_error(&error.to_string()),
    };
    if arguments.compare && (found.len() != 2 || found.iter().any(|found| found.run().is_none())) {
        return report_error("--compare needs two runs: the files contain more, or other documents");
    }
    let rendered = match render(arguments, &found) {
        Ok(rendered) => rendered,
        Err(problem) => return report_error(&linerate_report::escape::line(&problem)),
    };
    match target(arguments, &found) {
        None => {
            console::data(&rendered);
            ExitStatus::Success
        }
        Some(file) => write(arguments, &file, &rendered),
    }
}

/// Report of results of monitors and agents.
fn fleet_report(arguments: &ReportArguments, paths: &[PathBuf]) -> ExitStatus {
    let rendered = match fleet_results::render(paths, arguments.format) {
        Ok(rendered) => rendered,
        Err(problem) => return report_error(&problem),
    };
    let file = match &arguments.out {
        None if arguments.format == ReportFormat::Html => Some(PathBuf::from(FLEET_REPORT_FILE)),
        out => out.clone().filter(|out| out != Path::new("-")),
    };
    match file {
        None => {
            console::data(&rendered);
            ExitStatus::Success
        }
        Some(file) => write(arguments, &file, &rendered),
    }
}

fn report_error(problem: &str) -> ExitStatus {
    console::error(problem, None);
    ExitStatus::Unable
}

/// Form of a document for `--format json`.
#[derive(Serialize)]
#[serde(untagged)]
enum JsonDocument<'a> {
    Run(LabelledDocument<'a, RunDocument>),
    Other(&'a serde_json::Map<String, serde_json::Value>),
}

fn json(document: &ReportedDocument) -> JsonDocument<'_> {
    match document {
        ReportedDocument::Run(run) => JsonDocument::Run(LabelledDocument::run(run)),
        ReportedDocument::Other(_, document) => JsonDocument::Other(document),
    }
}

fn presentation(document: &ReportedDocument) -> Presentation<'_> {
    match document {
        ReportedDocument::Run(run) => present(run),
        ReportedDocument::Other(kind, document) => present_document(*kind, document),
    }
}

fn render(arguments: &ReportArguments, found: &[NamedDocument]) -> Result<String, String> {
    if arguments.format == ReportFormat::Json {
        let documents: Vec<_> = found.iter().map(|found| json(&found.document)).collect();
        let text = match documents.as_slice() {
            [one] => linerate_model::json::to_string_pretty(one),
            several => linerate_model::json::to_string_pretty(&several),
        };
        return text.map(|text| text + "\n").map_err(|error| format!("cannot write the runs as JSON: {error}"));
    }
    let presentations: Vec<Presentation<'_>> = match found.iter().filter_map(NamedDocument::run).collect::<Vec<_>>()[..]
    {
        [before, after] if arguments.compare => {
            vec![compare(before, after).map_err(|refusal| refusal.to_string())?]
        }
        _ => found.iter().map(|found| presentation(&found.document)).collect(),
    };
    Ok(match arguments.format {
        ReportFormat::Html => html::render(&presentations),
        ReportFormat::Markdown => markdown::render(&presentations),
        ReportFormat::Text | ReportFormat::Json => text::render(&presentations, console::data_style()),
    })
}

/// Output file; `None` for the standard output.
fn target(arguments: &ReportArguments, found: &[NamedDocument]) -> Option<PathBuf> {
    match &arguments.out {
        Some(file) if file == Path::new("-") => None,
        Some(file) => Some(file.clone()),
        None if arguments.format != ReportFormat::Html => None,
        None => Some(PathBuf::from(file_name(found, arguments.compare))),
    }
}

/// File name such as `linerate-report-17.html`, `linerate-report-16-and-17.html`; for more runs, the first and the
/// last.
fn file_name(found: &[NamedDocument], compared: bool) -> String {
    let names = match found {
        [] => String::new(),
        [one] => one.name.clone(),
        [first, last] if compared => format!("{}-against-{}", first.name, last.name),
        [first, last] => format!("{}-and-{}", first.name, last.name),
        [first, .., last] => format!("{}-to-{}", first.name, last.name),
    };
    format!("linerate-report-{names}.html")
}

fn write(arguments: &ReportArguments, file: &Path, rendered: &str) -> ExitStatus {
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
            io::ErrorKind::AlreadyExists => "; --force overwrites it, --out selects another file",
            _ => "",
        };
        let cause = linerate_sys::describe_os_error(&cause);
        return report_error(&format!("cannot write the report to {}: {cause}{way_out}", file.display()));
    }
    console::note(&format!("report written to {}", file.display()));
    if arguments.open {
        return open(file);
    }
    ExitStatus::Success
}

/// Opens a file in the user's browser.
fn open(file: &Path) -> ExitStatus {
    const PROGRAM: &str = "xdg-open";
    let path = std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf());
    match command::run_checked(PROGRAM, &[&path.to_string_lossy()], None, Duration::from_secs(10)) {
        Ok(_) => ExitStatus::Success,
        Err(error) => {
            console::note(&format!("cannot open the report: {error}; open {} in a browser", path.display()));
            ExitStatus::from_error(&error)
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct TestCommandLine {
        #[command(flatten)]
        report: ReportArguments,
    }

    fn parse_arguments(line: &[&str]) -> ReportArguments {
        let all = ["report"].iter().chain(line);
        TestCommandLine::try_parse_from(all).expect("a valid command line").report
    }

    #[test]
    fn by_default_the_last_run_becomes_a_page() {
        let arguments = parse_arguments(&[]);
        assert_eq!(arguments.runs, ["last"]);
        assert_eq!(arguments.format, ReportFormat::Html);
        assert!(!arguments.compare && !arguments.force && !arguments.open);
    }

    #[test]
    fn only_html_has_a_default_file() {
        assert_eq!(target(&parse_arguments(&["--format", "text"]), &[]), None);
        assert_eq!(target(&parse_arguments(&["--out", "-"]), &[]), None);
        assert_eq!(target(&parse_arguments(&["--format", "json", "--out", "x"]), &[]), Some(PathBuf::from("x")));
        assert_eq!(target(&parse_arguments(&[]), &[]), Some(PathBuf::from("linerate-report-.html")));
    }
}
