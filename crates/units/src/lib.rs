//! Quantities of network measurement as types.
//!
//! A rate is not a size and a size is not a count: [`BitRate`], [`ByteCount`], [`PacketCount`] and the others keep them
//! apart, and only the algebra between them converts. `BitRate * Duration = ByteCount` is the bandwidth-delay product;
//! it cannot be wrong by a factor of eight.
//!
//! Text has three formats that must not be mixed up, so each has its own module:
//!
//! * [`iperf3`]: iperf3's two suffix families, sizes in powers of 1024 and rates in powers of 1000;
//! * [`parse`]: human input (`10G`, `10Gbit/s`, `6 MiB`, `117ms`), strict about units;
//! * [`display`]: human-readable output (`9.41 Gbit/s`, `146 MB`, `18.5 ms`).
//!
//! [`c_format`] writes numbers as C's `printf` does, and [`hexadecimal`] bytes.
//!
//! This crate does no IO, reads no clock and starts no thread.

#![forbid(unsafe_code)]

pub mod c_format;
mod compact_sort;
mod count;
pub mod display;
pub mod fuzzing;
pub mod hexadecimal;
mod internet;
pub mod iperf3;
pub mod parse;
mod rate;
mod ratio;
#[cfg(feature = "serde")]
pub mod serde;
mod size;
mod time;

pub use compact_sort::{CompactCollect, CompactSort};
pub use count::{BlockCount, PacketCount, SegmentCount, StreamCount};
pub use internet::{Dscp, FlowLabel, Mss, Mtu, Port, TypeOfService};
pub use rate::BitRate;
pub use ratio::Ratio;
pub use size::ByteCount;
pub use time::{MonotonicTime, WallTime};
