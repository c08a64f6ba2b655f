//! Display of one run.

use linerate_history::{HistoryError, RunReference};
use linerate_report::presentation;
use linerate_report::text;

use crate::cmd::measurement::print_run;
use crate::console;
use crate::exit::ExitStatus;

pub(super) fn run(reference: RunReference, json: bool, verbose: bool) -> Result<ExitStatus, HistoryError> {
    let history = super::open_existing()?;
    let run = history.get(history.resolve(reference)?)?;
    if json {
        print_run(&run);
    } else if !verbose {
        console::data(&text::summary(&presentation::present(&run), console::data_style()));
    } else {
        console::data(&text::render(&[presentation::present(&run)], console::data_style()));
    }
    Ok(ExitStatus::Success)
}
