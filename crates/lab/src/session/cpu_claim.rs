//! Choice of the processor for a guest.
//!
//! A User-Mode Linux guest is one thread at a time: its kernel and its processes take turns, and a turn that goes to
//! another processor costs five times as much. So all of it is bound to one processor; guests that run at the same time
//! take different ones.

use linerate_units::CompactSort;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use linerate_model::parameters::CpuIndex;
use linerate_sys::resources;

/// A processor, and the claim on it, which other sessions of this host see. It ends with its process.
#[derive(Debug)]
pub(super) struct CpuClaim {
    /// The processor.
    pub(super) processor: CpuIndex,
    _claim: UnixDatagram,
}

/// Maximum number of guests per processor before claims are no longer made.
const MAX_GUESTS: u8 = 64;

/// Beginning of the names of claims, the same for all sessions of a host.
const CLAIMS: &str = "linerate-lab-processor";

/// Claims the least busy of the processors with the fewest guests. `None` when the host does not report its processors:
/// then the guest runs anywhere.
pub(super) fn claim_processor() -> Option<CpuClaim> {
    claim_one(CLAIMS)
}

fn claim_one(claims: &str) -> Option<CpuClaim> {
    let allowed = resources::allowed_processors().ok()?;
    let order = by_load(allowed, &resources::runnable_threads().unwrap_or_default());
    (0..MAX_GUESTS).find_map(|round| order.iter().find_map(|processor| claim(claims, *processor, round).ok()))
}

/// The least busy first; of equally busy ones the last, as interrupts tend to go to the first.
fn by_load(mut allowed: Vec<CpuIndex>, running: &[CpuIndex]) -> Vec<CpuIndex> {
    let load = |processor: CpuIndex| running.iter().filter(|busy| **busy == processor).count();
    allowed.sort_compactly_by_key(|processor| (load(*processor), core::cmp::Reverse(*processor)));
    allowed
}

/// A socket with a name that only one process can have, and that leaves no file behind.
fn claim(claims: &str, processor: CpuIndex, round: u8) -> io::Result<CpuClaim> {
    let name = format!("{claims}-{}-{round}", processor.0);
    let address = SocketAddr::from_abstract_name(name.as_bytes())?;
    Ok(CpuClaim { processor, _claim: UnixDatagram::bind_addr(&address)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_busy_comes_first() {
        let order = by_load([0, 1, 2, 3].map(CpuIndex).to_vec(), &[3, 3, 1, 7].map(CpuIndex));
        assert_eq!(order, [2, 0, 1, 3].map(CpuIndex));
    }

    #[test]
    fn guests_at_the_same_time_spread() {
        let allowed = resources::allowed_processors().expect("Linux reports them").len();
        // Sessions of others on this host claim as well, under the common name.
        let claims = format!("linerate-test-processor-{}", std::process::id());
        let seats: Vec<_> = (0..allowed).filter_map(|_| claim_one(&claims)).collect();
        let mut taken: Vec<CpuIndex> = seats.iter().map(|seat| seat.processor).collect();
        taken.sort();
        taken.dedup();
        assert_eq!(taken.len(), allowed, "each has its own: {taken:?}");
        assert!(claim_one(&claims).is_some(), "and then they share");
    }
}
