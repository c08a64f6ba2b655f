//! Size limit of the history.

use linerate_history::{DeletedRuns, HistoryError};
use linerate_units::{ByteCount, display, parse};

use super::change;
use crate::console;
use crate::exit::ExitStatus;

/// Size limit as the user writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SizeLimit {
    /// No limit.
    None,
    /// Largest size of the stored runs.
    At(ByteCount),
}

/// Parses a limit: a size with its unit, or `none`.
pub(super) fn parse_limit(text: &str) -> Result<SizeLimit, String> {
    if text == "none" {
        return Ok(SizeLimit::None);
    }
    if text.ends_with(|last: char| last.is_ascii_digit()) {
        return Err("expected a size with its unit (500MB, 2GB), or none".to_owned());
    }
    parse::size(text).map(SizeLimit::At).map_err(|cause| format!("{cause}, or none"))
}

/// Sets the limit, or shows it.
pub(super) fn run(limit: Option<SizeLimit>, yes: bool) -> Result<ExitStatus, HistoryError> {
    let mut history = change::open_existing_for_writing()?;
    match limit {
        None => {
            let size = display::size(history.size()?);
            let limit = history.size_limit()?.map(display::size);
            console::data(
                &limit.map_or_else(|| format!("{size}, no limit\n"), |limit| format!("{size} of at most {limit}\n")),
            );
            return Ok(ExitStatus::Success);
        }
        Some(SizeLimit::None) => history.set_size_limit(None)?,
        Some(SizeLimit::At(size)) => {
            let excess = history.excess(size)?;
            if excess.count > 0 && !yes {
                match change::confirm_deletion(&format!("the {}", oldest(excess))) {
                    None => return Ok(ExitStatus::Unable),
                    Some(false) => {
                        console::note("nothing was deleted, and the limit is as it was");
                        return Ok(ExitStatus::Success);
                    }
                    Some(true) => {}
                }
            }
            history.set_size_limit(Some(size))?;
        }
    }
    note_deleted(history.delete_excess()?);
    Ok(ExitStatus::Success)
}

/// Reports runs that the limit has deleted.
pub(crate) fn note_deleted(deleted: DeletedRuns) {
    if deleted.count > 0 {
        console::note(&format!("deleted by the history's size limit: the {}", oldest(deleted)));
    }
}

fn oldest(deleted: DeletedRuns) -> String {
    match deleted.count {
        1 => "oldest run without a tag".to_owned(),
        count => format!("{count} oldest runs without a tag"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_a_unit() {
        assert_eq!(parse_limit("500MB"), Ok(SizeLimit::At(ByteCount::new(500_000_000))));
        assert_eq!(parse_limit("none"), Ok(SizeLimit::None));
        for text in ["", "500", "lots", "-1MB", "10Mb"] {
            assert!(parse_limit(text).is_err(), "{text:?}");
        }
    }
}
