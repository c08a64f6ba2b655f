//! Changes of the kernel's behaviour, with the releases that have them.
//!
//! Changes are carried back: into stable branches, where the third number of a release tells, and into the kernels of
//! enterprise distributions, where no number tells. There, behaviour is probed, or unknown.

use super::kernel::{KernelVersion, RunningKernel};

/// Change of the kernel's behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelChange {
    /// Source: the commit, and what it changed.
    pub source: &'static str,
    /// First version that has it.
    pub since: KernelVersion,
    /// First releases of stable branches that have it.
    pub stable: &'static [(KernelVersion, u32)],
}

/// Share of a receive buffer that becomes window learned from packets; `tcp_adv_win_scale` without effect.
pub const LEARNED_WINDOW_SHARE: KernelChange = KernelChange {
    source: "dfa2f0483360 (tcp: get rid of sysctl_tcp_adv_win_scale)",
    since: KernelVersion::new(6, 6),
    stable: &[],
};

/// Learned share also for buffers that a program set with `SO_RCVBUF`. Before, theirs stays at the initial share: a
/// quarter, and a half since 6.10 (697a6c8cec03).
pub const LEARNED_SHARE_OF_SET_BUFFERS: KernelChange = KernelChange {
    source: "a2cbb1603943 (tcp: Update window clamping condition)",
    since: KernelVersion::new(6, 11),
    stable: &[(KernelVersion::new(6, 6), 47)],
};

/// Default maximum of `tcp_rmem` of 32 MiB instead of 6.
pub const LARGER_RECEIVE_BUFFER: KernelChange = KernelChange {
    source: "572be9bf9d0d (tcp: increase tcp_rmem[2] to 32 MB)",
    since: KernelVersion::new(6, 16),
    stable: &[],
};

/// Second number of `tcp_rmem` of 131072 instead of 87380.
pub const INITIAL_RECEIVE_BUFFER: KernelChange = KernelChange {
    source: "a337531b942b (tcp: up initial rmem to 128KB and SYN rwin to around 64KB)",
    since: KernelVersion::new(4, 20),
    stable: &[],
};

impl KernelChange {
    /// True when this kernel has the change, false when it has not; `None` where its release does not tell.
    #[must_use]
    pub fn is_in(&self, kernel: &RunningKernel) -> Option<bool> {
        let version = kernel.version()?;
        if version >= self.since {
            return Some(true);
        }
        if kernel.carries_changes_back() {
            return None;
        }
        let Some((_, first)) = self.stable.iter().find(|(branch, _)| *branch == version) else { return Some(false) };
        kernel.stable_release().map(|release| release >= *first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Fact;

    fn is_in(change: KernelChange, release: &str) -> Option<bool> {
        change.is_in(&RunningKernel { release: Fact::Known(release.to_owned()) })
    }

    #[test]
    fn each_boundary_and_what_is_carried_back() {
        for (change, release, expected) in [
            (LEARNED_WINDOW_SHARE, "6.5.13", Some(false)),
            (LEARNED_WINDOW_SHARE, "6.6.0", Some(true)),
            (LEARNED_WINDOW_SHARE, "6.1.0-18-amd64", Some(false)),
            (LEARNED_WINDOW_SHARE, "5.14.0-427.el9.x86_64", None),
            (LEARNED_WINDOW_SHARE, "4.18.0-553.el8_10.x86_64", None),
            (LEARNED_WINDOW_SHARE, "6.12.0-55.el10.x86_64", Some(true)),
            (LEARNED_SHARE_OF_SET_BUFFERS, "6.6.46", Some(false)),
            (LEARNED_SHARE_OF_SET_BUFFERS, "6.6.47", Some(true)),
            // Distributions that leave the third number at zero.
            (LEARNED_SHARE_OF_SET_BUFFERS, "6.6.0-3-generic", None),
            (LEARNED_SHARE_OF_SET_BUFFERS, "6.10.9", Some(false)),
            (LEARNED_SHARE_OF_SET_BUFFERS, "6.11.1", Some(true)),
            (LARGER_RECEIVE_BUFFER, "6.15.11", Some(false)),
            (LARGER_RECEIVE_BUFFER, "6.16", Some(true)),
            (LARGER_RECEIVE_BUFFER, "6.12.0-55.el10.x86_64", None),
            (INITIAL_RECEIVE_BUFFER, "4.19.300", Some(false)),
            (INITIAL_RECEIVE_BUFFER, "4.20.0", Some(true)),
            (INITIAL_RECEIVE_BUFFER, "4.18.0-553.el8_10.x86_64", None),
            (INITIAL_RECEIVE_BUFFER, "generic", None),
        ] {
            assert_eq!(is_in(change, release), expected, "{}: {release}", change.source);
        }
    }
}
