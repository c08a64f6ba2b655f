//! `linerate lab`: emulated paths.

use crate::app::LabArguments;
use crate::exit::Exit;

/// Does what was asked for.
pub(crate) fn run(_arguments: &LabArguments) -> Exit {
    Exit::Unable
}
