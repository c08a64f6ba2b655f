//! `linerate lab run`: a command on an emulated path.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_history::LOCATION_VARIABLE;
use linerate_lab::compile::compile;
use linerate_lab::job::{Capture, Command, End};
use linerate_lab::plan::{FAR, NEAR, Plan};
use linerate_lab::session::{self, BackEnd, Containment, Outcome, Request, SessionError, SessionEvent};
use linerate_model::schema::run::LabPath;
use linerate_sys::clock;
use linerate_sys::signals::Interrupts;
use linerate_units::display;

use super::path;
use crate::app::{self, LabOptions, LabRunArguments};
use crate::console;
use crate::exit::Exit;
use crate::keep::{self, Mailbox};

/// How many lines of the guest's kernel log go with an error.
const LOG_LINES: usize = 12;

/// Runs the command that was given, or the path's scenario.
pub(crate) fn run(arguments: &LabRunArguments) -> std::process::ExitCode {
    match prepare(&arguments.path, &arguments.command, &arguments.lab) {
        Ok(prepared) => prepared.carry_out(&arguments.lab),
        Err(exit) => exit.into(),
    }
}

/// What is to be run, and where its results go.
struct Prepared {
    request: Request,
    /// Where the guest leaves its runs; `None` when they are not kept.
    mailbox: Option<Mailbox>,
    path: LabPath,
}

impl Prepared {
    fn carry_out(&self, options: &LabOptions) -> std::process::ExitCode {
        let started_at = clock::realtime_now();
        let exit = carry_out(&self.request, options);
        if let Some(mailbox) = &self.mailbox {
            mailbox.empty(&self.path, started_at);
        }
        exit
    }
}

/// Runs linerate with these `arguments` on the path that `host` names (`lab:NAME`): there, the host is the far end.
pub(crate) fn run_instead(host: &str, arguments: &[OsString]) -> std::process::ExitCode {
    let options = LabOptions::default();
    let there =
        arguments.iter().map(|word| if word == host { FAR.to_owned() } else { word.to_string_lossy().into_owned() });
    let command: Vec<String> = ["linerate".to_owned()].into_iter().chain(there).collect();
    match prepare(name_of(host).unwrap_or(host), &command, &options) {
        Ok(prepared) => prepared.carry_out(&options),
        Err(exit) => exit.into(),
    }
}

/// As [`run_instead`], for a diagnosis: where no transfer is given, it is the path's own.
pub(crate) fn diagnose_instead(host: &str, arguments: &[OsString], given: bool) -> std::process::ExitCode {
    if given {
        return run_instead(host, arguments);
    }
    match path::find(name_of(host).unwrap_or(host)) {
        Ok(found) => run_instead(host, &with_transfer(arguments, &found.description.scenario)),
        Err(exit) => exit.into(),
    }
}

/// As [`diagnose_instead`], for commands that change hosts: the far host is one too, beside the one where it runs. The
/// command there has no standard input: it can ask nothing. A transfer that names the congestion control which its host
/// has anyway leaves it to the host, so that the host's can be changed.
pub(crate) fn tune_instead(host: &str, arguments: &[OsString], given: bool) -> std::process::ExitCode {
    let arguments = with_far(arguments);
    if given {
        return run_instead(host, &arguments);
    }
    let description = match path::find(name_of(host).unwrap_or(host)) {
        Ok(found) => found.description,
        Err(exit) => return exit.into(),
    };
    let own: Vec<&str> = description.hosts.iter().map(|host| host.congestion_control.as_str()).collect();
    run_instead(host, &with_transfer(&arguments, &of_the_hosts(&description.scenario, &own)))
}

/// The scenario without a choice that all hosts have made already.
fn of_the_hosts(scenario: &[String], own: &[&str]) -> Vec<String> {
    let mut scenario = scenario.to_vec();
    let chosen = scenario.windows(2).position(|pair| pair[0] == "-C" && own.iter().all(|name| *name == pair[1]));
    if let Some(place) = chosen {
        scenario.drain(place..place + 2);
    }
    scenario
}

/// The command line with what the lab has and can do, behind the command's word, unless the user has said it: the far
/// host; that nobody is asked, as nothing but the lab is changed; and a comparison that costs nothing here.
fn with_far(arguments: &[OsString]) -> Vec<OsString> {
    let mut arguments = arguments.to_vec();
    let end = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
    let own = &arguments[..end];
    let has = |option: &str| {
        own.iter().any(|word| word == option || word.to_string_lossy().starts_with(&format!("{option}=")))
    };
    let Some(place) = own.iter().position(|word| word == "tune" || word == "doctor") else { return arguments };
    let mut more: Vec<OsString> = Vec::new();
    if !has("--far") {
        more.extend(["--far".into(), format!("netns:{FAR}").into()]);
    }
    if !(has("--yes") || has("-y")) {
        more.push("--yes".into());
    }
    if own[place] == "doctor" && !has("--compare-guide") {
        more.push("--compare-guide".into());
    }
    arguments.splice(place + 1..=place, more);
    arguments
}

/// The command line with the transfer of a path's own scenario.
fn with_transfer(arguments: &[OsString], scenario: &[String]) -> Vec<OsString> {
    let mut arguments = arguments.to_vec();
    if !arguments.iter().any(|word| word == "--") {
        arguments.push("--".into());
    }
    arguments.extend(transfer_of(scenario).into_iter().map(OsString::from));
    arguments
}

/// The options of a scenario that is a transfer to the far end: `iperf3 -c far OPTIONS`.
fn transfer_of(scenario: &[String]) -> Vec<String> {
    let words: Vec<&str> = scenario.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["iperf3", "-c", _, options @ ..] => options.iter().map(|&option| option.to_owned()).collect(),
        _ => Vec::new(),
    }
}

/// The name of a path where a host was expected (`lab:NAME`).
pub(crate) fn name_of(host: &str) -> Option<&str> {
    host.strip_prefix("lab:")
}

fn prepare(name: &str, command: &[String], options: &LabOptions) -> Result<Prepared, Exit> {
    let path::Found { mut description, text } = path::find(name)?;
    if let Some(seed) = options.seed {
        description.seed = seed;
    }
    let plan = compile(&description);
    let linerate = own_binary()?;
    let arguments = if command.is_empty() {
        [&[text_of(&linerate)], &description.scenario[..]].concat()
    } else {
        resolve(command, &linerate)
    };
    let directory = std::env::current_dir().map_err(|cause| {
        unable(&format!("finding the current directory: {}", linerate_sys::describe_os_error(&cause)), None)
    })?;
    let capture = options.pcap.as_ref().map(|file| capture(file, &options.pcap_at, &plan, &directory)).transpose()?;
    let back_end = back_end(options)?;
    let mailbox = Mailbox::new();
    let writable = writable(&directory, capture.as_ref(), mailbox.as_ref());
    let mut environment = environment(&linerate, mailbox.as_ref());
    environment.push((keep::PATH_NAME.to_owned(), description.name.clone()));
    let command = Command { arguments, namespace: NEAR.to_owned(), environment, directory };
    let path = LabPath { name: description.name.clone(), description: text, seed: description.seed };
    let request = Request {
        plan,
        command,
        writable,
        capture,
        back_end,
        seed: description.seed,
        stall_limit: options.stall_limit,
        linerate,
        containment: Containment::Best,
    };
    Ok(Prepared { request, mailbox, path })
}

fn unable(text: &str, advice: Option<&str>) -> Exit {
    console::error(
        &match advice {
            Some(advice) => format!("{text}\n{advice}"),
            None => text.to_owned(),
        },
        None,
    );
    Exit::Unable
}

fn own_binary() -> Result<PathBuf, Exit> {
    std::env::current_exe().map_err(|cause| {
        let text = format!("finding this program's own file: {}", linerate_sys::describe_os_error(&cause));
        unable(&text, Some("the guest runs it as its first process: it must still be where it was started from"))
    })
}

fn text_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Words that are linerate's own commands in the lab. `iperf3` is the host's program where it has one.
const OWN: &[&str] = &[
    "audit",
    "baseline",
    "calc",
    "completions",
    "diagnose",
    "doctor",
    "history",
    "lab",
    "load",
    "man",
    "path",
    "report",
    "rfc6349",
    "rollback",
    "serve",
    "test",
    "tune",
    "watch",
];

fn resolve(command: &[String], linerate: &Path) -> Vec<String> {
    let own = [text_of(linerate)];
    match command[0].as_str() {
        "linerate" => [&own, &command[1..]].concat(),
        "iperf3" if !is_installed("iperf3") => [&own, command].concat(),
        word if OWN.contains(&word) => [&own, command].concat(),
        _ => command.to_vec(),
    }
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// This process's environment, with linerate itself to be found last, how the output will be shown, and where runs are
/// left. The history itself is this host's.
fn environment(linerate: &Path, mailbox: Option<&Mailbox>) -> Vec<(String, String)> {
    let mut variables: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| name != "PATH" && name != "COLUMNS" && name != "TMPDIR")
        .filter(|(name, _)| name != LOCATION_VARIABLE && name != keep::RESULT_FILE && name != keep::PATH_NAME)
        .collect();
    let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".to_owned());
    let own = linerate.parent().map(|parent| format!(":{}", parent.display())).unwrap_or_default();
    variables.push(("PATH".to_owned(), format!("{path}{own}")));
    variables.extend(console::relayed_environment());
    variables.push((LOCATION_VARIABLE.to_owned(), "off".to_owned()));
    variables.extend(mailbox.map(Mailbox::variable));
    variables
}

/// The file is made here, where the user's rights are known, and its directory becomes writable in the guest.
fn capture(file: &Path, place: &str, plan: &Plan, directory: &Path) -> Result<Capture, Exit> {
    let (host, device) = place.split_once(':').unwrap_or((place, "eth0"));
    let Some(namespace) = plan.namespaces.iter().find(|namespace| namespace.name == host) else {
        let hosts: Vec<&str> = plan.namespaces.iter().map(|namespace| namespace.name.as_str()).collect();
        return Err(unable(
            &format!("--pcap-at {place}: this path has no host {host:?}"),
            Some(&format!("it has {}", hosts.join(", "))),
        ));
    };
    let ends = plan.pairs.iter().flat_map(|pair| [&pair.a, &pair.b]);
    let devices: Vec<&str> =
        ends.filter(|end| end.namespace == namespace.name).map(|end| end.device.as_str()).collect();
    if !devices.contains(&device) && device != "lo" {
        return Err(unable(
            &format!("--pcap-at {place}: {host} has no device {device:?}"),
            Some(&format!("it has {}", devices.join(", "))),
        ));
    }
    let file = directory.join(file);
    std::fs::File::create(&file).map_err(|cause| {
        unable(&format!("creating the capture {}: {}", file.display(), linerate_sys::describe_os_error(&cause)), None)
    })?;
    Ok(Capture { namespace: host.to_owned(), device: device.to_owned(), file })
}

/// Where the command may write: the directory it was started in, that of the capture, and where it leaves its runs. The
/// root directory itself would be everything.
fn writable(directory: &Path, capture: Option<&Capture>, mailbox: Option<&Mailbox>) -> Vec<PathBuf> {
    let of_capture = capture.and_then(|capture| capture.file.parent()).map(Path::to_path_buf);
    let of_runs = mailbox.map(|mailbox| mailbox.directory().to_path_buf());
    let mut all: Vec<PathBuf> = [Some(directory.to_path_buf()), of_capture, of_runs].into_iter().flatten().collect();
    all.retain(|path| path != Path::new("/"));
    all.dedup();
    all
}

fn back_end(options: &LabOptions) -> Result<BackEnd, Exit> {
    match options.back_end {
        app::BackEnd::Namespaces => Ok(BackEnd::Namespaces),
        app::BackEnd::Uml => {
            let kernel = match &options.kernel {
                Some(kernel) => kernel.clone(),
                None => built_kernel()?,
            };
            Ok(BackEnd::UserModeLinux { kernel })
        }
    }
}

fn built_kernel() -> Result<PathBuf, Exit> {
    match linerate_lab::kernel::find() {
        Ok(Some(kernel)) => Ok(kernel.path),
        Ok(None) => Err(unable(
            "the lab's kernel has not been built yet",
            Some(
                "`linerate lab kernel build` makes it, once, in about three minutes; `linerate lab check` says what it needs",
            ),
        )),
        Err(error) => Err(super::kernel::refuse(&error)),
    }
}

fn carry_out(request: &Request, options: &LabOptions) -> std::process::ExitCode {
    let stop = match Interrupts::install() {
        Ok(stop) => stop,
        Err(cause) => {
            console::error(&cause.to_string(), None);
            return Exit::of(&cause).into();
        }
    };
    if options.verbose {
        console::note(&format!("lab: {}: {}", request.plan.path, request.plan.sizing.reason));
    }
    let mut watch = Watch { verbose: options.verbose, ready: None };
    match session::run(request, Some(&stop), &mut |event| watch.event(&event)) {
        Ok(outcome) => watch.finish(request, &outcome),
        Err(error) => explain(&error, request).into(),
    }
}

struct Watch {
    verbose: bool,
    ready: Option<Duration>,
}

impl Watch {
    fn event(&mut self, event: &SessionEvent<'_>) {
        match event {
            SessionEvent::Ready { wall_time } => self.ready = Some(*wall_time),
            SessionEvent::Output(bytes) => {
                console::relay_data(bytes);
            }
            SessionEvent::Error(bytes) => console::relay_error(bytes),
            SessionEvent::Note(text) => console::note(&format!("lab: {text}")),
            SessionEvent::Progress { .. } | SessionEvent::KernelLine(_) => {}
        }
    }

    fn finish(&self, request: &Request, outcome: &Outcome) -> std::process::ExitCode {
        if let Some(captured) = outcome.captured.filter(|captured| !captured.missed.is_zero()) {
            console::note(&format!("lab: the capture has {} packets and missed {}", captured.packets, captured.missed));
        }
        if self.verbose {
            self.speed(request, outcome);
        }
        match outcome.end {
            None => Exit::Partial.into(),
            Some(End::Code(code)) => std::process::ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
            Some(End::Signal(_)) if outcome.interrupted.is_some() => Exit::Partial.into(),
            Some(End::Signal(signal)) => {
                console::note(&format!("lab: the command was ended by signal {signal}"));
                std::process::ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
            }
        }
    }

    fn speed(&self, request: &Request, outcome: &Outcome) {
        if let Some(captured) = outcome.captured {
            console::note(&format!("lab: {} packets captured", captured.packets));
        }
        if let Some(boot) = outcome.boot_time.or(self.ready) {
            console::note(&format!("lab: the path stood after {}", display::duration(boot)));
        }
        console::note(&format!(
            "lab: {}: {:.3} s in the guest, {:.3} s here",
            request.plan.path,
            outcome.guest_time.as_secs_f64(),
            outcome.wall_time.as_secs_f64(),
        ));
    }
}

/// Says what went wrong, with the end of the guest's kernel log where that is all there is.
fn explain(error: &SessionError, request: &Request) -> Exit {
    let mut text = error.to_string();
    if let SessionError::Stalled { .. } = error {
        text.push_str("\nthe command was: ");
        text.push_str(&request.command.arguments.join(" "));
    }
    if let Some(advice) = error.advice() {
        text.push('\n');
        text.push_str(&advice);
    } else if let Some(log) = error.kernel_log() {
        let lines: Vec<&str> = log.lines().collect();
        text.push_str("\nthe end of the guest's kernel log:\n");
        text.push_str(&lines[lines.len().saturating_sub(LOG_LINES)..].join("\n"));
    }
    console::error(&text, None);
    match error {
        SessionError::System(cause) => Exit::of(cause),
        _ => Exit::Unable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn commands_that_change_hosts_are_told_of_the_far_one() {
        let cases = [
            ("tune lab:x --yes", "tune --far netns:far lab:x --yes"),
            (
                "--no-history doctor lab:x -- -R",
                "--no-history doctor --far netns:far --yes --compare-guide lab:x -- -R",
            ),
            ("tune --far ssh:me@there lab:x", "tune --yes --far ssh:me@there lab:x"),
            ("tune lab:x -y --far=netns:other", "tune lab:x -y --far=netns:other"),
            ("tune lab:x -- --far", "tune --far netns:far --yes lab:x -- --far"),
        ];
        for (given, expected) in cases {
            assert_eq!(with_far(&words(given)), words(expected), "{given}");
        }
    }

    #[test]
    fn what_hosts_have_anyway_is_left_to_them() {
        let scenario: Vec<String> = "iperf3 -c far -C reno -t 15".split(' ').map(str::to_owned).collect();
        assert_eq!(of_the_hosts(&scenario, &["reno", "reno"]).join(" "), "iperf3 -c far -t 15");
        assert_eq!(of_the_hosts(&scenario, &["reno", "cubic"]), scenario);
    }

    #[test]
    fn a_transfer_that_is_not_given_is_that_of_the_path() {
        let scenario: Vec<String> = "iperf3 -c far -t 10 -C cubic".split(' ').map(str::to_owned).collect();
        for (given, expected) in
            [("tune lab:x", "tune lab:x -- -t 10 -C cubic"), ("diagnose lab:x --", "diagnose lab:x -- -t 10 -C cubic")]
        {
            assert_eq!(with_transfer(&words(given), &scenario), words(expected), "{given}");
        }
        assert_eq!(with_transfer(&words("tune lab:x"), &["test".to_owned(), "far".to_owned()]), words("tune lab:x --"));
    }
}
