//! `linerate lab kernel`: building the guest's kernel, and what is in the cache.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::Duration;

use linerate_lab::kernel::{self, BuildRequest, CachedKernel, Event, KernelError, Step};
use linerate_sys::signals::Interrupts;
use linerate_units::display;
use serde_json::json;

use crate::app::KernelCommand;
use crate::console;
use crate::exit::Exit;

/// Characters of the bar that shows how far a build is.
const BAR: usize = 24;

/// Without a terminal, progress is told this often.
const QUARTER: u32 = 4;

/// Does what was asked for.
pub(super) fn run(command: &KernelCommand) -> Exit {
    match command {
        KernelCommand::Build { if_missing, source, jobs, quiet } => {
            if *if_missing && matches!(kernel::find(), Ok(Some(_))) {
                return Exit::Success;
            }
            let interrupts = match Interrupts::install() {
                Ok(interrupts) => interrupts,
                Err(cause) => {
                    console::error(&cause.to_string(), None);
                    return Exit::of(&cause);
                }
            };
            build(&BuildRequest { source: source.clone(), jobs: *jobs, interrupts: Some(interrupts) }, *quiet)
        }
        KernelCommand::Status { json } => status(*json),
    }
}

/// Says what is wrong, and the way out.
pub(super) fn refuse(error: &KernelError) -> Exit {
    let advice = error.advice().map(|advice| format!("\n{advice}")).unwrap_or_default();
    console::error(&format!("{error}{advice}"), None);
    match error {
        KernelError::System(cause) => Exit::of(cause),
        _ => Exit::Unable,
    }
}

fn build(request: &BuildRequest, quiet: bool) -> Exit {
    let mut shown = Shown { quiet, live: !quiet && std::io::stderr().is_terminal(), step: String::new(), quarter: 0 };
    let outcome = kernel::build(request, &mut |event| shown.event(event));
    shown.clear();
    match outcome {
        Ok(built) => {
            if !quiet {
                console::note(&built_text(&built));
            }
            Exit::Success
        }
        Err(_) if request.interrupts.is_some_and(|interrupts| interrupts.pending().is_some()) => {
            console::error("the build was interrupted; nothing of it is left", None);
            Exit::Partial
        }
        Err(error) => refuse(&error),
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

/// The progress of a build: a line that changes on a terminal, a few lines elsewhere.
struct Shown {
    quiet: bool,
    live: bool,
    step: String,
    quarter: u32,
}

impl Shown {
    fn event(&mut self, event: &Event) {
        match event {
            Event::Note(text) => {
                self.clear();
                console::note(&format!("lab: {text}"));
            }
            _ if self.quiet => {}
            Event::Step(step) => {
                self.clear();
                self.step = step_text(step);
                self.quarter = 0;
                if !self.live {
                    console::note(&self.step);
                }
            }
            Event::Progress { done, text, elapsed } => {
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
        let quarters = (1..=QUARTER).filter(|quarter| done * f64::from(QUARTER) >= f64::from(*quarter)).count();
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
    let full = (1..=BAR).filter(|cell| done * 24.0 >= f64::from(u32::try_from(*cell).unwrap_or(0))).count();
    format!("[{}{}] ", "#".repeat(full), ".".repeat(BAR - full))
}

fn step_text(step: &Step) -> String {
    match step {
        Step::Searching => "Looking for the kernel's sources".to_owned(),
        Step::Downloading { package, size } => {
            let size = size.map(|size| format!(" ({})", display::size(size))).unwrap_or_default();
            format!("Downloading {package}{size}")
        }
        Step::Unpacking { source } => format!("Unpacking {source}"),
        Step::Configuring { version } => format!("Configuring Linux {version}"),
        Step::Compiling { jobs } => format!("Compiling, {jobs} at once"),
        Step::Storing => "Storing".to_owned(),
    }
}

fn status(json: bool) -> Exit {
    let status = match kernel::status() {
        Ok(status) => status,
        Err(error) => return refuse(&error),
    };
    if json {
        let kernels: Vec<_> = status
            .kernels
            .iter()
            .map(|kernel| {
                json!({
                    "path": kernel.path, "bytes": kernel.size.get(), "current": kernel.current,
                    "version": kernel.metadata.version, "source": kernel.metadata.source,
                })
            })
            .collect();
        let document =
            json!({ "schema": 1, "directory": status.directory, "recipe": status.recipe, "kernels": kernels });
        console::data(&format!("{document:#}\n"));
        return Exit::Success;
    }
    let mut text = String::new();
    for kernel in &status.kernels {
        let fits = if kernel.current { "in use" } else { "of another version of linerate" };
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
        let _ = writeln!(text, "No kernel in {}; `linerate lab kernel build` makes one.", status.directory.display());
    }
    console::data(&text);
    Exit::Success
}
