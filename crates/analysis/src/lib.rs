//! Computations over the samples of a measurement: [`formulas`] of transport and queues, [`statistics`], the metrics of
//! [`ippm`], the bytes that a [`link_layer`] counts, the methods that find [`capacity`], [`path_mtu`], a [`policer`],
//! [`latency_under_load`] and [`route_loss`], and the grades of [`traffic_profiles`].
//!
//! Input and output are quantities of `units` and plain types of this crate; those that documents hold are serialised as
//! they are. Nothing here does IO, reads a clock or draws random numbers that the caller did not seed.

#![forbid(unsafe_code)]

pub mod capacity;
pub mod formulas;
pub mod ippm;
pub mod latency_histogram;
pub mod latency_under_load;
pub mod link_layer;
pub mod path_mtu;
pub mod policer;
pub mod rfc6349;
pub mod route_loss;
pub mod statistics;
pub mod traffic_profiles;
