//! Namespaces, pairs of devices, and what stands in them.

use core::fmt::Write as _;
use core::time::Duration;
use std::path::Path;

use linerate_sys::command;
use linerate_sys::features::turn_aggregation_off;
use linerate_sys::namespace::{NetworkNamespace, take_loopback_up};
use linerate_sys::netem::{SeedOutcome, set_netem_seed};

use super::failure::Failure;
use super::settings;
use super::voice::Voice;
use crate::job::Job;
use crate::plan::{Change, Namespace, Pair, Plan, Sysctl, WIRE};

/// Where `ip netns` looks for names.
const NAMES: &str = "/run/netns";

/// The longest that one of iproute2's programs may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The namespaces of a plan, by name.
pub(super) struct Spaces {
    spaces: Vec<(String, NetworkNamespace)>,
}

impl Spaces {
    /// Sets the whole network of a plan up.
    pub(super) fn create(job: &Job, host: Option<&NetworkNamespace>, voice: &mut Voice) -> Result<Self, Failure> {
        let plan = &job.plan;
        // Before the namespaces are made: they begin with some of these values.
        write_system_settings(&plan.system, job.own_kernel, host)?;
        let spaces = Self::make(plan)?;
        // From where no host's device is: the kernel looks for a name that is taken in the namespace that asks, also
        // when the device is to stand in another one.
        spaces.get(WIRE)?.within(|| make_pairs(&plan.pairs))??;
        let mut without_seed = 0;
        for namespace in &plan.namespaces {
            let space = spaces.get(&namespace.name)?;
            let done = space.within(|| set_up(namespace))?;
            without_seed += done.map_err(|failure| failure.in_namespace(&namespace.name))?;
        }
        if without_seed > 0 {
            voice.note(format!(
                "this kernel's netem takes no seed (it came with Linux 6.6): the random losses and delays of \
                 {without_seed} queueing disciplines differ from run to run"
            ))?;
        }
        Ok(spaces)
    }

    /// Makes the namespaces; the first is the one in which this process is.
    fn make(plan: &Plan) -> Result<Self, Failure> {
        let mut spaces: Vec<(String, NetworkNamespace)> = Vec::with_capacity(plan.namespaces.len());
        for Namespace { name, .. } in &plan.namespaces {
            let space = if spaces.is_empty() { NetworkNamespace::current()? } else { NetworkNamespace::create()? };
            space.set_name(Path::new(NAMES), name)?;
            if !spaces.is_empty() {
                space.within(take_loopback_up)??;
            }
            spaces.push((name.clone(), space));
        }
        Ok(Self { spaces })
    }

    pub(super) fn get(&self, name: &str) -> Result<&NetworkNamespace, Failure> {
        let found = self.spaces.iter().find(|(other, _)| other == name);
        found.map(|(_, space)| space).ok_or_else(|| Failure::new(format!("the plan has no namespace {name}")))
    }
}

fn write_system_settings(system: &[Sysctl], own_kernel: bool, host: Option<&NetworkNamespace>) -> Result<(), Failure> {
    if own_kernel {
        return system.iter().try_for_each(settings::write);
    }
    for setting in system {
        // Most of them can be seen only from the network of the host itself.
        let in_effect = settings::is_in_effect(setting)
            || host.is_some_and(|host| host.within(|| settings::is_in_effect(setting)).unwrap_or(false));
        if !in_effect {
            return Err(settings::belongs_to_the_host(setting));
        }
    }
    Ok(())
}

/// What becomes different while the path stands.
pub(super) struct Changes<'a> {
    /// In the order of time.
    pending: &'a [Change],
}

impl<'a> Changes<'a> {
    pub(super) fn of(plan: &'a Plan) -> Self {
        Self { pending: &plan.changes }
    }

    /// How long after the set-up the next one is due; `None` when there is none left.
    pub(super) fn next(&self) -> Option<Duration> {
        self.pending.first().map(|change| Duration::from_millis(change.at_milliseconds))
    }

    /// Makes those that are due this long after the set-up. In virtual time that takes none.
    pub(super) fn make_due(&mut self, elapsed: Duration, spaces: &Spaces) -> Result<(), Failure> {
        while let Some((change, later)) = self.pending.split_first()
            && Duration::from_millis(change.at_milliseconds) <= elapsed
        {
            self.pending = later;
            let made = spaces.get(&change.namespace)?.within(|| run_batch("tc", core::slice::from_ref(&change.tc)))?;
            made.map_err(|failure| failure.in_namespace(&change.namespace))?;
        }
        Ok(())
    }
}

/// One run of `ip` makes all of them, each end in its place.
fn make_pairs(pairs: &[Pair]) -> Result<(), Failure> {
    let line = |Pair { a, b }: &Pair| {
        format!(
            "link add name {} address {} netns {} type veth peer name {} address {} netns {}",
            a.device, a.mac, a.namespace, b.device, b.mac, b.namespace
        )
    };
    run_batch("ip", &pairs.iter().map(line).collect::<Vec<_>>())
}

/// Sets a namespace up from within; the answer is how many disciplines should have a seed and cannot.
fn set_up(namespace: &Namespace) -> Result<usize, Failure> {
    namespace.sysctls.iter().try_for_each(settings::write)?;
    for device in &namespace.without_offloads {
        turn_aggregation_off(device)?;
    }
    run_batch("ip", &namespace.ip)?;
    run_batch("tc", &namespace.tc)?;
    let mut without_seed = 0;
    for seed in &namespace.seeds {
        if set_netem_seed(&seed.device, &seed.handle, seed.seed)? == SeedOutcome::NotSupported {
            without_seed += 1;
        }
    }
    Ok(without_seed)
}

/// Has one of iproute2's programs carry lines out; nothing is started when there are none.
fn run_batch(program: &str, lines: &[String]) -> Result<(), Failure> {
    if lines.is_empty() {
        return Ok(());
    }
    let mut input = String::new();
    for line in lines {
        let _ = writeln!(input, "{line}"); // a String takes everything
    }
    let output = command::run(program, &["-batch", "-"], Some(input.as_bytes()), PATIENCE)?;
    if output.status.success() {
        return Ok(());
    }
    Err(refusal(program, lines, &output.stderr_text()))
}

/// iproute2 says what is wrong, then `Command failed -:3`, where 3 is the line's number.
fn refusal(program: &str, lines: &[String], complaint: &str) -> Failure {
    const MARK: &str = "Command failed -:";
    let number = complaint.lines().find_map(|line| line.strip_prefix(MARK)?.trim().parse::<usize>().ok());
    let reason: Vec<_> = complaint.lines().filter(|line| !line.starts_with(MARK) && !line.trim().is_empty()).collect();
    let reason = if reason.is_empty() { "no reason given".to_owned() } else { reason.join("; ") };
    match number.and_then(|number| lines.get(number.checked_sub(1)?)) {
        Some(line) => Failure::new(format!("`{program} {line}`: {reason}")),
        None => Failure::new(format!("`{program} -batch -` with {} lines: {reason}", lines.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_failed_is_named() {
        let lines = ["addr add 10.0.0.1/30 dev eth0".to_owned(), "link set eth9 up".to_owned()];
        let failure = refusal("ip", &lines, "Cannot find device \"eth9\"\nCommand failed -:2");
        assert_eq!(failure.error, "`ip link set eth9 up`: Cannot find device \"eth9\"");
        assert_eq!(failure.in_namespace("far").error, "in far: `ip link set eth9 up`: Cannot find device \"eth9\"");
        for complaint in ["odd", "odd\nCommand failed -:0", "odd\nCommand failed -:3", "odd\nCommand failed -:x"] {
            assert_eq!(refusal("tc", &lines, complaint).error, "`tc -batch -` with 2 lines: odd");
        }
        assert_eq!(refusal("tc", &lines, "").error, "`tc -batch -` with 2 lines: no reason given");
    }

    #[test]
    fn no_lines_start_no_program() {
        assert_eq!(run_batch("no-such-program-here", &[]), Ok(()));
        assert!(run_batch("no-such-program-here", &["x".to_owned()]).is_err());
    }
}
