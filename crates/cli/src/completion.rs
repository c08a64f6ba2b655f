//! Completions: the shell asks this program, so that it also knows the emulated paths and the runs of the history.

use std::ffi::{OsStr, OsString};
use std::num::NonZeroU32;

use clap::{Arg, ArgAction, Command, CommandFactory, ValueHint};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};
use linerate_documents::shaper_persistence::ShaperManager;
use linerate_history::{History, HistoryLocation, ListedRun, RunFilter};
use linerate_lab::library;
use linerate_operate::shaping::persist;
use linerate_shape::back_ends::BackEndId;

use crate::app::CliArguments;
use crate::iperf3::args::options::{OptionArgument, SECTIONS};

/// Environment variable by which a shell's script asks for completions.
const VARIABLE: &str = "LINERATE_COMPLETE";

/// Runs of the history that are offered.
const MAX_RUNS: NonZeroU32 = NonZeroU32::new(50).expect("not zero");

/// Answers a shell that asks for completions; returns false when none does.
pub(crate) fn answer(arguments: impl Iterator<Item = OsString>) -> bool {
    let directory = std::env::current_dir().ok();
    let command = || CliArguments::command().mut_subcommand("iperf3", |given| iperf3_options(&given));
    let asked = CompleteEnv::with_factory(command).var(VARIABLE);
    // A shell has no use for an error.
    std::env::var_os(VARIABLE).is_some() && asked.try_complete(arguments, directory.as_deref()).unwrap_or(true)
}

/// Gives `linerate iperf3` the options that it parses itself.
fn iperf3_options(given: &Command) -> Command {
    // An argument of its own with the name of the global one is in place of it: iperf3 has no such option.
    let hidden = Arg::new("no_history").long("no-history").help("No option of iperf3").hide(true);
    let command = Command::default().name("iperf3").disable_help_flag(true).disable_version_flag(true).arg(hidden);
    let command = command.about(given.get_about().cloned().unwrap_or_default());
    SECTIONS.iter().flat_map(|section| section.options).fold(command, |command, option| {
        let arg = Arg::new(option.long).long(option.long).help(option.help);
        let arg = option.short.into_iter().fold(arg, Arg::short);
        command.arg(match option.argument {
            OptionArgument::None => arg.action(ArgAction::Count),
            OptionArgument::Optional(_) => arg.num_args(0..=1).require_equals(true),
            OptionArgument::Required(_) if option.long == "client" => arg.add(ArgValueCompleter::new(hosts)),
            OptionArgument::Required(_) => arg.value_hint(ValueHint::AnyPath),
        })
    })
}

/// Script for a shell.
pub(crate) fn script(shell: Shell) -> std::io::Result<Vec<u8>> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let name = "linerate";
    if let Some(completer) = shells.completer(&shell.to_string()) {
        completer.write_registration(VARIABLE, name, name, name, &mut script)?;
    }
    Ok(script)
}

fn matching(current: &OsStr, all: impl Iterator<Item = (String, String)>) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    let candidates = all.filter(|(name, _)| name.starts_with(&*typed));
    let candidate =
        |(name, help): (String, String)| CompletionCandidate::new(name).help((!help.is_empty()).then(|| help.into()));
    candidates.map(candidate).collect()
}

/// Emulated paths of the library, each with its story.
fn library_paths(prefix: &'static str) -> impl Iterator<Item = (String, String)> {
    let story = |entry: &library::LibraryEntry| entry.description().map(|path| path.story).unwrap_or_default();
    library::all().iter().map(move |entry| (format!("{prefix}{}", entry.name()), story(entry)))
}

/// Emulated paths, and files.
pub(crate) fn lab_paths(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut found = matching(current, library_paths(""));
    found.extend(PathCompleter::file().complete(current));
    found
}

/// Hosts of earlier runs, and emulated paths.
pub(crate) fn hosts(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut known: Vec<(String, String)> = Vec::new();
    for run in recorded_runs() {
        if run.lab_path.is_none() && known.iter().all(|(host, _)| *host != run.host) {
            known.push((run.host, "measured before".to_owned()));
        }
    }
    matching(current, known.into_iter().chain(library_paths("lab:")))
}

/// Latest runs of the history, those with a tag first.
fn recorded_runs() -> Vec<ListedRun> {
    let Ok(HistoryLocation::File(file)) = HistoryLocation::from_environment() else { return Vec::new() };
    let filter = RunFilter { limit: Some(MAX_RUNS), ..RunFilter::default() };
    let mut runs = History::open_existing(&file).and_then(|history| history.list(&filter)).unwrap_or_default();
    runs.sort_by_key(|run| run.tags.is_empty());
    runs
}

/// Runs of the history by number, with their tags.
pub(crate) fn runs(current: &OsStr) -> Vec<CompletionCandidate> {
    let text = |run: ListedRun| {
        let tags = if run.tags.is_empty() { String::new() } else { format!(" [{}]", run.tags.join("] [")) };
        (run.id.to_string(), format!("{}{tags}: {}", run.host, run.verdict))
    };
    let last = core::iter::once(("last".to_owned(), "the latest run".to_owned()));
    matching(current, last.chain(recorded_runs().into_iter().map(text)))
}

/// Runs of the history, and files.
pub(crate) fn runs_and_files(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut found = runs(current);
    found.extend(PathCompleter::file().stdio().complete(current));
    found
}

/// Tags of the history.
pub(crate) fn tags(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut tags: Vec<String> = recorded_runs().into_iter().flat_map(|run| run.tags).collect();
    tags.sort();
    tags.dedup();
    words(current, tags.iter().map(String::as_str))
}

/// Figures of the history.
pub(crate) fn figures(current: &OsStr) -> Vec<CompletionCandidate> {
    let Ok(HistoryLocation::File(file)) = HistoryLocation::from_environment() else { return Vec::new() };
    let names = History::open_existing(&file).and_then(|history| history.figure_names()).unwrap_or_default();
    words(current, names.iter().map(String::as_str))
}

/// Back ends of a shaper.
pub(crate) fn back_ends(current: &OsStr) -> Vec<CompletionCandidate> {
    words(current, BackEndId::names().split(", "))
}

/// Managers that start a shaper at boot.
pub(crate) fn managers(current: &OsStr) -> Vec<CompletionCandidate> {
    words(current, persist::managers().map(ShaperManager::name))
}

/// Actions on a shaper.
pub(crate) fn shaper_actions(current: &OsStr) -> Vec<CompletionCandidate> {
    words(current, ["off", "status", "confirm", "persist", "unpersist"].into_iter())
}

/// Network interfaces of this host.
pub(crate) fn interfaces(current: &OsStr) -> Vec<CompletionCandidate> {
    let entries = std::fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    words(current, names.iter().map(String::as_str).chain(["status"]))
}

fn words<'a>(current: &OsStr, words: impl Iterator<Item = &'a str>) -> Vec<CompletionCandidate> {
    matching(current, words.map(|word| (word.to_owned(), String::new())))
}

/// Commands that have a manual page.
pub(crate) fn commands(current: &OsStr) -> Vec<CompletionCandidate> {
    let app = CliArguments::command();
    let shown = app.get_subcommands().filter(|command| !command.is_hide_set());
    let text = |command: &Command| command.get_about().map(ToString::to_string).unwrap_or_default();
    matching(
        current,
        shown.map(|command| (command.get_name().to_owned(), text(command))).collect::<Vec<_>>().into_iter(),
    )
}
