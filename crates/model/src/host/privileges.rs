//! Privileges of this process on the host, and its view of the host.

use crate::fact::Fact;

/// Privileges and environment of this process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessPrivileges {
    /// True when the effective user is root (of its user namespace).
    pub root: Fact<bool>,
    /// Effective capabilities (capabilities(7)).
    pub capabilities: Fact<CapabilitySet>,
    /// True in the initial network namespace: only there the settings of the whole host are visible.
    pub initial_network_namespace: Fact<bool>,
    /// True in the initial user namespace, in which root is unrestricted.
    pub initial_user_namespace: Fact<bool>,
    /// Kind of container: `docker`, `podman`, `kubernetes`, `systemd-nspawn`, `lxc`; absent on the host itself.
    pub container: Fact<String>,
    /// True when `/proc/sys` is mounted for writing.
    pub settings_mounted_for_writing: Fact<bool>,
}

/// Set of capabilities, as printed by `/proc/self/status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CapabilitySet(u64);

impl CapabilitySet {
    /// Bit of `CAP_NET_ADMIN`: writing the settings of a network namespace.
    pub const NET_ADMIN: u64 = 1 << 12;
    /// Bit of `CAP_NET_RAW`: packet sockets.
    pub const NET_RAW: u64 = 1 << 13;
    /// Bit of `CAP_SYS_ADMIN`: new namespaces, mounts.
    pub const SYS_ADMIN: u64 = 1 << 21;

    /// Creates the set of these bits.
    #[must_use]
    pub const fn new(bits: u64) -> Self {
        Self(bits)
    }

    /// Parses sixteen hexadecimal digits, as in `CapEff: 000001ffffffffff`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        u64::from_str_radix(text.trim(), 16).ok().map(Self)
    }

    /// True when it contains all of these bits.
    #[must_use]
    pub const fn has(self, bits: u64) -> bool {
        self.0 & bits == bits
    }

    /// Names of the relevant ones.
    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        let known =
            [(Self::NET_ADMIN, "CAP_NET_ADMIN"), (Self::NET_RAW, "CAP_NET_RAW"), (Self::SYS_ADMIN, "CAP_SYS_ADMIN")];
        known.into_iter().filter(|(bit, _)| self.has(*bit)).map(|(_, name)| name).collect()
    }
}

impl ProcessPrivileges {
    /// True when settings files determine the values after a boot: in the initial network namespace of a host itself.
    /// `None` when unknown.
    #[must_use]
    pub fn files_apply_here(&self) -> Option<bool> {
        let initial = *self.initial_network_namespace.known()?;
        Some(initial && self.container.known().is_none())
    }

    /// Lists every fact by its name.
    #[must_use]
    pub fn listed(&self) -> Vec<(String, Fact<String>)> {
        let yes_no = |fact: &Fact<bool>| fact.clone().map(|yes| yes.to_string());
        [
            ("privileges.root", yes_no(&self.root)),
            ("privileges.capabilities", self.capabilities.clone().map(|set| set.names().join(" "))),
            ("privileges.initial_network_namespace", yes_no(&self.initial_network_namespace)),
            ("privileges.initial_user_namespace", yes_no(&self.initial_user_namespace)),
            ("privileges.container", self.container.clone()),
            ("privileges.settings_mounted_for_writing", yes_no(&self.settings_mounted_for_writing)),
        ]
        .map(|(name, fact)| (name.to_owned(), fact))
        .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_by_name() {
        let all = CapabilitySet::parse("000001ffffffffff").expect("hexadecimal");
        assert_eq!(all.names(), ["CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_SYS_ADMIN"]);
        let docker = CapabilitySet::parse("00000000a80425fb\n").expect("hexadecimal");
        assert_eq!(docker.names(), ["CAP_NET_RAW"]);
        assert_eq!(CapabilitySet::parse("none"), None);
    }

    #[test]
    fn files_apply_on_a_host_itself() {
        let mut host =
            ProcessPrivileges { initial_network_namespace: Fact::Known(true), ..ProcessPrivileges::default() };
        assert_eq!(host.files_apply_here(), Some(true));
        host.container = Fact::Known("docker".to_owned());
        assert_eq!(host.files_apply_here(), Some(false));
        assert_eq!(ProcessPrivileges::default().files_apply_here(), None);
    }
}
