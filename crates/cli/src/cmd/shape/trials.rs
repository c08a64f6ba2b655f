//! What this kernel can do, found by trying in a network namespace of its own.

use std::time::Duration;

use linerate_shape::back_ends;
use linerate_shape::capability::{Capabilities, Feature, Probe, probes};
use linerate_sys::{command, traffic_control};

use super::error::ShapeError;

/// `tc` has done its work in milliseconds; loading a module may take longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Tries everything once; of the queueing disciplines only those that the back end needs, where one was asked for by name.
pub(crate) fn capabilities(wanted: Option<&str>) -> Result<Capabilities, ShapeError> {
    let needs = wanted.and_then(back_ends::by_id).map(|back_end| back_end.needs);
    let found = traffic_control::in_scratch_namespace(|| {
        let mut found = Capabilities::new(Some(linerate_sys::host::kernel_release()));
        for probe in probes().into_iter().filter(|probe| is_needed(probe.feature, needs)) {
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

/// Filters, actions and devices are for all back ends.
fn is_needed(feature: Feature, needs: Option<&[Feature]>) -> bool {
    // A leaf that a back end takes where it is there is among these as well.
    const SHARED: [&str; 3] = ["ingress", "bfifo", "pfifo"];
    match (feature, needs) {
        (Feature::Discipline(kind), Some(needs)) => needs.contains(&feature) || SHARED.contains(&kind),
        _ => true,
    }
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
