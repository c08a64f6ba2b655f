//! Shaping of an access link: the procedures that set a shaper up, verify it, follow the link or the interface, have it set
//! up at each boot, and take it down.

pub mod autorate;
pub mod class_file;
pub mod document;
pub mod error;
pub(crate) mod follow;
pub mod line;
mod off;
pub mod persist;
mod record;
pub mod selection;
mod session;
pub mod shaped;
mod shaper;
mod standing;
pub mod status;
pub(crate) mod trials;
pub mod verify;

pub use off::{confirm, off};
pub use record::recorded_of;
pub use session::{ConfirmationAnswer, SetUpRequest, ShapeEnd, ShapeEvent, ShapeInterface, script, set_up};
pub use shaper::Shaper;
