//! This host's distribution (`os-release(5)`), and the names that its packages have there.

use std::fs;
use std::sync::OnceLock;

/// Distributions whose packages have the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Debian and those made from it.
    Debian,
    /// Ubuntu, whose kernel is packaged otherwise.
    Ubuntu,
    /// Red Hat Enterprise Linux, its rebuilds, and Fedora.
    RedHat,
    /// `openSUSE` and SUSE Linux Enterprise.
    Suse,
    /// Arch Linux.
    Arch,
    /// Alpine Linux.
    Alpine,
}

/// Kernel modules that small installations leave out, as an item of [`install_advice`].
pub const MORE_MODULES: &str = "further kernel modules";

/// Headers of the C library, as an item of [`install_advice`].
pub const C_HEADERS: &str = "the C library's headers";

/// Debian's kernel with all modules; the variants for clouds have fewer.
const DEBIAN_KERNEL: &str = if cfg!(target_arch = "aarch64") { "linux-image-arm64" } else { "linux-image-amd64" };

/// Packages of each program or item: Debian, Ubuntu, Red Hat, SUSE, Arch, Alpine.
const PACKAGES: &[(&str, [&str; 6])] = &[
    ("ip", ["iproute2", "iproute2", "iproute", "iproute2", "iproute2", "iproute2"]),
    ("ss", ["iproute2", "iproute2", "iproute", "iproute2", "iproute2", "iproute2"]),
    ("tc", ["iproute2", "iproute2", "iproute-tc", "iproute2", "iproute2", "iproute2"]),
    ("ethtool", ["ethtool"; 6]),
    ("nft", ["nftables"; 6]),
    ("ping", ["iputils-ping", "iputils-ping", "iputils", "iputils", "iputils", "iputils"]),
    ("ssh", ["openssh-client", "openssh-client", "openssh-clients", "openssh-clients", "openssh", "openssh-client"]),
    ("modprobe", ["kmod"; 6]),
    ("sysctl", ["procps", "procps", "procps-ng", "procps", "procps-ng", "procps-ng"]),
    ("gcc", ["gcc"; 6]),
    ("ld", ["binutils"; 6]),
    ("strip", ["binutils"; 6]),
    ("make", ["make"; 6]),
    ("flex", ["flex"; 6]),
    ("bison", ["bison"; 6]),
    ("bc", ["bc"; 6]),
    ("tar", ["tar"; 6]),
    ("xz", ["xz-utils", "xz-utils", "xz", "xz", "xz", "xz"]),
    (C_HEADERS, ["libc6-dev", "libc6-dev", "glibc-devel", "glibc-devel", "glibc", "musl-dev linux-headers"]),
    (
        MORE_MODULES,
        [
            DEBIAN_KERNEL,
            "linux-modules-extra-$(uname -r)",
            "kernel-modules-extra",
            "kernel-default",
            "linux",
            "linux-lts",
        ],
    ),
];

/// Identifiers of `os-release`, its own or those it is like.
const IDENTIFIERS: [(&str, Distribution); 16] = [
    ("ubuntu", Distribution::Ubuntu),
    ("debian", Distribution::Debian),
    ("rhel", Distribution::RedHat),
    ("fedora", Distribution::RedHat),
    ("centos", Distribution::RedHat),
    ("rocky", Distribution::RedHat),
    ("almalinux", Distribution::RedHat),
    ("ol", Distribution::RedHat),
    ("amzn", Distribution::RedHat),
    ("suse", Distribution::Suse),
    ("opensuse", Distribution::Suse),
    ("opensuse-leap", Distribution::Suse),
    ("opensuse-tumbleweed", Distribution::Suse),
    ("sles", Distribution::Suse),
    ("arch", Distribution::Arch),
    ("alpine", Distribution::Alpine),
];

impl Distribution {
    /// Distribution of this host; `None` when it is not one of these.
    #[must_use]
    pub fn of_this_host() -> Option<Self> {
        static OWN: OnceLock<Option<Distribution>> = OnceLock::new();
        *OWN.get_or_init(|| Self::parse(&os_release()))
    }

    /// Distribution that an `os-release` file describes.
    #[must_use]
    pub fn parse(os_release: &str) -> Option<Self> {
        let known = |word: &str| IDENTIFIERS.iter().find(|(name, _)| *name == word).map(|(_, found)| *found);
        let words =
            ["ID", "ID_LIKE"].into_iter().filter_map(|key| value(os_release, key)).flat_map(str::split_whitespace);
        words.into_iter().find_map(known)
    }

    /// Package of a program, of [`MORE_MODULES`] or of [`C_HEADERS`].
    #[must_use]
    pub fn package(self, item: &str) -> Option<&'static str> {
        let (_, packages) = PACKAGES.iter().find(|(name, _)| *name == item)?;
        Some(packages[self as usize])
    }

    /// Command that installs packages.
    const fn install_command(self) -> &'static str {
        match self {
            Self::Debian | Self::Ubuntu => "apt-get install",
            Self::RedHat => "dnf install",
            Self::Suse => "zypper install",
            Self::Arch => "pacman -S",
            Self::Alpine => "apk add",
        }
    }
}

/// Name and version of this host's distribution, such as `Debian GNU/Linux 12 (bookworm)`.
#[must_use]
pub fn pretty_name() -> Option<String> {
    value(&os_release(), "PRETTY_NAME").map(str::to_owned)
}

fn os_release() -> String {
    ["/etc/os-release", "/usr/lib/os-release"].iter().find_map(|path| fs::read_to_string(path).ok()).unwrap_or_default()
}

fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let found = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
    Some(found.trim().trim_matches(['"', '\''])).filter(|found| !found.is_empty())
}

/// Command that installs these programs or items on this host, such as ``install it: `dnf install iproute-tc` ``; `None`
/// for items that no package is known for.
#[must_use]
pub fn install_advice(items: &[&str]) -> Option<String> {
    advice_for(Distribution::of_this_host(), items)
}

/// [`install_advice`] for this distribution; where it is unknown, the packages of Debian and Red Hat.
#[must_use]
pub fn advice_for(distribution: Option<Distribution>, items: &[&str]) -> Option<String> {
    let packages = |of: Distribution| {
        let mut found: Vec<_> = items.iter().filter_map(|item| of.package(item)).collect();
        found.sort_unstable();
        found.dedup();
        (!found.is_empty()).then(|| found.join(" "))
    };
    let command = |of: Distribution| Some(format!("{} {}", of.install_command(), packages(of)?));
    match distribution {
        Some(known) => Some(format!("install it: `{}`", command(known)?)),
        None => Some(format!(
            "install it: package {} of Debian, {} of Red Hat",
            packages(Distribution::Debian)?,
            packages(Distribution::RedHat)?
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_are_known_by_their_own_name_or_that_of_their_kin() {
        for (text, expected) in [
            ("ID=debian\nVERSION_ID=\"12\"\n", Some(Distribution::Debian)),
            ("NAME=x\nID=ubuntu\nID_LIKE=debian\n", Some(Distribution::Ubuntu)),
            ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", Some(Distribution::Ubuntu)),
            ("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", Some(Distribution::RedHat)),
            ("ID='sles'\nID_LIKE='suse'\n", Some(Distribution::Suse)),
            ("ID=alpine\n", Some(Distribution::Alpine)),
            ("ID=manjaro\nID_LIKE=arch\n", Some(Distribution::Arch)),
            ("ID=nixos\n", None),
            ("VARIANT_ID=debian\n", None),
            ("", None),
        ] {
            assert_eq!(Distribution::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn packages_have_the_names_of_the_distribution() {
        let advice = |of, items: &[&str]| advice_for(of, items).expect("known");
        assert_eq!(advice(Some(Distribution::RedHat), &["tc"]), "install it: `dnf install iproute-tc`");
        assert_eq!(advice(Some(Distribution::Debian), &["tc", "ip"]), "install it: `apt-get install iproute2`");
        assert_eq!(advice(Some(Distribution::Alpine), &["tc"]), "install it: `apk add iproute2`");
        let modules = advice(Some(Distribution::RedHat), &[MORE_MODULES]);
        assert_eq!(modules, "install it: `dnf install kernel-modules-extra`");
        let unknown = advice(None, &["tc"]);
        assert_eq!(unknown, "install it: package iproute2 of Debian, iproute-tc of Red Hat");
        assert_eq!(advice_for(Some(Distribution::Arch), &["no-such-program"]), None);
    }

    #[test]
    fn every_row_of_the_table_has_a_package_for_each() {
        for (item, packages) in PACKAGES {
            assert!(packages.iter().all(|package| !package.is_empty()), "{item}");
            assert_eq!(PACKAGES.iter().filter(|(other, _)| other == item).count(), 1, "{item}");
        }
    }
}
