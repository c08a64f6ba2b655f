//! One file per command.

pub(crate) mod calc;
pub(crate) mod history;
pub(crate) mod lab;
pub(crate) mod load;
pub(crate) mod measurement;
pub(crate) mod path;
pub(crate) mod report;
pub(crate) mod rfc6349;
pub(crate) mod serve;
pub(crate) mod test;
