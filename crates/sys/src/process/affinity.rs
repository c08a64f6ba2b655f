//! Assignment of threads to processors.

use std::fs;
use std::io;

use linerate_model::parameters::CpuIndex;

use crate::error::{Error, Result, check};

const PROCESSORS_HINT: &str = "`nproc --all` and /sys/devices/system/cpu/online show the existing processors; a container may \
                    have fewer";

/// Runs the calling thread on this processor only. Threads that it starts later inherit that.
pub fn pin_thread(cpu: CpuIndex) -> Result<()> {
    pin(0, cpu)
}

/// Runs every thread of this process on this processor only (iperf3 `-A`).
pub fn pin_process(cpu: CpuIndex) -> Result<()> {
    let failed = |cause| Error::system("listing this process's threads in /proc/self/task", cause);
    for entry in fs::read_dir("/proc/self/task").map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let Some(thread) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        match pin(thread, cpu) {
            Err(error) if error.errno() == Some(libc::ESRCH) => {} // it has ended meanwhile
            done => done?,
        }
    }
    Ok(())
}

/// The processor that runs the calling thread now; `None` when the kernel does not report it.
#[must_use]
pub fn current_cpu() -> Option<CpuIndex> {
    u16::try_from(rustix::thread::sched_getcpu()).ok().map(CpuIndex)
}

fn pin(thread: libc::pid_t, cpu: CpuIndex) -> Result<()> {
    // As many words as needed: the C library's set stops at 1024 processors.
    let bits = libc::c_ulong::BITS as usize;
    let index = usize::from(cpu.0);
    let mut mask: Vec<libc::c_ulong> = vec![0; index / bits + 1];
    mask[index / bits] = 1 << (index % bits);
    // SAFETY: the pointer and length in bytes describe `mask`, which the kernel only reads.
    let answer = unsafe {
        libc::sched_setaffinity(thread, size_of_val(mask.as_slice()), mask.as_ptr().cast::<libc::cpu_set_t>())
    };
    check(answer).map(drop).map_err(|cause: io::Error| {
        Error::system(format!("moving a thread to processor {}", cpu.0), cause).hint_on(libc::EINVAL, PROCESSORS_HINT)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_runs_there() {
        std::thread::spawn(|| {
            let here = current_cpu().expect("Linux reports it");
            pin_thread(here).expect("it runs there already");
            for _ in 0..100 {
                std::thread::yield_now();
                assert_eq!(current_cpu(), Some(here));
            }
        })
        .join()
        .expect("no panic");
    }

    #[test]
    fn no_such_processor() {
        for absent in [CpuIndex(1023), CpuIndex(u16::MAX)] {
            let error = pin_thread(absent).expect_err("few hosts have that many");
            assert_eq!(error.errno(), Some(libc::EINVAL));
            assert!(error.to_string().contains("nproc"), "{error}");
        }
    }
}
