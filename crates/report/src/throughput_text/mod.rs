//! What `linerate test` shows a person: a live line while it measures, and the result.
//!
//! Both are pure functions of the data and of a [`Style`]. Colours are plain ANSI codes and only there when asked for;
//! without Unicode everything is ASCII.

mod diagnosis;
mod meaning;
mod progress;
mod result;
mod style;
mod verdict;

pub use progress::{Progress, progress_line};
pub use result::result_text;
pub(crate) use style::Paint;
pub use style::{Columns, Style};
pub use verdict::sentence;
