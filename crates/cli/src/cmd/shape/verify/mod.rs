//! The verification of a shaper at the terminal: options, progress and text.

mod arguments;
mod progress;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use arguments::VerifyArguments;
pub(crate) use progress::VerifyProgress;
pub(crate) use text::{summary, text};
