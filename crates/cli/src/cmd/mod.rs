//! Commands of linerate, one per module.

pub(crate) mod audit;
pub(crate) mod baseline;
pub(crate) mod calc;
pub(crate) mod diagnose;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod fleet;
pub(crate) mod history;
pub(crate) mod lab;
pub(crate) mod listen;
pub(crate) mod load;
pub(crate) mod measurement;
pub(crate) mod monitor;
pub(crate) mod network;
pub(crate) mod path;
pub(crate) mod pscheduler;
pub(crate) mod report;
pub(crate) mod rfc6349;
pub(crate) mod rollback;
pub(crate) mod rr;
pub(crate) mod serve;
pub(crate) mod shape;
pub(crate) mod test;
pub(crate) mod tls;
pub(crate) mod tune;
pub(crate) mod watch;
