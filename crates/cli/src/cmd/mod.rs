//! One file per command.

pub(crate) mod lab;
pub(crate) mod serve;
pub(crate) mod test;
