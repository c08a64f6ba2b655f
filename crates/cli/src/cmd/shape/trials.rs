//! What this kernel can do, found by trying in a network namespace of its own.

use std::time::Duration;

use linerate_shape::capability::{Capabilities, Probe, probes};
use linerate_sys::{command, traffic_control};

use super::error::ShapeError;

/// `tc` has done its work in milliseconds; loading a module may take longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Tries everything once.
pub(crate) fn capabilities() -> Result<Capabilities, ShapeError> {
    let found = traffic_control::in_scratch_namespace(|| {
        let mut found = Capabilities::new(Some(linerate_sys::host::kernel_release()));
        for probe in probes() {
            let support = attempt(&probe)?;
            found.record(probe.feature, support);
        }
        Ok(found)
    });
    let failed = |error: linerate_sys::Error| {
        let exit = crate::exit::Exit::of(&error);
        let text = format!("finding out what this kernel can do: {error}");
        let advice = "run it as root (sudo), or have it print a script for another host with --script --back-end NAME";
        ShapeError { text, advice: Some(advice.to_owned()), exit }
    };
    found.map_err(failed)?.map_err(failed)
}

fn attempt(probe: &Probe) -> linerate_sys::Result<linerate_shape::capability::Support> {
    let run = |one: &linerate_shape::plan::Command| {
        let words: Vec<&str> = one.words.iter().map(String::as_str).collect();
        command::run(one.program, &words, None, PATIENCE)
    };
    for one in &probe.before {
        run(one)?;
    }
    let output = run(&probe.trial)?;
    for one in &probe.after {
        run(one)?;
    }
    Ok(probe.read(output.status.success(), &output.stderr_text()))
}
