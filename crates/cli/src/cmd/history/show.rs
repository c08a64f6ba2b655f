//! One run.

use linerate_history::{HistoryError, RunReference};
use linerate_report::presentation;
use linerate_report::text;

use crate::console;
use crate::exit::Exit;

pub(super) fn run(reference: RunReference, json: bool) -> Result<Exit, HistoryError> {
    let history = super::open_existing()?;
    let run = history.get(history.resolve(reference)?)?;
    if json {
        match serde_json::to_string_pretty(&run) {
            Ok(document) => console::data(&format!("{document}\n")),
            Err(cause) => {
                console::error(&format!("writing the run as JSON: {cause}"), None);
                return Ok(Exit::Unable);
            }
        }
    } else {
        console::data(&text::render(&[presentation::present(&run)], console::data_style()));
    }
    Ok(Exit::Success)
}
