//! `linerate lab run`: a command on an emulated path.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_documents::run::LabPath;
use linerate_history::LOCATION_VARIABLE;
use linerate_lab::compile::compile;
use linerate_lab::job::{CaptureRequest, CommandEnd, GuestCommand};
use linerate_lab::kernel::{CachedKernel, KernelError};
use linerate_lab::plan::{FAR, NEAR, PathPlan};
use linerate_lab::session::{
    self, BackEnd, ProcessContainment, SessionError, SessionEvent, SessionOutcome, SessionRequest,
};
use linerate_sys::clock;
use linerate_sys::signals::InterruptSignals;
use linerate_units::display;

use super::ad_hoc;
use super::arguments::{self, LabOptions, LabRunArguments};
use super::path::{self, FoundPath};
use crate::cmd::measurement::own_arguments;
use crate::console;
use crate::exit::ExitStatus;
use crate::recorder::{self, GuestMailbox};

/// Number of lines of the guest's kernel log in an error.
const LOG_LINES: usize = 12;

/// Variables that a guest gets from this linerate, not from its environment.
const OWN_VARIABLES: [&str; 4] = [LOCATION_VARIABLE, recorder::RESULT_FILE, recorder::PATH_NAME, recorder::START_TIME];

/// Runs the given command, or the path's scenario.
pub(crate) fn run(arguments: &LabRunArguments) -> std::process::ExitCode {
    let found = match &arguments.path {
        Some(name) => path::find(name),
        None => path::of_properties(&arguments.ad_hoc),
    };
    match found.and_then(|found| prepare(found, &arguments.command, &arguments.lab, None)) {
        Ok(prepared) => prepared.execute(&arguments.lab),
        Err(exit) => exit.into(),
    }
}

/// Prepared request, and the destination of its runs.
struct PreparedRun {
    request: SessionRequest,
    /// Mailbox of the guest's runs; `None` when it could not be made.
    mailbox: Option<GuestMailbox>,
    path: LabPath,
    /// Command line on this host, where it names the path instead of a host.
    typed: Option<Vec<String>>,
}

impl PreparedRun {
    fn execute(&self, options: &LabOptions) -> std::process::ExitCode {
        let started_at = clock::realtime_now();
        let exit = execute_request(&self.request, options);
        if let Some(mailbox) = &self.mailbox {
            mailbox.empty(&self.path, started_at, self.typed.as_deref());
        }
        exit
    }
}

/// Emulated path in place of a host.
pub(crate) struct LabTarget<'a> {
    /// As typed: `lab:NAME`.
    host: &'a str,
    name: &'a str,
    adaptation: Adaptation,
}

impl<'a> LabTarget<'a> {
    /// `None` where this is another host.
    pub(crate) fn of(host: &'a str, adaptation: Adaptation) -> Option<Self> {
        Some(Self { host, name: host.strip_prefix("lab:")?, adaptation })
    }
}

/// Adaptation of a command line to an emulated path, in addition to its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Adaptation {
    /// Not at all.
    None,
    /// A transfer: without one on the command line, the path's own.
    Transfer {
        /// True when one is given.
        is_given: bool,
    },
    /// As `Transfer`, for commands that change hosts: the far host is one too, beside the one where it runs. The
    /// command there has no standard input: it can ask nothing. A transfer that names the congestion control which its host
    /// has anyway leaves it to the host, so that the host's can be changed.
    BothHosts {
        /// True when a transfer is given.
        is_given: bool,
    },
}

impl Adaptation {
    /// For a diagnosis with these options of a transfer.
    pub(crate) const fn transfer(given: &[String]) -> Self {
        Self::Transfer { is_given: !given.is_empty() }
    }

    /// For a command that changes hosts, with these options of a transfer.
    pub(crate) const fn both_hosts(given: &[String]) -> Self {
        Self::BothHosts { is_given: !given.is_empty() }
    }
}

/// Runs linerate with these `arguments` on an emulated path: there, the host is the far end.
pub(crate) fn run_on_path(target: &LabTarget<'_>, arguments: &[OsString]) -> std::process::ExitCode {
    let options = LabOptions::default();
    let prepared = adapted(target, arguments).and_then(|arguments| {
        let there = arguments
            .iter()
            .map(|word| if word == target.host { FAR.to_owned() } else { word.to_string_lossy().into_owned() });
        let command: Vec<String> = ["linerate".to_owned()].into_iter().chain(there).collect();
        let mut found = path::find(target.name)?;
        // A path by its properties has those as its name, by which it is found again.
        if found.description.name == ad_hoc::NAME {
            target.name.clone_into(&mut found.description.name);
        }
        prepare(found, &command, &options, Some(own_arguments()))
    });
    match prepared {
        Ok(prepared) => prepared.execute(&options),
        Err(exit) => exit.into(),
    }
}

fn adapted(target: &LabTarget<'_>, arguments: &[OsString]) -> Result<Vec<OsString>, ExitStatus> {
    match target.adaptation {
        Adaptation::None | Adaptation::Transfer { is_given: true } => Ok(arguments.to_vec()),
        Adaptation::BothHosts { is_given: true } => Ok(with_lab_options(arguments)),
        Adaptation::Transfer { is_given: false } => {
            Ok(with_transfer(arguments, &path::find(target.name)?.description.scenario))
        }
        Adaptation::BothHosts { is_given: false } => {
            let description = path::find(target.name)?.description;
            let own: Vec<&str> = description.hosts.iter().map(|host| host.congestion_control.as_str()).collect();
            Ok(with_transfer(&with_lab_options(arguments), &without_default_congestion(&description.scenario, &own)))
        }
    }
}

/// Scenario without a congestion control that is every host's default.
fn without_default_congestion(scenario: &[String], own: &[&str]) -> Vec<String> {
    let mut scenario = scenario.to_vec();
    let chosen = scenario.windows(2).position(|pair| pair[0] == "-C" && own.iter().all(|name| *name == pair[1]));
    if let Some(index) = chosen {
        scenario.drain(index..index + 2);
    }
    scenario
}

/// Adds the lab's options to the command line unless the user gave them: the far host, no questions (only the lab is
/// changed), and the comparison of the guide, which is free here.
fn with_lab_options(arguments: &[OsString]) -> Vec<OsString> {
    let mut arguments = arguments.to_vec();
    let end = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
    let own = &arguments[..end];
    let has = |option: &str| {
        own.iter().any(|argument| argument == option || argument.to_string_lossy().starts_with(&format!("{option}=")))
    };
    let Some(index) = own.iter().position(|argument| argument == "tune" || argument == "doctor") else {
        return arguments;
    };
    let mut more: Vec<OsString> = Vec::new();
    if !has("--far") {
        more.extend(["--far".into(), format!("netns:{FAR}").into()]);
    }
    if !(has("--yes") || has("-y")) {
        more.push("--yes".into());
    }
    if own[index] == "doctor" && !has("--compare-guide") {
        more.push("--compare-guide".into());
    }
    arguments.splice(index + 1..=index, more);
    arguments
}

/// Command line with the transfer of the path's own scenario.
fn with_transfer(arguments: &[OsString], scenario: &[String]) -> Vec<OsString> {
    let mut arguments = arguments.to_vec();
    if !arguments.iter().any(|argument| argument == "--") {
        arguments.push("--".into());
    }
    arguments.extend(transfer_options(scenario).into_iter().map(OsString::from));
    arguments
}

/// Options of a scenario that is a transfer to the far host: `iperf3 -c far OPTIONS`.
fn transfer_options(scenario: &[String]) -> Vec<String> {
    let arguments: Vec<&str> = scenario.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["iperf3", "-c", _, options @ ..] => options.iter().map(|&option| option.to_owned()).collect(),
        _ => Vec::new(),
    }
}

fn prepare(
    found: FoundPath,
    command: &[String],
    options: &LabOptions,
    typed: Option<Vec<String>>,
) -> Result<PreparedRun, ExitStatus> {
    let FoundPath { mut description, text } = found;
    if let Some(seed) = options.seed {
        description.seed = seed;
    }
    let plan = compile(&description);
    let linerate = own_binary()?;
    let arguments = if command.is_empty() {
        [&[path_text(&linerate)], &description.scenario[..]].concat()
    } else {
        resolve(command, &linerate)
    };
    let directory = std::env::current_dir().map_err(|cause| {
        unable(&format!("finding the current directory: {}", linerate_sys::describe_os_error(&cause)), None)
    })?;
    let capture = options.pcap.as_ref().map(|file| capture(file, &options.pcap_at, &plan, &directory)).transpose()?;
    let back_end = back_end(options)?;
    let mailbox = GuestMailbox::new(typed.is_some());
    let writable = writable(&directory, capture.as_ref(), mailbox.as_ref());
    let mut environment = environment(&linerate, mailbox.as_ref());
    environment.push((recorder::PATH_NAME.to_owned(), description.name.clone()));
    let start = clock::realtime_now().since_unix_epoch().as_nanos();
    environment.push((recorder::START_TIME.to_owned(), start.to_string()));
    let command = GuestCommand { arguments, namespace: NEAR.to_owned(), environment, directory };
    let path = LabPath { name: description.name.clone(), description: text, seed: description.seed };
    let request = SessionRequest {
        plan,
        command,
        writable,
        capture,
        back_end,
        seed: description.seed,
        stall_limit: options.stall_limit,
        linerate,
        containment: ProcessContainment::Best,
    };
    Ok(PreparedRun { request, mailbox, path, typed })
}

fn unable(text: &str, advice: Option<&str>) -> ExitStatus {
    console::error(
        &match advice {
            Some(advice) => format!("{text}\n{advice}"),
            None => text.to_owned(),
        },
        None,
    );
    ExitStatus::Unable
}

fn own_binary() -> Result<PathBuf, ExitStatus> {
    std::env::current_exe().map_err(|cause| {
        let text = format!("finding this program's own file: {}", linerate_sys::describe_os_error(&cause));
        unable(&text, Some("the guest runs it as its first process: it must still be where it was started from"))
    })
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Commands of linerate in the lab, `iperf3` included: another one is started by its absolute path.
const LINERATE_COMMANDS: &[&str] = &[
    "audit",
    "baseline",
    "calc",
    "completions",
    "diagnose",
    "doctor",
    "history",
    "iperf3",
    "lab",
    "load",
    "man",
    "path",
    "report",
    "rfc6349",
    "rollback",
    "rr",
    "serve",
    "test",
    "tune",
    "watch",
];

fn resolve(command: &[String], linerate: &Path) -> Vec<String> {
    let own = [path_text(linerate)];
    match command[0].as_str() {
        "linerate" => [&own, &command[1..]].concat(),
        name if LINERATE_COMMANDS.contains(&name) => [&own, command].concat(),
        _ => command.to_vec(),
    }
}

/// Environment of this process, with linerate itself last in PATH, the style of the output, and the mailbox of the
/// runs. The history itself stays on this host.
fn environment(linerate: &Path, mailbox: Option<&GuestMailbox>) -> Vec<(String, String)> {
    let mut variables: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| name != "PATH" && name != "COLUMNS" && name != "TMPDIR")
        .filter(|(name, _)| !OWN_VARIABLES.contains(&name.as_str()))
        .collect();
    let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".to_owned());
    let own = linerate.parent().map(|parent| format!(":{}", parent.display())).unwrap_or_default();
    variables.push(("PATH".to_owned(), format!("{path}{own}")));
    variables.extend(console::relayed_environment());
    variables.push((LOCATION_VARIABLE.to_owned(), "off".to_owned()));
    variables.extend(mailbox.map(GuestMailbox::variable));
    variables
}

/// Creates the capture file here, with the user's rights; its directory becomes writable in the guest.
fn capture(file: &Path, location: &str, plan: &PathPlan, directory: &Path) -> Result<CaptureRequest, ExitStatus> {
    let (host, device) = location.split_once(':').unwrap_or((location, "eth0"));
    let Some(namespace) = plan.namespaces.iter().find(|namespace| namespace.name == host) else {
        let hosts: Vec<&str> = plan.namespaces.iter().map(|namespace| namespace.name.as_str()).collect();
        return Err(unable(
            &format!("--pcap-at {location}: this path has no host {host:?}"),
            Some(&format!("it has {}", hosts.join(", "))),
        ));
    };
    let ends = plan.pairs.iter().flat_map(|pair| [&pair.a, &pair.b]);
    let devices: Vec<&str> =
        ends.filter(|end| end.namespace == namespace.name).map(|end| end.device.as_str()).collect();
    if !devices.contains(&device) && device != "lo" {
        return Err(unable(
            &format!("--pcap-at {location}: {host} has no device {device:?}"),
            Some(&format!("it has {}", devices.join(", "))),
        ));
    }
    let file = directory.join(file);
    std::fs::File::create(&file).map_err(|cause| {
        unable(&format!("creating the capture {}: {}", file.display(), linerate_sys::describe_os_error(&cause)), None)
    })?;
    Ok(CaptureRequest { namespace: host.to_owned(), device: device.to_owned(), file })
}

/// Directories that the command may write: its own, that of the capture, and that of its runs. The root directory is
/// excluded.
fn writable(directory: &Path, capture: Option<&CaptureRequest>, mailbox: Option<&GuestMailbox>) -> Vec<PathBuf> {
    let of_capture = capture.and_then(|capture| capture.file.parent()).map(Path::to_path_buf);
    let of_runs = mailbox.map(|mailbox| mailbox.directory().to_path_buf());
    let mut all: Vec<PathBuf> = [Some(directory.to_path_buf()), of_capture, of_runs].into_iter().flatten().collect();
    all.retain(|path| path != Path::new("/"));
    all.dedup();
    all
}

fn back_end(options: &LabOptions) -> Result<BackEnd, ExitStatus> {
    match options.back_end {
        arguments::BackEnd::Namespaces => Ok(BackEnd::Namespaces),
        arguments::BackEnd::Uml => {
            let kernel = match &options.kernel {
                Some(kernel) => named_kernel(kernel)?,
                None => built_kernel(linerate_lab::kernel::find())?,
            };
            Ok(BackEnd::UserModeLinux { kernel })
        }
    }
}

/// A kernel's file, or the one that was built of a version.
fn named_kernel(name: &Path) -> Result<PathBuf, ExitStatus> {
    match name.to_str().and_then(|text| text.parse().ok()) {
        Some(version) if !name.exists() => built_kernel(linerate_lab::kernel::find_version(version)),
        _ => Ok(name.to_owned()),
    }
}

fn built_kernel(found: Result<Option<CachedKernel>, KernelError>) -> Result<PathBuf, ExitStatus> {
    match found {
        Ok(Some(kernel)) => Ok(kernel.path),
        Ok(None) => Err(unable(
            "the lab's kernel does not exist",
            Some(
                "`linerate lab kernel build` builds it in about two minutes; `linerate lab check` lists its \
                 requirements",
            ),
        )),
        Err(error) => Err(super::kernel::report_error(&error)),
    }
}

fn execute_request(request: &SessionRequest, options: &LabOptions) -> std::process::ExitCode {
    let stop = match InterruptSignals::install() {
        Ok(stop) => stop,
        Err(cause) => {
            console::error(&cause.to_string(), None);
            return ExitStatus::from_error(&cause).into();
        }
    };
    if options.verbose {
        console::note(&format!("lab: {}: {}", request.plan.path, request.plan.sizing.reason));
    }
    let mut watch = SessionOutput { verbose: options.verbose, ready: None };
    match session::run(request, Some(&stop), &mut |event| watch.event(&event)) {
        Ok(outcome) => watch.finish(request, &outcome),
        Err(error) => report_session_error(&error, request).into(),
    }
}

struct SessionOutput {
    verbose: bool,
    ready: Option<Duration>,
}

impl SessionOutput {
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

    fn finish(&self, request: &SessionRequest, outcome: &SessionOutcome) -> std::process::ExitCode {
        if let Some(captured) = outcome.captured.filter(|captured| !captured.missed.is_zero()) {
            console::note(&format!("lab: the capture has {} packets and missed {}", captured.packets, captured.missed));
        }
        if self.verbose {
            self.speed(request, outcome);
        }
        match outcome.end {
            None => ExitStatus::Partial.into(),
            Some(CommandEnd::Code(code)) => std::process::ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
            Some(CommandEnd::Signal(_)) if outcome.interrupted.is_some() => ExitStatus::Partial.into(),
            Some(CommandEnd::Signal(signal)) => {
                console::note(&format!("lab: the command was ended by signal {signal}"));
                std::process::ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
            }
        }
    }

    fn speed(&self, request: &SessionRequest, outcome: &SessionOutcome) {
        if let Some(captured) = outcome.captured {
            console::note(&format!("lab: {} packets captured", captured.packets));
        }
        if let Some(boot) = outcome.boot_time.or(self.ready) {
            console::note(&format!("lab: the path was ready after {}", display::duration(boot)));
        }
        console::note(&format!(
            "lab: {}: {:.3} s in the guest, {:.3} s here",
            request.plan.path,
            outcome.guest_time.as_secs_f64(),
            outcome.wall_time.as_secs_f64(),
        ));
    }
}

/// Reports the error, with the end of the guest's kernel log if there is no advice.
fn report_session_error(error: &SessionError, request: &SessionRequest) -> ExitStatus {
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
        SessionError::System(cause) => ExitStatus::from_error(cause),
        _ => ExitStatus::Unable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn commands_that_change_hosts_get_the_far_one() {
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
            assert_eq!(with_lab_options(&arguments(given)), arguments(expected), "{given}");
        }
    }

    #[test]
    fn the_default_congestion_control_is_omitted() {
        let scenario: Vec<String> = "iperf3 -c far -C reno -t 15".split(' ').map(str::to_owned).collect();
        assert_eq!(without_default_congestion(&scenario, &["reno", "reno"]).join(" "), "iperf3 -c far -t 15");
        assert_eq!(without_default_congestion(&scenario, &["reno", "cubic"]), scenario);
    }

    #[test]
    fn a_missing_transfer_is_the_paths_own() {
        let scenario: Vec<String> = "iperf3 -c far -t 10 -C cubic".split(' ').map(str::to_owned).collect();
        for (given, expected) in
            [("tune lab:x", "tune lab:x -- -t 10 -C cubic"), ("diagnose lab:x --", "diagnose lab:x -- -t 10 -C cubic")]
        {
            assert_eq!(with_transfer(&arguments(given), &scenario), arguments(expected), "{given}");
        }
        assert_eq!(
            with_transfer(&arguments("tune lab:x"), &["test".to_owned(), "far".to_owned()]),
            arguments("tune lab:x --")
        );
    }
}
