//! Platforms that have packages.

use anyhow::{Context, Result};

/// Processor with the names that toolchains and packages have for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Platform {
    X86_64,
    Aarch64,
}

impl Platform {
    pub(super) const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// Reads a processor's name or a target triple of Rust.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let is_it = |platform: &Self| text == platform.processor() || text == platform.triple();
        let names = Self::ALL.map(Self::processor).join(", ");
        Self::ALL.into_iter().find(is_it).with_context(|| format!("unknown target '{text}' (expected one of: {names})"))
    }

    pub(super) fn of_this_machine() -> Result<Self> {
        Self::parse(std::env::consts::ARCH).context("this machine's processor has no packages")
    }

    /// Name of the kernel, of RPM and of Zig.
    pub(super) fn processor(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// Target triple of Rust.
    pub(super) fn triple(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-unknown-linux-musl",
            Self::Aarch64 => "aarch64-unknown-linux-musl",
        }
    }

    /// Name of Debian and of container images.
    pub(super) fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_the_platform() {
        for platform in Platform::ALL {
            assert_eq!(Platform::parse(platform.processor()).ok(), Some(platform));
            assert_eq!(Platform::parse(platform.triple()).ok(), Some(platform));
        }
    }
}
