//! `linerate doctor HOST`: measure, explain, change, verify and report in one guided run. `--check` checks this host alone.

mod arguments;
mod check;
mod terminal;

use linerate_documents::run::RunDocument;
use linerate_operate::diagnose::RunStart;
use linerate_operate::doctor::{self, DoctorEnd, DoctorReport, DoctorRequest};
use linerate_operate::tuning::session::{ComparisonMode, TuningSettings};

pub(crate) use arguments::DoctorArguments;

use terminal::AtTerminal;

use crate::cmd::measurement::{interrupts, own_arguments};
use crate::cmd::{diagnose, tune};
use crate::console;
use crate::exit::ExitStatus;
use crate::recorder::{RunPage, record_with_page};

/// Runs all steps, or checks this host.
pub(crate) fn run(arguments: &DoctorArguments) -> ExitStatus {
    match &arguments.host {
        Some(host) => run_guided(arguments, host),
        None => check::run(arguments.common.json, arguments.common.verbose),
    }
}

fn run_guided(arguments: &DoctorArguments, host: &str) -> ExitStatus {
    let parameters = match diagnose::parameters(&arguments.transfer, "doctor") {
        Ok(parameters) => parameters,
        Err(exit) => return exit,
    };
    let stop = match interrupts() {
        Ok(stop) => stop,
        Err(exit) => return exit,
    };
    let (how, common) = (&arguments.options, &arguments.common);
    if let Err(exit) = tune::check_confirmation(how) {
        return exit;
    }
    let begun = RunStart::now();
    let surroundings = common.local_environment(host);
    let settings = TuningSettings {
        compare: if arguments.compare_guide { ComparisonMode::Measure } else { ComparisonMode::Predict },
        ..tune::settings(how, common, host, parameters, &begun)
    };
    let mut guide = AtTerminal::new(arguments, settings.transfer.end.time_limit(), stop);
    let request = DoctorRequest {
        host: host.to_owned(),
        transfer: arguments.transfer.clone(),
        fresh: arguments.fresh,
        load: !arguments.no_load,
        settings,
        hosts: how.host_options(common),
    };
    match doctor::run(request, &begun, &mut guide, stop) {
        DoctorEnd::NoPath => ExitStatus::Unable,
        DoctorEnd::Interrupted => {
            console::note("broken off; the same command goes on from here");
            ExitStatus::Partial
        }
        DoctorEnd::Failed(failure) => tune::failed(&failure),
        DoctorEnd::Done(report) => {
            let run = report.run(surroundings, own_arguments());
            finish(arguments, &report, &run)
        }
    }
}

fn finish(arguments: &DoctorArguments, report: &DoctorReport, run: &RunDocument) -> ExitStatus {
    let common = &arguments.common;
    common.show(run);
    let named = arguments.html.clone().map(RunPage::Named);
    let page = named.or_else(|| (!arguments.no_html).then_some(RunPage::Usual));
    record_with_page(run, common.quiet || common.json, page.as_ref());
    tune::exit_of(report.outcome(), &arguments.options)
}
