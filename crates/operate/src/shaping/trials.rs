//! Probes of kernel features in a separate network namespace.

use linerate_shape::back_ends::BackEndId;
use linerate_shape::capability::{FeatureProbe, FeatureSupport, KernelCapabilities, KernelFeature, ProbeBatch, probes};
use linerate_shape::plan::PlanCommand;
use linerate_sys::{command, iproute2, traffic_control};

use super::error::{ShapeError, ShapeErrorKind};

type ProbeResult = (FeatureProbe, FeatureSupport);

/// Probes every feature once; for a named back end, only the queueing disciplines that it needs.
pub(crate) fn capabilities(wanted: Option<BackEndId>) -> Result<KernelCapabilities, ShapeError> {
    let needs = wanted.map(|id| id.back_end().needs);
    run_probes(probes().into_iter().filter(|probe| is_needed(probe.feature, needs)))
}

/// Probes every feature of the back ends, and these.
pub(crate) fn features(more: &[FeatureProbe]) -> Result<KernelCapabilities, ShapeError> {
    run_probes(probes().into_iter().chain(more.iter().cloned()))
}

fn run_probes(wanted: impl Iterator<Item = FeatureProbe>) -> Result<KernelCapabilities, ShapeError> {
    iproute2::version("tc")?;
    let failed = |error: linerate_sys::Error| {
        let kind = ShapeErrorKind::of(&error);
        let text = format!("cannot probe the kernel's features: {error}");
        let advice = "run it as root (sudo), or print a script for another host with --script --back-end NAME";
        ShapeError { text, advice: Some(advice.to_owned()), kind }
    };
    let wanted: Vec<FeatureProbe> = wanted.collect();
    let (batch, others) = ProbeBatch::of(wanted.clone());
    let found = in_namespace(|| {
        let Some(mut found) = run_batch(&batch)? else { return Ok(None) };
        found.extend(run_each(&others)?);
        Ok(Some(found))
    });
    // A tc that does not understand an option may have ended in the middle, and left something in the namespace.
    let found = match found.map_err(failed)? {
        Some(found) => found,
        None => in_namespace(|| run_each(&wanted)).map_err(failed)?,
    };
    let mut capabilities = KernelCapabilities::new(Some(linerate_sys::host::kernel_release()));
    for (probe, support) in found {
        capabilities.record(probe.feature, support);
    }
    Ok(capabilities)
}

/// Runs `work` in a network namespace of its own.
fn in_namespace<T: Send>(work: impl FnOnce() -> linerate_sys::Result<T> + Send) -> linerate_sys::Result<T> {
    traffic_control::in_scratch_namespace(work)?
}

/// Runs the batch; `None` when `tc` ended before its end.
fn run_batch(batch: &ProbeBatch) -> linerate_sys::Result<Option<Vec<ProbeResult>>> {
    let script = batch.script();
    let output = command::run("tc", &["-force", "-batch", "-"], Some(script.as_bytes()), iproute2::TIME_LIMIT)?;
    Ok(batch.interpret(&output.stderr_text()))
}

fn run_each(probes: &[FeatureProbe]) -> linerate_sys::Result<Vec<ProbeResult>> {
    probes.iter().map(|probe| Ok((probe.clone(), run_probe(probe)?))).collect()
}

/// True when the back end needs the feature; filters, actions and devices are needed by all.
fn is_needed(feature: KernelFeature, needs: Option<&[KernelFeature]>) -> bool {
    // Includes leaves that a back end uses if present.
    const SHARED: [&str; 3] = ["ingress", "bfifo", "pfifo"];
    match (feature, needs) {
        (KernelFeature::Discipline(kind), Some(needs)) => needs.contains(&feature) || SHARED.contains(&kind),
        _ => true,
    }
}

fn run_probe(probe: &FeatureProbe) -> linerate_sys::Result<FeatureSupport> {
    let run = |one: &PlanCommand| {
        let words: Vec<&str> = one.words.iter().map(String::as_str).collect();
        command::run(one.program, &words, None, iproute2::TIME_LIMIT)
    };
    for one in &probe.before {
        run(one)?;
    }
    let output = run(&probe.trial)?;
    for one in &probe.after {
        run(one)?;
    }
    Ok(probe.interpret(output.status.success(), &output.stderr_text()))
}
