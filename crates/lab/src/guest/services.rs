//! Programs that run in addition to the command: servers, and other traffic.

use core::time::Duration;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use linerate_sys::launch::{self, LaunchParameters, LaunchedProcess, OutputTarget};
use linerate_sys::poll::{self, PollInterest};
use linerate_sys::{clock, describe_os_error};
use linerate_units::{CompactSort, MonotonicTime};

use super::failure::GuestFailure;
use super::network::NamespaceSet;
use crate::job::GuestJob;
use crate::plan::TrafficPlan;

/// Directory of their output files.
const OUTPUT_DIRECTORY: &str = "/run/linerate";

/// Maximum time until a server listens.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(30);

/// Interval between two checks whether a server listens. In virtual time nothing is lost by it: while anything still
/// computes, no time passes.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The started programs, and the traffic that is not yet started.
pub(super) struct GuestServices<'a> {
    linerate: &'a str,
    give_way: bool,
    running: Vec<RunningService>,
    /// In the order of their starts.
    pending: Vec<&'a TrafficPlan>,
}

struct RunningService {
    /// Description for people.
    name: String,
    launched: LaunchedProcess,
    outputs: PathBuf,
}

impl<'a> GuestServices<'a> {
    /// Starts every server, and waits until all of them listen.
    pub(super) fn start(job: &'a GuestJob, spaces: &NamespaceSet) -> Result<Self, GuestFailure> {
        let linerate = job.linerate.to_str().ok_or_else(|| {
            GuestFailure::new(format!("starting {}: its path is not in UTF-8", job.linerate.display()))
        })?;
        fs::create_dir_all(OUTPUT_DIRECTORY).map_err(|cause| in_outputs(&cause))?;
        let mut pending: Vec<_> = job.plan.traffic.iter().collect();
        pending.sort_compactly_by_key(|traffic| traffic.start_milliseconds);
        let mut services = Self { linerate, give_way: job.own_kernel, running: Vec::new(), pending };
        for namespace in &job.plan.namespaces {
            if let Some(more) = &namespace.server {
                let arguments: Vec<_> = core::iter::once("serve".to_owned()).chain(more.iter().cloned()).collect();
                services.launch(format!("the server in {}", namespace.name), &namespace.name, &arguments, spaces)?;
            }
        }
        for traffic in &job.plan.traffic {
            // Traffic to a server that exists anyway needs none of its own.
            if !traffic.server_arguments.is_empty() {
                let name = format!("the other traffic's server in {}", traffic.server);
                services.launch(name, &traffic.server, &traffic.server_arguments, spaces)?;
            }
        }
        services.running.iter().try_for_each(wait_until_it_listens)?;
        Ok(services)
    }

    fn launch(
        &mut self,
        name: String,
        space: &str,
        arguments: &[String],
        spaces: &NamespaceSet,
    ) -> Result<(), GuestFailure> {
        let path = Path::new(OUTPUT_DIRECTORY).join(format!("{}.txt", self.running.len()));
        let file = File::create(&path).map_err(|cause| in_outputs(&cause))?;
        let launched = launch::start(&LaunchParameters {
            program: self.linerate,
            arguments,
            directory: None,
            environment: None,
            namespace: Some(spaces.get(space)?),
            outputs: OutputTarget::File(&file),
            gives_way: self.give_way,
        })?;
        self.running.push(RunningService { name, launched, outputs: path });
        Ok(())
    }

    /// Time after the set-up at which the next traffic starts; `None` when there is none left.
    pub(super) fn next_start(&self) -> Option<Duration> {
        self.pending.first().map(|traffic| Duration::from_millis(traffic.start_milliseconds))
    }

    /// Starts the traffic that is due, this long after the set-up.
    pub(super) fn start_due(&mut self, elapsed: Duration, spaces: &NamespaceSet) -> Result<(), GuestFailure> {
        while self.next_start().is_some_and(|start| start <= elapsed) {
            let traffic = self.pending.remove(0);
            let name = format!("the other traffic in {}", traffic.client);
            self.launch(name, &traffic.client, &traffic.client_arguments, spaces)?;
        }
        Ok(())
    }

    /// Report about a process that has ended: a sentence, if it was one of these and should not have.
    pub(super) fn exit_report(&mut self, process: u32, status: std::process::ExitStatus) -> Option<String> {
        let index = self.running.iter().position(|service| service.launched.process() == process)?;
        let service = self.running.swap_remove(index);
        (!status.success()).then(|| format!("{} has ended ({status}){}", service.name, last_output(&service.outputs)))
    }
}

fn wait_until_it_listens(service: &RunningService) -> Result<(), GuestFailure> {
    let deadline: MonotonicTime = clock::monotonic_now() + LISTEN_TIMEOUT;
    while !service.launched.listens() {
        if poll::wait_for(&service.launched, PollInterest::READ, Some(POLL_INTERVAL))? {
            let words = last_output(&service.outputs);
            return Err(GuestFailure::new(format!("starting {}: it ended before it listened{words}", service.name)));
        }
        if (deadline - clock::monotonic_now()).is_zero() {
            return Err(GuestFailure::new(format!(
                "starting {}: it does not listen after {LISTEN_TIMEOUT:?}",
                service.name
            )));
        }
    }
    Ok(())
}

/// Last lines of its output.
fn last_output(outputs: &Path) -> String {
    const LINES: usize = 5;
    let text = fs::read(outputs).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(LINES)..].join("; ");
    if last.is_empty() { last } else { format!(": {last}") }
}

fn in_outputs(cause: &std::io::Error) -> GuestFailure {
    GuestFailure::new(format!("making a file in {OUTPUT_DIRECTORY}: {}", describe_os_error(cause)))
}
