//! Applications that move data on this host.

use linerate_model::fact::Fact;
use linerate_model::host::applications::{NfsMount, TransferApplications, TransferProcess, TransferProgram};
use linerate_model::socket::ProcessId;

use super::reading::file;
use super::running::{RunningProcess, arguments};

pub(super) fn read(processes: &[RunningProcess]) -> TransferApplications {
    let transfer = |process: &RunningProcess| {
        let program = TransferProgram::by_name(&process.name)?;
        Some(TransferProcess::from_arguments(ProcessId(process.number), program, &arguments(process.number)))
    };
    TransferApplications {
        nfs_mounts: file("/proc/thread-self/mounts").map(|text| NfsMount::parse_all(&text)),
        transfers: Fact::Known(processes.iter().filter_map(transfer).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_read_and_programs_found() {
        let own = RunningProcess { number: std::process::id(), name: "rsync".to_owned() };
        let other = RunningProcess { number: std::process::id(), name: "sh".to_owned() };
        let applications = read(&[own, other]);
        assert!(applications.nfs_mounts.known().is_some());
        let transfers = applications.transfers.known().expect("known");
        assert_eq!(transfers.len(), 1);
        assert_eq!((transfers[0].program, transfers[0].compresses), (TransferProgram::Rsync, false));
    }
}
