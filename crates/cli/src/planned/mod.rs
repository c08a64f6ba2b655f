//! Tests at planned times, of `linerate fleet agent` and `linerate monitor`: waiting for them, running each as a linerate of
//! its own, and keeping every result.

mod keeper;
mod program;
mod running_test;
mod wait;

use std::time::Duration;

use linerate_documents::fleet_result::{FleetResult, FleetTestKind, ResultHost, SessionOutcome};
use linerate_documents::run::{FigureUnit, ImprovementDirection, RunDocument, RunFigure, RunResult};
use linerate_model::route::PathHop;
use linerate_model::summary::DurationDistribution;
use linerate_units::WallTime;

pub(crate) use keeper::{ResultArguments, ResultKeeper, usual_results};
pub(crate) use program::{TestEnding, TestProgram};
pub(crate) use running_test::RunningTest;
pub(crate) use wait::{PlannedWait, WaitEnding};

/// Test at its time.
#[derive(Clone, Debug)]
pub(crate) struct PlannedTest {
    /// Name of the task.
    pub(crate) task: String,
    /// Type of the test.
    pub(crate) test: FleetTestKind,
    /// Name of this host.
    pub(crate) source: String,
    /// Name of the other host.
    pub(crate) destination: String,
    /// Planned time.
    pub(crate) at: WallTime,
    /// True when the figures are all that is kept of the result.
    pub(crate) is_light: bool,
}

impl PlannedTest {
    /// Result of the test that was not started.
    pub(crate) fn skipped(&self, reason: String) -> FleetResult {
        self.ended(TestEnding { outcome: SessionOutcome::Skipped, reason: Some(reason), run: None })
    }

    /// Result of the test that ended.
    pub(crate) fn ended(&self, ending: TestEnding) -> FleetResult {
        let TestEnding { outcome, reason, run } = ending;
        let (mut figures, mut verdict, mut route) = (Vec::new(), String::new(), Vec::new());
        if let Some(run) = &run {
            verdict.clone_from(&run.verdict);
            figures = run.figures.iter().filter(|figure| figure.value.is_some()).cloned().collect();
            figures.extend(delay_spread(run));
            route = route_of(run);
        }
        let ends = [self.source.as_str(), self.destination.as_str()];
        FleetResult {
            outcome,
            reason,
            verdict,
            figures,
            host: run.as_ref().map(ResultHost::of),
            route,
            run: run.filter(|_| !self.is_light).map(Box::new),
            ..FleetResult::unstarted(&self.task, self.test.clone(), ends, self.at)
        }
    }
}

/// Figures of the distribution of the idle round trip, which a light test has besides those of its run.
fn delay_spread(run: &RunDocument) -> Vec<RunFigure> {
    let RunResult::Path(path) = &run.result else { return Vec::new() };
    let Some(rtt) = &path.rtt.best else { return Vec::new() };
    let figure = |name: &str, title: &str, value: fn(&DurationDistribution) -> Duration| {
        let mut figure = RunFigure::new(name, title, FigureUnit::Nanoseconds, ImprovementDirection::Lower);
        figure.value = Some(value(rtt).as_secs_f64() * 1e9);
        figure.count = Some(rtt.count);
        figure
    };
    vec![
        figure("rtt_idle_min", "Idle round trip, smallest", |rtt| rtt.min),
        figure("rtt_idle_p95", "Idle round trip, 95th percentile", |rtt| rtt.p95),
        figure("rtt_idle_max", "Idle round trip, largest", |rtt| rtt.max),
    ]
}

fn route_of(run: &RunDocument) -> Vec<String> {
    let path = match &run.result {
        RunResult::Path(path) => Some(&**path),
        RunResult::Diagnose(diagnose) => diagnose.path.as_ref(),
        _ => None,
    };
    let hops = path.iter().flat_map(|path| &path.hops);
    // The route of the first flow, which has the same ports in each run.
    let first_flow = |hop: &PathHop| {
        let address = hop.addresses.iter().find(|one| one.flows.first() == Some(&1)).map(|one| one.address.clone());
        address.or_else(|| hop.address.clone()).unwrap_or_else(|| "*".to_owned())
    };
    hops.map(first_flow).collect()
}
