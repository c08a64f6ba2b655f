//! Namespaces, pairs of devices, and their configuration.

use core::cmp::Reverse;
use core::fmt::Write as _;
use core::time::Duration;
use std::collections::BinaryHeap;
use std::path::Path;

use linerate_sys::command;
use linerate_sys::features::turn_aggregation_off;
use linerate_sys::namespace::{NetworkNamespace, take_loopback_up};
use linerate_sys::netem::{SeedOutcome, set_netem_seed};

use super::failure::{GuestFailure, NEWER_KERNEL};
use super::frame_writer::FrameWriter;
use super::settings;
use crate::job::GuestJob;
use crate::plan::{DevicePair, NamespacePlan, PathPlan, PlanChange, SysctlSetting, WIRE};

/// Directory of the names of `ip netns`.
const NETNS_DIRECTORY: &str = "/run/netns";

/// Maximum run time of an iproute2 program.
const BATCH_TIMEOUT: Duration = Duration::from_secs(60);

/// The namespaces of a plan, by name.
pub(super) struct NamespaceSet {
    spaces: Vec<(String, NetworkNamespace)>,
}

impl NamespaceSet {
    /// Sets up the whole network of a plan.
    pub(super) fn create(
        job: &GuestJob,
        host: Option<&NetworkNamespace>,
        voice: &mut FrameWriter,
    ) -> Result<Self, GuestFailure> {
        let plan = &job.plan;
        // Before the namespaces are made: they begin with some of these values.
        write_system_settings(&plan.system, job.own_kernel, host)?;
        let spaces = Self::create_namespaces(plan)?;
        // From a namespace without the hosts' devices: the kernel checks whether a name is in use in the namespace of
        // the caller, also when the device is to be in another one.
        spaces.get(WIRE)?.within(|| make_pairs(&plan.pairs))??;
        let mut without_seed = 0;
        for namespace in &plan.namespaces {
            let space = spaces.get(&namespace.name)?;
            let done = space.within(|| set_up(namespace))?;
            without_seed += done.map_err(|failure| failure.in_namespace(&namespace.name))?;
        }
        if without_seed > 0 {
            voice.note(format!(
                "this kernel's netem has no seed (added in Linux 6.6): the random losses and delays of \
                 {without_seed} queueing disciplines differ from run to run"
            ))?;
        }
        Ok(spaces)
    }

    /// Creates the namespaces; the first is that of this process.
    fn create_namespaces(plan: &PathPlan) -> Result<Self, GuestFailure> {
        let mut spaces: Vec<(String, NetworkNamespace)> = Vec::with_capacity(plan.namespaces.len());
        for NamespacePlan { name, .. } in &plan.namespaces {
            let space = if spaces.is_empty() { NetworkNamespace::current()? } else { NetworkNamespace::create()? };
            space.set_name(Path::new(NETNS_DIRECTORY), name)?;
            if !spaces.is_empty() {
                space.within(take_loopback_up)??;
            }
            spaces.push((name.clone(), space));
        }
        Ok(Self { spaces })
    }

    pub(super) fn get(&self, name: &str) -> Result<&NetworkNamespace, GuestFailure> {
        let found = self.spaces.iter().find(|(other, _)| other == name);
        found.map(|(_, space)| space).ok_or_else(|| GuestFailure::new(format!("the plan has no namespace {name}")))
    }
}

fn write_system_settings(
    system: &[SysctlSetting],
    own_kernel: bool,
    host: Option<&NetworkNamespace>,
) -> Result<(), GuestFailure> {
    if own_kernel {
        return system.iter().try_for_each(settings::write);
    }
    for setting in system {
        // Most of them are visible only from the network of the host itself.
        let in_effect = settings::is_in_effect(setting)
            || host.is_some_and(|host| host.within(|| settings::is_in_effect(setting)).unwrap_or(false));
        if !in_effect {
            return Err(settings::host_setting_failure(setting));
        }
    }
    Ok(())
}

/// Changes while the path is active.
pub(super) struct PendingChanges<'a> {
    changes: &'a [PlanChange],
    /// Milliseconds after the set-up and number of each pending change, the next one first; of one time, in their order.
    pending: BinaryHeap<Reverse<(u64, usize)>>,
}

impl<'a> PendingChanges<'a> {
    pub(super) fn of(plan: &'a PathPlan) -> Self {
        let pending = plan.changes.iter().enumerate();
        let pending = pending.map(|(index, change)| Reverse((change.at_milliseconds, index))).collect();
        Self { changes: &plan.changes, pending }
    }

    /// Time after the set-up at which the next one is due; `None` when there is none left.
    pub(super) fn next(&self) -> Option<Duration> {
        self.pending.peek().map(|Reverse((time, _))| Duration::from_millis(*time))
    }

    /// Applies those that are due this long after the set-up, at once where they are in one namespace. In virtual time
    /// that takes none.
    pub(super) fn make_due(&mut self, elapsed: Duration, spaces: &NamespaceSet) -> Result<(), GuestFailure> {
        let mut due: Vec<(&str, Vec<String>)> = Vec::new();
        while let Some(change) = self.take_due(elapsed) {
            match due.last_mut() {
                Some((namespace, lines)) if *namespace == change.namespace => lines.push(change.tc.clone()),
                _ => due.push((&change.namespace, vec![change.tc.clone()])),
            }
        }
        for (namespace, lines) in due {
            let made = spaces.get(namespace)?.within(|| run_batch("tc", &lines))?;
            made.map_err(|failure| failure.in_namespace(namespace))?;
        }
        Ok(())
    }

    /// Takes the next change if it is due, and plans its repetition; of those that would be late already, one is left.
    fn take_due(&mut self, elapsed: Duration) -> Option<&'a PlanChange> {
        let elapsed = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let Reverse((time, index)) = self.pending.peek().copied().filter(|Reverse((time, _))| *time <= elapsed)?;
        self.pending.pop();
        let change = self.changes.get(index)?;
        if let Some(period) = change.repeat_milliseconds.filter(|period| *period > 0) {
            let passed = (elapsed - time) / period;
            self.pending.push(Reverse((time.saturating_add((passed + 1).saturating_mul(period)), index)));
        }
        Some(change)
    }
}

/// Creates all pairs with one run of `ip`, each end in its namespace.
fn make_pairs(pairs: &[DevicePair]) -> Result<(), GuestFailure> {
    let line = |DevicePair { a, b }: &DevicePair| {
        format!(
            "link add name {} address {} netns {} type veth peer name {} address {} netns {}",
            a.device, a.mac, a.namespace, b.device, b.mac, b.namespace
        )
    };
    run_batch("ip", &pairs.iter().map(line).collect::<Vec<_>>())
}

/// Sets up a namespace from within; returns the number of disciplines that should have a seed and cannot.
fn set_up(namespace: &NamespacePlan) -> Result<usize, GuestFailure> {
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

/// Runs lines with one of iproute2's programs; nothing is started when there are none.
fn run_batch(program: &str, lines: &[String]) -> Result<(), GuestFailure> {
    if lines.is_empty() {
        return Ok(());
    }
    let mut input = String::new();
    for line in lines {
        let _ = writeln!(input, "{line}"); // writing to a String never fails
    }
    let output = command::run(program, &["-batch", "-"], Some(input.as_bytes()), BATCH_TIMEOUT)?;
    if output.status.success() {
        return Ok(());
    }
    Err(batch_failure(program, lines, &output.stderr_text()))
}

/// iproute2 prints the error, then `Command failed -:3`, where 3 is the line's number.
fn batch_failure(program: &str, lines: &[String], complaint: &str) -> GuestFailure {
    const MARK: &str = "Command failed -:";
    let number = complaint.lines().find_map(|line| line.strip_prefix(MARK)?.trim().parse::<usize>().ok());
    let reason: Vec<_> = complaint.lines().filter(|line| !line.starts_with(MARK) && !line.trim().is_empty()).collect();
    let reason = if reason.is_empty() { "no reason given".to_owned() } else { reason.join("; ") };
    match number.and_then(|number| lines.get(number.checked_sub(1)?)) {
        Some(line) => {
            let failure = GuestFailure::new(format!("`{program} {line}`: {reason}"));
            GuestFailure { advice: line.ends_with(" dualpi2").then(|| NEWER_KERNEL.to_owned()), ..failure }
        }
        None => GuestFailure::new(format!("`{program} -batch -` with {} lines: {reason}", lines.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_failed_is_named() {
        let lines = ["addr add 10.0.0.1/30 dev eth0".to_owned(), "link set eth9 up".to_owned()];
        let failure = batch_failure("ip", &lines, "Cannot find device \"eth9\"\nCommand failed -:2");
        assert_eq!(failure.error, "`ip link set eth9 up`: Cannot find device \"eth9\"");
        assert_eq!(failure.in_namespace("far").error, "in far: `ip link set eth9 up`: Cannot find device \"eth9\"");
        let queue = ["qdisc add dev l0 parent 10:1 handle 100: dualpi2".to_owned()];
        let failure = batch_failure("tc", &queue, "Error: Specified qdisc kind is unknown.\nCommand failed -:1");
        assert_eq!(failure.advice.as_deref(), Some(NEWER_KERNEL));
        for complaint in ["odd", "odd\nCommand failed -:0", "odd\nCommand failed -:3", "odd\nCommand failed -:x"] {
            assert_eq!(batch_failure("tc", &lines, complaint).error, "`tc -batch -` with 2 lines: odd");
        }
        assert_eq!(batch_failure("tc", &lines, "").error, "`tc -batch -` with 2 lines: no reason given");
    }

    #[test]
    fn no_lines_start_no_program() {
        assert_eq!(run_batch("no-such-program-here", &[]), Ok(()));
        assert!(run_batch("no-such-program-here", &["x".to_owned()]).is_err());
    }

    fn change(at: u64, tc: &str, repeat: Option<u64>) -> PlanChange {
        PlanChange { namespace: WIRE.to_owned(), at_milliseconds: at, tc: tc.to_owned(), repeat_milliseconds: repeat }
    }

    #[test]
    fn changes_are_made_in_order_and_repeated() {
        let changes = [change(0, "a", Some(100)), change(30, "b", None), change(50, "c", Some(100))];
        let pending = changes.iter().enumerate().map(|(index, one)| Reverse((one.at_milliseconds, index))).collect();
        let mut pending = PendingChanges { changes: &changes, pending };
        let mut made = Vec::new();
        for time in [0, 40, 60, 120, 150, 420] {
            while let Some(change) = pending.take_due(Duration::from_millis(time)) {
                made.push((time, change.tc.as_str()));
            }
        }
        // At 420 ms three passes have gone by: each change is made once.
        assert_eq!(made, [(0, "a"), (40, "b"), (60, "c"), (120, "a"), (150, "c"), (420, "a"), (420, "c")]);
        assert_eq!(pending.next(), Some(Duration::from_millis(450)));
    }
}
