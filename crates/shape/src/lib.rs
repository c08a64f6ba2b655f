//! Plans of queueing disciplines for an access link and a traffic policy, and their verification.
//!
//! Everything here is pure computation: the plan is plain data, the script is text, the state of a host is the output
//! of
//! `tc -j`, and the controller of variable links receives the time.
//!
//! ```text
//!   Line + Policy + Capabilities + DeviceFacts ─► choose ─► BACK_ENDS ─► Plan ─► commands, script, read_back
//! ```

#![forbid(unsafe_code)]

pub mod autorate;

pub mod back_ends;
pub mod capability;
#[doc(hidden)]
pub mod fuzzing;
pub mod link;
pub mod mtu;
pub mod plan;
pub mod policy;
pub mod prediction;
pub mod read_back;
pub mod refusal;
pub mod script;
pub mod traffic_classes;
pub mod uci;
pub mod verify;
pub mod wondershaper;

#[cfg(test)]
mod tests;
