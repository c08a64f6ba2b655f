//! What follows from what was read and measured: findings about a host ([`audit`]).
//!
//! One rule per file, listed in one slice per kind. Rules compute: they read no host and no clock, and write nothing.

#![forbid(unsafe_code)]

pub mod audit;
pub mod diagnosis;
pub mod export;
pub mod flow_state;
pub mod judge;
pub mod tuning;
