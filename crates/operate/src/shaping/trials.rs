//! Probes of kernel features in a separate network namespace.

use linerate_shape::back_ends::BackEndId;
use linerate_shape::capability::{FeatureProbe, KernelCapabilities, KernelFeature, probes};
use linerate_sys::{command, iproute2, traffic_control};

use super::error::{ShapeError, ShapeErrorKind};

/// Probes every feature once; for a named back end, only the queueing disciplines that it needs.
pub(crate) fn capabilities(wanted: Option<BackEndId>) -> Result<KernelCapabilities, ShapeError> {
    let needs = wanted.map(|id| id.back_end().needs);
    run_probes(probes().into_iter().filter(|probe| is_needed(probe.feature, needs)))
}

/// Probes every feature of the back ends, and these.
pub(crate) fn features(more: &[FeatureProbe]) -> Result<KernelCapabilities, ShapeError> {
    run_probes(probes().into_iter().chain(more.iter().cloned()))
}

fn run_probes(wanted: impl Iterator<Item = FeatureProbe> + Send) -> Result<KernelCapabilities, ShapeError> {
    iproute2::version("tc")?;
    let found = traffic_control::in_scratch_namespace(|| {
        let mut found = KernelCapabilities::new(Some(linerate_sys::host::kernel_release()));
        for probe in wanted {
            let support = run_probe(&probe)?;
            found.record(probe.feature, support);
        }
        Ok(found)
    });
    let failed = |error: linerate_sys::Error| {
        let kind = ShapeErrorKind::of(&error);
        let text = format!("cannot probe the kernel's features: {error}");
        let advice = "run it as root (sudo), or print a script for another host with --script --back-end NAME";
        ShapeError { text, advice: Some(advice.to_owned()), kind }
    };
    found.map_err(failed)?.map_err(failed)
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

fn run_probe(probe: &FeatureProbe) -> linerate_sys::Result<linerate_shape::capability::FeatureSupport> {
    let run = |one: &linerate_shape::plan::PlanCommand| {
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
