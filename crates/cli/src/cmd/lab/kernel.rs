//! `linerate lab kernel`: build of the guest's kernel, and the cache.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::Duration;

use linerate_documents::lab_kernels::{self, LabKernel, LabKernelsDocument};
use linerate_lab::kernel::{self, BuildEvent, BuildRequest, BuildStep, CacheStatus, CachedKernel, KernelError};
use linerate_sys::signals::InterruptSignals;
use linerate_units::display;

use super::arguments::KernelCommand;
use crate::cmd::measurement::{DocumentKind, print_json};
use crate::console;
use crate::exit::ExitStatus;

/// Width of the progress bar in characters.
const BAR_WIDTH: usize = 24;

/// Number of progress lines of a build without a terminal.
const PROGRESS_STEPS: u32 = 4;

/// Runs the selected command.
pub(super) fn run(command: &KernelCommand) -> ExitStatus {
    match command {
        KernelCommand::Build { if_missing, source, linux, jobs, quiet } => {
            let found = || linux.map_or_else(kernel::find, kernel::find_version);
            if *if_missing && matches!(found(), Ok(Some(_))) {
                return ExitStatus::Success;
            }
            let interrupts = match InterruptSignals::install() {
                Ok(interrupts) => interrupts,
                Err(cause) => {
                    console::error(&cause.to_string(), None);
                    return ExitStatus::from_error(&cause);
                }
            };
            let (source, interrupts) = (source.clone(), Some(interrupts));
            build(&BuildRequest { source, version: *linux, jobs: *jobs, interrupts }, *quiet)
        }
        KernelCommand::Status { json } => status(*json),
    }
}

/// Reports an error with its advice.
pub(super) fn report_error(error: &KernelError) -> ExitStatus {
    let advice = error.advice().map(|advice| format!("\n{advice}")).unwrap_or_default();
    console::error(&format!("{error}{advice}"), None);
    match error {
        KernelError::System(cause) => ExitStatus::from_error(cause),
        _ => ExitStatus::Unable,
    }
}

fn build(request: &BuildRequest, quiet: bool) -> ExitStatus {
    let mut shown =
        BuildProgress { quiet, live: !quiet && std::io::stderr().is_terminal(), step: String::new(), quarter: 0 };
    let outcome = kernel::build(request, &mut |event| shown.event(event));
    shown.clear();
    match outcome {
        Ok(built) => {
            if !quiet {
                console::note(&built_text(&built));
            }
            ExitStatus::Success
        }
        Err(_) if request.interrupts.is_some_and(|interrupts| interrupts.pending().is_some()) => {
            console::error("the build was interrupted; its files are removed", None);
            ExitStatus::Partial
        }
        Err(error) => report_error(&error),
    }
}

fn built_text(built: &CachedKernel) -> String {
    format!(
        "Linux {} for the lab: {}, built in {}\n{}",
        built.metadata.version,
        display::size(built.size),
        display::duration(Duration::from_secs(built.metadata.build_seconds)),
        built.path.display(),
    )
}

/// Progress of a build: a refreshed line on a terminal, a few lines elsewhere.
struct BuildProgress {
    quiet: bool,
    live: bool,
    step: String,
    quarter: u32,
}

impl BuildProgress {
    fn event(&mut self, event: &BuildEvent) {
        match event {
            BuildEvent::Note(text) => {
                self.clear();
                console::note(&format!("lab: {text}"));
            }
            _ if self.quiet => {}
            BuildEvent::Step(step) => {
                self.clear();
                self.step = step_text(step);
                self.quarter = 0;
                if !self.live {
                    console::note(&self.step);
                }
            }
            BuildEvent::Progress { done, text, elapsed } => {
                self.progress(done.map(linerate_units::Ratio::get), text, *elapsed);
            }
        }
    }

    fn progress(&mut self, done: Option<f64>, text: &str, elapsed: Duration) {
        if self.live {
            let bar = done.map(bar).unwrap_or_default();
            console::progress(&format!("{}  {bar}{text}  {} s", self.step, elapsed.as_secs()));
            return;
        }
        let Some(done) = done else { return };
        let quarters =
            (1..=PROGRESS_STEPS).filter(|quarter| done * f64::from(PROGRESS_STEPS) >= f64::from(*quarter)).count();
        let quarter = u32::try_from(quarters).unwrap_or(0);
        if quarter > self.quarter {
            self.quarter = quarter;
            console::note(&format!("  {text}, {} s", elapsed.as_secs()));
        }
    }

    fn clear(&self) {
        if self.live && !self.step.is_empty() {
            console::progress("");
        }
    }
}

fn bar(done: f64) -> String {
    let full = (1..=BAR_WIDTH).filter(|cell| done * 24.0 >= f64::from(u32::try_from(*cell).unwrap_or(0))).count();
    format!("[{}{}] ", "#".repeat(full), ".".repeat(BAR_WIDTH - full))
}

fn step_text(step: &BuildStep) -> String {
    match step {
        BuildStep::Searching => "Looking for the kernel's sources".to_owned(),
        BuildStep::Downloading { package, size } => {
            let size = size.map(|size| format!(" ({})", display::size(size))).unwrap_or_default();
            format!("Downloading {package}{size}")
        }
        BuildStep::Unpacking { source } => format!("Unpacking {source}"),
        BuildStep::Configuring { version } => format!("Configuring Linux {version}"),
        BuildStep::Compiling { jobs } => format!("Compiling, {jobs} at once"),
        BuildStep::Storing => "Storing".to_owned(),
    }
}

fn status(json: bool) -> ExitStatus {
    let status = match kernel::status() {
        Ok(status) => status,
        Err(error) => return report_error(&error),
    };
    if json {
        print_json(DocumentKind::LabKernels, &document(&status));
        return ExitStatus::Success;
    }
    let mut text = String::new();
    for kernel in &status.kernels {
        let fits = if kernel.current { "in use" } else { "from another version of linerate" };
        let _ = writeln!(
            text,
            "Linux {}  {}  {fits}\n    {}\n    from {}",
            kernel.metadata.version,
            display::size(kernel.size),
            kernel.path.display(),
            kernel.metadata.source,
        );
    }
    if status.kernels.is_empty() {
        let _ = writeln!(text, "No kernel in {}; `linerate lab kernel build` builds one.", status.directory.display());
    }
    console::data(&text);
    ExitStatus::Success
}

fn document(status: &CacheStatus) -> LabKernelsDocument {
    let kernel = |kernel: &CachedKernel| LabKernel {
        path: kernel.path.display().to_string(),
        bytes: kernel.size.get(),
        current: kernel.current,
        version: kernel.metadata.version.clone(),
        source: kernel.metadata.source.clone(),
    };
    LabKernelsDocument {
        schema: lab_kernels::SCHEMA,
        directory: status.directory.display().to_string(),
        recipe: status.recipe.clone(),
        kernels: status.kernels.iter().map(kernel).collect(),
    }
}
