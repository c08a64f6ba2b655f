//! From a line and what matters on it to a plan of queueing disciplines, and the checks that it does what it says.
//!
//! Everything here computes: the plan is plain data, the script is text, what stands on a host comes in as `tc -j` prints
//! it, and the controller of variable lines is told the time.

#![forbid(unsafe_code)]
