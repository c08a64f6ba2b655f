//! What this process may do on the host, and what of the host it sees at all.

use crate::fact::Fact;

/// Rights and surroundings of this process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Privileges {
    /// Whether the effective user is root (of its user namespace).
    pub root: Fact<bool>,
    /// Effective capabilities (capabilities(7)).
    pub capabilities: Fact<Capabilities>,
    /// Whether this is the first network namespace of the host: only there are the settings of the whole host seen.
    pub initial_network_namespace: Fact<bool>,
    /// Whether this is the first user namespace of the host, in which root is root.
    pub initial_user_namespace: Fact<bool>,
    /// The kind of container: `docker`, `podman`, `kubernetes`, `systemd-nspawn`, `lxc`; absent on a host itself.
    pub container: Fact<String>,
    /// Whether `/proc/sys` is mounted for writing.
    pub settings_mounted_for_writing: Fact<bool>,
}

/// A set of capabilities, as `/proc/self/status` prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Capabilities(u64);

impl Capabilities {
    /// `CAP_NET_ADMIN`, as a bit: it allows the settings of a network namespace to be written.
    pub const NET_ADMIN: u64 = 1 << 12;
    /// `CAP_NET_RAW`: packet sockets.
    pub const NET_RAW: u64 = 1 << 13;
    /// `CAP_SYS_ADMIN`: new namespaces, mounts.
    pub const SYS_ADMIN: u64 = 1 << 21;

    /// The set with these bits.
    #[must_use]
    pub const fn new(bits: u64) -> Self {
        Self(bits)
    }

    /// From sixteen hexadecimal digits, as in `CapEff: 000001ffffffffff`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        u64::from_str_radix(text.trim(), 16).ok().map(Self)
    }

    /// Whether all of these bits are in it.
    #[must_use]
    pub const fn has(self, bits: u64) -> bool {
        self.0 & bits == bits
    }

    /// The ones that matter here, by name.
    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        let known =
            [(Self::NET_ADMIN, "CAP_NET_ADMIN"), (Self::NET_RAW, "CAP_NET_RAW"), (Self::SYS_ADMIN, "CAP_SYS_ADMIN")];
        known.into_iter().filter(|(bit, _)| self.has(*bit)).map(|(_, name)| name).collect()
    }
}

impl Privileges {
    /// Whether files of settings decide what holds here after a boot: in the first network namespace of a host itself.
    /// `None` where that cannot be told.
    #[must_use]
    pub fn files_apply_here(&self) -> Option<bool> {
        let initial = *self.initial_network_namespace.known()?;
        Some(initial && self.container.known().is_none())
    }

    /// Every fact by its name.
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
        let all = Capabilities::parse("000001ffffffffff").expect("hexadecimal");
        assert_eq!(all.names(), ["CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_SYS_ADMIN"]);
        let docker = Capabilities::parse("00000000a80425fb\n").expect("hexadecimal");
        assert_eq!(docker.names(), ["CAP_NET_RAW"]);
        assert_eq!(Capabilities::parse("none"), None);
    }

    #[test]
    fn files_apply_on_a_host_itself() {
        let mut host = Privileges { initial_network_namespace: Fact::Known(true), ..Privileges::default() };
        assert_eq!(host.files_apply_here(), Some(true));
        host.container = Fact::Known("docker".to_owned());
        assert_eq!(host.files_apply_here(), Some(false));
        assert_eq!(Privileges::default().files_apply_here(), None);
    }
}
