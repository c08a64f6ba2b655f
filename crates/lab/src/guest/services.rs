//! Programs that run beside the command: servers, and other traffic.

use core::time::Duration;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use linerate_sys::launch::{self, Launch, Launched, Outputs};
use linerate_sys::poll::{self, Interest};
use linerate_sys::{clock, describe_os_error};
use linerate_units::MonotonicTime;

use super::failure::Failure;
use super::network::Spaces;
use crate::job::Job;
use crate::plan::Traffic;

/// What they write goes into files here.
const OUTPUTS: &str = "/run/linerate";

/// The longest that a server may take until it listens.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long to sleep between two looks whether a server listens. In virtual time nothing is lost by it: while anything
/// still computes, no time passes.
const LOOK_AFTER: Duration = Duration::from_millis(1);

/// The programs that were started, and the traffic that is to be started yet.
pub(super) struct Services<'a> {
    linerate: &'a str,
    give_way: bool,
    running: Vec<Service>,
    /// In the order of their starts.
    pending: Vec<&'a Traffic>,
}

struct Service {
    /// What it is, for a person.
    name: String,
    launched: Launched,
    outputs: PathBuf,
}

impl<'a> Services<'a> {
    /// Starts every server, and waits until all of them listen.
    pub(super) fn start(job: &'a Job, spaces: &Spaces) -> Result<Self, Failure> {
        let linerate = job
            .linerate
            .to_str()
            .ok_or_else(|| Failure::new(format!("starting {}: its path is not in UTF-8", job.linerate.display())))?;
        fs::create_dir_all(OUTPUTS).map_err(|cause| in_outputs(&cause))?;
        let mut pending: Vec<_> = job.plan.traffic.iter().collect();
        pending.sort_by_key(|traffic| traffic.start_milliseconds);
        let mut services = Self { linerate, give_way: job.own_kernel, running: Vec::new(), pending };
        for namespace in &job.plan.namespaces {
            if let Some(more) = &namespace.server {
                let arguments: Vec<_> = core::iter::once("serve".to_owned()).chain(more.iter().cloned()).collect();
                services.launch(format!("the server in {}", namespace.name), &namespace.name, &arguments, spaces)?;
            }
        }
        for traffic in &job.plan.traffic {
            // Traffic to a server that is there anyway brings none of its own.
            if !traffic.server_arguments.is_empty() {
                let name = format!("the other traffic's server in {}", traffic.server);
                services.launch(name, &traffic.server, &traffic.server_arguments, spaces)?;
            }
        }
        services.running.iter().try_for_each(wait_until_it_listens)?;
        Ok(services)
    }

    fn launch(&mut self, name: String, space: &str, arguments: &[String], spaces: &Spaces) -> Result<(), Failure> {
        let path = Path::new(OUTPUTS).join(format!("{}.txt", self.running.len()));
        let file = File::create(&path).map_err(|cause| in_outputs(&cause))?;
        let launched = launch::start(&Launch {
            program: self.linerate,
            arguments,
            directory: None,
            environment: None,
            namespace: Some(spaces.get(space)?),
            outputs: Outputs::File(&file),
            gives_way: self.give_way,
        })?;
        self.running.push(Service { name, launched, outputs: path });
        Ok(())
    }

    /// How long after the set-up the next traffic starts; `None` when there is none left.
    pub(super) fn next_start(&self) -> Option<Duration> {
        self.pending.first().map(|traffic| Duration::from_millis(traffic.start_milliseconds))
    }

    /// Starts the traffic whose time has come, this long after the set-up.
    pub(super) fn start_due(&mut self, elapsed: Duration, spaces: &Spaces) -> Result<(), Failure> {
        while self.next_start().is_some_and(|start| start <= elapsed) {
            let traffic = self.pending.remove(0);
            let name = format!("the other traffic in {}", traffic.client);
            self.launch(name, &traffic.client, &traffic.client_arguments, spaces)?;
        }
        Ok(())
    }

    /// What to say when this process has ended: a sentence, if it was one of these and should not have.
    pub(super) fn account_of(&mut self, process: u32, status: std::process::ExitStatus) -> Option<String> {
        let index = self.running.iter().position(|service| service.launched.process() == process)?;
        let service = self.running.swap_remove(index);
        (!status.success()).then(|| format!("{} has ended ({status}){}", service.name, last_words(&service.outputs)))
    }
}

fn wait_until_it_listens(service: &Service) -> Result<(), Failure> {
    let deadline: MonotonicTime = clock::monotonic_now() + PATIENCE;
    while !service.launched.listens() {
        if poll::wait_for(&service.launched, Interest::READ, Some(LOOK_AFTER))? {
            let words = last_words(&service.outputs);
            return Err(Failure::new(format!("starting {}: it ended before it listened{words}", service.name)));
        }
        if (deadline - clock::monotonic_now()).is_zero() {
            return Err(Failure::new(format!("starting {}: it does not listen after {PATIENCE:?}", service.name)));
        }
    }
    Ok(())
}

/// The last lines that it wrote.
fn last_words(outputs: &Path) -> String {
    const LINES: usize = 5;
    let text = fs::read(outputs).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(LINES)..].join("; ");
    if last.is_empty() { last } else { format!(": {last}") }
}

fn in_outputs(cause: &std::io::Error) -> Failure {
    Failure::new(format!("making a file in {OUTPUTS}: {}", describe_os_error(cause)))
}
